"""Replica counts of the prefill pool and the decode pool.

Without a load the first pool's rate grows with its replicas and the second's falls: the best split
is one of the two neighbours of where they cross. A batch given for all replicas that decode is in
flight only where prompts come as fast as they are decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.step.occupancy import first
from planner.problems.serving.step.packing import ChipSplit, max_replicas, min_chips, replicas_left
from planner.text.tolerances import REL_TOL

if TYPE_CHECKING:
    from planner.problems.serving.search.sizing import PhaseLayouts
    from planner.problems.serving.task.task import Task, TaskPair


def replica_counts(
    tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, chips: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Replicas of either pool that may be best, for each pair and number of chips.

    Where chips of the two do not count alike, either pool may be the one that takes only what it
    needs.
    """
    fixed = tasks.decode.batches is not None
    if tasks.demand is not None or (tasks.prefill.objective == "latency" and not fixed):
        return [
            (
                read,
                np.where(decode_replicas(tasks, a.room, b.room, read, chips) >= decode, decode, 0),
            )
            for read, decode in loaded_counts(tasks, a, b)
        ]
    counts = _crossings(tasks, a, b, chips)
    if fixed or (tasks.together and (a.weight == b.weight).all()):
        return counts
    turned = replace(tasks, prefill=tasks.decode, decode=tasks.prefill)
    return [(n, m) for m, n in _crossings(turned, b, a, chips)] + counts


