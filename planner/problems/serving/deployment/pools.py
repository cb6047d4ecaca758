"""One task on all its layouts, searched.

Two tasks on all their layouts, searched, and the best pairs of them.

The questions of one scenario, searched: each gives its best points, its bound, its way out.

A question is one pool in one mode and set of formats, or two pools; lists in the scenario make many
questions, and the best point of all of them is the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, log
from typing import TypeAlias

import numpy as np

from planner.problems.serving.bounds.relaxation import Relaxation, relaxation, whole_chips
from planner.problems.serving.deployment.candidate import Candidate, evaluate
from planner.problems.serving.deployment.pair import PairCandidate, evaluate_pair
from planner.problems.serving.deployment.pool_candidates import shards
from planner.problems.serving.deployment.pool_pairs import Pair, Pools, search_paces, search_pools
from planner.problems.serving.deployment.shortfalls import shortfalls
from planner.problems.serving.search.batch import (
    LARGEST_BATCH,
    SAME_PRICE,
    Found,
    feasible,
    given,
    grows,
    largest_at,
    largest_feasible,
    search,
    sized,
)
from planner.problems.serving.search.sizing import carrying
from planner.problems.serving.step.layouts import Layouts, enumerate_layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import Asked
from planner.problems.serving.task.task import Task
from planner.text.errors import FieldError

ALTERNATIVES = 5


@dataclass(frozen=True)
class OnePool:
    """One task, its model on all layouts, and what the search found."""

    task: Task
    step: Step
    found: Found

    @property
    def layouts_considered(self) -> int:
        """Layouts of the pool."""
        return self.found.layouts_considered

    @property
    def points_considered(self) -> int:
        """Layouts and batches that were decided."""
        return self.found.points_considered

    @property
    def points_evaluated(self) -> int:
        """Those that were computed to decide them."""
        return self.found.points_evaluated

    def points(self) -> list[SinglePoint]:
        """The best batch of the best few layouts."""
        found = self.found
        _, leading = np.unique(found.rows, return_index=True)
        return [self._point(found, int(i)) for i in np.sort(leading)[: 1 + ALTERNATIVES]]

    def relaxation(self, incumbent: float) -> Relaxation:
        """A bound over every layout and batch."""
        found, task = relaxation(self.step, self.found, incumbent), self.task
        if not task.loaded or task.objective != "cost" or not self.found.rows.size:
            return found
        spare = task.spare * self.least_chips
        least = whole_chips(task, task.arrivals or 0.0, found.value, spare)
        return Relaxation(min(least, incumbent), found.solves)

    @property
    def least_chips(self) -> int:
        """Chips of the smallest replica that holds a sequence."""
        held = self.step.layouts.replica_chips[self.found.largest >= 1]
        return int(held.min()) if held.size else 0

    def shortfalls(self) -> list[tuple[str, float]]:
        """How far the nearest plan is from each promise."""
        return shortfalls(self.step)

    def paced(self, paces: np.ndarray) -> list[SinglePoint | None]:
        """The best point at each promise on the time per output token [s]; None where none is."""
        task = self.task.promising(None)
        if task.loaded or task.batches is not None:
            found = [self._promising(float(pace)).points() for pace in paces]
            return [points[0] if points else None for points in found]
        count, step = len(self.step.layouts), self.step.asked(task)
        largest = largest_at(step, largest_feasible(step)[0], paces)
        rows = np.tile(np.arange(count), paces.size)
        tiled = search(step.take(rows), largest.ravel())
        pace = tiled.rows // count
        return [
            self._point(tiled, int(at[0]), rows) if at.size else None
            for at in (np.flatnonzero(pace == k) for k in range(paces.size))
        ]

    def fastest(self) -> float:
        """The least time per output token that keeps the promises [s]; infinite if none does."""
        task, step = self.task, self.step
        batch, fill = np.ones(len(step.layouts)), np.ones(len(step.layouts))
        if task.loaded:
            # The more chips carry the load, the less each holds.
            paid = np.full(len(step.layouts), max(task.chips))
            step = step.on(step.layouts.on(paid, task.machine.chips_per_domain))
            batch = carrying(step, LARGEST_BATCH)
            step, batch, fill = step.take(batch > 0), batch[batch > 0], fill[batch > 0]
        elif task.batches is not None:
            rows, batch, fill = given(task, step.layouts)
            step = step.take(rows)
        values = step(batch, fill)
        kept = feasible(task, values)
        return float(np.broadcast_to(values["tpot"], kept.shape)[kept].min(initial=np.inf))

    def _promising(self, tpot: float) -> OnePool:
        step = sized(self.step.asked(self.task.promising(tpot)))
        return OnePool(step.task, step, search(step))

    def _point(self, found: Found, i: int, rows: np.ndarray | None = None) -> SinglePoint:
        """A point found; `rows` are the layouts' numbers if others than those were searched."""
        row = found.rows[i : i + 1] if rows is None else rows[found.rows[i : i + 1]]
        return SinglePoint(
            float(found.score[i]),
            self.task,
            self.step.layouts.take(row),
            float(found.batch[i]),
            float(found.fill[i]),
        )


