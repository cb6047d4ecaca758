"""The questions of one scenario, searched: each gives its best points, its bound, its way out.

A question is one pool in one mode and set of formats, or two pools; lists in the scenario make many
questions, and the best point of all of them is the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log
from typing import TypeAlias

from planner.problems.serving.deployment.pools import OnePool, SinglePoint, one_pool
from planner.problems.serving.deployment.twopools import DoublePoint, TwoPools, two_pools
from planner.problems.serving.search.batch import SAME_PRICE
from planner.problems.serving.task.resolve import Asked

__all__ = ["Point", "Question", "best_of", "questions_of", "ranked"]


Point: TypeAlias = SinglePoint | DoublePoint
Question: TypeAlias = OnePool | TwoPools


def questions_of(asked: Asked) -> list[Question]:
    """Every question of the scenario, searched.

    Raises
    ------
    FieldError
        If the limits on the choices admit no layout at all.
    """
    found: list[Question] = [one_pool(task) for task in asked.tasks]
    return [*found, *map(two_pools, asked.pools)]


def ranked(questions: Sequence[Question]) -> list[Point]:
    """The best points of all questions, best first."""
    return best_of([point for each in questions for point in each.points()])


def best_of(points: Sequence[Point]) -> list[Point]:
    """The points, best first."""
    best = min((point.score for point in points), default=1.0)
    # Within one price the order of the search stands: it puts the faster plan first.
    return sorted(points, key=lambda point: floor(log(point.score / best) / SAME_PRICE))
