"""What of a plan no row covers: named, with the share of its time, and nothing of it inside."""

import numpy as np
import pytest

import planner
from planner.catalogue.profile import COEFFICIENTS
from planner.problems.serving.step.shares import resting_on
from planner.text.errors import InputError
from tests.cases.serving import dense, one_pool, question, sparse

BASE = {
    "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 8,
    "price": "$2/hour", "profile": "vllm-2026",
    "workload": {"input_tokens": 2000, "output_tokens": 500},
    "choose": {"mode": "aggregated", "weights": "fp8", "kv": "fp8", "tp": 8, "pp": 1,
               "replicas": 1, "batch": 64},
}  # fmt: skip
EXPERTS = {"model": "deepseek-v3", "choose": {**BASE["choose"], "weights": None, "kv": None}}
# What is changed of a question well inside, and what alone is then outside.
MOVED = {
    "model": {"model": "llama-2-70b"},
    "number format": {"choose": {**BASE["choose"], "weights": "int8"}},
    "batch": {"choose": {**BASE["choose"], "batch": 1000}},
    "prompt length": {"workload": {"input_tokens": 50, "output_tokens": 8000}},
    "drafts": {"speculation": {"drafts": 3, "acceptance": 0.7}},
    "scale-up domains": {"chips": 32, "choose": {**BASE["choose"], "tp": 8, "pp": 4}},
    "chips": {"chips": 80, "choose": {**BASE["choose"], "tp": 8, "pp": 10}},
}  # fmt: skip


def test_a_plan_among_the_rows_has_nothing_outside():
    """And says what its ranges hold; its JSON lists nothing."""
    plan = planner.solve(BASE, strict=True)
    assert plan.outside == ()
    assert plan.document["outside"] == []
    assert "ranges hold 80% of measured runs" in str(plan)


@pytest.mark.slow
@pytest.mark.parametrize("what", list(MOVED))
def test_what_is_moved_out_alone_is_what_is_outside(what):
    """In text, JSON and page; no range is said to hold measured runs."""
    plan = planner.solve({**BASE, **MOVED[what]})
    assert [each.what for each in plan.outside] == [what]
    (told,) = plan.document["outside"]
    assert 0 < told["share"] <= 1
    assert told["asked"]
    assert told["fitted"]
    assert "outside the fit: " in str(plan)
    assert "measured runs" not in str(plan)
    assert "outside the fit" in plan._repr_html_()
    with pytest.raises(InputError, match="outside the fit"):
        planner.solve({**BASE, **MOVED[what]}, strict=True)


@pytest.mark.parametrize("free", [{}, {"batch": [64, 65]}])
def test_a_strict_sweep_refuses_the_points_outside(free):
    """With what and how much of the time; the others are as they are without it."""
    asked = {**BASE, "choose": {**BASE["choose"], **free}}
    over = {"workload.input_tokens": [50, 2000]}
    table, strict = (planner.sweep(asked, over, strict=s).columns for s in (False, True))
    assert list(strict["status"]) == ["refused", "optimal"]
    assert table["outside"][0].startswith("prompt length")
    assert table["outside"][0] in strict["reason"][0]
    assert table["outside"][1] is None
    assert strict["usd_per_mtok"][0] is None
    assert strict["usd_per_mtok"][1] == table["usd_per_mtok"][1]


def test_a_strict_frontier_is_refused_where_a_plan_of_it_is_outside():
    """As one question is."""
    inside = planner.pareto(BASE, points=2, strict=True)
    assert all(not point["outside"] for point in inside.document["points"])
    with pytest.raises(InputError, match="outside the fit: prompt length"):
        planner.pareto({**BASE, **MOVED["prompt length"]}, points=2, strict=True)


def test_two_pools_are_each_looked_at():
    """Prompts are short for one, contexts for the other."""
    short = {"input_tokens": 100, "output_tokens": 100}
    choose = {"mode": "disaggregated", "weights": "fp8", "kv": "fp8"}
    plan = planner.solve({**BASE, "workload": short, "choose": choose})
    assert {"prompt length": "first token", "context": "step"}.items() <= {
        each.what: each.of for each in plan.outside
    }.items()


@pytest.mark.parametrize("change", [{"estimate": "bound"}, {"assumptions": "lecture"}])
def test_a_bound_rests_on_no_row(change):
    """However far from any."""
    far = {**BASE, **MOVED["prompt length"], **change, "profile": "auto"}
    assert planner.solve(far, strict=True).outside == ()


@pytest.mark.parametrize("model", [dense(), sparse()])
def test_shares_are_parts_of_the_time_and_nothing_where_the_term_is_absent(model):
    """All coefficients together are all but what no coefficient scales; one chip sends nothing."""
    for point in one_pool(question(model, mode="aggregated", chips=(4,))).points():
        pool = point.candidate.last
        for times in resting_on(pool.step, np.array([pool.batch])).values():
            of = dict(zip(COEFFICIENTS, times[:, 0], strict=True))
            assert ((times >= 0) & (times <= 1)).all()
            assert times.sum() > 0.9
            assert (of["t_ar"] + of["e_ar"] > 0) == (pool.layouts.tp[0] > 1)
            assert (of["t_moe"] > 0) == bool(model.n_experts)
