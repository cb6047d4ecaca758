"""The cone program once more, by CVXPY and another of its solvers, where Clarabel gives up.

Written as CVXPY reads it, it is also the reference that tests hold `cone` against. Importing CVXPY
takes longer than most answers, so it is imported where it is needed.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from planner.programs.geometric.cone import Array, ConePoint, ExponentTable
from planner.text.errors import SolverError

SECOND = "SCS"
ACCURACY = {"SCS": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}}


def solved_by_cvxpy(
    table: ExponentTable, coefficients: Array, exponents: Array, centre: Array,
    *, floor: bool = False, solver: str = SECOND,
) -> ConePoint:  # fmt: skip
    """What `LogProgram(table, floor=floor).solve` gives, by another solver.

    Raises SolverError if this one gives up as well.
    """
    import cvxpy as cp

    matrix = table.exponents(exponents)
    shift = coefficients + matrix @ centre
    count = int(table.rows[-1]) + 1
    size = np.bincount(table.rows, minlength=count)
    z = cp.Variable(matrix.shape[1])
    constraints: list[Any] = []
    for row in range(count):
        terms = np.flatnonzero(table.rows == row)
        logs = matrix[terms] @ z + shift[terms]
        constraints.append(logs[0] <= 0 if size[row] == 1 else cp.sum(cp.exp(logs)) <= 1)
    ground = [z[-1] >= 0] if floor else []
    problem = cp.Problem(cp.Minimize(z[-1]), [*constraints, *ground])
    with warnings.catch_warnings():
        # Accuracy is judged afterwards, by the gap to a bound computed from the multipliers.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        try:
            problem.solve(solver=solver, **ACCURACY.get(solver, {}))
        except cp.SolverError as error:
            raise SolverError(f"the second convex solver gave up too: {error}") from error
    if z.value is None:
        return ConePoint(problem.status, np.full_like(centre, np.nan), np.zeros(count))
    multipliers = np.array([max(float(np.sum(x.dual_value)), 0.0) for x in constraints])
    return ConePoint(problem.status, z.value + centre, multipliers)
