"""The search against an exhaustive one on small systems."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.problems.serving.deployment.missed_promises import shortfalls
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.layouts import AXES
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from tests.cases.serving import (
    MODELS,
    all_layouts,
    columns,
    decided,
    dense,
    product,
    question,
    questions,
    searched,
    sparse,
)
from tests.loops import for_all
from tests.sizes import examples


@examples(12, 60)
@given(questions())
def test_serving_plan_equals_exhaustive_search(task: Task) -> None:
    """No layout and no whole batch beats the plan, and the plan is one of them."""
    found = search(searched(task))
    every = decided(task, int(found.largest.max()) + 2)
    best = float(found.score[0]) if found.rows.size else math.inf
    assert best == pytest.approx(every.best, rel=1e-9)


@examples(12, 60)
@given(questions())
def test_serving_batch_of_every_layout_is_its_best(task: Task) -> None:
    """Each layout, not only the winner, is offered at a batch that none of its own beats."""
    step = searched(task)
    found = search(step)
    every = decided(task, int(found.largest.max()) + 2)
    rows = all_layouts(task)
    names = (*(axis for axis in AXES if axis != "dcp"), "replicas", "chips", "halves", "dcp")
    mine = zip(*(getattr(step.layouts, name).tolist() for name in names), strict=True)
    place = np.array([rows.index(row) for row in mine])
    best, offered = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
    np.minimum.at(best, every.rows[every.kept], every.score[every.kept])
    np.minimum.at(offered, place[found.rows], found.score)
    np.testing.assert_allclose(offered, best, rtol=1e-8)


@for_all(
    "case",
    product(model=("dense", "sparse"), estimate=("calibrated", "bound"), batches=(None, (5,))),
)
def test_serving_plan_equals_scalar_search(case: dict[str, Any]) -> None:
    """The same holds when every point is evaluated alone with plain floats."""
    model = MODELS[case.pop("model")]
    task = question(model, batch=3.0, chips=(2,), promises={"tpot": 0.05}, **case)
    found = search(searched(task))
    every = decided(task, int(found.largest.max()) + 1, slowly=True)
    assert found.score[0] == pytest.approx(every.best, rel=1e-9)


@examples(12, 60)
@given(
    heads=st.sampled_from([2, 4, 6, 8]),
    layers=st.integers(1, 9),
    experts=st.sampled_from([0, 4, 6, 8, 12]),
    domain=st.sampled_from([1, 2, 3, 4, 6, 8]),
    chips=st.lists(st.integers(1, 30), min_size=1, max_size=2),
)
def test_serving_layouts_are_all_there(
    heads: int, layers: int, experts: int, domain: int, chips: list[int]
) -> None:
    """Nothing is missing from the layouts tried, nothing is there twice."""
    model = sparse(layers, heads, experts) if experts else dense(layers, heads)
    task = question(model, chips=tuple(chips), domain=domain)
    layouts = searched(task).layouts
    names = (*(axis for axis in AXES if axis != "dcp"), "replicas", "chips", "halves", "dcp")
    found = list(zip(*(getattr(layouts, name).tolist() for name in names), strict=True))
    assert sorted(found) == sorted(all_layouts(task))


@examples(12, 60)
@given(questions(), st.sampled_from([0.3, 0.9]))
def test_serving_shortfalls_are_the_smallest_common_stretch(task: Task, share: float) -> None:
    """Eased by exactly the factors reported the question has an answer, by less it has none."""
    if (
        task.mode != "aggregated"
        or task.batches is not None
        or not search(searched(task)).rows.size
    ):
        return
    values = searched(task)(np.ones(len(searched(task).layouts)))
    impossible = {name: share * float(np.min(values[name])) for name in ("tpot", "ttft")}
    tight = replace(task, promises=impossible)
    missed = shortfalls(searched(tight))
    assert {name for name, _ in missed} <= {"tpot", "ttft"}
    worst = max(factor for _, factor in missed)
    for factor, has_answer in ((1 + 1e-9, True), (1 - 1e-9, False)):
        eased = {name: limit * worst * factor for name, limit in impossible.items()}
        assert bool(search(searched(replace(task, promises=eased))).rows.size) is has_answer
    eased = {name: impossible[name] * (1 + 1e-9) * dict(missed).get(name, 1.0) for name in eased}
    assert search(searched(replace(task, promises=eased))).rows.size
    assert worst == pytest.approx(_least_stretch(tight), rel=1e-9)


def test_serving_memory_is_named_where_a_model_fits_nowhere() -> None:
    """With too little memory for one sequence anywhere, memory falls short by what is missing."""
    task = question(MODELS["dense"], batch=1.0, chips=(2,), limits_of={"tp": (2,)})
    small = replace(task, chip=replace(task.chip, memory=task.chip.memory / 8))
    (missed,) = shortfalls(searched(small))
    need = min(searched(small)(np.ones(len(searched(small).layouts)))["need"])
    assert missed == ("need", pytest.approx(need / small.chip.memory))


def _least_stretch(task: Task) -> float:
    """Smallest common stretch over all layouts that fit, one sequence each, by plain loops."""
    least = math.inf
    for row in all_layouts(task):
        values = Step(task, columns([row]), bound=task.uses_bound)(np.ones(1))
        if values["need"] <= task.chip.memory and values["mixed"] <= 1:
            least = min(
                least, max(float(np.ravel(values[n])[0]) / task.promises[n] for n in task.promises)
            )
    return least
