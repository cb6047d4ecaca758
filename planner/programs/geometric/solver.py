"""A compiled problem: solved again and again with other numbers for the same givens.

The lower bound comes from weak duality and holds however accurate the multipliers are: for weights
w that sum to 1, log sum exp(u) >= w.u + H(w) with the entropy H, so the Lagrangian is at least an
affine function of the logarithms z, whose smallest value over the bounds of the choices is known.
The weights are the terms' shares at the solution. The multipliers of auxiliary rows are scaled so
that no auxiliary, which has no bounds, is left over.

An interior-point solution keeps an error of about 1e-7 in its multipliers, which that bound
multiplies by the logarithm of the range of the choices. A few of Newton's steps on the rows that
bind, by least squares where these are not independent, remove it. Rows whose multiplier would turn
negative are let go, rows that would be broken are taken up; what is returned is the point at which
the conditions hold best, the solver's own if no step helped.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.programs.geometric import cone
from planner.programs.geometric.cone import Array, ConePoint, Indices, LogProgram
from planner.programs.geometric.instance import SOLVED, Instance, ProgramRelaxation, instance
from planner.programs.geometric.solution import FIRST, Envelope, ProgramSolution, proven, read
from planner.programs.geometric.structure import ProgramStructure
from planner.text.errors import SolverError


def lower_bound(problem: ProgramStructure, at: Instance, point: ConePoint) -> float:
    """Logarithm of the objective's lower bound within the variables' bounds; -inf if unproven."""
    rows = problem.table.rows
    logs = np.where(at.zero, -np.inf, at.logs)
    terms = logs + at.matrix @ point.logs
    largest = np.full(len(problem.rows), -np.inf)
    np.maximum.at(largest, rows, terms)
    used = np.isfinite(largest)[rows]
    weights = np.where(used, np.exp(terms - np.where(used, largest[rows], 0.0)), 0.0)
    weights /= np.where(used, np.bincount(rows, weights, len(problem.rows))[rows], 1.0)
    multipliers = np.where(np.isfinite(largest), point.multipliers, 0.0)
    _balance(problem, at.matrix, weights, multipliers)
    shares = multipliers[rows] * weights
    residual = shares @ at.matrix
    residual[-1] += 1.0
    if np.abs(residual[problem.choices :]).max() > 1e-12:
        return -np.inf
    inside = slice(0, problem.choices)
    least = np.minimum(residual * at.low, residual * at.high)[inside].sum()
    positive = shares > 0
    entropy = np.log(weights, out=np.zeros_like(weights), where=positive)
    return float(shares[positive] @ (at.logs - entropy)[positive] + least)


def _balance(problem: ProgramStructure, matrix: Array, weights: Array, multipliers: Array) -> None:
    """Scale, from the objective inwards, the multipliers of the rows that hold a variable up."""
    rows = problem.table.rows
    for column in range(len(problem.variables) - 1, problem.choices - 1, -1):
        pull = weights * matrix[:, column]
        owned = np.isin(rows, problem.owned[column])
        needed = (multipliers[rows] * pull)[~owned].sum()
        if column == len(problem.variables) - 1:
            needed += 1.0
        supported = -(multipliers[rows] * pull)[owned].sum()
        mine = list(problem.owned[column])
        if supported > 0:
            multipliers[mine] *= needed / supported
        elif needed > 0:
            row = next((i for i in mine if pull[rows == i].sum() < 0), None)
            if row is not None:
                multipliers[row] = needed / -pull[rows == row].sum()


STEPS = 12
MAX_STEP = 1.0
RESIDUAL_TOLERANCE = 1e-13
FEASIBILITY_TOLERANCE = 1e-12
NEGATIVE = -1e-6


def newton_refined(problem: ProgramStructure, at: Instance, point: ConePoint) -> ConePoint:
    """Point after the Newton steps that reduce its error."""
    nothing = np.zeros(len(problem.rows), dtype=bool)
    start = _Conditions(at, problem.table.rows, point.logs, point.multipliers, nothing)
    here = best = replace(start, active=point.multipliers > -start.heights)
    for _ in range(STEPS):
        there = here.stepped()
        negative = there.multipliers < NEGATIVE
        broken = ~here.active & (there.heights > FEASIBILITY_TOLERANCE)
        if negative.any() or broken.any():
            here = replace(here, active=(here.active & ~negative) | broken)
            continue
        if there.error < best.error:
            best = there
        if best.error < RESIDUAL_TOLERANCE or not there.error < here.error:
            break
        here = there
    return ConePoint(point.status, best.logs, np.maximum(best.multipliers, 0.0))


@dataclass(frozen=True)
class _Conditions:
    """The optimality conditions at one point; `active` are the rows treated as equalities."""

    at: Instance
    rows: Indices
    logs: Array
    multipliers: Array
    active: npt.NDArray[np.bool_]

    @cached_property
    def _summed(self) -> tuple[Array, Array]:
        count = len(self.multipliers)
        terms = self.at.logs + self.at.matrix @ self.logs
        largest = np.full(count, -np.inf)
        np.maximum.at(largest, self.rows, terms)
        parts = np.exp(terms - largest[self.rows])
        sums = np.bincount(self.rows, parts, count)
        return largest + np.log(sums), parts / sums[self.rows]

    @property
    def heights(self) -> Array:
        """Logarithm of every row's sum; 0 where it binds."""
        return self._summed[0]

    @cached_property
    def gradients(self) -> Array:
        """Gradients of `heights`, one row each."""
        gradients = np.zeros((len(self.multipliers), self.at.matrix.shape[1]))
        np.add.at(gradients, self.rows, self._summed[1][:, None] * self.at.matrix)
        return gradients

    @cached_property
    def stationary(self) -> Array:
        """Gradient of the Lagrangian; the last variable is the objective."""
        gradient: Array = self.gradients.T @ self.multipliers
        gradient[-1] += 1.0
        return gradient

    @cached_property
    def error(self) -> float:
        """The largest violation of stationarity, of a row, of a sign, of multiplier times slack."""
        slack = np.abs(self.multipliers * self.heights).max()
        broken = max(self.heights.max(), -self.multipliers.min())
        return float(max(np.abs(self.stationary).max(), broken, slack))

    def stepped(self) -> _Conditions:
        """One Newton step further, with the multipliers of rows that are not active gone."""
        matrix, gradients = self.at.matrix, self.gradients
        multipliers = np.where(self.active, self.multipliers, 0.0)
        shares = multipliers[self.rows] * self._summed[1]
        curvature = matrix.T @ (shares[:, None] * matrix)
        curvature -= gradients.T @ (multipliers[:, None] * gradients)
        binding = gradients[self.active]
        size, tight = matrix.shape[1], len(binding)
        system = np.zeros((size + tight, size + tight))
        system[:size, :size] = curvature
        system[:size, size:] = binding.T
        system[size:, :size] = binding
        stationary = gradients.T @ multipliers
        stationary[-1] += 1.0
        target = -np.concatenate([stationary, self.heights[self.active]])
        moves = np.linalg.lstsq(system, target, rcond=1e-11)[0]
        multipliers[self.active] += moves[size:]
        shorter = min(1.0, MAX_STEP / max(np.abs(moves[:size]).max(), MAX_STEP))
        return replace(self, logs=self.logs + shorter * moves[:size], multipliers=multipliers)


