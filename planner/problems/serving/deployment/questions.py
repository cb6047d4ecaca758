"""The questions of one scenario, searched: each gives its best points and a bound over all of them.

A question is one pool in one mode and set of formats, or two pools; lists in the scenario make many
questions, and the best point of all of them is the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, pairwise
from math import floor, log
from typing import TypeAlias

import numpy as np

from planner.problems.serving.bounds.lower_bound import Relaxation, relaxation, whole_chips
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.drawn_power import drawn
from planner.problems.serving.deployment.evaluated_pairs import EvaluatedPairs
from planner.problems.serving.deployment.pool import evaluate
from planner.problems.serving.deployment.pool_pairs import (
    Pair,
    affordable,
    alike,
    search_paces,
    search_pools_together,
)
from planner.problems.serving.search.batch import (
    SAME_PRICE,
    Found,
    largest_at,
    largest_feasible,
    layouts_of,
    search,
    search_together,
    sized,
)
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import ServingTasks
from planner.problems.serving.task.task import Task, TaskPair
from planner.text.tolerances import SAME

ALTERNATIVES = 5
# Whole replicas leave a gap between two pools that no number of programs closes.
SOLVES_OF_A_POOL = 24
EDGE = 1 + SAME  # a promise equal to a plan's own time must not fail by a rounding


@dataclass(frozen=True)
class Point:
    """A feasible layout of every pool of a question, not yet evaluated in full.

    `rows` are their numbers among the layouts of the question, the pool that decodes last.
    """

    score: float
    tasks: tuple[Task, ...]
    rows: tuple[int, ...]
    evaluated: Callable[[], Candidate]

    @property
    def objective(self) -> str:
        """What is minimised."""
        return self.tasks[-1].objective

    @property
    def mode(self) -> str:
        """aggregated, disaggregated, decode or prefill."""
        return self.tasks[0].mode if len(self.tasks) == 1 else "disaggregated"

    @property
    def candidate(self) -> Candidate:
        """The plan in full."""
        return self.evaluated()

    def settled(self, word: str) -> Point:
        """The same, scored by an output of its plan."""
        made = self.candidate
        return replace(self, score=made.outputs[word], evaluated=lambda: made)


@dataclass(frozen=True)
class Decided:
    """How many layouts a search had, with how many batches, and how many of those it computed."""

    layouts: int
    points: int
    evaluated: int


@dataclass(frozen=True)
class OnePool:
    """One task, its model on all layouts, and what the search found."""

    task: Task
    step: Step
    together: Found | None = None  # where it was searched together with others

    @cached_property
    def searched(self) -> Found:
        """Every feasible layout at its best batch."""
        return self.together or search(self.step)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The one question."""
        return (self.task,)

    @property
    def pools(self) -> tuple[OnePool, ...]:
        """The pool itself."""
        return (self,)

    @property
    def decided(self) -> Decided:
        """Layouts of the pool, with their batches."""
        looked = self.searched
        return Decided(looked.layouts_considered, looked.points_considered, looked.points_evaluated)

    def points(self) -> list[Point]:
        """The best batch of the best few layouts, one cut in halves no other than it whole."""
        rows, layouts = self.searched.rows, self.step.layouts
        _, leading = np.unique(rows, return_index=True)
        best: dict[tuple[int, ...], int] = {}
        for i in np.sort(leading).tolist():
            if len(best) > ALTERNATIVES:
                break
            best.setdefault(layouts.split(int(rows[i])), i)
        return [self.point(i) for i in best.values()]

    @property
    def least_score(self) -> float:
        """What no point scores less than."""
        return float(self.searched.score.min(initial=np.inf))

    def relaxation(self, incumbent: float, enough: float = np.inf) -> Relaxation:
        """A bound over every layout and batch; one beyond `enough` may be less than it could be."""
        task = self.task
        paid = task.loaded and task.objective == "cost" and self.searched.rows.size

        def value(bound: Relaxation) -> float:
            least = bound.value
            if paid:
                least = whole_chips(
                    task, task.arrivals or 0.0, least, task.spare * self.least_chips
                )
            return min(least + bound.work, incumbent)

        bound = relaxation(
            self.step, self.searched, incumbent, lambda so_far: value(so_far) >= enough
        )
        return Relaxation(value(bound), bound.solves)

    @property
    def least_chips(self) -> int:
        """Chips of the smallest replica that holds a sequence."""
        chips = self.step.layouts.replica_chips[self.searched.largest >= 1]
        return int(chips.min()) if chips.size else 0

    def paced(self, paces: np.ndarray) -> list[Point | None]:
        """The best point at each promise on the time per output token [s]; None where none is."""
        task = self.task.promising(None)
        if task.load != "none" or task.batches is not None:
            steps = [sized(self.step.with_task(task.promising(float(pace)))) for pace in paces]
            every = [OnePool(step.task, step, search(step)).points() for step in steps]
            return [points[0] if points else None for points in every]
        count, step = len(self.step.layouts), self.step.with_task(task)
        largest = largest_at(step, largest_feasible(step)[0], paces)
        rows = np.tile(np.arange(count), paces.size)
        tiled = search(step.take(rows), largest.ravel())
        pace = tiled.rows // count
        leading = (np.flatnonzero(pace == k) for k in range(paces.size))
        return [self.point(int(at[0]), tiled, rows) if at.size else None for at in leading]

    def point(self, i: int, searched: Found | None = None, rows: np.ndarray | None = None) -> Point:
        """One of the points found; `rows` are the layouts' numbers if others were searched."""
        of = searched or self.searched
        row = int(of.rows[i] if rows is None else rows[of.rows[i]])
        layouts = self.step.layouts.take(np.array([row]))
        pool = partial(evaluate, self.task, layouts, float(of.batch[i]), float(of.fill[i]))
        return Point(float(of.score[i]), self.tasks, (row,), lambda: Candidate((pool(),)))


