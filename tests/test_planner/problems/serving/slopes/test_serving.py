"""Rows of a serving table: which questions they answer, in which order; counts solved again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.problems.serving.slopes import serving
from planner.problems.serving.slopes.fixed_layout import Bound
from planner.problems.serving.slopes.serving import (
    METHOD,
    METHOD_RESIZED,
    RE_SOLVED,
    layout_held,
    serving_rows,
)
from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD
from planner.protocol.parameter import Parameter


def squared(factor: float) -> Any:
    """A scenario whose output is the square of how many times as many there are."""
    return SimpleNamespace(outputs={"ttft": 5 * factor**2} if factor < 1.5 else {})


GIVENS = [
    Parameter("a", 2.0, "s", "chip"),
    Parameter("count", 10.0, "seq", "choices", squared, whole=True),
    Parameter("b", None, "", "model"),
    Parameter("few", 1.0, "seq", "choices", squared, whole=True),
    Parameter("fixed", 3.0, "seq", "choices", whole=True),
]
LEFT, RIGHT = [-1.0, 0.0, 0.25, 0.0, 0.0], [-0.5, 0.0, -0.0, 0.0, 0.0]


def pool(replicas: float) -> Any:
    """What is read of a pool that carries a load on 8 or 16 chips."""
    task = SimpleNamespace(batches=None, loaded=True, chips=(8, 16))
    return SimpleNamespace(replicas=replicas, task=task)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Slopes that are known, of which those of replicas that follow are three times as large."""
    bounds: list[Any] = [Bound(None, 0, (pool(30.0),))]  # type: ignore[arg-type]

    def slopes(bound: Bound, givens: Any, powers: Any = None) -> Any:
        assert powers in ("powers", None)
        number = len(givens)
        table = np.array([LEFT[:number], RIGHT[:number]]) * (3 if bound.resized else 1)
        return {}, {"ttft": table, "usd_per_mtok": -2 * table}

    monkeypatch.setattr(serving, "_bound", lambda scenario: (bounds[0], GIVENS))
    monkeypatch.setattr(
        serving, "symbol_powers", lambda bound, givens: givens is GIVENS and "powers"
    )
    monkeypatch.setattr(serving, "elasticities", slopes)
    monkeypatch.setattr(serving, "search", lambda scenario: scenario)
    return bounds


def test_each_parameter_has_a_row_for_either_question(asked):
    """Of many replicas first the one where they follow; of few the layout held; counts first."""
    rows = serving_rows(None, "ttft")
    assert [row.path for row in rows] == ["count", "few", "fixed", "a", "b", "a", "b"]
    followed, held = rows[3:5], rows[5:]
    assert [(row.left, row.right) for row in followed] == [(-3.0, -1.5), (0.75, 0.0)]
    assert [(row.left, row.right) for row in held] == [(-1.0, -0.5), (0.25, 0.0)]
    assert [row.reach for row in followed] == [6.0, 1.5]
    assert {(row.basis, row.question) for row in followed} == {(METHOD_RESIZED, EVERYTHING_FOLLOWS)}
    assert {(row.basis, row.question) for row in held} == {(METHOD, LAYOUT_HELD)}
    assert (held[0].value, held[0].unit, held[0].group, held[0].method) == (
        2.0,
        "s",
        "chip",
        "slope",
    )
    assert "-0" not in str(followed[1].right)
    asked[0] = Bound(None, 0, (pool(3.0),))
    rows = serving_rows(None, "ttft")
    assert [row.question for row in rows[3:]] == [LAYOUT_HELD] * 2 + [EVERYTHING_FOLLOWS] * 2
    # Without a load it does not matter how many there are: one row, the layout held.
    asked[0].pools[0].task.loaded = False
    for replicas in (3.0, 30.0):
        asked[0].pools[0].replicas = replicas
        rows = serving_rows(None, "ttft")
        assert [(row.path, row.question) for row in rows[3:]] == [
            ("a", LAYOUT_HELD), ("b", LAYOUT_HELD)]  # fmt: skip


def test_a_whole_number_is_solved_again_with_one_fewer_and_one_more(asked):
    """Of ten, whose square is the output, exactly two; beyond what has an answer the other side."""
    count, few, fixed = serving_rows(None, "ttft")[:3]
    assert (count.left, count.right) == pytest.approx((2.0, 2.0))
    assert (count.value, count.method, count.basis) == (10.0, "re-solve", RE_SOLVED)
    assert (few.left, few.right) == (0.0, 0.0)
    assert (fixed.left, fixed.right) == (0.0, 0.0)


def test_prices_with_the_layout_held_are_asked_for_where_they_differ(asked):
    """By path, left and right of the price; nothing where nothing could follow."""
    assert layout_held(None, ["a"]) == {"a": (2.0, 1.0)}
    asked[0].pools[0].task.loaded = False
    assert layout_held(None, ["a"]) == {}


def test_a_plan_is_bound_to_the_question_that_won(monkeypatch):
    """The best point of all questions, with every quantity of the scenario and its machines."""
    monkeypatch.setattr(serving, "resolve", lambda scenario: f"resolved {scenario}")
    monkeypatch.setattr(serving, "all_searches", lambda resolved: [resolved])
    monkeypatch.setattr(serving, "best_plans", lambda questions: (questions, ["best", "second"]))
    monkeypatch.setattr(serving, "resolve_hardware", lambda scenario: f"machines of {scenario}")
    monkeypatch.setattr(serving, "serving_parameters", lambda *asked: [asked])
    monkeypatch.setattr(
        serving, "winner", lambda questions, best: SimpleNamespace(question=(questions, best))
    )
    monkeypatch.setattr(serving, "fix_layouts", lambda *asked: asked)
    bound, givens = serving._bound("it")
    assert bound == ("it", (["resolved it"], "best"), "best")
    assert givens == [("it", "machines of it")] == serving.all_parameters("it")
