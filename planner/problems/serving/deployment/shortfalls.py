"""The way out of an infeasible question: how far the nearest plan is from each promise."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from planner.problems.serving.search.batch import chosen, feasible, given, largest_feasible
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import PROMISES, Task

PHYSICS = ("need", "mixed")  # limits that nobody made and nobody can ease


def shortfalls(step: Step) -> list[tuple[str, float]]:
    """How far the nearest plan is from each promise: (promise, factor), worst promise first.

    The nearest plan is the one whose promises need the smallest common stretch, over all layouts
    at one sequence per replica or at the given batches; nothing can be nearer, since every
    promised quantity falls with the batch. Promises can be eased and memory cannot, so plans that
    do not fit, or whose prefill cannot keep up, are looked at only if there are no others.
    """
    if step.task.loaded:
        served = capacity(step)
        if served > 0:
            return [("load", (step.task.arrivals or 0.0) / served)]
        step = step.asked(step.task.with_layout(arrivals=None))
    task, layouts = step.task, step.layouts
    rows = np.arange(len(layouts))
    batch, fill = np.ones(len(layouts)), np.ones(len(layouts))
    if task.batches is not None:
        rows, batch, fill = given(task, layouts)
    values = step.take(rows)(batch, fill)
    stretch = {
        name: np.broadcast_to(values[name] / limit, rows.shape)
        for name, limit in task.limits.items()
    }
    physics = np.max([stretch[name] for name in PHYSICS if name in stretch], axis=0)
    promised = np.max(np.stack(list(stretch.values())), axis=0)
    if (physics <= 1).any():
        promised = np.where(physics <= 1, promised, np.inf)
    nearest = int(np.argmin(promised))
    missed = [(name, float(factor[nearest])) for name, factor in stretch.items()]
    return sorted(((n, f) for n, f in missed if f > 1), key=lambda pair: -pair[1])


def shortfalls_at(task: Task, values: Mapping[str, float]) -> list[dict[str, object]]:
    """The promises that one evaluated plan breaks, each with its factor."""
    return [
        {"promise": PROMISES[name], "short_by": values[name] / limit}
        for name, limit in task.limits.items()
        if values[name] > limit
    ]


def capacity(step: Step) -> float:
    """Most requests per second that any layout serves within the promises, 0 if none serves any."""
    most = step.asked(step.task.with_layout(arrivals=math.inf))
    if step.task.mode == "prefill":
        rows, batch, _ = given(most.task, most.layouts)
    else:
        largest, _ = largest_feasible(most)
        rows, batch, _ = chosen(most, largest)
    values = most.take(rows)(batch)
    kept = feasible(most.task, values)
    return float(np.broadcast_to(values["requests"], kept.shape)[kept].max(initial=0.0))
