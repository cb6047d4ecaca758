"""The points that questions give, and which of them is the plan: the best, of ties the plainest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import floor, log
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.plain_plans import OUTSIDE_FIT
from planner.problems.serving.search.batch import SAME_PRICE
from planner.problems.serving.task.task import Task
from planner.text.tolerances import TIE

if TYPE_CHECKING:
    from planner.problems.serving.deployment.questions import Question


@dataclass(frozen=True)
class PlanPoint:
    """A feasible layout of every pool of a question, not yet evaluated in full.

    `rows` are their numbers among the layouts of the question, the pool that decodes last. `chips`
    are paid; `odd` says how far the layouts are from plain ones.
    """

    score: float
    tasks: tuple[Task, ...]
    rows: tuple[int, ...]
    evaluated: Callable[[], Candidate]
    chips: int
    odd: Callable[[], int]

    @property
    def objective(self) -> str:
        """Objective to minimise."""
        return self.tasks[-1].objective

    @property
    def mode(self) -> str:
        """aggregated, disaggregated, decode or prefill."""
        return self.tasks[0].mode if len(self.tasks) == 1 else "disaggregated"

    @property
    def candidate(self) -> Candidate:
        """The plan in full."""
        return self.evaluated()

    def plainness(self) -> tuple[bool, int, int]:
        """Sort key, smaller is plainer: outside the fit, number of chips, oddness of sizes."""
        odd = self.odd()
        return odd >= OUTSIDE_FIT, self.chips, odd

    def settled(self, word: str) -> PlanPoint:
        """Copy of the point, scored by an output of its evaluated plan."""
        made = self.candidate
        return replace(self, score=made.outputs[word], evaluated=lambda: made)


def ranked_points(questions: Sequence[Question]) -> list[PlanPoint]:
    """The best points of all questions, best first; the simplest before them where preferred."""
    points = sort_points([point for question in questions for point in question.points()])
    preferred = _preferred(questions, points)
    return points if preferred is None else [preferred, *points]


def tie_gap(questions: Sequence[Question], score: float) -> float:
    """Relative gap of `score` above the minimum over all points: a tie, or a preference."""
    least = min(question.least_score for question in questions)
    return max(0.0, 1 - least / score)


def plain_plan(questions: Sequence[Question]) -> PlanPoint | None:
    """Best plain plan of all questions that measured runs cover; None if not found."""
    points = [point for question in questions if (point := question.simplest()) is not None]
    return min(points, key=lambda point: point.score, default=None)


def _preferred(questions: Sequence[Question], points: Sequence[PlanPoint]) -> PlanPoint | None:
    share = questions[0].task.prefer_simple if questions else 0.0
    if not share or not points:
        return None
    point = plain_plan(questions)
    return point if point is not None and point.score <= points[0].score * (1 + share) else None


def best_point(questions: Sequence[Question]) -> PlanPoint | None:
    """The first of those `ranked`; questions that cannot hold it are not looked at further."""
    points: list[list[PlanPoint]] = [[] for _ in questions]
    least, floors = np.inf, [question.least_score for question in questions]
    for number in np.argsort(floors, kind="stable").tolist():
        if floors[number] > least * (1 + TIE):
            break
        points[number] = questions[number].points()
        least = min([least, *(point.score for point in points[number])])
    best = sort_points([point for several in points for point in several])
    return _preferred(questions, best) or next(iter(best), None)


def sort_points(points: Sequence[PlanPoint]) -> list[PlanPoint]:
    """The points, best first; of those of several questions that are as good the plainer."""
    least = min((point.score for point in points), default=1.0)
    tied = [point for point in points if point.score <= least * (1 + TIE)]
    # Of one question the plainer comes first already.
    first: dict[tuple[int, ...], PlanPoint] = {}
    for point in tied:
        first.setdefault(tuple(map(id, point.tasks)), point)
    if len(first) > 1:
        keys = {tasks: point.plainness() for tasks, point in first.items()}
        tied.sort(key=lambda point: keys[tuple(map(id, point.tasks))])
    # The sort is stable: within one price the search has put the faster plan first.
    rest = [point for point in points if point.score > least * (1 + TIE)]
    rest.sort(key=lambda point: floor(log(point.score / least) / SAME_PRICE))
    return [*tied, *rest]
