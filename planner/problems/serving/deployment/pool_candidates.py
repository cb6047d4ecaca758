"""The two sides of a pair of pools: layouts that keep their promises, each at its best.

A reader's pace is set by how busy it may be before requests wait too long; a decoder's by the
largest batch that keeps its time per token. Of layouts whose replicas take the same room only the
fastest is kept, unless latency counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from planner.problems.serving.search.batch import chosen, feasible, given, largest_feasible
from planner.problems.serving.search.sizing import busiest
from planner.problems.serving.step.chip_split import ChipSplit
from planner.problems.serving.step.pools_step import replica_rates
from planner.problems.serving.step.step import Step

DELAYED: tuple[str, ...] = ("ttft", "ttft_p95", "ttft_p99", "latency")


@dataclass(frozen=True)
class Readers:
    """Layouts that prefill, as columns of shape (n,).

    `rows` index the step's layouts; `fill` is the share of time a reader may be busy, `slot` the
    time it spends per prompt [s], `rate` the prompts per second of a replica at its most, `first`
    the time to first token then, transfer included.
    """

    rows: np.ndarray
    room: ChipSplit
    fill: np.ndarray
    slot: np.ndarray
    rate: np.ndarray
    first: np.ndarray

    def best(self, among: np.ndarray, *, alike: bool) -> Readers:
        """Of the rows `among` those that none of the same room betters in rate and, unless all are
        `alike` in it, in time to first token."""
        part = self.take(among)
        return part.take(_fastest(part.room, part.rate) if alike else _undominated(part))

    def take(self, rows: np.ndarray) -> Readers:
        """The same of some rows."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "room"}
        return Readers(room=self.room.take(rows), **{k: v[rows] for k, v in columns.items()})


@dataclass(frozen=True)
class Decoders:
    """Layouts that decode, as columns of shape (n,).

    `batch` is that of a replica, `fill` the share of its slots in use, `slot` the time it spends
    per request [s], `rate` the requests per second it then serves, `decoding` the time from the
    first token of a request to its last.
    """

    rows: np.ndarray
    room: ChipSplit
    batch: np.ndarray
    fill: np.ndarray
    slot: np.ndarray
    rate: np.ndarray
    decoding: np.ndarray

    def best(self, among: np.ndarray, *, latency: bool) -> Decoders:
        """Of the rows `among` that take the same room the fastest, or the one of least latency."""
        part = self.take(among)
        return part.take(_fastest(part.room, -part.decoding if latency else part.rate))

    def take(self, rows: np.ndarray) -> Decoders:
        """The same of some rows."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "room"}
        return Decoders(room=self.room.take(rows), **{k: v[rows] for k, v in columns.items()})


def shards(step: Step) -> np.ndarray:
    """Chips that hold different parts of one sequence's cache, for every layout."""
    heads = max(step.task.sizes.n_kv_heads, 1)
    return np.minimum(step.layouts.tp, heads) * step.layouts.pp * step.layouts.cp


def readers(step: Step, moved: np.ndarray) -> Readers:
    """The layouts that read prompts in time, each as busy as its promises let it be.

    `moved` are the seconds that a cache takes to the other pool, for every layout.
    """
    task = step.task
    _, batch, _ = given(task, step.layouts)

    def keeps(values: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        return np.broadcast_to(feasible(task, _late(values, moved[rows])), rows.shape)

    if task.arrivals is None:
        rows = np.flatnonzero(keeps(step(batch), np.arange(batch.size)))
        fill = np.ones(rows.size)
    else:
        rows, fill = busiest(step, batch, keeps)
    values = _late(step.take(rows)(batch[rows], fill), moved[rows])
    slot = np.broadcast_to(values["slot"], rows.shape)
    rate, late = (
        replica_rates(slot, fill, task.headroom),
        np.broadcast_to(values["ttft"], rows.shape),
    )
    return Readers(rows, _room(step, rows), fill, slot, rate, late)


def decoders(step: Step, tpot: float | None, largest: np.ndarray | None = None) -> Decoders:
    """Every layout that keeps this time per output token, at its fastest batch.

    `largest` are the largest batches that keep it, where they are known already.
    """
    task = step.task
    promises = {k: v for k, v in task.promises.items() if k == "tpot"}
    if tpot is not None:
        promises["tpot"] = tpot
    step = step.asked(task.with_layout(promises=promises, arrivals=None))
    if task.batches is None:
        most = largest_feasible(step)[0] if largest is None else largest
        rows, batch, fill = chosen(step, most)
    else:
        rows, batch, fill = given(step.task, step.layouts)
    values = step.take(rows)(batch, fill)
    keep = feasible(step.task, values)
    rows, batch, fill = rows[keep], batch[keep], fill[keep]
    slot = np.broadcast_to(values["slot"], keep.shape)[keep]
    late = np.broadcast_to(values["latency"], keep.shape)[keep]
    rate = replica_rates(slot, fill, task.headroom)
    return Decoders(rows, _room(step, rows), batch, fill, slot, rate, late)


def _late(values: dict[str, np.ndarray], moved: np.ndarray) -> dict[str, np.ndarray]:
    """The same with a cache's way to the other pool added to every time it delays."""
    late = [name for name in DELAYED if name in values]
    return {**values, **{name: values[name] + moved for name in late}}


def _room(step: Step, rows: np.ndarray) -> ChipSplit:
    layouts = step.layouts
    domain = np.full(len(rows), step.task.machine.chips_per_domain)
    return ChipSplit(layouts.stage[rows], layouts.pp[rows], domain)


def _fastest(room: ChipSplit, rate: np.ndarray) -> np.ndarray:
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
