"""A program solved part by part: some variables free, all others held, again and again.

A part's own program is that of its rows, with what is held moved to their sides. From a fractional
point each part becomes whole in its turn; from a whole one each step can only make it better.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from planner.programs.integer.branch_and_bound import WholePoint, solved
from planner.programs.integer.integer_program import Array, MixedProgram, SparseRows
from planner.programs.integer.linear_relaxation import NoPoint, relaxed

MOST_GAP = 0.5  # of a part that costs next to nothing


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
