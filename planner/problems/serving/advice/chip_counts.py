"""The best plan on the first few of many numbers of chips, without a load, from one search of all.

What a replica does rests on no number of chips. A layout that does not come near the least price on
any number of them does so on no part of them, and pools that may be paired stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.problems.serving.deployment.questions import (
    OnePool,
    Question,
    double_pools,
    pools_of,
    searched_pairs,
    single_pools,
)
from planner.problems.serving.deployment.scored_points import Point, best_point
from planner.problems.serving.pairs.pool_pairs import best_pairs, matched_together
from planner.problems.serving.search.admitted_layouts import layouts_of
from planner.problems.serving.step.layouts import AXES, Layouts
from planner.problems.serving.step.packing import distinct
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import ServingTasks
from planner.problems.serving.task.task import Task
from planner.text.errors import InputError
from planner.text.tolerances import TIE

FEW = 64  # of more numbers so many are looked at first


class PrefixSearch:
    """Searches the first few of some numbers of chips.

    Parameters
    ----------
    counts : numbers of chips that may be paid, in rising order.
    tasks_on : the questions of a scenario on numbers of chips; FieldError where there are none.
    """

    def __init__(
        self, counts: Sequence[int], tasks_on: Callable[[Sequence[int]], ServingTasks]
    ) -> None:
        self._counts, self._tasks_on = counts, tasks_on
        every = tasks_on(counts)
        self._singles = single_pools(every.tasks)
        self._pools = [pools_of(pair) for pair in every.pools]
        steps = [
            (pair, first.step.with_task(pair.prefill), last.step)
            for pair, (first, last) in zip(every.pools, self._pools, strict=True)
        ]
        self._matched = matched_together(steps)
        self._enough = np.inf
        coarse = counts[:: -(-len(counts) // FEW)]
        if len(coarse) < len(counts) and (near := self._on(coarse)) is not None:
            self._enough = near.score * (1 + TIE)  # what scores more is the best of no more counts
        self.best = self.first(len(counts))
        if self.best is not None:
            self._enough = self.best.score * (1 + TIE)

    def first(self, number: int) -> Point | None:
        """The best plan on the first so many numbers; None where none scores as the best of all."""
        return self._on(self._counts[:number])

    def _on(self, counts: Sequence[int]) -> Point | None:
        try:
            tasks = self._tasks_on(counts)
        except InputError:
            return None
        point = best_point([*self._one_pool(tasks), *self._two_pools(tasks)])
        return point if point is not None and point.score <= self._enough else None

    def _one_pool(self, tasks: ServingTasks) -> list[Question]:
        if self._enough == np.inf:
            return [*self._singles]
        if len(tasks.tasks) != len(self._singles):
            return [*single_pools(tasks.tasks)]
        pools: list[Question] = []
        for task, single in zip(tasks.tasks, self._singles, strict=True):
            near = single.searched.rows[single.searched.score <= self._enough]
            if not near.size:
                continue
            layouts = _also_in(task, single.step.layouts.take(np.unique(near)))
            if len(layouts):
                pools.append(OnePool(task, Step(task, layouts, bound=task.uses_bound)))
        return pools

    def _two_pools(self, tasks: ServingTasks) -> list[Question]:
        if len(tasks.pools) != len(self._pools):  # of few chips, or of little power
            return [*double_pools(tasks.pools)]
        several = zip(tasks.pools, self._matched, strict=True)
        pairs = [best_pairs(pair, matched, self._enough) for pair, matched in several]
        return [*searched_pairs(tasks.pools, self._pools, pairs)]


def _also_in(task: Task, wanted: Layouts) -> Layouts:
    """Those of the layouts of a question that are among some, on whatever chips."""
    try:
        layouts = layouts_of(task)
    except InputError:
        return wanted.take(np.arange(0))
    both = Layouts.joined([layouts, wanted])
    _, kind = distinct(*(getattr(both, axis) for axis in AXES), both.halves)
    return layouts.take(np.isin(kind[: len(layouts)], kind[len(layouts) :]))
