"""Which layouts of two pools may be paired: those between which a cache takes one time.

Time on the way depends on how many chips receive a cache, so readers are sized once for each such
number and matched with the layouts that have it. A promise on the whole request ties the two
closer: each reader's time to first token leaves its own room for decoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from planner.problems.serving.deployment.pool_candidates import (
    Decoders,
    Readers,
    decoders,
    readers,
    shards,
)
from planner.problems.serving.search.batch import largest_at, largest_feasible

if TYPE_CHECKING:
    from planner.problems.serving.deployment.pool_pairs import Pools
    from planner.problems.serving.step.step import Step

# Readers, and of those that may decode after them the rows, their model and the slowest pace.
Room: TypeAlias = tuple[Readers, np.ndarray, "Step", np.ndarray]
Matched: TypeAlias = Iterator[tuple[Readers, Decoders]]


def sides(pools: Pools, reading: Step, decoding: Step) -> Matched:
    """Readers and decoders that may be paired, one number of receiving chips after the other."""
    some = _reading(pools, reading, decoding)
    tpot = pools.decode.promises.get("tpot")
    if pools.decode.promises.get("e2e") is None:
        return _matched(pools, decoding, some, decoders(decoding, tpot))
    return _whole(pools, decoding, some, np.array([np.inf if tpot is None else tpot]))[0]


def sides_at(pools: Pools, reading: Step, decoding: Step, paces: np.ndarray) -> list[Matched]:
    """The same for each promise on the time per output token [s]."""
    some = _reading(pools, reading, decoding)
    if pools.decode.promises.get("e2e") is not None:
        return _whole(pools, decoding, some, paces)
    if pools.decode.batches is not None:
        every = [decoders(decoding, float(pace)) for pace in paces]
    else:
        largest = _largest(pools, decoding, paces)
        every = [decoders(decoding, float(pace), most)
                 for pace, most in zip(paces, largest, strict=True)]  # fmt: skip
    return [_matched(pools, decoding, some, others) for others in every]


def _matched(
    pools: Pools, decoding: Step, some: Sequence[tuple[int, Readers]], others: Decoders
) -> Matched:
    receiving = shards(decoding)[others.rows]
    for number, every in some:
        yield _best(pools, every, others.take(np.flatnonzero(receiving == number)))


def _whole(
    pools: Pools, decoding: Step, some: Sequence[tuple[int, Readers]], paces: np.ndarray
) -> list[Matched]:
    """Sides where the whole request is promised: each reader with what may decode after it."""
    whole, steps = pools.decode.promises["e2e"], pools.decode.output_tokens - 1
    receiving = shards(decoding)
    rooms: list[Room] = []
    for number, every in some:
        side = every.best(np.arange(len(every.rows)), alike=False)
        side = side.take(side.first < whole)
        at = np.flatnonzero(receiving == number)
        slowest = (whole - side.first) / steps
        rooms.append((side, at, decoding.take(at), slowest))
    if pools.decode.batches is not None:
        return [_given(pools, rooms, float(pace)) for pace in paces]
    largest = [
        (_largest(pools, part, slowest), _largest(pools, part, paces))
        for _, _, part, slowest in rooms
    ]

    def matched(k: int) -> Matched:
        for (side, at, part, slowest), (slow, fast) in zip(rooms, largest, strict=True):
            # Readers that leave more room than the pace takes share what decodes after them.
            free = slowest >= paces[k]
            if free.any():
                others = decoders(part, None, fast[k])
                others = replace(others, rows=at[others.rows])
                yield _best(pools, side.take(free), others)
            yield from _each(pools, side.take(~free), part, at, np.minimum(slow[~free], fast[k]))

    return [matched(k) for k in range(paces.size)]


def _given(pools: Pools, rooms: Sequence[Room], pace: float) -> Matched:
    """Each reader with what decodes the given batches fast enough after it."""
    for side, at, part, slowest in rooms:
        for i, slow in enumerate(slowest):
            own = decoders(part, min(float(slow), pace))
            own = replace(own, rows=at[own.rows])
            yield _best(pools, side.take(np.array([i])), own)


def _best(pools: Pools, side: Readers, others: Decoders) -> tuple[Readers, Decoders]:
    """Both sides without what another row of the same room betters."""
    latency = pools.prefill.objective == "latency"
    first = side.best(np.arange(side.rows.size), alike=not latency)
    return first, others.best(np.arange(others.rows.size), latency=latency)


def _each(pools: Pools, side: Readers, part: Step, at: np.ndarray, largest: np.ndarray) -> Matched:
    """Each reader of a side with the layouts `at`, whose batches are at most its `largest`."""
    tiled = part.take(np.tile(np.arange(at.size), len(side.rows)))
    others = decoders(tiled, None, largest.ravel())
    for i in range(len(side.rows)):
        own = others.take(np.flatnonzero(others.rows // at.size == i))
        own = replace(own, rows=at[own.rows % at.size])
        yield _best(pools, side.take(np.array([i])), own)


def _largest(pools: Pools, decoding: Step, paces: np.ndarray) -> np.ndarray:
    """Largest batches that memory and each time per output token allow, (n_paces, n_layouts)."""
    alone = decoding.asked(pools.promising(None).decode.with_layout(arrivals=None))
    return largest_at(alone, largest_feasible(alone)[0], paces)


def _reading(pools: Pools, reading: Step, decoding: Step) -> list[tuple[int, Readers]]:
    """Layouts that read in time, for each number of chips that may receive from them."""
    counts, sending = np.unique(shards(decoding)), shards(reading)
    # A cache moves at the pace of the fewer chips: beyond what a layout sends from, more receivers
    # make no difference, and each layout is sized once for each number that does.
    fewer = np.minimum(sending[None, :], counts[:, None])
    most = int(fewer.max(initial=0)) + 1
    keys, back = np.unique(np.arange(sending.size) * most + fewer, return_inverse=True)
    layouts, receiving = keys // most, keys % most
    some = readers(reading.take(layouts), pools.transfer(receiving, receiving))
    place = np.full(keys.size, -1)
    place[some.rows] = np.arange(some.rows.size)
    found = replace(some, rows=layouts[some.rows])
    wanted = place[back.reshape(fewer.shape)]
    return [(int(n), found.take(row[row >= 0])) for n, row in zip(counts, wanted, strict=True)]
