"""Two tasks on all their layouts, searched, and the best pairs of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.serving.certificate import Relaxation, relaxation
from planner.serving.onepool import OnePool, layouts_of, promising
from planner.serving.pair import PairCandidate, evaluate_pair
from planner.serving.pools import Pair, Pools, search_pools
from planner.serving.search import search
from planner.serving.shortfalls import shortfalls
from planner.serving.step import Step
from planner.serving.task import Task

__all__ = ["TwoPools", "two_pools"]

# Whole replicas leave a gap between two pools that no number of programs closes.
SOLVES_OF_A_POOL = 30


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
        return [
            DoublePoint(pair.score, self.pools, self.reading.step, self.decoding.step, pair)
            for pair in self.pairs
        ]

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
        return Relaxation(min(value, incumbent), sum(bound.solves for bound in bounds))

    def shortfalls(self) -> list[tuple[str, float]]:
        """The worst of either pool; where each keeps its own, two of them need more chips."""
        found = {name: factor for side in (self.reading, self.decoding)
                 for name, factor in shortfalls(side.step)}  # fmt: skip
        return sorted(found.items(), key=lambda pair: -pair[1])

    def promising(self, tpot: float | None) -> TwoPools:
        """The same question with another promise on the time per output token, searched [s]."""
        pools = replace(self.pools, decode=promising(self.pools.decode, tpot))
        return _paired(pools, self.reading, self.decoding.promising(tpot))

    def least_tpot(self) -> float:
        """The least time per output token of any layout that decodes [s]."""
        return self.decoding.least_tpot()


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
    return _paired(pools, reading, decoding)


def _paired(pools: Pools, reading: OnePool, decoding: OnePool) -> TwoPools:
    pairs, looked = search_pools(pools, reading.step.asked(pools.prefill), decoding.step)
    return TwoPools(pools, reading, decoding, pairs, looked)
