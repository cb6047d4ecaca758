"""Colour refinement: nodes, or rows and columns, that are locally indistinguishable.

Colours are 64-bit hashes that do not depend on numbering, so that two refinements can be
compared colour by colour. Two different things may share a hash; whoever draws a conclusion
from a colouring checks it exactly, as `equitable_partition` does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topologies.rates.flow_network import Ints, SparseMatrix

Colours = NDArray[np.uint64]

SEEDS = 4
_ODD = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15], dtype=np.uint64)
_SHIFTS = np.array([30, 27, 31], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class ArcEnds:
    """The node at one end of each arc, and the colour of the arc.

    `colours` are those that arcs have and `place` an arc's colour and end in their product with
    the nodes, where that is smaller than the arcs are many; else `colours` are one for each arc.
    """

    end: Ints
    colours: Colours
    place: Ints | None

    @classmethod
    def of(cls, size: int, end: Ints, colour: Colours) -> ArcEnds:
        """Build from the ends and colours of arcs between `size` nodes."""
        colours, which = np.unique(colour, return_inverse=True)
        shared = colours.size * size < end.size
        return cls(end, colours if shared else colour, which * size + end if shared else None)

    def mixed(self, nodes: Colours, seed: int) -> Colours:
        """Hashes of the colours of each arc and of the node at its end."""
        if self.place is None:
            return mix_hashes(nodes[self.end] ^ self.colours, seed)
        return np.take(mix_hashes(nodes ^ self.colours[:, None], seed), self.place)


@dataclass(frozen=True, eq=False)
class ColoredArcs:
    """Coloured arcs between `size` nodes, sorted by tail and by head."""

    size: int
    out_at: Ints
    outward: ArcEnds
    in_at: Ints
    inward: ArcEnds

    @classmethod
    def of(cls, size: int, tail: Ints, head: Ints, colour: Colours) -> ColoredArcs:
        """From the ends and colours of the arcs in any order."""
        by_tail, by_head = np.argsort(tail, kind="stable"), np.argsort(head, kind="stable")
        hashes = mix_hashes(colour)
        return cls(
            size,
            np.r_[0, np.cumsum(np.bincount(tail, minlength=size))],
            ArcEnds.of(size, head[by_tail], hashes[by_tail]),
            np.r_[0, np.cumsum(np.bincount(head, minlength=size))],
            # An arc that enters must not look like one that leaves.
            ArcEnds.of(size, tail[by_head], mix_hashes(hashes)[by_head]),
        )


def mix_hashes(values: Ints | Colours, seed: int = 0) -> Colours:
    """The values as well spread hashes (the finaliser of splitmix64)."""
    x = values.astype(np.uint64) + _ODD[2:] * np.uint64(seed + 1)
    x = (x ^ (x >> _SHIFTS[0])) * _ODD[0]
    x = (x ^ (x >> _SHIFTS[1])) * _ODD[1]
    return x ^ (x >> _SHIFTS[2])


def refine_colors(arcs: ColoredArcs, colours: Colours, seed: int = 0) -> tuple[Colours, int]:
    """The stable colouring, refined by the colours of in- and out-neighbours; rounds it took."""
    seen, rounds = _distinct(colours), 0
    while seen < arcs.size:
        finer = mix_hashes(colours * _ODD[2] + neighborhood_hash(arcs, colours, seed), seed)
        rounds += 1
        now = _distinct(finer)
        if now <= seen:
            break
        colours, seen = finer, now
    return colours, rounds


def _distinct(colours: Colours) -> int:
    return 1 + int(np.count_nonzero(np.diff(np.sort(colours))))


def neighborhood_hash(arcs: ColoredArcs, colours: Colours, seed: int = 0) -> Colours:
    """Hashes of the in- and out-neighbours of each node and of the arcs between, not of itself."""
    leaving = _sums(arcs.outward.mixed(colours, seed), arcs.out_at)
    entering = _sums(arcs.inward.mixed(colours, seed), arcs.in_at)
    return leaving * _ODD[0] + entering * _ODD[1]


def _sums(values: Colours, at: Ints) -> Colours:
    total = np.zeros(values.size + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    return total[at[1:]] - total[at[:-1]]


@dataclass(frozen=True, eq=False)
class ReducedProgramClasses:
    """Classes of rows and of columns under which a linear program keeps its optimum."""

    rows: Ints  # class of each row
    columns: Ints  # class of each column
    first: Ints  # representative row of each class
    matrix: SparseMatrix  # that row of each class, summed over the columns of each class

    @classmethod
    def of(cls, matrix: SparseMatrix) -> ReducedProgramClasses:
        """The matrix as it is, each row and column a class."""
        rows, columns = map(np.arange, matrix.shape)
        return cls(rows, columns, rows, matrix)


def equitable_partition(matrix: SparseMatrix, rows: Ints, columns: Ints) -> ReducedProgramClasses:
    """Coarsest equitable partition of a matrix that never merges rows or columns given as distinct.

    Averaging a solution over the columns of each class keeps it feasible when all rows of a
    class have equal sums over each class of columns, and all columns of a class equal sums
    over each class of rows. Both are checked on the numbers themselves.

    Args:
        rows, columns: int arrays. Rows of different right sides, and columns of different costs,
            have different numbers.

    Source: Grohe, Kersting, Mladenov, Selman, Dimension reduction via colour refinement,
    arXiv 1307.5697, theorem 1.2.
    """
    entries = matrix.tocoo()
    i, j = (ends.astype(np.int64) for ends in entries.coords)
    _, value = np.unique(entries.data, return_inverse=True)
    height, width = matrix.shape
    arcs = ColoredArcs.of(height + width, i, height + j, value.astype(np.uint64))
    start = np.r_[2 * rows, 2 * columns + 1]
    for seed in range(SEEDS):
        colours, _ = refine_colors(arcs, mix_hashes(start, seed), seed)
        partition = _partition(matrix, colours[:height], colours[height:])
        if partition is not None:
            return partition
    return ReducedProgramClasses.of(matrix)


def _partition(matrix: SparseMatrix, row: Colours, column: Colours) -> ReducedProgramClasses | None:
    _, first, rows = np.unique(row, return_index=True, return_inverse=True)
    _, first_column, columns = np.unique(column, return_index=True, return_inverse=True)
    over_columns = csr_array(matrix @ _indicator(columns))
    over_rows = csr_array(matrix.T @ _indicator(rows))
    if _uneven(over_columns, first[rows]) or _uneven(over_rows, first_column[columns]):
        return None
    return ReducedProgramClasses(rows, columns, first, csr_array(over_columns[first]))


def _indicator(classes: Ints) -> SparseMatrix:
    size = classes.size
    return csr_array(
        (np.ones(size), classes, np.arange(size + 1)), shape=(size, int(classes.max()) + 1)
    )


def _uneven(sums: SparseMatrix, like: Ints) -> bool:
    gap = abs(sums - sums[like])
    return bool(gap.nnz and gap.max() > 1e-12 * abs(sums).max())
