"""Newton's steps on the optimality conditions, from the interior-point answer to machine accuracy.

An interior-point solution keeps an error of about 1e-7 in its multipliers, which a dual bound over
wide ranges of the choices multiplies by the logarithm of the range. A few steps on the rows that
bind, in the sense of least squares where these are not independent, remove it. Rows whose
multiplier would turn negative are let go, rows that would be broken are taken up; what is returned
is the point at which the conditions hold best, the solver's own if no step helped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.programs.geometric.cone import Array, Indices, Point
from planner.programs.geometric.instance import Instance, Structure

__all__ = ["polished"]

STEPS = 12
LONGEST = 1.0
ENOUGH = 1e-13
BROKEN = 1e-12
NEGATIVE = -1e-6


def polished(problem: Structure, at: Instance, point: Point) -> Point:
    """The point after as many steps as help."""
    nothing = np.zeros(len(problem.rows), dtype=bool)
    start = _Conditions(at, problem.table.rows, point.logs, point.multipliers, nothing)
    here = best = replace(start, active=point.multipliers > -start.heights)
    for _ in range(STEPS):
        there = here.stepped()
        negative = there.multipliers < NEGATIVE
        broken = ~here.active & (there.heights > BROKEN)
        if negative.any() or broken.any():
            here = replace(here, active=(here.active & ~negative) | broken)
            continue
        if there.error < best.error:
            best = there
        if best.error < ENOUGH or not there.error < here.error:
            break
        here = there
    return Point(point.status, best.logs, np.maximum(best.multipliers, 0.0))


@dataclass(frozen=True)
class _Conditions:
    """The optimality conditions at one point; `active` are the rows to be held tight."""

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
        """Of the heights, one row each."""
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
        each = multipliers[self.rows] * self._summed[1]
        curvature = matrix.T @ (each[:, None] * matrix)
        curvature -= gradients.T @ (multipliers[:, None] * gradients)
        held = gradients[self.active]
        size, tight = matrix.shape[1], len(held)
        system = np.zeros((size + tight, size + tight))
        system[:size, :size] = curvature
        system[:size, size:] = held.T
        system[size:, :size] = held
        stationary = gradients.T @ multipliers
        stationary[-1] += 1.0
        target = -np.concatenate([stationary, self.heights[self.active]])
        found = np.linalg.lstsq(system, target, rcond=1e-11)[0]
        multipliers[self.active] += found[size:]
        shorter = min(1.0, LONGEST / max(np.abs(found[:size]).max(), LONGEST))
        return replace(self, logs=self.logs + shorter * found[:size], multipliers=multipliers)
