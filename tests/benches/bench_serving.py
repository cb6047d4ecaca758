"""Timings of the serving core; run by `pytest tests/benches/bench_serving.py -m benchmark`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planner
from formulas.numerics.evaluate import kernel
from planner.architecture import model_sizes
from planner.catalogue import models
from planner.catalogue.systems import system
from planner.problems.serving.bounds.lower_bound import optimum, relaxation
from planner.problems.serving.deployment.questions import all_searches
from planner.problems.serving.deployment.scored_points import ranked_points
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.equations import BOUND, ESTIMATE
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import Task
from planner.scenario import load
from tests.cases.serving import question, searched
from tests.paths import EXAMPLES

pytestmark = pytest.mark.benchmark

POINTS = 1_000_000
EXAMPLE = EXAMPLES / "serve-deepseek-v3-h200.yaml"
OUTPUTS = {
    "estimate": (ESTIMATE["aggregated"], ("T_ttft", "T_tpot", "M_need", "T_slot")),
    "bound": (BOUND, ("T_ttft_bound", "T_tpot_bound", "M_need", "T_slot_bound")),
}


def deepseek(chips: tuple[int, ...], **changes: Any) -> Task:
    """DeepSeek-V3 on H200 nodes, 4000 tokens in and 1000 out."""
    model = model_sizes(models.load("deepseek-v3"))
    task = question(model, chips=chips, input_tokens=4000.0, output_tokens=1000.0, **changes)
    chip = system("hgx-h200").chip
    return replace(
        task, chip=chip, context=4500.0, chunk=8192.0, promises={"ttft": 2.0, "tpot": 0.05}
    )


def solve(task: Task) -> float:
    """Search, certificate and elasticities."""
    step = searched(task)
    found = search(step)
    bound = relaxation(step, found, float(found.score[0]))
    optimum(step.take(found.rows[:1]), float(found.batch[0]))
    return 1 - bound.value / float(found.score[0])


@pytest.mark.parametrize("chips", [(32,), (100,), (100_000,), tuple(range(8, 65))])
def test_search_and_certificate(benchmark: Any, chips: tuple[int, ...]) -> None:
    """Warm; fleets are counts, so 100,000 chips cost what 100 cost."""
    task = deepseek(chips)
    benchmark.extra_info["gap"] = benchmark(lambda: solve(task))
    assert 0 <= benchmark.extra_info["gap"] < 1


@pytest.mark.parametrize("chips", [(32,), (100,), (100_000,), tuple(range(8, 65))])
def test_search_alone(benchmark: Any, chips: tuple[int, ...]) -> None:
    """Every layout and batch, without certificate."""
    task = deepseek(chips)
    assert benchmark(lambda: search(searched(task))).rows.size


def scenario(mode: str | None, chips: Any, demand: str | None) -> dict[str, Any]:
    """The same question as a scenario, of one pool, of two, or of whichever is better."""
    lengths: dict[str, Any] = {"input_tokens": 4000, "output_tokens": 1000}
    return {
        "problem": "serving", "model": "deepseek-v3", "system": "hgx-h200", "chips": chips,
        "price": "$3.50/hour", "promises": {"ttft": "2 s", "tpot": "50 ms"},
        "workload": lengths if demand is None else {**lengths, "demand": demand},
        "choose": {"mode": mode} if mode else {},
    }  # fmt: skip


@pytest.mark.parametrize("chips", [32, 100, 100_000], ids=str)
@pytest.mark.parametrize("demand", [None, "max"])
@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
def test_questions_of_one_pool_and_two(
    benchmark: Any, mode: str, demand: str | None, chips: int
) -> None:
    """A scenario's questions searched, layouts and batches of one pool, and pairs of two."""
    asked = resolve(load(scenario(mode, chips, demand)))
    found = benchmark.pedantic(lambda: all_searches(asked), rounds=3, warmup_rounds=1)
    benchmark.extra_info["points_evaluated"] = sum(each.decided.evaluated for each in found)
    assert ranked_points(found)


@pytest.mark.parametrize("demand", [None, "max", "2 requests/s"])
def test_both_modes_answered(benchmark: Any, demand: str | None) -> None:
    """All of an answer on 32 chips: both modes searched, certificate and elasticities included."""
    asked = scenario(None, 32, demand)
    plan = benchmark.pedantic(lambda: planner.solve(asked), rounds=5, warmup_rounds=1)
    benchmark.extra_info["gap"] = plan.document["certificate"]["gap"]
    assert plan.feasible


def points(model: str) -> tuple[Any, dict[str, Any]]:
    """A compiled model and a million different points of layout and batch."""
    equations, outputs = OUTPUTS[model]
    compiled = kernel(equations, outputs)
    step = searched(deepseek((32,)))
    given = step.take(np.zeros(1, dtype=int)).values(np.ones(1))
    row = {name: float(np.ravel(given[name])[0]) for name in compiled.names}
    random = np.random.default_rng(0)
    row["ep"] = random.choice([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], POINTS)
    row["B"] = random.integers(1, 2000, POINTS).astype(float)
    for name in ("tp", "dp", "pp"):
        row[name] = random.integers(1, 9, POINTS).astype(float)
    return compiled, row


@pytest.mark.parametrize("model", ["estimate", "bound"])
def test_points(benchmark: Any, model: str) -> None:
    """TTFT, TPOT, memory and time of a slot of a million points on one core."""
    compiled, row = points(model)
    result = benchmark(lambda: compiled(**row))
    if benchmark.stats is not None:  # they are told not to time where it only has to run
        benchmark.extra_info["million_points_per_s"] = POINTS / 1e6 / benchmark.stats["median"]
    assert all(np.isfinite(value).all() for value in result.values())


def test_cold_command(benchmark: Any) -> None:
    """`planner solve` in a process of its own."""
    command = [sys.executable, "-m", "planner", "solve", str(EXAMPLE), "--json"]
    run = benchmark.pedantic(
        lambda: subprocess.run(command, check=True, capture_output=True), rounds=5
    )
    assert b'"status": "optimal"' in run.stdout
