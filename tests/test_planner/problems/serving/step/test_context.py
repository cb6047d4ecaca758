"""Memory at mean and at full context; bound and estimate side by side."""

import math

import pytest

import planner
from planner.architecture import model_sizes
from planner.catalogue import models
from planner.text.wording import duration

SCENARIO = {
    "problem": "serving",
    "model": "llama-3.1-70b",
    "system": "hgx-h100",
    "chips": 8,
    "workload": {"input_tokens": 2000, "output_tokens": 500},
    "choose": {"tp": 8},
}


def resident(plan: planner.Plan, context: float) -> float:
    """Bytes one chip holds with every sequence at this context."""
    memory = plan.chosen["memory_per_chip"]
    counted = model_sizes(models.load("llama-3.1-70b"))
    heads = math.ceil(counted.n_kv_heads / 8) / counted.n_kv_heads
    cache = plan.batch * counted.stored_bytes(context) * heads
    return sum(memory[name] for name in ("weights", "activations", "reserved")) + cache


@pytest.mark.parametrize(("batch", "fits"), [(480, True), (575, False)])
def test_the_plan_says_whether_full_contexts_fit(batch, fits):
    """Sized by the mean context, a plan says if all sequences could be at their longest."""
    plan = planner.solve({**SCENARIO, "choose": {"tp": 8, "batch": batch}})
    capacity = plan.chosen["memory_per_chip"]["capacity"]
    assert resident(plan, 2250) <= capacity
    assert (resident(plan, 2500) <= capacity) == fits
    assert plan.chosen["fits_at_full_context"] is fits


def test_a_plan_chosen_on_the_bound_shows_what_to_expect():
    """Bound and estimate of one plan are both computed, whichever chose it."""
    fixed = {**SCENARIO, "choose": {"tp": 8, "batch": 64}}
    by_estimate = planner.solve(fixed)
    by_bound = planner.solve({**fixed, "estimate": "bound"})
    assert by_bound.document["estimate"]["tpot"] == by_estimate.chosen["tpot"]
    assert by_bound.document["estimate"] == by_estimate.document["estimate"]
    assert by_bound.chosen["tpot"] == by_estimate.bound.tpot
    assert duration(by_estimate.chosen["tpot"]) in str(by_bound)
