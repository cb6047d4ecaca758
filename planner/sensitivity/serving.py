"""The rows of a serving scenario: along its equations, or evaluated again where queues come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.sensitivity.elasticities import Row
from planner.sensitivity.givens import Given, serving_givens
from planner.sensitivity.held import bound_to, elasticities
from planner.serving.asking import ask
from planner.serving.kinds import winner
from planner.serving.overtaking import Contest
from planner.serving.questions import questions_of, ranked

if TYPE_CHECKING:
    from planner.scenario import Scenario

__all__ = ["METHOD", "givens_of", "serving_rows"]

METHOD = "slopes of the equations, layout held"


def serving_rows(scenario: Scenario, name: str) -> tuple[list[Given], list[Row]]:
    """Every given of a scenario that has a plan, and what it does to one output."""
    questions = questions_of(ask(scenario))
    best = ranked(questions)[0]
    givens = serving_givens(scenario, Contest(scenario, questions).hardware())
    bound = bound_to(scenario, winner(questions, best).question, best)
    _, slopes = elasticities(bound, givens)
    slope = slopes[name]
    rows = [
        Row(given.path, given.value, given.unit, given.group, float(slope[0, i]) + 0.0,
            float(slope[1, i]) + 0.0, METHOD)
        for i, given in enumerate(givens)
    ]  # fmt: skip
    return givens, rows


def givens_of(scenario: Scenario) -> list[Given]:
    """Every given of a scenario, its catalogues' figures among them."""
    questions = questions_of(ask(scenario))
    return serving_givens(scenario, Contest(scenario, questions).hardware())
