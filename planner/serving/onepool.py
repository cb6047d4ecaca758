"""One task on all its layouts, searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.errors import FieldError
from planner.serving.candidate import Candidate, evaluate
from planner.serving.certificate import Relaxation, relaxation
from planner.serving.layouts import Layouts, enumerate_layouts
from planner.serving.search import Found, grows, search, sized
from planner.serving.shortfalls import shortfalls
from planner.serving.step import Step
from planner.serving.task import Task

__all__ = ["ALTERNATIVES", "OnePool", "layouts_of", "one_pool", "promising"]

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
        return [
            SinglePoint(
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

    def promising(self, tpot: float | None) -> OnePool:
        """The same question with another promise on the time per output token, searched [s]."""
        task = promising(self.task, tpot)
        step = sized(self.step.asked(task))
        return OnePool(task, step, search(step))

    def least_tpot(self) -> float:
        """The least time per output token of any layout, one sequence at a time [s]."""
        alone = self.step.asked(self.task.with_layout(arrivals=None))
        return float(np.min(alone(np.ones(len(self.step.layouts)))["tpot"]))


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


def promising(task: Task, tpot: float | None) -> Task:
    """The task with another promise on the time per output token [s], or with none."""
    others = {name: limit for name, limit in task.promises.items() if name != "tpot"}
    return task.with_layout(promises=others if tpot is None else {**others, "tpot": tpot})


def layouts_of(task: Task) -> Layouts:
    """Every layout that a task may take; `FieldError` if there is none."""
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
