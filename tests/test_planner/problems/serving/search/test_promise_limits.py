"""Promises that hold with a chance: log-normal bands by hand, and batches against every batch."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile import profile
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import largest_feasible
from planner.problems.serving.search.promise_limits import (
    PromiseLimits,
    lowered,
    quantile_factor,
    quantile_factors,
    time_bands,
)
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.protocol.promise import sum_chance
from tests.cases.serving import MODELS, question

TENTH = NormalDist().inv_cdf(0.9)


def asked(chance: float | None, model: str = "sparse", **changes: Any) -> Task:
    """A question whose profile says how far its times may be off."""
    task = question(MODELS[model], chance=chance, **changes)
    known = profile("engines-2026").at(RunContext.of(task.sizes, task.chip))
    return replace(task, profile=known)


def step_of(task: Task) -> Step:
    return Step(task, admissible_layouts(task), bound=False)


def test_every_limit_must_be_kept_up_to_itself():
    """One limit for all rows, or each row's own; rows may be asked for in any order."""
    values = {"need": np.array([1.0, 2.0, 3.0]), "ttft": np.array([0.5, 0.5, 0.1])}
    task = SimpleNamespace(limits={"need": 2.0, "ttft": 0.4}, chance=None)
    step: Any = SimpleNamespace(limits=task.limits, layouts=range(3), task=task)
    step.take = lambda rows: step
    assert PromiseLimits(step, np.ones(3)).hold(values).tolist() == [False, False, False]
    task.limits["ttft"] = 0.5
    assert PromiseLimits(step, np.ones(3)).hold(values).tolist() == [True, True, False]
    step.limits = {"need": np.array([5.0, 3.0, 2.0])}
    hold = PromiseLimits(step, np.ones(3)).hold
    assert hold(values, np.array([0, 1, 2])).tolist() == [True, True, False]
    assert hold(values, np.array([2, 1, 0])).tolist() == [True, True, True]


def test_a_chance_is_that_of_a_log_normal_through_the_ends_of_the_band():
    """The tenths are the ends, the middle is their geometric mean; two parts are off together."""
    assert sum_chance(2.0, [(1.0, 0.5, 2.0)]) == pytest.approx(0.9, abs=1e-5)
    assert sum_chance(0.5, [(1.0, 0.5, 2.0)]) == pytest.approx(0.1, abs=1e-5)
    assert sum_chance(math.sqrt(0.8 * 1.8), [(1.0, 0.8, 1.8)]) == pytest.approx(0.5, abs=1e-9)
    alike = sum_chance(3.0, [(1.0, 0.7, 1.6), (2.0, 0.7, 1.6)])
    assert alike == pytest.approx(sum_chance(3.0, [(3.0, 0.7, 1.6)]), abs=1e-9)
    assert sum_chance(1.0, [(1.0, 1.0, 1.0)]) == 1.0
    assert sum_chance(0.99, [(1.0, 1.0, 1.0)]) == 0.0


@pytest.mark.parametrize("chance", [0.5, 0.7, 0.9, 0.99])
def test_a_factor_is_the_inverse_of_the_chance(chance):
    """A time so many times below its limit keeps it with the chance, and never above its limit."""
    low, high = np.array([0.6, 0.9, 0.99]), np.array([1.9, 1.2, 1.01])
    for factor, *ends in zip(quantile_factor(low, high, chance), low, high, strict=True):
        assert factor >= 1.0
        if factor > 1.0:
            assert sum_chance(factor, [(1.0, *ends)]) == pytest.approx(chance, abs=1e-9)
    assert quantile_factor(np.array([0.5]), np.array([1.1]), 0.5) == 1.0


def test_factors_are_those_of_each_layout_at_its_own_batch():
    """By the profile's own band of the shares that its times rest on, one layout at a time."""
    step = step_of(asked(0.9, promises={"tpot": 1.0, "ttft": 10.0}))
    batch = np.arange(1, len(step.layouts) + 1, dtype=float)
    factors, bands = quantile_factors(step, batch), time_bands(step, batch)
    for name, (low, high) in bands.items():
        middle, width = np.log(low * high) / 2, np.log(high / low) / (2 * TENTH)
        np.testing.assert_allclose(factors[name], np.exp(middle + TENTH * width).clip(1), rtol=2e-4)
    for row in (0, len(step.layouts) - 1):
        alone = quantile_factors(step.take(np.array([row])), batch[[row]])
        assert alone["tpot"][0] == pytest.approx(factors["tpot"][row], rel=1e-12)
    assert np.ptp(factors["tpot"]) > 1e-3


def test_steps_of_several_questions_keep_each_their_own_profile():
    """Joined or alone, a layout's factor is the one of its own question."""
    tasks = [asked(0.9, promises={"tpot": 1.0}), asked(0.9, promises={"tpot": 1.0})]
    here = RunContext.of(tasks[1].sizes, tasks[1].chip)
    other = replace(here, chip="another", architecture="another")
    tasks[1] = replace(tasks[1], profile=profile("engines-2026").at(other))
    steps = [step_of(task) for task in tasks]
    joined = Step.joined(steps)
    ones = np.ones(len(joined.layouts))
    apart = [quantile_factors(step, np.ones(len(step.layouts)))["tpot"] for step in steps]
    assert apart[0][0] != pytest.approx(apart[1][0], rel=1e-3)
    np.testing.assert_allclose(
        quantile_factors(joined, ones)["tpot"], np.concatenate(apart), rtol=1e-12
    )


@pytest.mark.parametrize("model", ["dense", "sparse"])
@pytest.mark.parametrize("chance", [0.5, 0.8, 0.95])
def test_no_larger_batch_keeps_the_promise_with_its_chance(model, chance):
    """Every batch of every layout, one by one, against the largest one that was found."""
    free = step_of(asked(None, model, batch=60.0))
    pace = {0.5: 1.7, 0.8: 3.0, 0.95: 6.0}[chance] * float(
        np.min(free(np.ones(len(free.layouts)))["tpot"])
    )
    step = step_of(asked(chance, model, promises={"tpot": pace}, batch=60.0))
    found, _ = largest_feasible(step)
    most = int(largest_feasible(step.with_task(replace(step.task, chance=None)))[0].max())
    rows = np.repeat(np.arange(len(step.layouts)), most)
    batch = np.tile(np.arange(1, most + 1, dtype=float), len(step.layouts))
    part = step.take(rows)
    good = PromiseLimits(part, batch).hold(part(batch)).reshape(-1, most)
    expected = np.where(good.any(axis=1), most - np.argmax(good[:, ::-1], axis=1), 0)
    assert found.tolist() == expected.tolist()
    assert ((found > 0) & (found < most)).any()


def test_without_promises_of_times_nothing_is_lowered():
    """Memory alone is no matter of chance; neither is what a bound says."""
    step = step_of(asked(0.9))
    batch = np.full(len(step.layouts), 7.0)
    assert lowered(step, batch) is batch
    assert quantile_factors(step, batch) == {}
    bound = Step(asked(0.9, promises={"tpot": 1.0}), step.layouts, bound=True)
    assert lowered(bound, batch) is batch
