"""Timings of token budgets; run by `pytest tests/benches/bench_budget.py -m benchmark`.

A first solve compiles the program; a second one is the same program with other numbers, or, with
its bound from the same conditions, Newton's steps from the answer before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import cvxpy  # noqa: F401  loaded beforehand, so that no first solve is charged for it
import numpy as np
import pytest

from planner.problems.budget.certificate import _compiled, proof, solve_geometric_program
from planner.scenario import load
from planner.token_costs.optimum import solve_many
from planner.token_costs.parameters import elasticities
from planner.token_costs.stationary_points import start, stationary_points
from tests.cases.budget import question, solved

pytestmark = pytest.mark.benchmark

ASKED = question(served=2e12)
SCENARIO = {"problem": "budget", "quality": {"like": {"n_active": 13e9}},
            "inference": {"tokens": 2e12}}  # fmt: skip
SWEPT = 10_000


def test_first_solve(benchmark: Any) -> None:
    """Declaration, compilation and one solve of the geometric program."""
    best = solved(ASKED)
    setup = lambda: (_compiled.cache_clear(), ((best.budgets, start(best.budgets)), {}))[1]  # noqa: E731
    assert benchmark.pedantic(solve_geometric_program, setup=setup, rounds=15).value > 0


def test_solve_again_by_the_program(benchmark: Any) -> None:
    """The compiled program with other prices, demands and laws put in."""
    turn = count()

    def again() -> float:
        best = solved(replace(ASKED, served=2e12 * (1 + next(turn) * 1e-6)))
        return solve_geometric_program(best.budgets, start(best.budgets))[1].value

    assert benchmark(again) > 0


def test_solve_again_by_the_conditions(benchmark: Any) -> None:
    """A changed number, from the answer before, with the gap that its conditions prove."""
    best, turn = solved(ASKED), count()

    def again() -> float:
        budgets = replace(best.budgets, limit=best.budgets.limit + next(turn) * 1e-7)
        return float(stationary_points(budgets, best.point).gap[0])

    assert benchmark(again) < 1e-9


def test_elasticities(benchmark: Any) -> None:
    """To every given, without another solve."""
    best, scenario = solved(ASKED), load(SCENARIO)
    assert benchmark(lambda: elasticities(best, scenario))


def test_proof(benchmark: Any) -> None:
    """The program, SciPy on the conditions, and the law's own loss."""
    best = solved(ASKED)
    proof(best)
    assert benchmark(lambda: proof(best)).lower_bound > 0


def test_sweep(benchmark: Any) -> None:
    """Ten thousand budgets of other demands, each proven by its own conditions."""
    several = [replace(ASKED, served=float(s)) for s in np.geomspace(1e10, 1e15, SWEPT)]
    found = benchmark.pedantic(lambda: solve_many(several), rounds=3)
    assert len(found) == SWEPT
