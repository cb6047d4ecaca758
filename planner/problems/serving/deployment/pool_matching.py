"""Layouts of a pool for each phase, at their best, and which of two pools may be paired.

How busy a pool that prefills may be is set by how long requests may wait; the batch of one that
decodes is the largest that keeps its time per token. Of layouts whose replicas take the same room
only the fastest is kept, unless latency counts as well.

Time on the way depends on how many chips receive a cache, so pools that prefill are sized once for
each such number and matched with the layouts that have it. A promise on the whole request ties the
two closer: each time to first token leaves its own room for decoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from planner.problems.serving.search.batch import (
    chosen,
    feasible,
    given,
    largest_at,
    largest_feasible,
)
from planner.problems.serving.search.sizing import busiest
from planner.problems.serving.step.chip_split import ChipSplit
from planner.problems.serving.step.pools_step import replica_rates

if TYPE_CHECKING:
    from planner.problems.serving.step.step import Step
    from planner.problems.serving.task.task import TaskPair

DELAYED: tuple[str, ...] = ("ttft", "ttft_p95", "ttft_p99", "latency")


@dataclass(frozen=True)
class PhaseLayouts:
    """Layouts of one phase, as columns of shape (n,).

    `rows` index the step's layouts; `batch` is that of a replica, `fill` the share of its time or
    slots that may be in use, `slot` the time it spends per request [s], `rate` its requests per
    second at its most. `latency` is the time to first token, transfer included, or the time from
    a request's first token to its last [s].
    """

    rows: np.ndarray
    room: ChipSplit
    batch: np.ndarray
    fill: np.ndarray
    slot: np.ndarray
    rate: np.ndarray
    latency: np.ndarray

    def take(self, rows: np.ndarray) -> PhaseLayouts:
        """The layouts of some rows (an index or a mask)."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "room"}
        return PhaseLayouts(room=self.room.take(rows), **{k: v[rows] for k, v in columns.items()})

    def fastest(self) -> PhaseLayouts:
        """Of layouts whose replicas take the same room, the one of the highest rate."""
        return self._first_of_each_room(-self.rate)

    def quickest(self) -> PhaseLayouts:
        """Of layouts whose replicas take the same room, the one of the least latency."""
        return self._first_of_each_room(self.latency)

    def undominated(self) -> PhaseLayouts:
        """Without layouts that one of the same room betters both in rate and in latency."""
        rows, least, room = [], np.inf, (0, 0)
        for row in np.lexsort((self.latency, -self.rate, self.room.stages, self.room.stage)):
            here = (int(self.room.stage[row]), int(self.room.stages[row]))
            if here != room:
                room, least = here, np.inf
            if self.latency[row] < least:
                least = self.latency[row]
                rows.append(row)
        return self.take(np.array(rows, dtype=np.int64))

    def _first_of_each_room(self, key: np.ndarray) -> PhaseLayouts:
        order = np.lexsort((key, self.room.stages, self.room.stage))
        stage, stages = self.room.stage[order], self.room.stages[order]
        new = np.ones(order.size, dtype=bool)
        new[1:] = (stage[1:] != stage[:-1]) | (stages[1:] != stages[:-1])
        return self.take(order[new])


# Layouts that prefill; of those that may decode after them the rows, their model, the slowest pace.
AfterPrefill: TypeAlias = tuple[PhaseLayouts, np.ndarray, "Step", np.ndarray]
Receivers: TypeAlias = Sequence[tuple[int, PhaseLayouts]]
Matched: TypeAlias = Iterator[tuple[PhaseLayouts, PhaseLayouts]]


def shards(step: Step) -> np.ndarray:
    """Chips that hold different parts of one sequence's cache, for every layout."""
    heads = max(step.task.sizes.n_kv_heads, 1)
    return np.minimum(step.layouts.tp, heads) * step.layouts.pp * step.layouts.cp


