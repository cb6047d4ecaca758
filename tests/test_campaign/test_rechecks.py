"""Answers of every kind of problem, computed anew by what shares nothing with the search."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest

import planner
from tests.campaign.kinds import RECHECKED, rechecked
from tests.sizes import sized

# Of every kind a number of a question whose answer has all that is looked at.
FULL = {"training": 1, "rl": 0, "cache": 4, "prices": 9, "schedule": 2, "fleet": 5, "budget": 1,
        "lifecycle": 0}  # fmt: skip
NEVER = {
    # `tests.campaign.soundness` looks at the serving plan; the others are not computed anew
    "lifecycle": ("serving", "model.weight_bytes", "slope_of_price", "checkpoints"),
    "prices": ("contradictions",),  # their factors; that there are some is looked at
    "schedule": ("simulation.error", "simulation.worst", "simulation.requests"),  # as drawn
    "fleet": ("served",),  # an estimate of 4,000 draws: a hundredth is within its error
}


@pytest.mark.sized
@pytest.mark.parametrize("kind", RECHECKED)
def test_answers_are_what_they_say(kind):
    """`python -m tests.campaign --case KIND-answers:NUMBER` shows one."""
    many = sized(1, 4) if kind in ("lifecycle", "rl") else sized(3, 12)
    ended = [rechecked(kind)(number) for number in range(many)]
    assert set(ended) <= {0, 1}
    assert 0 in ended


@cache
def answer(kind: str) -> tuple[str, str]:
    """A question and its answer, worked out once."""
    asked = import_module(f"tests.campaign.rechecks.{kind}").question(FULL[kind])
    return json.dumps(asked), json.dumps(planner.solve(copy.deepcopy(asked)).document)


def numbers(tree: Any, *above: Any) -> Iterator[tuple[Any, ...]]:
    """The places of all numbers of a tree that are no zero."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        if isinstance(value, dict | list):
            yield from numbers(value, *above, key)
        elif isinstance(value, int | float) and not isinstance(value, bool) and value:
            yield (*above, key)


def unnoticed(kind: str) -> list[str]:
    """Places of numbers of a plan that may be a hundredth larger and nobody says so."""
    hand = import_module(f"tests.campaign.rechecks.{kind}")
    asked, document = map(json.loads, answer(kind))
    assert not list(hand.faults(asked, document))
    missed = []
    for place in numbers(document["plan"]):
        if ".".join(map(str, place)).startswith(NEVER.get(kind, ("-",))):
            continue
        changed = copy.deepcopy(document)
        at = changed["plan"]
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] *= 1.01
        try:
            seen = bool(list(hand.faults(asked, changed)))
        except (
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ):
            seen = True  # nonsense that cannot be looked at
        if not seen:
            missed.append(".".join(map(str, place)))
    return missed


SLOW = {"rl": pytest.mark.campaign, "lifecycle": pytest.mark.slow}  # half a second a number
EVERY = [pytest.param(x, marks=[SLOW[x]] if x in SLOW else []) for x in RECHECKED]


@pytest.mark.parametrize("kind", EVERY)
def test_no_number_of_a_plan_can_be_wrong_unnoticed(kind):
    """The check itself: each number of a plan, a hundredth larger, is seen."""
    assert unnoticed(kind) == []
