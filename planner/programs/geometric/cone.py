"""The problem in the logarithms of its variables, as the cone program that Clarabel takes.

With z the logarithms, every row is sum exp(A z + c) <= 1. Rows of one term are linear; each term
of the others has a variable t and an exponential cone, exp(A z + c) <= t, and sum t <= 1. That is
what CVXPY makes of the same problem; written down here, 70 solves take 0.15 s in place of 0.6, and
a plan needs no import of CVXPY (0.6 s). Tests solve programs by both. The dual of sum t <= 1 is the
same sensitivity to the logarithm of the right side as the dual of a log-sum-exp form.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from planner.text.errors import SolverError

if TYPE_CHECKING:
    import clarabel


Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

TOLERANCE = 1e-8
SECOND = "SCS"  # the solver that is called where Clarabel gives up
ACCURACY = {"SCS": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}}
# Status words of the solver's outcomes; any other outcome is a failure.
STATUS = {
    "Solved": "optimal",
    "AlmostSolved": "optimal_inaccurate",
    # Stalled point: refined later, accepted only if a bound proves it.
    "InsufficientProgress": "optimal_inaccurate",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible_inaccurate",
    "DualInfeasible": "unbounded",
    "AlmostDualInfeasible": "unbounded_inaccurate",
}


@dataclass(frozen=True)
class ExponentTable:
    """Exponent of each variable in each term, and the row of each term.

    `fixed[term, variable]` holds the exponents that are numbers; entry j of `terms`, `variables`,
    `places` says that the exponent `places[j]` of the givens is added at that position. The last
    variable is the objective. `rows[term]` counts from 0; terms of one row are neighbours.
    """

    rows: Indices
    fixed: Array
    terms: Indices
    variables: Indices
    places: Indices

    def exponents(self, values: Array) -> Array:
        """The full matrix of exponents at these values of those that are givens."""
        full = self.fixed.copy()
        np.add.at(full, (self.terms, self.variables), values[self.places])
        return full


@dataclass(frozen=True)
class ConePoint:
    """Solver result: logarithms of the variables and a multiplier for every row."""

    status: str
    logs: Array
    multipliers: Array


@dataclass(frozen=True)
class _Sparse:
    """A matrix by columns with the attributes of SciPy's, which takes 0.1 s to import."""

    shape: tuple[int, int]
    indptr: npt.NDArray[np.int32]
    indices: npt.NDArray[np.int32]
    data: Array
    has_canonical_format: bool = True

    @property
    def nnz(self) -> int:
        return self.data.size


class LogProgram:
    """Minimise the last variable subject to every row; `floor` keeps it above zero.

    Rows of the cone program: one for every linear row, one for the sum of every other, the floor,
    and three for every term of the latter. Columns: z, then a t for every term.
    """

    def __init__(self, table: ExponentTable, *, floor: bool = False) -> None:
        size = np.bincount(table.rows)
        single = size[table.rows] == 1
        linear, curved = np.flatnonzero(single), np.flatnonzero(~single)
        self._table, self._linear, self._curved = table, linear, curved
        # The rows of the problem in the order of their constraints.
        self._constraints = np.concatenate([table.rows[linear], np.flatnonzero(size > 1)])
        self._variables = table.fixed.shape[1]
        self._above = self._constraints.size + floor
        place = np.empty(table.rows.size, dtype=np.intp)
        place[linear] = np.arange(linear.size)
        place[curved] = self._above + 3 * np.arange(curved.size)
        used = table.fixed != 0
        used[table.terms, table.variables] = True
        self._terms, self._columns = np.nonzero(used)
        self._signs = np.where(single, 1.0, -1.0)[self._terms]
        extra = np.arange(curved.size)
        sums = linear.size + np.searchsorted(np.flatnonzero(size > 1), table.rows[curved])
        entries = [
            (place[self._terms], self._columns, np.zeros(self._terms.size)),
            (sums, self._variables + extra, np.ones(curved.size)),
            (place[curved] + 2, self._variables + extra, -np.ones(curved.size)),
        ]
        if floor:
            last = np.array([self._constraints.size]), np.array([self._variables - 1])
            entries.append((*last, np.array([-1.0])))
        rows, columns, data = (np.concatenate(x) for x in zip(*entries, strict=True))
        order = np.lexsort((rows, columns))
        self._order, self._data = order, data
        counts = np.bincount(columns.astype(np.intp), minlength=self._variables + curved.size)
        self._ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._indices = rows[order].astype(np.int32)
        self._right = np.zeros(self._above + 3 * curved.size)
        self._right[linear.size : self._constraints.size] = 1.0
        self._right[place[curved] + 1] = 1.0

    def solve(self, coefficients: Array, exponents: Array, centre: Array) -> ConePoint:
        """The optimum for these logarithms of the coefficients and exponents of the givens.

        `centre` is where the variables are measured from, for well-scaled numbers. Every solve
        starts cold, so that an answer does not follow the one before. Raises SolverError where the
        solver gives up.
        """
        matrix = self._table.exponents(exponents)
        shifted = coefficients + matrix @ centre
        data, right = self._data.copy(), self._right.copy()
        data[: self._terms.size] = self._signs * matrix[self._terms, self._columns]
        right[: self._linear.size] = -shifted[self._linear]
        right[self._above :: 3] = shifted[self._curved]
        solution = self._solved(data[self._order], right)
        status = STATUS.get(str(solution.status))
        if status is None:
            raise SolverError(f"the convex solver gave up: {solution.status}")
        multipliers = np.zeros(int(self._table.rows[-1]) + 1)
        if not status.startswith("optimal"):
            return ConePoint(status, np.full_like(centre, np.nan), multipliers)
        duals = np.array(solution.z)[: self._constraints.size]
        multipliers[self._constraints] = np.maximum(duals, 0.0)
        return ConePoint(status, np.array(solution.x)[: self._variables] + centre, multipliers)

    def _solved(self, data: Array, right: Array) -> clarabel.DefaultSolution:
        """Clarabel's solution for the entries of the matrix and the right side."""
        import clarabel

        size = self._ends.size - 1
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
        none = np.zeros(0)
        quadratic = _Sparse((size, size), np.zeros(size + 1, np.int32), none.astype(np.int32), none)
        matrix = _Sparse((right.size, size), self._ends, self._indices, data)
        cost = np.zeros(size)
        cost[self._variables - 1] = 1.0
        exponential = [clarabel.ExponentialConeT()] * self._curved.size
        cones = [clarabel.NonnegativeConeT(self._above), *exponential]
        return clarabel.DefaultSolver(quadratic, cost, matrix, right, cones, settings).solve()


def solved_by_cvxpy(
    table: ExponentTable, coefficients: Array, exponents: Array, centre: Array,
    *, floor: bool = False, solver: str = SECOND,
) -> ConePoint:  # fmt: skip
    """Result of `LogProgram(table, floor=floor).solve`, by CVXPY and another of its solvers.

    It is called where Clarabel gives up, and tests hold `LogProgram` against it. Importing CVXPY
    takes longer than most answers. Raises SolverError if this solver gives up as well.
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
