"""Two tasks on all their layouts, searched, and the best pairs of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.problems.serving.bounds.relaxation import Relaxation, relaxation, whole_chips
from planner.problems.serving.deployment.pair import PairCandidate, evaluate_pair
from planner.problems.serving.deployment.pool_candidates import shards
from planner.problems.serving.deployment.pool_pairs import Pair, Pools, search_paces, search_pools
from planner.problems.serving.deployment.pools import OnePool, layouts_of
from planner.problems.serving.deployment.shortfalls import shortfalls
from planner.problems.serving.search.batch import given, search
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task

__all__ = ["TwoPools", "two_pools"]

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
