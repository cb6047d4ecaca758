"""Replicas on a number of chips: stages packed exactly into scale-up domains.

A stage lies inside one domain or fills whole ones; what is left of a domain stays idle. Chips that
make no whole domain stand together at the end, as one smaller domain.

Two pools may share domains, and counting is enough to pack them. Stages of a and of b chips fit one
domain of D in the numbers (i, j) with a i + b j <= D, the lattice points of a polygon P. Every
lattice point of w P is a sum of w lattice points of P, for in the plane each lattice polygon falls
into triangles of area one half (Cox, Little, Schenck, Toric Varieties, 2011, theorem 2.2.12). So k
and m stages fit w domains if and only if (k, m) lies under w times the upper side of P. The smaller
domain at the end is one term more, and each number of stages of the first pool in it is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

UNREACHABLE = -1  # of a second pool where the first alone does not fit
MAX_INT64 = np.iinfo(np.int64).max


@dataclass(frozen=True)
class ChipSplit:
    """Chips of a replica: chips per stage, stages, chips per domain; arrays of equal shape."""

    stage: np.ndarray
    stages: np.ndarray
    domain: np.ndarray

    def take(self, rows: np.ndarray) -> ChipSplit:
        """Return the `ChipSplit` of some rows."""
        return ChipSplit(self.stage[rows], self.stages[rows], self.domain[rows])

    @property
    def chips(self) -> np.ndarray:
        """Chips of one replica."""
        return self.stage * self.stages


def max_replicas(chips: np.ndarray, room: ChipSplit) -> np.ndarray:
    """Most replicas that `chips` chips of one pool alone hold."""
    return _stages_most(chips, room.stage, room.domain) // room.stages


def min_chips(count: np.ndarray, room: ChipSplit) -> np.ndarray:
    """Fewest chips that hold `count` replicas of one pool alone."""
    stages, inside_one = count * room.stages, np.maximum(room.domain // room.stage, 1)
    full = np.maximum(stages - 1, 0) // inside_one
    inside = full * room.domain + (stages - full * inside_one) * room.stage
    return np.where(room.stage <= room.domain, inside, stages * room.stage)


def fits(chips: int, domain: int, pools: Sequence[tuple[int, int]]) -> bool:
    """True if one or two pools, each (stages, chips per stage), fit on `chips` chips."""
    (count, first), (others, second) = (*pools, (0, 1))[:2]
    columns = (np.array([value]) for value in (chips, first, count, second, domain))
    return int(_stages_left(*columns)[0]) >= others


def replicas_left(
    chips: np.ndarray, first: ChipSplit, count: np.ndarray, second: ChipSplit
) -> np.ndarray:
    """Maximum replicas of the second pool given `count` of the first, on `chips` chips in total.

    Negative where the first pool alone does not fit. Both rooms are of one system.
    """
    columns = (chips, first.stage, count * first.stages, second.stage, first.domain)
    at, back = distinct(*columns)
    stages = _stages_left(*(column[at] for column in columns))[back]
    return np.where(stages < 0, UNREACHABLE, stages // second.stages)


def distinct(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the distinct rows, and for each row the position of its distinct row.

    Columns hold whole numbers from 0 on: they are digits of a key, numbered anew where it would
    overflow.
    """
    key, keys = np.zeros(columns[0].shape, dtype=np.int64), 1
    for column in columns:
        digit, digits = column, int(column.max(initial=0)) + 1
        if keys * digits > MAX_INT64:
            key, digit = (np.unique(x, return_inverse=True)[1] for x in (key, column))
            keys, digits = (int(x.max(initial=0)) + 1 for x in (key, digit))
        key, keys = key * digits + digit, keys * digits
    _, at, key = np.unique(key, return_index=True, return_inverse=True)
    return at, key


def _stages_most(chips: np.ndarray, stage: np.ndarray, domain: np.ndarray) -> np.ndarray:
    inside = chips // domain * (domain // stage) + chips % domain // stage
    return np.where(stage <= domain, inside, chips // stage)


def _stages_left(
    chips: np.ndarray, first: np.ndarray, count: np.ndarray, second: np.ndarray, domain: np.ndarray
) -> np.ndarray:
    """Maximum stages of `second` chips given `count` of `first`; negative if those do not fit."""
    whole, rest = chips // domain, chips % domain
    ends = rest // first
    # Stages that fill whole domains share no domain with the other pool.
    begun = -(-np.maximum(count - ends, 0) // np.maximum(domain // first, 1))
    taken = np.where(first > domain, count * (first // domain), begun)
    free = (whole - taken) * domain + np.where(first > domain, rest, 0)
    apart = np.where(taken > whole, UNREACHABLE, _stages_most(np.maximum(free, 0), second, domain))
    shared = (first <= domain) & (second <= domain)
    best = np.where(shared, UNREACHABLE, apart)
    for number in range(int(ends[shared].max(initial=UNREACHABLE)) + 1):
        at = np.flatnonzero(shared & (number <= ends) & (number <= count))
        under = _under(first[at], second[at], domain[at], whole[at], count[at] - number)
        beside = (rest[at] - number * first[at]) // second[at]
        best[at] = np.maximum(best[at], np.where(under < 0, UNREACHABLE, under + beside))
    return best


def _under(
    first: np.ndarray, second: np.ndarray, domain: np.ndarray, whole: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """Maximum second-pool stages given `count` of the first in `whole` domains; negative if no fit.

    All of shape (n,), stages no larger than a domain.
    """
    at, back = distinct(first, second, domain)
    sides = [_upper_sides(int(first[k]), int(second[k]), int(domain[k])) for k in at]
    most = max(map(len, sides), default=0)
    if not most:
        return count
    table = np.array([side + side[-1:] * (most - len(side)) for side in sides])
    run, fall, height = np.moveaxis(table[back], 2, 0)
    under = (height * whole[:, None] - fall * count[:, None]) // run
    return np.where(count > whole * (domain // first), UNREACHABLE, under.min(axis=1))


@lru_cache(maxsize=1 << 16)
def _upper_sides(first: int, second: int, domain: int) -> tuple[tuple[int, int, int], ...]:
    hull = [(0, domain // second)]
    for x in range(1, domain // first + 1):
        corner = x, (domain - x * first) // second
        while len(hull) > 1 and _turns_left(hull[-2], hull[-1], corner):
            hull.pop()
        hull.append(corner)
    return tuple((u - x, y - v, (u - x) * y + (y - v) * x) for (x, y), (u, v) in pairwise(hull))


def _turns_left(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
