"""The questions of one scenario, searched: each gives its best points, its bound, its way out.

A question is one pool in one mode and set of formats, or two pools; lists in the scenario make many
questions, and the best point of all of them is the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log
from typing import Protocol

from planner.serving.asking import Asked
from planner.serving.candidate import Candidate
from planner.serving.certificate import Relaxation
from planner.serving.onepool import one_pool
from planner.serving.pair import PairCandidate
from planner.serving.search import SAME_PRICE
from planner.serving.task import Task
from planner.serving.twopools import two_pools

__all__ = ["Point", "Question", "questions_of", "ranked"]


class Point(Protocol):
    """A feasible plan, not yet evaluated in full; `score` is the objective."""

    score: float

    @property
    def objective(self) -> str:
        """What is minimised."""
        ...

    @property
    def candidate(self) -> Candidate | PairCandidate:
        """The same, evaluated in full."""
        ...


class Question(Protocol):
    """What every searched question can say."""

    @property
    def task(self) -> Task:
        """The task whose figures stand for the question."""
        ...

    @property
    def layouts_considered(self) -> int:
        """Layouts, or pairs of them."""
        ...

    @property
    def points_considered(self) -> int:
        """Layouts and batches that were decided."""
        ...

    @property
    def points_evaluated(self) -> int:
        """Those that were computed to decide them."""
        ...

    def points(self) -> list[Point]:
        """The best few, best first."""
        ...

    def relaxation(self, incumbent: float) -> Relaxation:
        """A bound on the objective that no layout beats."""
        ...

    def shortfalls(self) -> list[tuple[str, float]]:
        """How far the nearest plan is from each promise."""
        ...

    def promising(self, tpot: float | None) -> Question:
        """The same question with another promise on the time per output token, searched [s]."""
        ...

    def least_tpot(self) -> float:
        """The least time per output token of any layout, one sequence at a time [s]."""
        ...


def questions_of(asked: Asked) -> list[Question]:
    """Every question of the scenario, searched.

    Raises
    ------
    FieldError
        If the limits on the choices admit no layout at all.
    """
    return [*map(one_pool, asked.tasks), *map(two_pools, asked.pools)]


def ranked(questions: Sequence[Question]) -> list[Point]:
    """The best points of all questions, best first."""
    points = [point for each in questions for point in each.points()]
    best = min((point.score for point in points), default=1.0)
    # Within one price the order of the search stands: it puts the faster plan first.
    return sorted(points, key=lambda point: floor(log(point.score / best) / SAME_PRICE))
