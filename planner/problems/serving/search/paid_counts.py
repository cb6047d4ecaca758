"""On how many chips each layout is tried, where a question admits several numbers of them.

What a replica does rests on no number of chips: only how many replicas there are does, and what is
paid beside them. So of all numbers few may be the best for a layout: those with the least paid per
replica, the one with the most replicas, or of a given batch the fewest that leave a replica as much
of it. A list of numbers multiplies no table of layouts then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.packing import ChipSplit, distinct, max_replicas, min_chips
from planner.text.errors import FieldError
from planner.text.tolerances import TIE

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task

MAX_ROWS = 1_000_000  # layouts on numbers of chips that are searched: 1 kB each


def on_paid_counts(task: Task, layouts: Layouts) -> Layouts:
    """Layouts, enumerated on the most chips, each on the numbers that may be the best for it.

    Raises FieldError where that would be more rows than are searched.
    """
    paid, domain = np.unique(np.asarray(task.chips, np.int64)), task.machine.chips_per_domain
    if paid.size == 1 or not len(layouts):
        return layouts
    if task.limits_of.get("replicas") is not None:
        rooms = ChipSplit(layouts.stage, layouts.pp, np.full(len(layouts), domain))
        least = min_chips(layouts.replicas, rooms)
        return replace(layouts, chips=paid[np.searchsorted(paid, least)])
    alike = (
        layouts.pp * layouts.dp_attention if task.mode == "prefill" else np.ones_like(layouts.pp)
    )
    at, kind = distinct(layouts.stage, layouts.pp, alike)
    counts = []
    for row in at.tolist():
        room = ChipSplit(layouts.stage[[row]], layouts.pp[[row]], np.array([domain]))
        counts.append(paid[_worth_trying(task, max_replicas(paid, room), paid, int(alike[row]))])
    sizes = np.array([each.size for each in counts])
    total = int(sizes[kind].sum())
    if total > MAX_ROWS:
        words = (
            f"{len(layouts):,} layouts on {paid.size:,} numbers of chips are {total:,} questions"
        )
        remedy = f"what would work: at most {MAX_ROWS // len(layouts):,} numbers, as a list"
        raise FieldError(("chips", f"{words}, more than the {MAX_ROWS:,} searched; {remedy}"))
    rows, starts = np.repeat(np.arange(kind.size), sizes[kind]), np.cumsum(sizes) - sizes
    place = np.arange(total) - np.repeat(np.cumsum(sizes[kind]) - sizes[kind], sizes[kind])
    chips = np.concatenate(counts)[starts[kind[rows]] + place]
    return layouts.take(rows).on(chips, domain)


def _worth_trying(task: Task, replicas: np.ndarray, paid: np.ndarray, alike: int) -> np.ndarray:
    """Places of the numbers of chips that may be best, given the replicas on each of them.

    Where no number holds a replica beside the spare ones it is the most. Numbers whose price per
    replica is within `TIE` of the least count as one, of which the fewest chips are tried too.
    """
    up = replicas - task.spare
    good = np.flatnonzero(up >= 1)
    if not good.size:
        return np.array([paid.size - 1])
    if task.batches is not None:
        in_flight = [np.ceil(total / (replicas[good] * alike)) for total in task.batches]
        firsts = [good[np.unique(each, return_index=True)[1]] for each in in_flight]
        return np.unique(np.concatenate(firsts))
    if task.site_power is not None:
        return good
    if task.objective == "latency" and not task.loaded:
        return good[:1]
    if task.objective in ("latency", "throughput"):
        return good[[np.argmax(up[good])]]
    per_replica = paid[good] / up[good]
    least = int(np.argmin(per_replica))
    fewest = int(np.argmax(per_replica <= per_replica[least] * (1 + TIE)))
    return good[np.unique([fewest, least])]
