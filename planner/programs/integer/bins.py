"""Parts lie within one bin: the ways in which a bin is filled (cutting stock)."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

MOST_WAYS = 400  # of one kind of bin


class TooManyWays(ValueError):  # noqa: N818 - a finding, raised
    """A bin is filled in more ways than are listed."""


def needs_ways(parts: Iterable[int], size: int) -> bool:
    """Whether parts that have room by their sum may still not fit into bins of a size.

    Where every part divides the next larger one, and that the bin, they always fit.
    """
    sizes = sorted({int(each) for each in parts if each < size})
    return any(larger % smaller for smaller, larger in pairwise([*sizes, size]))


def filling_ways(parts: Iterable[int], size: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The different parts, the largest first, and how many of each fill a bin, every full way.

    Raises TooManyWays.
    """
    sizes = tuple(int(each) for each in np.unique(list(parts))[::-1])
    ways = []
    for counts in _ways(sizes, size):
        ways.append(counts)
        if len(ways) > MOST_WAYS:
            raise TooManyWays(f"more than {MOST_WAYS} ways")
    return sizes, ways


def _ways(parts: tuple[int, ...], room: int) -> Iterator[tuple[int, ...]]:
    """Counts of each part with no room left for another."""
    if len(parts) == 1:
        yield (room // parts[0],)
        return
    for count in range(room // parts[0], -1, -1):
        for rest in _ways(parts[1:], room - count * parts[0]):
            left = (
                room - count * parts[0] - sum(n * p for n, p in zip(rest, parts[1:], strict=True))
            )
            if left < parts[0]:
                yield (count, *rest)
