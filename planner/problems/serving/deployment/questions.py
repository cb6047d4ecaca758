"""The questions of one scenario, searched: each gives its best points and a bound over all of them.

A question is one pool in one mode and set of formats, or two pools; lists in the scenario make many
questions, and the best point of all of them is the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import TypeAlias

import numpy as np

from planner.problems.serving.bounds.lower_bound import Relaxation, relaxation, whole_chips
from planner.problems.serving.deployment import plain_plans
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.drawn_power import power_output
from planner.problems.serving.deployment.pool import evaluate
from planner.problems.serving.deployment.scored_points import (
    PlanPoint,
    best_point,
    ranked_points,
    sort_points,
)
from planner.problems.serving.pairs import pool_pairs
from planner.problems.serving.pairs.evaluated_pairs import EvaluatedPairs
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import (
    LayoutSearchResult,
    largest_feasible,
    max_batch_at_tpot,
    min_chips_step,
    search,
    search_batched,
)
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import ServingTasks
from planner.problems.serving.task.task import Task, TaskPair
from planner.text.tolerances import REL_TOL, TIE

ALTERNATIVES = 5
# Limit on solves: whole replicas leave a gap between two pools that more programs never close.
SOLVES_OF_A_POOL = 24
EDGE = 1 + REL_TOL  # a promise equal to a plan's own time must not fail by a rounding


@dataclass(frozen=True)
class SearchCounts:
    """Number of layouts in a search, of their (layout, batch) points, and of points evaluated."""

    layouts: int
    points: int
    evaluated: int


@dataclass(frozen=True)
class OnePool:
    """One task, its step model on all layouts, and its search result."""

    task: Task
    step: Step
    together: LayoutSearchResult | None = None  # where it was searched together with others

    @cached_property
    def searched(self) -> LayoutSearchResult:
        """Every feasible layout at its best batch."""
        return self.together or search(self.step)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Tuple of the single task."""
        return (self.task,)

    @property
    def pools(self) -> tuple[OnePool, ...]:
        """The pool itself."""
        return (self,)

    @property
    def decided(self) -> SearchCounts:
        """Layouts of the pool, with their batches."""
        looked = self.searched
        return SearchCounts(
            looked.layouts_considered, looked.points_considered, looked.points_evaluated
        )

    def points(self) -> list[PlanPoint]:
        """The best batch of the best few layouts, one cut in halves no other than it whole."""
        layouts = self.step.layouts
        order = plain_plans.plainest_first(self.step, self.searched, TIE)
        rows = self.searched.rows[order]
        _, leading = np.unique(rows, return_index=True)
        best: dict[tuple[int, ...], int] = {}
        for i in np.sort(leading).tolist():
            if len(best) > ALTERNATIVES:
                break
            best.setdefault(layouts.split(int(rows[i])), i)
        return [self.point(int(order[i])) for i in best.values()]

    @property
    def least_score(self) -> float:
        """Lower bound on the score of all points."""
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

        # Requests that wait for a place leave the batch to the layout.
        step = self.step.with_task(task.with_layout(batches=None)) if task.waits else self.step
        bound = relaxation(step, self.searched, incumbent, lambda so_far: value(so_far) >= enough)
        return Relaxation(value(bound), bound.solves)

    @property
    def least_chips(self) -> int:
        """Chips of the smallest replica that holds a sequence."""
        chips = self.step.layouts.replica_chips[self.searched.largest >= 1]
        return int(chips.min()) if chips.size else 0

    def paced(self, paces: np.ndarray) -> list[PlanPoint | None]:
        """Best point at each promise on the time per output token [s]; None if infeasible."""
        task = self.task.promising(None)
        if task.load != "none" or task.batches is not None:
            steps = [
                min_chips_step(self.step.with_task(task.promising(float(pace)))) for pace in paces
            ]
            every = [OnePool(step.task, step, search(step)).points() for step in steps]
            return [points[0] if points else None for points in every]
        count, step = len(self.step.layouts), self.step.with_task(task)
        largest = max_batch_at_tpot(step, largest_feasible(step)[0], paces)
        rows = np.tile(np.arange(count), paces.size)
        tiled = search(step.take(rows), largest.ravel())
        pace = tiled.rows // count
        leading = (np.flatnonzero(pace == k) for k in range(paces.size))
        return [self.point(int(at[0]), tiled, rows) if at.size else None for at in leading]

    def simplest(self) -> PlanPoint | None:
        """Best plain layout covered by measured runs; None if not found."""
        rows = np.flatnonzero(plain_plans.plain_layouts(self.step.layouts))
        part = self.step.take(rows)
        largest, task = None, self.task
        if not task.loaded and task.mode != "prefill" and not task.batch_of_all:
            largest = np.minimum(largest_feasible(part)[0], plain_plans.largest_measured(part))
        searched = search(part, largest)
        inside = plain_plans.is_covered(part.take(searched.rows), searched.batch)
        return self.point(int(np.argmax(inside)), searched, rows) if inside.any() else None

    def point(
        self, i: int, searched: LayoutSearchResult | None = None, rows: np.ndarray | None = None
    ) -> PlanPoint:
        """Plan point `i`; `rows` are the layouts' numbers if others were searched."""
        of = searched or self.searched
        row = int(of.rows[i] if rows is None else rows[of.rows[i]])
        layouts, batch = self.step.layouts.take(np.array([row])), float(of.batch[i])
        pool = partial(evaluate, self.task, layouts, batch, float(of.fill[i]))
        return PlanPoint(
            float(of.score[i]), self.tasks, (row,), lambda: Candidate((pool(),)),
            int(layouts.chips[0]),
            lambda: int(plain_plans.oddness(self.step.take(np.array([row])), np.array([batch]))[0]),
        )  # fmt: skip


