"""Timings of lifecycles; run by `pytest tests/bench_lifecycle.py -m benchmark -n 0`."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from lifecycle_cases import scenario

import planner
from planner.laws.model_family import Family
from planner.problems.lifecycle.fixed_layout_optimum import Settled
from planner.problems.lifecycle.joint_program import joint
from planner.problems.lifecycle.members import Rule
from planner.problems.lifecycle.resolve import life_of
from planner.problems.lifecycle.search import searched
from planner.scenario import load

pytestmark = pytest.mark.benchmark


def settled() -> Settled:
    """The optimum of one dense lifecycle."""
    found = searched(life_of(load(scenario())), 1.0)
    assert isinstance(found, Settled)
    return found


def test_a_lifecycle_with_other_numbers(benchmark: Any) -> None:
    """The whole answer, intervals and checks included, never asked twice."""
    tokens = count(1)
    planner.solve(scenario())

    def solve() -> object:
        return planner.solve(scenario(inference={"tokens": 1e13 * (1 + 0.01 * next(tokens))}))

    benchmark.pedantic(solve, rounds=5, iterations=1)


def test_serving_one_member(benchmark: Any) -> None:
    """The search over layouts for one size of a family."""
    life, sizes = life_of(load(scenario())), count(1)
    rule = Rule(Family())

    def serve() -> object:
        return life.serving.cheapest(rule, 1e10 * (1 + 0.003 * next(sizes)), 1.0)

    serve()
    benchmark.pedantic(serve, rounds=20, iterations=1)


def test_the_one_program(benchmark: Any) -> None:
    """Size, tokens and batch in one geometric program, compiled before."""
    best = settled()
    joint(best)
    benchmark.pedantic(joint, args=(best,), rounds=10, iterations=1)
