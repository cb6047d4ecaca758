"""The rows of a serving scenario: along its equations, or evaluated again where queues come in."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.deployment.alternatives import winner
from planner.problems.serving.deployment.overtaking import Contest
from planner.problems.serving.deployment.pools import questions_of, ranked
from planner.problems.serving.parameters import serving_givens
from planner.problems.serving.slopes.fixed_layout import bound_to, elasticities
from planner.problems.serving.task.resolve import ask
from planner.protocol.elasticity import Elasticity
from planner.protocol.parameter import Parameter
from planner.protocol.problem import search

if TYPE_CHECKING:
    from planner.scenario import Scenario

__all__ = ["METHOD", "givens_of", "serving_rows"]

METHOD = "slopes of the equations, layout held"
RESIZED = f"{METHOD}, replicas as real numbers"
AGAIN = "solved again with a few fewer and a few more"
FEW = 0.02  # share of a whole number by which it is varied


def serving_rows(scenario: Scenario, name: str) -> tuple[list[Parameter], list[Elasticity]]:
    """Every given of a scenario that has a plan, and what it does to one output."""
    questions = questions_of(ask(scenario))
    best = ranked(questions)[0]
    givens = serving_givens(scenario, Contest(scenario, questions).hardware())
    bound = bound_to(scenario, winner(questions, best).question, best)
    _, slopes = elasticities(bound, givens)
    slope = slopes[name]
    reach = np.max([np.abs(each).max(axis=0) for each in slopes.values()], axis=0)
    method = RESIZED if bound.resized and bound.counted else METHOD
    rows = [
        Elasticity(given.path, given.value, given.unit, given.group, float(slope[0, i]) + 0.0,
                   float(slope[1, i]) + 0.0, "slope", method, reach=float(reach[i]))
        for i, given in enumerate(givens)
    ]  # fmt: skip
    counted = [given for given in givens if given.whole]
    found = {given.path: _counted(given, name) for given in counted}
    return givens, [found.get(row.path, row) for row in rows]


def _counted(given: Parameter, name: str) -> Elasticity:
    """The row of a whole number, from solving with a few fewer and a few more."""
    value = given.value or 1.0
    step = max(1, round(FEW * value))
    ends = []
    for count in (value - step, value, value + step):
        found = search(given.to(count / value)).outputs.get(name) if given.to and count else None
        ends.append(None if found is None else (math.log(count), math.log(found)))
    sides = [
        None if low is None or high is None else (high[1] - low[1]) / (high[0] - low[0])
        for low, high in pairwise(ends)
    ]
    left, right = (
        next((each for each in order if each is not None), 0.0) for order in (sides, sides[::-1])
    )
    return Elasticity(
        given.path, given.value, given.unit, given.group, left, right, "re-solve", AGAIN
    )


def givens_of(scenario: Scenario) -> list[Parameter]:
    """Every given of a scenario, its catalogues' figures among them."""
    questions = questions_of(ask(scenario))
    return serving_givens(scenario, Contest(scenario, questions).hardware())
