"""Replicas lie within one machine or in whole machines: the ways in which a machine is filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from planner.text.errors import InputError

MOST_WAYS = 400  # of one kind of machine


def needs_patterns(chips: Iterable[int], size: int) -> bool:
    """Whether replicas that have room by their number may still not fit into machines of a size.

    Where every number of chips divides the next larger one, and that the machine, they always fit.
    """
    parts = sorted({int(each) for each in chips if each < size})
    return any(larger % smaller for smaller, larger in pairwise([*parts, size]))


def machine_patterns(
    chips: Iterable[int], size: int
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The different numbers of chips, and how many of each fill a machine, every full way.

    Raises InputError where there are too many ways.
    """
    parts = tuple(int(each) for each in np.unique(list(chips))[::-1])
    ways = []
    for way in _ways(parts, size):
        ways.append(way)
        if len(ways) > MOST_WAYS:
            raise InputError(
                f"replicas of {', '.join(map(str, parts))} chips fill a machine of {size} in more "
                f"than {MOST_WAYS} ways; what would work: columns whose chips divide {size}"
            )
    return parts, ways


def _ways(parts: tuple[int, ...], room: int) -> Iterator[tuple[int, ...]]:
    """Counts of each part with no room left for another."""
    if len(parts) == 1:
        yield (room // parts[0],)
        return
    for count in range(room // parts[0], -1, -1):
        for rest in _ways(parts[1:], room - count * parts[0]):
            left = room - count * parts[0] - sum(n * p for n, p in zip(rest, parts[1:], strict=True))
            if left < parts[0]:
                yield (count, *rest)