MAX_GAP = 1e-4
NARROW_GAP = 1e-6  # a solver that stopped early further from its bound than this starts again
RETRIES = 3
# A lower bound whose exponential is no number: a ray of the dual that a solver took for a point.
MAX_EXPONENT = float(np.log(np.finfo(float).max))


class Program:
    """Compiled program, of `GeometricProgram.compile` or a stored `ProgramStructure`."""

    def __init__(self, structure: ProgramStructure) -> None:
        self.structure = structure
        self._program = LogProgram(structure.table)

    @property
    def givens(self) -> tuple[Hashable, ...]:
        """Parameters that `solve` needs values for: symbols, or names in a stored program."""
        return self.structure.coefficients.givens

    def solve(self, numbers: Mapping[Hashable, float]) -> ProgramSolution:
        """The optimum at these values of the givens.

        Raises ProblemError for a value that is missing or cannot be taken, or a coefficient that
        comes out negative; Shortage (an Infeasible), with the shortfalls, if no choice satisfies
        every constraint; SolverError if both solvers failed, or the answer is further than 1e-4
        from the bound it proves.
        """
        at = instance(self.structure, numbers)
        solver = FIRST
        try:
            solved = self._optimum(at)
        except SolverError:
            # Clarabel also fails just past feasibility; there SCS takes hundreds of times longer.
            with suppress(SolverError):
                raise self._stretching.shortage(at) from None
            solver = cone.SECOND
            table = self.structure.table
            again = cone.solved_by_cvxpy(table, at.logs, at.exponents, at.centre)
            solved = self._refined(at, again)
        if solved is None:
            raise self._stretching.shortage(at)
        point, bound = solved
        # Lower each auxiliary to the minimum that its own rows allow. An auxiliary with zero
        # coefficients here, or only in slack rows, may be arbitrarily large in a solver's
        # answer, and its terms may overflow.
        rows, logs = self.structure.table.rows, point.logs.copy()
        for column in range(self.structure.choices, len(self.structure.variables) - 1):
            terms = at.logs + at.matrix @ logs
            down = at.matrix[:, column] < 0
            heights = []
            for row in self.structure.owned[column]:
                rest = np.exp(terms[(rows == row) & ~down]).sum()
                height = np.logaddexp.reduce(terms[(rows == row) & down])
                heights.append(height - np.log1p(-rest) if rest < 1 else 0.0)
            logs[column] += min(max(heights), 0.0)
        point = replace(point, logs=logs)
        envelope = Envelope(self.structure, at, point.logs, point.multipliers)
        return replace(read(envelope, bound), solver=solver)

    def bound(self, numbers: Mapping[Hashable, float]) -> float | None:
        """The lower bound that `solve` proves, None where no choice satisfies every constraint.

        What falls short is not looked for. Raises as `solve`.
        """
        at = instance(self.structure, numbers)
        solved = self._optimum(at)
        if solved is not None:
            return proven(float(np.exp(solved[0].logs[-1])), solved[1])
        self._stretching.least_common(at)
        return None

    def _optimum(self, at: Instance) -> tuple[ConePoint, float] | None:
        return self._refined(at, self._program.solve(at.logs, at.exponents, at.centre))

    def _refined(self, at: Instance, point: ConePoint) -> tuple[ConePoint, float] | None:
        """A solver's answer to machine accuracy, with the logarithm of its lower bound."""
        if point.status not in SOLVED:
            return None
        best, gap = None, MAX_GAP
        for _ in range(1 + RETRIES):
            point = newton_refined(self.structure, at, point)
            bound = lower_bound(self.structure, at, point)
            if bound > MAX_EXPONENT:
                break
            if point.status == "optimal":
                return point, bound
            if (short := float(point.logs[-1]) - bound) <= gap:
                best, gap = (point, bound), short
            if gap <= NARROW_GAP:
                break
            # Numbers measured from near the optimum are better scaled than from anywhere else.
            with suppress(SolverError):
                point = self._program.solve(at.logs, at.exponents, point.logs)
            if point.status not in SOLVED:
                break
        if best:
            return best
        raise SolverError(f"{self.structure.title}: the solver stopped early; rescale the givens")

    @cached_property
    def _stretching(self) -> ProgramRelaxation:
        return ProgramRelaxation(self.structure)
