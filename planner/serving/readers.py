"""The two sides of a pair of pools: layouts that keep their promises, each at its best.

A reader's pace is set by how busy it may be before requests wait too long; a decoder's by the
largest batch that keeps its time per token. Of layouts whose replicas take the same room only the
fastest is kept, unless latency counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from planner.serving.search import chosen, feasible, given, largest_feasible
from planner.serving.split import Room
from planner.serving.step import Step

__all__ = ["Decoders", "Readers", "decoders", "readers", "shards"]

HALVINGS = 50


@dataclass(frozen=True)
class Readers:
    """Layouts that prefill, as columns of shape (n,).

    `rows` index the step's layouts; `fill` is the share of time a reader may be busy, `rate` the
    prompts per second of a replica at it, `first` the time to first token then, transfer included.
    """

    rows: np.ndarray
    room: Room
    fill: np.ndarray
    rate: np.ndarray
    first: np.ndarray

    def take(self, rows: np.ndarray) -> Readers:
        """The same of some rows."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "room"}
        return Readers(room=self.room.take(rows), **{k: v[rows] for k, v in columns.items()})


@dataclass(frozen=True)
class Decoders:
    """Layouts that decode, as columns of shape (n,).

    `batch` is that of a replica, `rate` the requests per second it then serves, `decoding` the
    time from the first token of a request to its last.
    """

    rows: np.ndarray
    room: Room
    batch: np.ndarray
    rate: np.ndarray
    decoding: np.ndarray


def shards(step: Step) -> np.ndarray:
    """Chips that hold different parts of one sequence's cache, for every layout."""
    heads = max(step.task.sizes.n_kv_heads, 1)
    return np.minimum(step.layouts.tp, heads) * step.layouts.pp


def readers(step: Step, moved: np.ndarray, *, alike: bool) -> Readers:
    """The layouts that read prompts in time, each as busy as its promises let it be.

    Parameters
    ----------
    moved : seconds that a cache takes to the other pool, for every layout.
    alike : keep only the fastest of those whose replicas take the same room.
    """
    task = step.task
    rows, batch, _ = given(task, step.layouts)

    def kept(at: np.ndarray, fill: np.ndarray) -> np.ndarray:
        return feasible(task, _late(step.take(at)(batch[at], fill), moved[at]))

    waits = task.arrivals is not None
    idle = np.full(rows.size, np.finfo(float).tiny ** 0.5 if waits else 1.0)
    rows = rows[kept(rows, idle)]
    low, high = idle[rows], np.ones(rows.size)
    full = kept(rows, high)
    low = np.where(full, high, low)
    for _ in range(HALVINGS if waits and not full.all() else 0):
        middle = (low + high) / 2
        good = kept(rows, middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    values = _late(step.take(rows)(batch[rows], low), moved[rows])
    busy = np.broadcast_to(values["busy"], rows.shape)
    rate = low * (1.0 - task.headroom) / busy
    side = Readers(rows, _room(step, rows), low, rate, np.broadcast_to(values["ttft"], rows.shape))
    return side.take(_fastest(side.room, rate) if alike else _undominated(side))


def decoders(step: Step, rows: np.ndarray, tpot: float | None) -> Decoders:
    """The layouts of `rows` that keep this time per output token, each at its fastest batch."""
    task = step.task
    promises = {k: v for k, v in task.promises.items() if k == "tpot"}
    if tpot is not None:
        promises["tpot"] = tpot
    part = step.take(rows)
    part = part.asked(task.with_layout(promises=promises, arrivals=None))
    if task.batches is None:
        largest, _ = largest_feasible(part)
        at, batch, fill = chosen(part, largest)
    else:
        at, batch, fill = given(part.task, part.layouts)
    values = part.take(at)(batch, fill)
    keep = feasible(part.task, values)
    at, batch = at[keep], batch[keep]
    served = np.broadcast_to(values["requests"], keep.shape)[keep]
    rate = served * (1.0 - task.headroom) / part.layouts.replicas[at]
    late = np.broadcast_to(values["latency"], keep.shape)[keep]
    found, room = rows[at], _room(part, at)
    best = _fastest(room, -late if task.objective == "latency" else rate)
    return Decoders(found[best], room.take(best), batch[best], rate[best], late[best])


def _late(values: dict[str, np.ndarray], moved: np.ndarray) -> dict[str, np.ndarray]:
    later = {name: values[name] + moved for name in ("ttft", "ttft_p95", "ttft_p99", "latency")
             if name in values}  # fmt: skip
    return {**values, **later}


def _room(step: Step, rows: np.ndarray) -> Room:
    layouts = step.layouts
    domain = np.full(len(rows), step.task.machine.chips_per_domain)
    return Room(layouts.stage[rows], layouts.pp[rows], domain)


def _fastest(room: Room, rate: np.ndarray) -> np.ndarray:
    """Of rows whose replicas take the same room, the one of the highest rate."""
    order = np.lexsort((-rate, room.stages, room.stage))
    stage, stages = room.stage[order], room.stages[order]
    new = np.ones(order.size, dtype=bool)
    new[1:] = (stage[1:] != stage[:-1]) | (stages[1:] != stages[:-1])
    return order[new]


def _undominated(side: Readers) -> np.ndarray:
    """Rows that no other of the same room betters both in rate and in time to first token."""
    order = np.lexsort((side.first, -side.rate, side.room.stages, side.room.stage))
    kept, best, room = [], np.inf, (0, 0)
    for row in order:
        here = (int(side.room.stage[row]), int(side.room.stages[row]))
        if here != room:
            room, best = here, np.inf
        if side.first[row] < best:
            best = side.first[row]
            kept.append(row)
    return np.array(kept, dtype=np.int64)
