"""A mixed integer program, declared by arrays: minimise c x subject to l <= A x <= u.

Variables are not negative. SparseRows are sparse, and many are declared at a time.

Its linear relaxation is lifted by rounding cuts, with its duals. A mixed-integer rounding cut of a
row sum a_j x_j + sum c_k s_k >= b with x whole, not negative, and s not negative, divided by any
d > 0, is
sum (floor(a_j/d) + min(frac(a_j/d), f)/f) x_j + sum max(c_k, 0)/(d f) s_k >= ceil(b/d),
where f = frac(b/d) > 0 (Nemhauser and Wolsey 1990; Marchand and Wolsey 2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

Array = np.ndarray
Term = tuple[Array, "Array | float"]  # variables (n,) or (n, k) of n rows, and their coefficients


@dataclass(frozen=True)
class SparseRows:
    """Rows in the form that solvers take: low <= matrix x <= high."""

    matrix: sp.csr_array
    low: Array
    high: Array

    def with_rows(self, more: SparseRows) -> SparseRows:
        """Append further rows below these."""
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
        """Copy of the program with further rows."""
        return replace(self, rows=self.rows.with_rows(more))

    def value(self, point: Array) -> float:
        """Objective value at a point."""
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


INTERIOR_POINT_VARIABLES = 3000  # variables above which the interior-point method is faster
# Relative rise of the bound from one round of cuts below which there is no other.
MIN_BOUND_RISE = 1e-4
MAX_CUTS = 20_000  # of one round
VIOLATION_TOLERANCE = 1e-4  # of the right side, below which a cut is no use
FRACTIONAL = 1e-3  # minimum fraction f; below it, coefficients of a cut are too steep for solvers
PER_ROW = 3  # cuts of one row in one round
CUT_DIVISORS = 3  # divisors tried per coefficient: coefficient / 1, 2, ..., CUT_DIVISORS


class NoPoint(ValueError):  # noqa: N818 - a finding, raised
    """No point keeps all rows."""


@dataclass(frozen=True)
class LinearPoint:
    """The optimum of a relaxation: value, point (n,), what one more of each row's side is worth.

    `duals` (rows,) are d value / d side: of the lower side where that binds, else of the upper.
    """

    value: float
    point: Array
    duals: Array
    reduced: Array


def solve_lp_relaxation(program: MixedProgram) -> LinearPoint:
    """The linear program with all variables continuous.

    Raises NoPoint where nothing keeps the rows.
    """
    rows = program.rows
    equal = rows.low == rows.high
    above = np.flatnonzero(~equal & np.isfinite(rows.low))
    under = np.flatnonzero(~equal & np.isfinite(rows.high))
    level = np.flatnonzero(equal)
    one_sided = sp.vstack([-rows.matrix[above], rows.matrix[under]], format="csr")
    result: Any = linprog(  # type: ignore[call-overload, misc]  # its stubs know no sparse rows
        program.cost,
        A_ub=one_sided if one_sided.shape[0] else None,
        b_ub=np.append(-rows.low[above], rows.high[under]) if one_sided.shape[0] else None,
        A_eq=rows.matrix[level] if level.size else None,
        b_eq=rows.low[level] if level.size else None,
        bounds=np.column_stack([np.zeros(program.most.size), program.most]),
        method="highs-ipm" if program.cost.size > INTERIOR_POINT_VARIABLES else "highs-ds",
    )
    if result.x is None:
        raise NoPoint(str(result.message))
    duals = np.zeros(rows.low.size)
    sides = result.ineqlin.marginals if one_sided.shape[0] else np.zeros(0)
    duals[above] -= sides[: above.size]
    duals[under] += sides[above.size :]
    if level.size:
        duals[level] = result.eqlin.marginals
    reduced = result.lower.marginals + result.upper.marginals
    return LinearPoint(float(result.fun), result.x, duals, reduced)


def add_rounding_cuts(program: MixedProgram, rounds: int) -> tuple[MixedProgram, LinearPoint, int]:
    """The program with rounding cuts that lift its relaxation, that relaxation, and their number.

    Raises NoPoint.
    """
    linear, count = solve_lp_relaxation(program), 0
    base = program
    for _ in range(rounds):
        cuts = rounding_cuts(base, linear.point)
        if not cuts.low.size:
            break
        program, count = program.with_rows(cuts), count + cuts.low.size
        lifted = solve_lp_relaxation(program)
        rise = lifted.value - linear.value
        linear = lifted
        if rise <= MIN_BOUND_RISE * abs(linear.value):
            break
    return program, linear, count


def rounding_cuts(program: MixedProgram, point: Array) -> SparseRows:
    """The `MAX_CUTS` that a point violates most; rows are all read as a x >= b."""
    rows = program.rows
    matrix = rows.matrix
    low_sides = np.isfinite(rows.low)
    strengths: list[tuple[float, Array, Array, float]] = []
    for i in np.flatnonzero(low_sides | np.isfinite(rows.high)):
        start, end = matrix.indptr[i : i + 2]
        columns, values = matrix.indices[start:end], matrix.data[start:end]
        sides = [(1.0, rows.low[i])] if low_sides[i] else []
        sides += [(-1.0, -rows.high[i])] if np.isfinite(rows.high[i]) else []
        for sign, side in sides:
            strengths += _cuts_of(sign * values, columns, side, program.whole[columns], point)
    strengths.sort(key=lambda cut: -cut[0])
    chosen = strengths[:MAX_CUTS]
    pointers = np.cumsum([0, *(columns.size for _, columns, _, _ in chosen)])
    columns = np.concatenate([c for _, c, _, _ in chosen]) if chosen else np.zeros(0, int)
    values = np.concatenate([v for _, _, v, _ in chosen]) if chosen else np.zeros(0)
    cut_rows = sp.csr_array((values, columns, pointers), shape=(len(chosen), program.cost.size))
    low = np.array([side for _, _, _, side in chosen])
    return SparseRows(cut_rows, low, np.full(low.size, np.inf))


def _cuts_of(
    values: Array, columns: Array, side: float, whole: Array, point: Array
) -> list[tuple[float, Array, Array, float]]:
    """(violation, columns, coefficients, right side) of the best cuts of one row."""
    if not whole.any() or np.all((here := point[columns])[whole] % 1 == 0):
        return []
    sizes = np.unique(np.abs(values[whole & (here > 0) & (values != 0)]))
    if not sizes.size or (sizes.size == 1 and side == 0):
        return []
    divisors = np.unique(np.concatenate([sizes / part for part in range(1, CUT_DIVISORS + 1)]))
    scaled = side / divisors
    height = np.ceil(scaled - 1e-9)
    f = scaled - (height - 1)
    usable = (f > FRACTIONAL) & (f < 1 - 1e-6)
    if not usable.any():
        return []
    divisors, height, f = divisors[usable], height[usable], f[usable]
    ratio = values[None, :] / divisors[:, None]
    floor = np.floor(ratio + 1e-9)
    rounded = floor + np.minimum(np.maximum(ratio - floor, 0.0), f[:, None]) / f[:, None]
    continuous = np.maximum(ratio, 0.0) / f[:, None]
    coefficients = np.where(whole[None, :], rounded, continuous)
    missed = height - coefficients @ here
    norm = np.linalg.norm(coefficients, axis=1)
    strength = missed / np.maximum(norm, 1e-12)
    order = np.argsort(-strength)[:PER_ROW]
    return [
        (float(strength[k]), columns, coefficients[k], float(height[k]))
        for k in order
        if missed[k] > VIOLATION_TOLERANCE * max(1.0, abs(height[k]))
    ]
