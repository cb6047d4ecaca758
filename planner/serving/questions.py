"""The questions of one scenario, searched: each gives its best points, its bound, its way out.

A question is one pool in one mode and set of formats, or two pools; lists in the scenario make many
questions, and the best point of all of them is the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log
from typing import Protocol

import numpy as np

from planner.errors import FieldError
from planner.serving.asking import Asked
from planner.serving.candidate import Candidate, evaluate
from planner.serving.certificate import Relaxation, relaxation
from planner.serving.layouts import Layouts, enumerate_layouts
from planner.serving.pair import PairCandidate, evaluate_pair
from planner.serving.pools import Pair, Pools, search_pools
from planner.serving.search import SAME_PRICE, Found, grows, search, sized
from planner.serving.shortfalls import shortfalls
from planner.serving.step import Step
from planner.serving.task import Task

__all__ = ["ALTERNATIVES", "Point", "Question", "layouts_of", "questions_of", "ranked"]

ALTERNATIVES = 5
# Whole replicas leave a gap between two pools that no number of programs closes.
SOLVES_OF_A_POOL = 16


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

    def points(self) -> list[Point]:
        """The best batch of the best few layouts."""
        found = self.found
        _, leading = np.unique(found.rows, return_index=True)
        return [
            _Single(
                float(found.score[i]),
                self.task,
                self.step.layouts.take(found.rows[i : i + 1]),
                float(found.batch[i]),
                float(found.fill[i]),
            )
            for i in np.sort(leading)[: 1 + ALTERNATIVES]
        ]

    def relaxation(self, incumbent: float) -> Relaxation:
        """A bound over every layout and batch."""
        return relaxation(self.step, self.found, incumbent)

    def shortfalls(self) -> list[tuple[str, float]]:
        """How far the nearest plan is from each promise."""
        return shortfalls(self.step)


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

    def points(self) -> list[Point]:
        """The best split of the best few pairs."""
        return [
            _Double(pair.score, self.pools, self.reading.step, self.decoding.step, pair)
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


@dataclass(frozen=True)
class _Single:
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


@dataclass(frozen=True)
class _Double:
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


def questions_of(asked: Asked) -> list[Question]:
    """Every question of the scenario, searched.

    Raises
    ------
    FieldError
        If the limits on the choices admit no layout at all.
    """
    return [*map(_one, asked.tasks), *map(_two, asked.pools)]


def ranked(questions: Sequence[Question]) -> list[Point]:
    """The best points of all questions, best first."""
    points = [point for each in questions for point in each.points()]
    best = min((point.score for point in points), default=1.0)
    # Within one price the order of the search stands: it puts the faster plan first.
    return sorted(points, key=lambda point: floor(log(point.score / best) / SAME_PRICE))


def _one(task: Task) -> OnePool:
    step = sized(Step(task, layouts_of(task), bound=task.uses_bound))
    return OnePool(task, step, search(step))


def _two(pools: Pools) -> TwoPools:
    # Each pool by itself knows no queue, so that what it costs at least is a bound for both.
    tasks = [task.with_layout(arrivals=None) for task in (pools.prefill, pools.decode)]
    steps = [Step(task, layouts_of(task), bound=task.uses_bound) for task in tasks]
    reading, decoding = (
        OnePool(task, step, search(step)) for task, step in zip(tasks, steps, strict=True)
    )
    pairs, looked = search_pools(pools, steps[0].asked(pools.prefill), steps[1])
    return TwoPools(pools, reading, decoding, pairs, looked)


def layouts_of(task: Task) -> Layouts:
    alone = grows(task) or task.pooled
    layouts = enumerate_layouts(
        heads=task.sizes.n_q_heads,
        layers=task.sizes.n_layers,
        experts=task.sizes.n_experts,
        domain=task.machine.chips_per_domain,
        chips=task.chips[-1:] if alone else task.chips,
        joined=task.machine.scale_out is not None,
        tiled=task.machine.kind == "torus",
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