@dataclass(frozen=True)
class TwoPools:
    """Two tasks on all their layouts, what a search of either finds, and the best pairs.

    The pools know no queue each by itself, so that what one costs at least is a bound for both.
    """

    pair: TaskPair
    pools: tuple[OnePool, OnePool]
    pairs: list[Pair]
    looked: int
    evaluated: Callable[[Pair], Candidate]

    @property
    def tasks(self) -> tuple[Task, Task]:
        """The question of the pool that prefills, and of the one that decodes."""
        return self.pair.prefill, self.pair.decode

    @property
    def task(self) -> Task:
        """The question of the pool that decodes."""
        return self.pair.decode

    @property
    def steps(self) -> tuple[Step, Step]:
        """The model of either pool on all its layouts, prompts waiting as the question has it."""
        prefill, decode = self.pools
        return prefill.step.with_task(self.pair.prefill), decode.step

    @property
    def decided(self) -> Decided:
        """Pairs of layouts, with every batch of the second; splits of the chips between them."""
        first, last = (pool.decided for pool in self.pools)
        evaluated = first.evaluated + last.evaluated + self.looked
        return Decided(first.layouts * last.layouts, first.layouts * last.points, evaluated)

    def points(self) -> list[Point]:
        """The best split of the best few pairs, by what decoding really draws where that counts."""
        return list(self._settled)

    @cached_property
    def _settled(self) -> list[Point]:
        points, word = [self.point(pair) for pair in self.pairs], drawn(self.pools[1].step)
        return best_of([point.settled(word) for point in points]) if word else points

    @property
    def least_score(self) -> float:
        """What no point scores less than: where power counts, the rent."""
        if drawn(self.pools[1].step) is None:
            return min((pair.score for pair in self.pairs), default=np.inf)
        rents = np.array([task.price - task.electricity for task in self.tasks])
        paid = [float(rents @ pair.chips) / pair.requests for pair in self.pairs]
        return min(paid, default=np.inf) if self.task.objective == "cost" else 0.0

    def relaxation(self, incumbent: float, enough: float = np.inf) -> Relaxation:
        """The sum of what either pool costs at least per request: no split does better.

        One beyond `enough` may be less than it could be.
        """
        if not self.pairs:
            return Relaxation(incumbent, 0)
        first, second, load = *self.tasks, self.pair.demand
        paid = load is not None and first.objective == "cost" and first.price == second.price
        bounds: list[Relaxation] = []

        def value(*several: Relaxation) -> float:
            least = sum(bound.value for bound in several)
            if paid and load is not None:
                spare = first.spare * sum(pool.least_chips for pool in self.pools)
                least = whole_chips(first, load, least, spare)
            return min(least + sum(bound.work for bound in several), incumbent)

        for pool in self.pools:
            least = float(pool.searched.score.min(initial=incumbent))
            bounds.append(
                relaxation(
                    pool.step, pool.searched, least,
                    lambda so_far: value(*bounds, so_far) >= enough, most=SOLVES_OF_A_POOL,
                )
            )  # fmt: skip
        return Relaxation(value(*bounds), sum(bound.solves for bound in bounds))

    def paced(self, paces: np.ndarray) -> list[Point | None]:
        """The best point at each promise on the time per output token [s]; None where none is."""
        every = search_paces(self.pair, *self.steps, paces)
        return [self.point(pairs[0]) if pairs else None for pairs in every]

    def point(self, pair: Pair) -> Point:
        """One of the pairs found."""
        return Point(pair.score, self.tasks, pair.rows, partial(self.evaluated, pair))


