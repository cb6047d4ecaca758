"""The linear relaxation of a mixed integer program, lifted by rounding cuts, with its duals.

A mixed-integer rounding cut of a row sum a_j x_j + sum c_k s_k >= b with x whole, not negative, and
s not negative, divided by any d > 0, is
sum (floor(a_j/d) + min(frac(a_j/d), f)/f) x_j + sum max(c_k, 0)/(d f) s_k >= ceil(b/d),
where f = frac(b/d) > 0 (Nemhauser and Wolsey 1990; Marchand and Wolsey 2001).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from planner.programs.integer.integer_program import Array, MixedProgram, SparseRows

LARGE = 3000  # variables from which the interior point method is the faster one
STOPPED = 1e-4  # relative rise of the bound from one round of cuts below which there is no other
VIOLATED = 1e-4  # of the right side, below which a cut is no use
FRACTIONAL = 1e-3  # least f: coefficients of other cuts are too steep for solvers
PER_ROW = 3  # cuts of one row in one round
PARTS = 3  # divisors: every coefficient over 1, 2, ... so many


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


def relaxed(program: MixedProgram) -> LinearPoint:
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
        method="highs-ipm" if program.cost.size > LARGE else "highs-ds",
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


def tightened(
    program: MixedProgram, rounds: int, most: int = 20_000
) -> tuple[MixedProgram, LinearPoint, int]:
    """The program with rounding cuts that lift its relaxation, that relaxation, and their number.

    Raises NoPoint.
    """
    linear, count = relaxed(program), 0
    base = program
    for _ in range(rounds):
        cuts = rounding_cuts(base, linear.point, most)
        if not cuts.low.size:
            break
        program, count = program.with_rows(cuts), count + cuts.low.size
        lifted = relaxed(program)
        rise = lifted.value - linear.value
        linear = lifted
        if rise <= STOPPED * abs(linear.value):
            break
    return program, linear, count


def rounding_cuts(program: MixedProgram, point: Array, most: int) -> SparseRows:
    """The cuts that a point violates most, at most so many; rows are all read as a x >= b."""
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
    chosen = strengths[:most]
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
    divisors = np.unique(np.concatenate([sizes / part for part in range(1, PARTS + 1)]))
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
        if missed[k] > VIOLATED * max(1.0, abs(height[k]))
    ]