def _crossings(
    tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, chips: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Replicas of `a` on either side of the crossing of its rate with the rate of all `b`."""
    spare, fixed = tasks.prefill.spare, tasks.decode.batches is not None
    most = np.maximum(max_replicas(chips, a.room), 1.0)

    def crossing(decodes: np.ndarray) -> np.ndarray:
        """The fewest replicas that read no slower than `decodes`, or all others, decode."""

        def enough(at: np.ndarray, count: np.ndarray) -> np.ndarray:
            n = count.astype(np.int64)
            m = np.minimum(
                decode_replicas(tasks, a.room.take(at), b.room.take(at), n, chips[at]), decodes[at]
            )
            return (n - spare) * a.rate[at] >= (m - spare) * b.rate[at]

        return first(enough, np.zeros(chips.size), most).astype(np.int64)

    counts = []
    for reads, number in product(*admissible_counts(tasks)):
        decodes = b.count if fixed else np.full(chips.size, number)
        limited = fixed or number > 0
        if reads:
            tried = [np.full(chips.size, reads)]
        else:
            cross = crossing(decodes if limited else np.full(chips.size, np.inf))
            if limited:
                cross = np.minimum(cross, max_prefill_replicas(tasks, a, b, decodes, chips))
            tried = [cross, cross - 1]
            if not tasks.together:
                # A unit or a domain fewer, all of them full, may be the least per request.
                short = _rented(tasks.prefill, a.room, cross - 1) - 1
                blocks = tasks.prefill.unit, a.domain
                tried += [max_replicas(short // block * block, a.room) for block in blocks]
        for n in tried:
            m = decode_replicas(tasks, a.room, b.room, n, chips)
            if fixed:
                m = np.where(n * a.rate * (1 + REL_TOL) >= decodes * b.rate, m, 0)
            counts.append((n, np.where(m >= decodes, decodes, 0) if limited else m))
    return counts


def counts_with_prefill_capacity(
    tasks: TaskPair, prefill: PhaseLayouts, decode: PhaseLayouts, pairs: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """Pairs, rows of either pool and chips, with the best of each kind that prompts suffice for.

    Only of a given batch, all of which is in flight: else fewer are where prompts come slowly.
    """
    if tasks.decode.batches is None:
        return pairs
    rates, number = np.sort(decode.rate), np.arange(decode.rate.size)
    begin, parts = (number - decode.slower) * (number.size + 1), []
    place = begin + np.searchsorted(rates, decode.rate, "right")
    i, j, chips = pairs
    a, b = prefill.take(i), decode.take(j)
    most = max_prefill_replicas(tasks, a, b, b.count, chips)
    for reads in admissible_counts(tasks)[0]:
        read = np.where(most >= reads, reads or np.maximum(most, 0), 0)
        enough = np.searchsorted(rates, read * a.rate / b.count * (1 + REL_TOL), "right")
        row = np.searchsorted(place, begin[j] + enough, "right") - 1
        good = row >= j - b.slower
        parts.append((i[good], row[good], chips[good]))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def max_prefill_replicas(
    tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, decodes: np.ndarray, chips: np.ndarray
) -> np.ndarray:
    """Maximum prefill replicas given `decodes`, on `chips` chips in total; 0 without a fit."""

    def too_many(at: np.ndarray, count: np.ndarray) -> np.ndarray:
        rooms = a.room.take(at), b.room.take(at)
        beside = decode_replicas(tasks, *rooms, count.astype(np.int64), chips[at])
        return np.asarray(beside < decodes[at])

    most = np.maximum(max_replicas(chips, a.room), 1.0) + 1
    return first(too_many, np.zeros(chips.size), most).astype(np.int64) - 1


def decode_replicas(
    tasks: TaskPair, first: ChipSplit, second: ChipSplit, count: np.ndarray, chips: np.ndarray
) -> np.ndarray:
    """Maximum decode replicas (`second`) given `count` prefill replicas (`first`) on `chips`."""
    if tasks.together:
        return replicas_left(chips, first, count, second)
    rest = chips - _rented(tasks.prefill, first, count)
    whole = np.maximum(rest, 0) // tasks.decode.unit * tasks.decode.unit
    return np.asarray(max_replicas(whole, second)) - (rest < 0)


def required_replicas(tasks: TaskPair, rate: np.ndarray) -> np.ndarray:
    """Replicas that carry the load, spare ones included; 2**40, beyond any system, if more do."""
    count = np.minimum(np.ceil((tasks.demand or 0.0) / rate - 1e-12), 2.0**40)
    return count.astype(np.int64) + tasks.prefill.spare


def prefill_chips(
    tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts, n: np.ndarray, m: np.ndarray,
    chips: np.ndarray, idle: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:  # fmt: skip
    """Chips paid for n prefill replicas, given m decode replicas; the others are the decode pool's.

    Of two systems chips that no replica needs are of the one whose `idle` chips count less.
    """
    if tasks.together:
        return np.maximum(n, 0) * a.room.chips
    units = tasks.prefill.unit, tasks.decode.unit
    taken = _rented(tasks.prefill, a.room, n)
    taken = taken + (chips - taken) % units[1]
    rest = (chips - _rented(tasks.decode, b.room, m)) // units[0] * units[0]
    return np.where(idle[0] < idle[1], np.maximum(rest, taken), taken)


def _rented(task: Task, room: ChipSplit, count: np.ndarray) -> np.ndarray:
    least = min_chips(np.maximum(count, 0), room)
    return np.asarray(-(-least // task.unit) * task.unit)


def admissible_counts(tasks: TaskPair) -> list[Sequence[int]]:
    """Numbers of replicas of either pool that the question admits; 0 where it leaves them free."""
    return [task.limits_of.get("replicas", (0,)) for task in tasks.tasks]


def loaded_counts(
    tasks: TaskPair, a: PhaseLayouts, b: PhaseLayouts
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Replicas of either pool required by load and spare; 0 if a fixed count is too small."""
    n = m = np.full(a.rate.size, 1 + tasks.prefill.spare)
    if tasks.demand is not None:
        n, m = required_replicas(tasks, a.rate), required_replicas(tasks, b.rate)
    return [
        (
            np.where(n <= reads, reads, 0) if reads else n,
            np.where(m <= decodes, decodes, 0) if decodes else m,
        )
        for reads, decodes in product(*admissible_counts(tasks))
    ]
