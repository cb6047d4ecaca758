"""A fleet for a given load: the batch that carries it, and the fewest chips that keep the promises.

With open arrivals nobody chooses the batch. Requests gather until as many leave as arrive, so the
batch is the smallest one whose slots carry the load, B g/T(B) = load per replica. More replicas
mean less load on each, a smaller batch and shorter queues: whatever is kept by some number of
chips is kept by more, and the fewest are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.serving.step import Step

__all__ = ["carrying", "first", "fitted"]


def carrying(step: Step, largest: int) -> np.ndarray:
    """The smallest batch of each layout that carries its load, 0 where none up to `largest` does.

    Throughput grows from one full group of pp * dp sequences to the next, within a group from one
    full stage to the next, and within a stage with every sequence: three bisections find the first.
    """
    layouts = step.layouts
    if step.task.mode == "prefill":
        ranks = (layouts.pp * layouts.dp_attention) * 1.0
        return np.where(_carries(step, ranks), ranks, 0.0)
    found = np.zeros(len(layouts))
    stages = layouts.pp * 1.0
    group = stages * layouts.dp_attention
    most = np.maximum(np.floor(largest / group), 1)
    rows = np.flatnonzero(_carries(step, most * group))
    if not rows.size:
        return found
    part, stages, group, most = step.take(rows), stages[rows], group[rows], most[rows]
    groups = first(lambda at, n: _carries(part.take(at), n * group[at]), np.zeros(rows.size), most)
    before = (groups - 1) * group
    each = first(
        lambda at, n: _carries(part.take(at), before[at] + n * stages[at]),
        np.zeros(rows.size),
        group / stages,
    )
    before = before + (each - 1) * stages
    last = first(lambda at, n: _carries(part.take(at), before[at] + n), np.zeros(rows.size), stages)
    found[rows] = before + last
    return found


def fitted(step: Step, keeps: Callable[[Step], np.ndarray]) -> Step:
    """The same layouts, each on the fewest chips of the question that `keeps` approves.

    Layouts that no number of chips approves stay on the most. `keeps` maps a step to one verdict
    for every layout.
    """
    paid = np.unique(np.asarray(step.task.chips, dtype=np.int64))
    rows = np.arange(len(step.layouts))
    domain = step.task.machine.chips_per_domain

    def approved(at: np.ndarray, index: np.ndarray) -> np.ndarray:
        return keeps(_paying(step.take(at), paid[index.astype(np.int64)], domain))

    top = np.full(rows.size, paid.size - 1.0)
    kept = approved(rows, top)
    fewest = top.copy()
    fewest[kept] = first(
        lambda at, index: approved(rows[kept][at], index), np.full(kept.sum(), -1.0), top[kept]
    )
    return _paying(step, paid[fewest.astype(np.int64)], domain)


def first(
    holds: Callable[[np.ndarray, np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The smallest whole number in (low, high] for which `holds`, row by row.

    `holds(rows, numbers)` must be false at `low`, true at `high`, and turn once in between.
    """
    low, high = low.copy(), high.copy()
    while True:
        open_rows = np.flatnonzero(high - low > 1)
        if not open_rows.size:
            return high
        middle = np.floor((low[open_rows] + high[open_rows]) / 2)
        good = holds(open_rows, middle)
        high[open_rows[good]] = middle[good]
        low[open_rows[~good]] = middle[~good]


def _carries(step: Step, batch: np.ndarray) -> np.ndarray:
    limit = step.task.limits["load"]
    return np.broadcast_to(step(batch)["load"] <= limit, batch.shape)


def _paying(step: Step, chips: np.ndarray, domain: int) -> Step:
    return step.on(step.layouts.on(chips, domain))