Question: TypeAlias = OnePool | TwoPools


def single_pools(tasks: Sequence[Task]) -> list[OnePool]:
    """Tasks searched, those that are alike together.

    Raises FieldError if the limits on the choices of one admit no layout at all.
    """
    steps = [Step(task, layouts_of(task), bound=task.uses_bound) for task in tasks]
    return [OnePool(task, *best) for task, best in zip(tasks, search_steps(steps), strict=True)]


def search_steps(steps: Sequence[Step]) -> list[tuple[Step, Found]]:
    """Models on the chips that they need, and their best points; those alike searched together."""
    results: dict[int, tuple[Step, Found]] = {}
    for numbers in alike([(step,) for step in steps]):
        counts = [len(steps[number].layouts) for number in numbers]
        joined = sized(Step.joined([steps[number] for number in numbers]))
        ends = np.cumsum([0, *counts])
        parts = zip(numbers, pairwise(ends), search_together(joined, counts), strict=True)
        for number, part, searched in parts:
            layouts = joined.layouts.take(np.arange(*part))
            step = steps[number].on(layouts) if len(numbers) > 1 else joined
            results[number] = step, searched
    return [results[number] for number in range(len(steps))]


def double_pools(several: Sequence[TaskPair], most: float = np.inf) -> list[TwoPools]:
    """`single_pools` of questions of two pools; pairs that score `most` or more may be left out."""
    afforded, pools = [], []
    for pair in several:
        tasks = [task.with_layout(arrivals=None) for task in (pair.prefill, pair.decode)]
        layouts = affordable(pair, [layouts_of(task) for task in tasks], most)
        if not all(map(len, layouts)):
            continue  # not even the smallest two are as cheap
        prefill, decode = (
            OnePool(task, Step(task, of, bound=task.uses_bound))
            for task, of in zip(tasks, layouts, strict=True)
        )
        afforded.append(pair)
        pools.append((prefill, decode))
    searched = search_pools_together([
        (pair, prefill.step.with_task(pair.prefill), decode.step)
        for pair, (prefill, decode) in zip(afforded, pools, strict=True)
    ])  # fmt: skip

    evaluated = EvaluatedPairs(
        [
            (pair, first.step, last.step)
            for pair, (first, last) in zip(afforded, pools, strict=True)
        ],
        [pairs for pairs, _ in searched],
    )
    return [
        TwoPools(afforded[k], pools[k], pairs, looked, partial(evaluated, k))
        for k, (pairs, looked) in enumerate(searched)
    ]


def rival_questions(tasks: ServingTasks) -> list[Question]:
    """Those of `questions_of` with the best point: two pools only cheaper than the best one pool.

    Raises FieldError if the limits on the choices admit no layout at all.
    """
    singles = single_pools(tasks.tasks)
    best = best_point(singles)
    return [*singles, *double_pools(tasks.pools, best.score if best else np.inf)]


def questions_of(tasks: ServingTasks) -> list[Question]:
    """Every question of the scenario, searched.

    Raises FieldError if the limits on the choices admit no layout at all.
    """
    return questions_together([tasks])[0]


def questions_together(several: Sequence[ServingTasks]) -> list[list[Question]]:
    """`questions_of` several scenarios, layouts of those that are alike evaluated together."""
    singles = iter(single_pools([task for tasks in several for task in tasks.tasks]))
    doubles = iter(double_pools([pair for tasks in several for pair in tasks.pools]))
    return [
        [*islice(singles, len(tasks.tasks)), *islice(doubles, len(tasks.pools))]
        for tasks in several
    ]


def ranked(questions: Sequence[Question]) -> list[Point]:
    """The best points of all questions, best first."""
    return best_of([point for question in questions for point in question.points()])


def best_point(questions: Sequence[Question]) -> Point | None:
    """The first of those `ranked`; questions that cannot hold it are not looked at further."""
    points: list[list[Point]] = [[] for _ in questions]
    least, floors = np.inf, [question.least_score for question in questions]
    for number in np.argsort(floors, kind="stable").tolist():
        if floors[number] > least * EDGE:
            break
        points[number] = questions[number].points()
        least = min([least, *(point.score for point in points[number])])
    return next(iter(best_of([point for several in points for point in several])), None)


def best_of(points: Sequence[Point]) -> list[Point]:
    """The points, best first."""
    least = min((point.score for point in points), default=1.0)
    # Within one price the order of the search stands: it puts the faster plan first.
    return sorted(points, key=lambda point: floor(log(point.score / least) / SAME_PRICE))