def prefill_layouts(step: Step, transfer: np.ndarray) -> PhaseLayouts:
    """The layouts that read prompts in time, each as busy as its promises let it be.

    `transfer` are the seconds that a cache takes to the other pool, for every layout.
    """
    task = step.task
    _, batch, _ = given(task, step.layouts)

    def keeps(values: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        return np.broadcast_to(feasible(task, _delayed(values, transfer[rows])), rows.shape)

    if task.arrivals is None:
        rows = np.flatnonzero(keeps(step(batch), np.arange(batch.size)))
        fill = np.ones(rows.size)
    else:
        rows, fill = busiest(step, batch, keeps)
    values = _delayed(step.take(rows)(batch[rows], fill), transfer[rows])
    return _columns(step, rows, batch[rows], fill, values["slot"], values["ttft"])


def decode_layouts(
    step: Step, tpot: float | None, largest: np.ndarray | None = None
) -> PhaseLayouts:
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
    slot, latency = (np.broadcast_to(values[k], keep.shape)[keep] for k in ("slot", "latency"))
    return _columns(step, rows[keep], batch[keep], fill[keep], slot, latency)


def _columns(
    step: Step, rows: np.ndarray, batch: np.ndarray, fill: np.ndarray, slot: np.ndarray,
    latency: np.ndarray,
) -> PhaseLayouts:  # fmt: skip
    layouts, task = step.layouts, step.task
    domain = np.full(len(rows), task.machine.chips_per_domain)
    room = ChipSplit(layouts.stage[rows], layouts.pp[rows], domain)
    slot, latency = (np.broadcast_to(column, rows.shape) for column in (slot, latency))
    rate = replica_rates(slot, fill, task.headroom)
    return PhaseLayouts(rows, room, batch, fill, slot, rate, latency)


def _delayed(values: dict[str, np.ndarray], transfer: np.ndarray) -> dict[str, np.ndarray]:
    """The values with a cache's way to the other pool added to every time it delays."""
    late = [name for name in DELAYED if name in values]
    return {**values, **{name: values[name] + transfer for name in late}}


def matched_pools(tasks: TaskPair, reading: Step, decoding: Step) -> Matched:
    """Layouts of both pools that may be paired, one number of receiving chips after the other."""
    receivers = _receivers(tasks, reading, decoding)
    tpot = tasks.decode.promises.get("tpot")
    if tasks.decode.promises.get("e2e") is None:
        return _by_receivers(tasks, decoding, receivers, decode_layouts(decoding, tpot))
    return _within_request(
        tasks, decoding, receivers, np.array([np.inf if tpot is None else tpot])
    )[0]


def matched_pools_at(
    tasks: TaskPair, reading: Step, decoding: Step, paces: np.ndarray
) -> list[Matched]:
    """`matched_pools` for each promise on the time per output token [s]."""
    receivers = _receivers(tasks, reading, decoding)
    if tasks.decode.promises.get("e2e") is not None:
        return _within_request(tasks, decoding, receivers, paces)
    largest: Sequence[np.ndarray | None] = [None] * paces.size
    if tasks.decode.batches is None:
        largest = list(_largest(tasks, decoding, paces))
    return [
        _by_receivers(tasks, decoding, receivers, decode_layouts(decoding, float(pace), most))
        for pace, most in zip(paces, largest, strict=True)
    ]


def _by_receivers(
    tasks: TaskPair, decoding: Step, receivers: Receivers, decode: PhaseLayouts
) -> Matched:
    receiving = shards(decoding)[decode.rows]
    for number, prefill in receivers:
        yield _best(tasks, prefill, decode.take(np.flatnonzero(receiving == number)))


def _within_request(
    tasks: TaskPair, decoding: Step, receivers: Receivers, paces: np.ndarray
) -> list[Matched]:
    """Pools where the whole request is promised: what prefills with what may decode after it."""
    whole, steps = tasks.decode.promises["e2e"], tasks.decode.output_tokens - 1
    receiving = shards(decoding)
    rooms: list[AfterPrefill] = []
    for number, layouts in receivers:
        prefill = layouts.undominated()
        prefill = prefill.take(prefill.latency < whole)
        at = np.flatnonzero(receiving == number)
        rooms.append((prefill, at, decoding.take(at), (whole - prefill.latency) / steps))
    if tasks.decode.batches is not None:
        return [_given_batches(tasks, rooms, float(pace)) for pace in paces]
    largest = [
        (_largest(tasks, part, slowest), _largest(tasks, part, paces))
        for _, _, part, slowest in rooms
    ]

    def matched(k: int) -> Matched:
        for (prefill, at, part, slowest), (slow, fast) in zip(rooms, largest, strict=True):
            # Those that leave more room than the pace takes share what decodes after them.
            free = slowest >= paces[k]
            if free.any():
                decode = decode_layouts(part, None, fast[k])
                yield _best(tasks, prefill.take(free), replace(decode, rows=at[decode.rows]))
            yield from _one_by_one(
                tasks, prefill.take(~free), part, at, np.minimum(slow[~free], fast[k])
            )

    return [matched(k) for k in range(paces.size)]


def _given_batches(tasks: TaskPair, rooms: Sequence[AfterPrefill], pace: float) -> Matched:
    """Each layout that prefills with what decodes the given batches fast enough after it."""
    for prefill, at, part, slowest in rooms:
        for i, slow in enumerate(slowest):
            decode = decode_layouts(part, min(float(slow), pace))
            decode = replace(decode, rows=at[decode.rows])
            yield _best(tasks, prefill.take(np.array([i])), decode)


def _best(
    tasks: TaskPair, prefill: PhaseLayouts, decode: PhaseLayouts
) -> tuple[PhaseLayouts, PhaseLayouts]:
    """Both pools without what another layout of the same room betters."""
    if tasks.prefill.objective == "latency":
        return prefill.undominated(), decode.quickest()
    return prefill.fastest(), decode.fastest()


def _one_by_one(
    tasks: TaskPair, prefill: PhaseLayouts, part: Step, at: np.ndarray, largest: np.ndarray
) -> Matched:
    """Each layout that prefills with the layouts `at`, whose batches are at most its `largest`."""
    tiled = part.take(np.tile(np.arange(at.size), len(prefill.rows)))
    layouts = decode_layouts(tiled, None, largest.ravel())
    for i in range(len(prefill.rows)):
        decode = layouts.take(np.flatnonzero(layouts.rows // at.size == i))
        decode = replace(decode, rows=at[decode.rows % at.size])
        yield _best(tasks, prefill.take(np.array([i])), decode)


def _largest(tasks: TaskPair, decoding: Step, paces: np.ndarray) -> np.ndarray:
    """Largest batches that memory and each time per output token allow, (n_paces, n_layouts)."""
    alone = decoding.asked(tasks.promising(None).decode.with_layout(arrivals=None))
    return largest_at(alone, largest_feasible(alone)[0], paces)


def _receivers(tasks: TaskPair, reading: Step, decoding: Step) -> Receivers:
    """Layouts that read in time, for each number of chips that may receive from them."""
    counts, sending = np.unique(shards(decoding)), shards(reading)
    # A cache moves at the pace of the fewer chips: beyond what a layout sends from, more receivers
    # make no difference, and each layout is sized once for each number that does.
    fewer = np.minimum(sending[None, :], counts[:, None])
    most = int(fewer.max(initial=0)) + 1
    keys, back = np.unique(np.arange(sending.size) * most + fewer, return_inverse=True)
    rows, receiving = keys // most, keys % most
    prefill = prefill_layouts(reading.take(rows), tasks.transfer(receiving, receiving))
    place = np.full(keys.size, -1)
    place[prefill.rows] = np.arange(prefill.rows.size)
    prefill = replace(prefill, rows=rows[prefill.rows])
    wanted = place[back.reshape(fewer.shape)]
    return [(int(n), prefill.take(row[row >= 0])) for n, row in zip(counts, wanted, strict=True)]
