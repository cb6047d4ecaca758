"""Newton's steps on the optimality conditions, from the interior-point answer to machine accuracy.

An interior-point solution keeps an error of about 1e-7 in its multipliers, which a dual bound over
wide ranges of the choices multiplies by the logarithm of the range. A few steps on the rows that
bind, in the sense of least squares where these are not independent, remove it. A step that does not
make the conditions hold better is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.problem.cone import Array, Indices, Point
from planner.problem.instance import Instance, Structure

__all__ = ["polished"]

STEPS = 3
TIGHT = 1e-5
PRESSED = 1e-7
ENOUGH = 1e-13


def polished(problem: Structure, at: Instance, point: Point) -> Point:
    """The point after at most three accepted steps."""
    rows = problem.table.rows
    first = _Conditions(at, rows, point.logs, point.multipliers, np.empty(0, dtype=np.intp))
    active = np.flatnonzero((first.heights > -TIGHT) & (point.multipliers > PRESSED))
    pressed = np.zeros_like(point.multipliers)
    pressed[active] = point.multipliers[active]
    best = _Conditions(at, rows, point.logs, pressed, active)
    for _ in range(STEPS):
        if best.error < ENOUGH:
            break
        next_one = best.stepped()
        if not next_one.error < best.error or next_one.multipliers.min() < 0:
            break
        best = next_one
    return Point(point.status, best.logs, best.multipliers)


@dataclass(frozen=True)
class _Conditions:
    """The optimality conditions at one point; `active` are the rows to be held tight."""

    at: Instance
    rows: Indices
    logs: Array
    multipliers: Array
    active: Indices

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
        """The largest violation of stationarity, of an active row, of any row."""
        tight = np.abs(self.heights[self.active]).max(initial=0.0)
        return float(max(np.abs(self.stationary).max(), self.heights.max(), tight))

    def stepped(self) -> _Conditions:
        """One Newton step further."""
        matrix, gradients = self.at.matrix, self.gradients
        each = self.multipliers[self.rows] * self._summed[1]
        curvature = matrix.T @ (each[:, None] * matrix)
        curvature -= gradients.T @ (self.multipliers[:, None] * gradients)
        held = gradients[self.active]
        size, tight = matrix.shape[1], len(self.active)
        system = np.zeros((size + tight, size + tight))
        system[:size, :size] = curvature
        system[:size, size:] = held.T
        system[size:, :size] = held
        target = -np.concatenate([self.stationary, self.heights[self.active]])
        found = np.linalg.lstsq(system, target, rcond=1e-11)[0]
        multipliers = self.multipliers.copy()
        multipliers[self.active] += found[size:]
        return _Conditions(self.at, self.rows, self.logs + found[:size], multipliers, self.active)
