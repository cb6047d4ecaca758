"""The cheapest whole cover of a demand, of many demands at a time, by dynamic programming.

Items of two classes cover a target; those of the first alone cover a second, smaller one. Amounts
are counted in parts of the target: rounded up, no cover costs less than what is returned; rounded
down, the counts that are returned do cover. Where parts lie within one bin, the items are the ways
in which a bin is filled (cutting stock).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.programs.integer.integer_program import Array


@dataclass(frozen=True)
class Covers:
    """What covers of B demands cost (B,), infinite without one, and the counts of each item.

    `counts` is (B, 2 n): items of the first class, then of the second.
    """

    costs: Array
    counts: Array


def least_covers(
    target: Array, firm_target: Array, amounts: tuple[Array, Array], costs: tuple[Array, Array],
    parts: int, up: bool,
) -> Covers:  # fmt: skip
    """The least cost at which each target is covered, and firmly its second.

    Parameters
    ----------
    target, firm_target : (B,), the first above zero.
    amounts, costs : of n items of the first class (B, n), and of the second; costs infinite where
        an item is not offered.
    parts : of a target in which amounts are counted.
    up : whether amounts are rounded up, for a bound, or down, for covers.
    """
    unit = target / parts
    rounded = np.ceil if up else np.floor
    near = -1e-9 if up else 1e-9
    steps = [np.clip(rounded(a / unit[:, None] + near), 0, parts).astype(int) for a in amounts]
    if up:
        firm_steps = np.floor(firm_target / unit + 1e-9).astype(int)
    else:
        firm_steps = np.ceil(firm_target / unit - 1e-9).astype(int)
    firm_steps = np.clip(firm_steps, 0, parts)
    every = np.arange(target.size)
    table = np.full((parts + 1, target.size), np.inf)
    table[0] = 0.0
    first = _filled(table, steps[0], costs[0])
    # What is below the second target is no cover, however much of the second class comes on top
    table = np.maximum(table, table[firm_steps, every][None, :])
    second = _filled(table, steps[1], costs[1])
    counts = _counted(first, second, steps, firm_steps, parts)
    counts[~np.isfinite(table[parts])] = 0
    return Covers(table[parts], counts)


def _filled(table: Array, steps: Array, costs: Array) -> Array:
    """The item that a cheapest cover of each height ends with, -1 where none; fills the table."""
    height, size = table.shape
    rows = np.arange(size)[:, None]
    last = np.full((height, size), -1, np.int16)
    usable = np.where(steps > 0, costs, np.inf)
    for level in range(1, height):
        ways = table[np.maximum(level - steps, 0), rows] + usable
        item = ways.argmin(axis=1)
        cost = ways[rows[:, 0], item]
        better = cost < table[level]
        table[level] = np.where(better, cost, table[level])
        last[level] = np.where(better, item, -1)
    return last


def _counted(
    first: Array, second: Array, steps: list[Array], firm_steps: Array, parts: int
) -> Array:
    """The items of each cover, walked back from the whole target."""
    size, items = steps[0].shape
    counts = np.zeros((size, 2 * items), int)
    level = np.full(size, parts)
    every = np.arange(size)
    for last, step, offset in ((second, steps[1], items), (first, steps[0], 0)):
        if last is first:
            level = np.maximum(level, firm_steps)
        while True:
            item = last[level, every]
            moves = np.flatnonzero(item >= 0)
            if not moves.size:
                break
            np.add.at(counts, (moves, offset + item[moves]), 1)
            level[moves] = np.maximum(0, level[moves] - step[moves, item[moves]])
    return counts


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
