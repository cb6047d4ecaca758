"""One task on all its layouts, searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.problems.serving.bounds.relaxation import Relaxation, relaxation, whole_chips
from planner.problems.serving.deployment.candidate import Candidate, evaluate
from planner.problems.serving.deployment.shortfalls import shortfalls
from planner.problems.serving.search.batch import (
    LARGEST_BATCH,
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
from planner.problems.serving.task.task import Task
from planner.text.errors import FieldError

__all__ = ["ALTERNATIVES", "OnePool", "layouts_of", "one_pool"]

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