@dataclass(frozen=True)
class SinglePoint:
    """A feasible layout and batch of one task, not yet evaluated in full."""

    score: float
    task: Task
    layouts: Layouts
    batch: float
    fill: float

    @property
    def objective(self) -> str:
        return self.task.objective

    @property
    def candidate(self) -> Candidate:
        return evaluate(self.task, self.layouts, self.batch, self.fill)


def one_pool(task: Task) -> OnePool:
    """A task searched; `FieldError` if the limits on its choices admit no layout at all."""
    step = sized(Step(task, layouts_of(task), bound=task.uses_bound))
    return OnePool(task, step, search(step))


def layouts_of(task: Task) -> Layouts:
    """Every layout that a task may take; `FieldError` if there is none."""
    alone = grows(task) or task.pooled
    layouts = enumerate_layouts(
        heads=task.sizes.n_q_heads,
        layers=task.sizes.n_layers,
        experts=task.sizes.n_experts and task.sizes.n_experts + task.redundant,
        domain=task.machine.chips_per_domain,
        chips=task.chips[-1:] if alone else task.chips,
        joined=task.machine.scale_out is not None,
        tiled=task.tiled,
        limits=task.limits_of,
    )
    if not len(layouts):
        given = ", ".join(f"{k} {list(v)}" for k, v in task.limits_of.items()) or "nothing"
        told = (
            f"no layout of {task.sizes.name} on {task.chips[-1]} chips admits {given}; "
            f"tp divides the {task.sizes.n_q_heads} attention heads, tp * dp_attention fits into "
            f"or is a multiple of the domain of {task.machine.chips_per_domain} chips, "
            f"ep * tp_expert = tp * dp_attention, pp is at most {task.sizes.n_layers}"
        )
        raise FieldError(("choose", told))
    return layouts


# Whole replicas leave a gap between two pools that no number of programs closes.
SOLVES_OF_A_POOL = 24
# The fastest pair is looked for among so many promises at once, so often.
FINENESS = 32
ROUNDS = 2
EDGE = 1 + 1e-9  # a promise equal to a plan's own time must not fail by a rounding


