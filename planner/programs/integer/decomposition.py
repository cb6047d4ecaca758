"""Decomposition of a mixed integer program into parts: a Lagrangian bound, and block descent.

The bound: rows within one part stay, rows between parts are priced by duals; a variable that all
parts share has a copy in each, whose cost is what the part's rows pay for it. The sum of the parts'
optima is a bound for any prices (Geoffrion 1974), and one above the relaxation where the parts are
whole.

The descent: a part is solved with all other variables held, what they take moved to the sides of
its rows. From a fractional point each part becomes whole in its turn; from a whole one each step
can only make it better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from planner.programs.integer.branch_and_bound import WholePoint, least_value, solved
from planner.programs.integer.integer_program import Array, MixedProgram, SparseRows
from planner.programs.integer.linear_relaxation import NoPoint, relaxed

SHARED = -1
MOST_GAP = 0.5  # of a part that costs next to nothing


def lagrangian_bound(
    program: MixedProgram, part_of: Array, duals: Array, miss: float, nodes: int
) -> tuple[float, int]:
    """What no whole point is below, and the nodes looked at.

    Parameters
    ----------
    part_of : part of each variable, SHARED for those of all parts.
    duals : prices of the rows, as a relaxation has them; the better they are, the higher the bound.
    miss, nodes : each part is solved to within `miss`, or until so many nodes were looked at.
    """
    rows = program.rows
    matrix = sp.csr_array(rows.matrix)
    duals = _signed(duals, rows)
    parts = np.unique(part_of[part_of != SHARED])
    inside = _part_of_rows(matrix, part_of)
    linked = np.flatnonzero(inside == SHARED)
    priced = np.zeros_like(duals)
    priced[linked] = duals[linked]
    value = float(
        np.sum(np.where(priced > 0, priced * _finite(rows.low), priced * _finite(rows.high)))
    )
    cost = program.cost - matrix.T @ priced
    shared = np.flatnonzero(part_of == SHARED)
    # What parts pay for what they share may be no more than it costs
    paid = np.array([
        matrix[np.flatnonzero(inside == part)][:, shared].T @ duals[inside == part]
        for part in parts
    ])  # fmt: skip
    over = np.minimum(0.0, cost[shared] - paid.sum(axis=0))
    paid += over / max(1, parts.size)
    looked = 0
    for part, pays in zip(parts, paid, strict=True):
        mine = np.flatnonzero(part_of == part)
        touched = np.flatnonzero(inside == part)
        both = np.concatenate([mine, shared])
        inner = MixedProgram(
            np.concatenate([cost[mine], pays]),
            SparseRows(
                sp.csr_array(matrix[touched][:, both]), rows.low[touched], rows.high[touched]
            ),
            program.most[both],
            program.whole[both],
        )
        bound, count = least_value(inner, miss, nodes)
        value, looked = value + bound, looked + count
    return value, looked


def _signed(duals: Array, rows: SparseRows) -> Array:
    """Duals without the rounding by which they price a side that a row does not have."""
    duals = np.where(np.isfinite(rows.low), duals, np.minimum(duals, 0.0))
    return np.asarray(np.where(np.isfinite(rows.high), duals, np.maximum(duals, 0.0)))


def _finite(sides: Array) -> Array:
    return np.where(np.isfinite(sides), sides, 0.0)


def _part_of_rows(matrix: sp.csr_array, part_of: Array) -> Array:
    """The part of each row, SHARED where it links several or lies in none."""
    owner = part_of[matrix.indices]
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    real = owner != SHARED
    low = np.full(matrix.shape[0], np.iinfo(int).max)
    high = np.full(matrix.shape[0], -1)
    np.minimum.at(low, rows[real], owner[real])
    np.maximum.at(high, rows[real], owner[real])
    return np.where(low == high, low, SHARED)


def descend(
    program: MixedProgram, point: Array, parts: Sequence[Array], miss: float, nodes: int
) -> tuple[Array, int]:
    """The point after each part was solved in turn, whole in it; and the nodes looked at.

    A part is solved to within `miss`, in the unit of the objective. Raises NoPoint where a part has
    no point beside what is held.
    """
    columns = sp.csc_array(program.rows.matrix)
    looked = 0
    for part in parts:
        inner = _restricted(program, columns, point, part)
        best = _solved_part(inner, miss, nodes)
        looked += best.nodes
        before = program.cost[part] @ point[part]
        now = point[part]
        whole = np.all(np.abs(now - np.round(now))[inner.whole] <= 1e-6)
        if whole and best.value >= before and not inner.rows.excess(now).max(initial=0.0) > 1e-6:
            continue
        point = point.copy()
        point[part] = best.point
    return point, looked


def _restricted(
    program: MixedProgram, columns: sp.csc_array, point: Array, part: Array
) -> MixedProgram:
    """The program of some variables, all others at their values."""
    inner = columns[:, part]
    touched = np.unique(inner.indices)
    matrix = sp.csr_array(inner)[touched]
    rows = program.rows
    rest = rows.matrix[touched] @ point - matrix @ point[part]
    # What is held may miss a row by the rounding of solvers.
    slack = 1e-9 * (1 + np.abs(rest))
    held_rows = SparseRows(
        matrix, rows.low[touched] - rest - slack, rows.high[touched] - rest + slack
    )
    return MixedProgram(program.cost[part], held_rows, program.most[part], program.whole[part])


def _solved_part(inner: MixedProgram, miss: float, nodes: int) -> WholePoint:
    least = relaxed(inner).value
    gap = min(MOST_GAP, miss / max(abs(least), 1e-9))
    best = solved(inner, gap, nodes)
    if best is None:
        best = solved(inner, MOST_GAP, 100 * nodes)
    if best is None:
        raise NoPoint("a part has no whole point within its nodes")
    return best
