"""The price that no plan of any mode goes below under a given load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.problems.serving.deployment.questions import rival_questions
from planner.problems.serving.deployment.scored_points import best_point
from planner.problems.serving.task.requests import arrivals
from planner.problems.serving.task.resolve import resolve

if TYPE_CHECKING:
    from planner.problems.serving.question import Scenario

WHOLE = {"aggregated", "disaggregated"}  # modes that do all of a request


def least_price(scenario: Scenario) -> float | None:
    """USD per million tokens that no plan of any mode goes below; None without a given load.

    A plan under a load pays its chips whatever they do, so that its own roofline costs what it
    does; the bound is that of the whole question, searched once more at efficiency one.
    """
    rate = arrivals(scenario)
    if rate is None or rate == float("inf"):
        return None
    choose = scenario.choose
    if choose.mode and WHOLE & {*choose.mode} and choose.prefill is choose.decode is None:
        choose = choose.model_copy(update={"mode": None})
    changes = {"estimate": "bound", "objective": "cost", "choose": choose}
    point = best_point(rival_questions(resolve(scenario.model_copy(update=changes))))
    return None if point is None else point.candidate.usd_per_mtok
