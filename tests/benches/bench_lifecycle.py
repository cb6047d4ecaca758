"""Timings of lifecycles; run by `pytest tests/benches/bench_lifecycle.py -m benchmark -n 0`."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

import planner
from planner.laws.model_family import ModelFamily
from planner.problems.lifecycle.members import FamilyRule
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search.joint_program import joint_optimum
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum, optimal_size
from planner.scenario import load
from tests.cases.lifecycle import scenario

pytestmark = pytest.mark.benchmark


def settled() -> FixedLayoutOptimum:
    """The optimum of one dense lifecycle."""
    found = optimal_size(resolve_life(load(scenario())), 1.0)
    assert isinstance(found, FixedLayoutOptimum)
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
    life, sizes = resolve_life(load(scenario())), count(1)
    rule = FamilyRule(ModelFamily())

    def serve() -> object:
        return life.serving.cheapest(rule, 1e10 * (1 + 0.003 * next(sizes)), 1.0)

    serve()
    benchmark.pedantic(serve, rounds=20, iterations=1)


def test_the_one_program(benchmark: Any) -> None:
    """Size, tokens and batch in one geometric program, compiled before."""
    best = settled()
    joint_optimum(best)
    benchmark.pedantic(joint_optimum, args=(best,), rounds=10, iterations=1)