@dataclass(frozen=True)
class TwoPools:
    """Two tasks on all their layouts, what a search of either finds, and the best pairs."""

    pools: Pools
    reading: OnePool
    decoding: OnePool
    pairs: list[Pair]
    looked: int

    @property
    def task(self) -> Task:
        """The question of the pool that decodes."""
        return self.pools.decode

    @property
    def layouts_considered(self) -> int:
        """Pairs of layouts."""
        return self.reading.layouts_considered * self.decoding.layouts_considered

    @property
    def points_considered(self) -> int:
        """Every layout and batch of the second pool, with every layout of the first."""
        return self.reading.layouts_considered * self.decoding.points_considered

    @property
    def points_evaluated(self) -> int:
        """Layouts and batches of both pools, and splits of the chips between them."""
        return self.reading.points_evaluated + self.decoding.points_evaluated + self.looked

    def points(self) -> list[DoublePoint]:
        """The best split of the best few pairs."""
        return [self._point(pair) for pair in self.pairs]

    def relaxation(self, incumbent: float) -> Relaxation:
        """The sum of what either pool costs at least per request: no split does better."""
        if not self.pairs:
            return Relaxation(incumbent, 0)
        bounds = [
            relaxation(
                side.step,
                side.found,
                float(side.found.score.min(initial=incumbent)),
                most=SOLVES_OF_A_POOL,
            )
            for side in (self.reading, self.decoding)
        ]
        value = sum(bound.value for bound in bounds)
        first, second, load = self.pools.prefill, self.pools.decode, self.pools.demand
        if load is not None and first.objective == "cost" and first.price == second.price:
            spare = first.spare * (self.reading.least_chips + self.decoding.least_chips)
            value = whole_chips(first, load, value, spare)
        return Relaxation(min(value, incumbent), sum(bound.solves for bound in bounds))

    def shortfalls(self) -> list[tuple[str, float]]:
        """How far the chips fall short of a load that they could serve part of, else the worst of
        either pool; where each keeps its own, two of them need more chips."""
        served = self._most() if self.pools.demand is not None else 0.0
        if served > 0:
            return [("load", (self.pools.demand or 0.0) / served)]
        found = {name: factor for side in (self.reading, self.decoding)
                 for name, factor in shortfalls(side.step)}  # fmt: skip
        late = self._late()
        if late > 1:
            found["ttft"] = late
        return sorted(found.items(), key=lambda pair: -pair[1])

    def _late(self) -> float:
        """The least time to first token, a cache's way included, over the promised one."""
        promised = self.pools.prefill.promises.get("ttft")
        step = self.reading.step
        if promised is None:
            return 0.0
        _, batch, _ = given(step.task, step.layouts)
        values = step(batch)
        moved = self.pools.transfer(shards(step), float(shards(self.decoding.step).max()))
        fits = np.broadcast_to(values["need"] <= step.task.chip.memory, batch.shape)
        least = np.min(values["ttft"] + moved, where=fits, initial=np.inf)
        return float(least / promised) if np.isfinite(least) else 0.0

    def paced(self, paces: np.ndarray) -> list[DoublePoint | None]:
        """The best point at each promise on the time per output token [s]; None where none is."""
        reading = self.reading.step.asked(self.pools.prefill)
        found = search_paces(self.pools, reading, self.decoding.step, paces)
        return [self._point(pairs[0]) if pairs else None for pairs in found]

    def fastest(self) -> float:
        """The least time per output token that keeps the promises [s]; infinite if none does.

        A pair that decodes one sequence at a time, or a given batch, is as fast as its layout that
        decodes; a given load slows it down, and the promise it still keeps is found by bisection.
        """
        if not self.pairs:
            return np.inf
        step = self.decoding.step.asked(self.task.with_layout(arrivals=None))
        rows = np.arange(len(step.layouts))
        batch, fill = np.ones(rows.size), np.ones(rows.size)
        if step.task.batches is not None:
            rows, batch, fill = given(step.task, step.layouts)
        tpot = step.take(rows)(batch, fill)["tpot"]
        # Chips of a replica that decodes beside the smallest that reads.
        beside = step.layouts.replica_chips + self.reading.step.layouts.replica_chips.min()
        fits = beside[rows] <= max(self.task.chips)
        alone = np.unique(np.broadcast_to(tpot, rows.shape)[fits])
        low = float(alone[0])
        # Usually the very fastest has room beside a pool that reads.
        if self.paced(alone[:1] * EDGE)[0]:
            return low
        high = float(self._point(self.pairs[0]).candidate.decoders.chosen_by["tpot"])
        for _ in range(ROUNDS):
            low, high = self._turn(np.geomspace(low, high, FINENESS))
        if self.pools.demand is not None:
            return high
        return self._turn(np.array([low, *alone[(alone > low) & (alone < high)], high]))[1]

    def _turn(self, paces: np.ndarray) -> tuple[float, float]:
        """The last of some promises that no pair keeps, and the first that one does."""
        found = self.paced(paces[:-1] * EDGE)
        kept = next((k for k, point in enumerate(found) if point), paces.size - 1)
        return float(paces[max(kept - 1, 0)]), float(paces[kept])

    def _most(self) -> float:
        """Most requests per second that any pair serves within the promises, 0 if none does."""
        first, second = (
            task.with_layout(objective="throughput")
            for task in (self.pools.prefill, self.pools.decode)
        )
        most = replace(self.pools, demand=None, prefill=first, decode=second)
        found, _ = search_pools(
            most, self.reading.step.asked(first), self.decoding.step.asked(second)
        )
        return found[0].requests if found else 0.0

    def _point(self, pair: Pair) -> DoublePoint:
        return DoublePoint(pair.score, self.pools, self.reading.step, self.decoding.step, pair)


@dataclass(frozen=True)
class DoublePoint:
    """A feasible pair of layouts and a split of the chips, not yet evaluated in full."""

    score: float
    pools: Pools
    reading: Step
    decoding: Step
    pair: Pair

    @property
    def objective(self) -> str:
        return self.pools.decode.objective

    @property
    def candidate(self) -> PairCandidate:
        return evaluate_pair(self.pools, self.reading, self.decoding, self.pair)


def two_pools(pools: Pools) -> TwoPools:
    """Two pools searched; `FieldError` if the limits on the choices admit no layout at all."""
    # Each pool by itself knows no queue, so that what it costs at least is a bound for both.
    tasks = [task.with_layout(arrivals=None) for task in (pools.prefill, pools.decode)]
    steps = [Step(task, layouts_of(task), bound=task.uses_bound) for task in tasks]
    reading, decoding = (
        OnePool(task, step, search(step)) for task, step in zip(tasks, steps, strict=True)
    )
    pairs, looked = search_pools(pools, reading.step.asked(pools.prefill), decoding.step)
    return TwoPools(pools, reading, decoding, pairs, looked)


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
