"""A mixed integer program, declared by arrays: minimise c x subject to l <= A x <= u.

Variables are not negative. SparseRows are sparse, and many are declared at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Term = tuple[Array, "Array | float"]  # variables (n,) or (n, k) of n rows, and their coefficients


@dataclass(frozen=True)
class SparseRows:
    """Rows in the form that solvers take: low <= matrix x <= high."""

    matrix: sp.csr_array
    low: Array
    high: Array

    def with_rows(self, more: SparseRows) -> SparseRows:
        """These and others below them."""
        matrix = sp.csr_array(sp.vstack([self.matrix, more.matrix], format="csr"))
        return SparseRows(matrix, np.append(self.low, more.low), np.append(self.high, more.high))

    def excess(self, point: Array) -> Array:
        """By how much each row is missed at a point (n,); zero where it holds."""
        value = self.matrix @ point
        return np.maximum(np.maximum(self.low - value, value - self.high), 0.0)


@dataclass(frozen=True)
class MixedProgram:
    """A program as arrays: costs, rows, bounds (0 <= x <= most), and which variables are whole."""

    cost: Array
    rows: SparseRows
    most: Array
    whole: Array

    def with_rows(self, more: SparseRows) -> MixedProgram:
        """The same program with further rows."""
        return replace(self, rows=self.rows.with_rows(more))

    def value(self, point: Array) -> float:
        """What is made small, at a point."""
        return float(self.cost @ point)


@dataclass
class IntegerProgram:
    """A program being declared; `compiled` gives its arrays."""

    costs: list[Array] = field(default_factory=list)
    mosts: list[Array] = field(default_factory=list)
    wholes: list[Array] = field(default_factory=list)
    entries: list[tuple[Array, Array, Array]] = field(default_factory=list)
    lows: list[Array] = field(default_factory=list)
    highs: list[Array] = field(default_factory=list)
    columns: int = 0
    height: int = 0

    def variables(
        self, shape: tuple[int, ...], cost: Array | float = 0.0, most: Array | float = np.inf,
        whole: bool = True,
    ) -> Array:  # fmt: skip
        """Numbers of new variables in an array of a shape; costs and bounds are spread over it."""
        size = int(np.prod(shape))
        self.costs.append(np.broadcast_to(cost, shape).astype(float).ravel())
        self.mosts.append(np.broadcast_to(most, shape).astype(float).ravel())
        self.wholes.append(np.full(size, whole))
        numbers = np.arange(self.columns, self.columns + size).reshape(shape)
        self.columns += size
        return numbers

    def subject(
        self, terms: Sequence[Term], low: Array | float = -np.inf, high: Array | float = np.inf
    ) -> Array:
        """Numbers of new rows (n,): low <= sum of coefficient * variable <= high."""
        count = next(len(variables) for variables, _ in terms)
        rows = np.arange(self.height, self.height + count)
        for variables, coefficient in terms:
            spread = np.broadcast_to(coefficient, variables.shape)
            if variables.ndim == 1:
                self.entries.append((rows, variables, spread))
            else:
                repeated = np.repeat(rows, variables.shape[1])
                self.entries.append((repeated, variables.ravel(), spread.ravel()))
        self.lows.append(np.broadcast_to(low, count).astype(float))
        self.highs.append(np.broadcast_to(high, count).astype(float))
        self.height += count
        return rows

    def compiled(self) -> MixedProgram:
        """The program as arrays."""
        parts = [np.concatenate(each) for each in zip(*self.entries, strict=True)]
        rows, columns, values = parts
        matrix = sp.csr_array((values, (rows, columns)), shape=(self.height, self.columns))
        matrix.sum_duplicates()
        both = SparseRows(matrix, np.concatenate(self.lows), np.concatenate(self.highs))
        arrays = (np.concatenate(each) for each in (self.costs, self.mosts, self.wholes))
        cost, most, whole = arrays
        return MixedProgram(cost, both, most, whole)
