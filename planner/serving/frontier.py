"""The frontier of price against speed: for each speed promised to a user, the cheapest plan.

Each point is the exact optimum under one promise on the time per output token, everything else of
the question held. Between the fastest plan, one sequence on its best layout, and the cheapest the
promises are spaced evenly in the logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import FieldError
from planner.scenario import Scenario
from planner.serving.asking import ask
from planner.serving.questions import best_of, questions_of, ranked

__all__ = ["FAST_PRICE", "POINTS", "Frontier", "frontier", "modes"]

POINTS = 25
# What the lecture's fast mode costs beside the normal one (lecture notes, section 1).
FAST_PRICE = 6.0
EDGE = 1 + 1e-9  # a promise equal to a plan's own time must not fail by a rounding


@dataclass(frozen=True)
class Frontier:
    """Plans in the words of the answer, fastest first, none slower and dearer than another.

    `marks` gives the places of the fast, the normal and the slow mode among them.
    """

    points: tuple[Mapping[str, Any], ...]
    marks: Mapping[str, int]
    warnings: tuple[str, ...]


def frontier(scenario: Scenario, points: int = POINTS) -> Frontier:
    """The frontier of a serving question, whatever its objective and its promise on speed.

    Raises
    ------
    InputError
        For a question that contradicts itself, or without decoding.
    """
    if scenario.choose.mode == ("prefill",):
        told = "a prompt alone has no speed of its own; choose aggregated, disaggregated or decode"
        raise FieldError(("choose.mode", told))
    free = scenario.model_copy(update={"objective": "cost"})
    asked = ask(free)
    questions = questions_of(asked)
    cheapest = ranked(questions)
    if not cheapest:
        return Frontier((), {}, asked.warnings)
    last = cheapest[0].candidate.plan()
    first = min(each.fastest() for each in questions)
    paces = np.geomspace(first, last["tpot"], points)[:-1] * EDGE
    found = zip(*(each.paced(paces) for each in questions), strict=True)
    best = [best_of([point for point in some if point is not None]) for some in found]
    kept = _undominated([*(point[0].candidate.plan() for point in best if point), last])
    return Frontier(tuple(kept), modes(kept), asked.warnings)


def modes(plans: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Places of the fast, the normal and the slow mode among plans, fastest first.

    The slow mode is the cheapest. At the normal one a percent of speed costs a percent of price: it
    has the least product of price and time. The fast one is the fastest within the lecture's
    multiple of the normal price.
    """
    price = np.array([plan["usd_per_mtok"] for plan in plans])
    time = np.array([plan["tpot"] for plan in plans])
    normal = int(np.argmin(price * time))
    affordable = np.flatnonzero(price <= FAST_PRICE * price[normal])
    return {"fast": int(affordable[0]), "normal": normal, "slow": len(plans) - 1}


def _undominated(plans: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Plans by speed, without those that another matches in speed at no higher price."""
    kept: list[dict[str, Any]] = []
    for plan in sorted(plans, key=lambda plan: (plan["tpot"], plan["usd_per_mtok"])):
        if not kept or plan["usd_per_mtok"] < kept[-1]["usd_per_mtok"] * (1 - 1e-9):
            kept.append(plan)
    return kept