@dataclass(frozen=True)
class TwoPools:
    """Two tasks on all their layouts, the search results of either, and the best pairs.

    The pools know no queue each by itself, so that what one costs at least is a bound for both.
    """

    pair: TaskPair
    pools: tuple[OnePool, OnePool]
    pairs: list[pool_pairs.Pair]
    looked: int
    evaluated: Callable[[pool_pairs.Pair], Candidate]

    @property
    def tasks(self) -> tuple[Task, Task]:
        """Tasks of the prefill pool and of the decode pool."""
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
    def decided(self) -> SearchCounts:
        """Pairs of layouts, with every batch of the second; splits of the chips between them."""
        first, last = (pool.decided for pool in self.pools)
        evaluated = first.evaluated + last.evaluated + self.looked
        return SearchCounts(first.layouts * last.layouts, first.layouts * last.points, evaluated)

    def points(self) -> list[PlanPoint]:
        """Best split of the best few pairs, scored by actual decode power if power counts."""
        return list(self._settled)

    @cached_property
    def _settled(self) -> list[PlanPoint]:
        points, word = [self.point(pair) for pair in self.pairs], power_output(self.pools[1].step)
        return sort_points([point.settled(word) for point in points]) if word else points

    @property
    def least_score(self) -> float:
        """Lower bound on the score of all points; if power counts, from the rent."""
        if power_output(self.pools[1].step) is None:
            return min((pair.score for pair in self.pairs), default=np.inf)
        rents = np.array([task.price - task.electricity for task in self.tasks])
        paid = [float(rents @ pair.chips) / pair.requests for pair in self.pairs]
        return min(paid, default=np.inf) if self.task.objective == "cost" else 0.0

    def relaxation(self, incumbent: float, enough: float = np.inf) -> Relaxation:
        """Lower bound of any split: the sum of the minimum costs of both pools per request.

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

    def paced(self, paces: np.ndarray) -> list[PlanPoint | None]:
        """Best point at each promise on the time per output token [s]; None if infeasible."""
        every = pool_pairs.search_at_tpots(self.pair, *self.steps, paces)
        return [self.point(pairs[0]) if pairs else None for pairs in every]

    def simplest(self) -> PlanPoint | None:
        """The best of the pairs of plain layouts that measured runs cover; None without one."""
        rows = [np.flatnonzero(plain_plans.plain_layouts(step.layouts)) for step in self.steps]
        if not all(each.size for each in rows):
            return None
        prefill, decode = (task.with_layout(inside_only=True) for task in self.tasks)
        steps = [step.take(at) for step, at in zip(self.steps, rows, strict=True)]
        pair = replace(self.pair, prefill=prefill, decode=decode)
        decoding = steps[1].with_task(steps[1].task.with_layout(inside_only=True))
        pairs, _ = pool_pairs.search_pools(pair, steps[0].with_task(prefill), decoding)
        if not pairs:
            return None
        first, last = (int(at[row]) for at, row in zip(rows, pairs[0].rows, strict=True))
        return self.point(replace(pairs[0], rows=(first, last)))

    def point(self, pair: pool_pairs.Pair) -> PlanPoint:
        """Plan point of a pair."""
        return PlanPoint(
            pair.score, self.tasks, pair.rows, partial(self.evaluated, pair), sum(pair.chips),
            lambda: pair.odd,
        )  # fmt: skip


Question: TypeAlias = OnePool | TwoPools


def single_pools(tasks: Sequence[Task]) -> list[OnePool]:
    """Search the tasks, compatible tasks together.

    Raises FieldError if the limits on the choices of one admit no layout at all.
    """
    steps = [Step(task, admissible_layouts(task), bound=task.uses_bound) for task in tasks]
    return [OnePool(task, *best) for task, best in zip(tasks, search_steps(steps), strict=True)]


def search_steps(steps: Sequence[Step]) -> list[tuple[Step, LayoutSearchResult]]:
    """Step models on the chips that they need, with best points; compatible steps batched."""
    results: dict[int, tuple[Step, LayoutSearchResult]] = {}
    for numbers in pool_pairs.group_compatible_steps([(step,) for step in steps]):
        counts = [len(steps[number].layouts) for number in numbers]
        joined = min_chips_step(Step.joined([steps[number] for number in numbers]))
        ends = np.cumsum([0, *counts])
        parts = zip(numbers, pairwise(ends), search_batched(joined, counts), strict=True)
        for number, part, searched in parts:
            layouts = joined.layouts.take(np.arange(*part))
            step = steps[number].on(layouts) if len(numbers) > 1 else joined
            results[number] = step, searched
    return [results[number] for number in range(len(steps))]


def double_pools(several: Sequence[TaskPair], most: float = np.inf) -> list[TwoPools]:
    """`single_pools` of questions of two pools; pairs that score `most` or more may be left out."""
    afforded, pools = [], []
    for pair in several:
        layouts = pool_pairs.affordable(
            pair, [admissible_layouts(task) for task in _alone(pair)], most
        )
        if all(map(len, layouts)):  # else not even the smallest two are as cheap
            afforded.append(pair)
            pools.append(both_pools(pair, layouts))
    searched = pool_pairs.search_pools_batched([
        (pair, prefill.step.with_task(pair.prefill), decode.step)
        for pair, (prefill, decode) in zip(afforded, pools, strict=True)
    ])  # fmt: skip
    return searched_pairs(afforded, pools, searched)


def _alone(pair: TaskPair) -> tuple[Task, Task]:
    return pair.prefill.with_layout(arrivals=None), pair.decode.with_layout(arrivals=None)


def both_pools(pair: TaskPair, layouts: Sequence[Layouts] = ()) -> tuple[OnePool, OnePool]:
    """Both pools of a question on given or all layouts; raises FieldError for an empty pool."""
    pools = zip(_alone(pair), layouts or map(admissible_layouts, _alone(pair)), strict=True)
    prefill, decode = (OnePool(task, Step(task, of, bound=task.uses_bound)) for task, of in pools)
    return prefill, decode


def searched_pairs(
    several: Sequence[TaskPair],
    pools: Sequence[tuple[OnePool, OnePool]],
    searched: Sequence[pool_pairs.SearchedPairs],
) -> list[TwoPools]:
    """Questions of two pools with the best pairs that were found."""
    steps = [(first.step, last.step) for first, last in pools]
    questions = [(pair, *two) for pair, two in zip(several, steps, strict=True)]
    evaluated = EvaluatedPairs(questions, [pairs for pairs, _ in searched])
    return [
        TwoPools(several[k], pools[k], pairs, looked, partial(evaluated, k))
        for k, (pairs, looked) in enumerate(searched)
    ]


def searches_with_best_point(tasks: ServingTasks) -> list[Question]:
    """Run the searches that can hold the best point: two pools only if cheaper than one pool.

    Raises FieldError if the limits on the choices admit no layout at all.
    """
    singles = single_pools(tasks.tasks)
    best = best_point(singles)
    return [*singles, *double_pools(tasks.pools, best.score * (1 + TIE) if best else np.inf)]


def all_searches(tasks: ServingTasks) -> list[Question]:
    """Every question of the scenario, searched.

    Raises FieldError if the limits on the choices admit no layout at all.
    """
    return all_searches_batched([tasks])[0]


def all_searches_batched(several: Sequence[ServingTasks]) -> list[list[Question]]:
    """Run `all_searches` for several scenarios, evaluating compatible layouts together."""
    singles = iter(single_pools([task for tasks in several for task in tasks.tasks]))
    doubles = iter(double_pools([pair for tasks in several for pair in tasks.pools]))
    return [
        [*islice(singles, len(tasks.tasks)), *islice(doubles, len(tasks.pools))]
        for tasks in several
    ]


def best_plans(questions: list[Question]) -> tuple[list[Question], list[PlanPoint]]:
    """The questions and their best points.

    Where no plan has a place for all requests of a closed loop they are those in which some wait.
    """
    points = ranked_points(questions)
    waiting = [] if points else waiting_for_places(questions)
    late = ranked_points(waiting)
    return (waiting, late) if late else (questions, points)


def waiting_for_places(questions: Sequence[Question]) -> list[Question]:
    """Search closed-loop tasks again, with requests beyond the memory waiting for a slot."""
    tasks = [task for question in questions for task in question.tasks if task.loop is not None]
    return [*single_pools([task.queueing() for task in tasks])]
