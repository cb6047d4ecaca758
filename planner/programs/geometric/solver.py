"""A lower bound on the optimum from the solver's multipliers, valid however accurate they are.

By weak duality: for weights w that sum to 1, log sum exp(u) >= w.u + H(w) with the entropy H, so
the Lagrangian is at least an affine function of the logarithms z, whose smallest value over the
bounds of the choices is known exactly. The weights are the terms' shares at the solution. The
multipliers of auxiliary rows are scaled so that no auxiliary, which has no bounds, is left over.
"""

from __future__ import annotations

import numpy as np

from planner.programs.geometric.cone import Array, Point
from planner.programs.geometric.instance import Instance, Structure

__all__ = ["lower_bound"]


def lower_bound(problem: Structure, at: Instance, point: Point) -> float:
    """Logarithm of a value that no choice within the bounds can beat; minus infinity if none."""
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
    each = multipliers[rows] * weights
    residual = each @ at.matrix
    residual[-1] += 1.0
    if np.abs(residual[problem.choices :]).max() > 1e-12:
        return -np.inf
    inside = slice(0, problem.choices)
    least = np.minimum(residual * at.low, residual * at.high)[inside].sum()
    positive = each > 0
    entropy = np.log(weights, out=np.zeros_like(weights), where=positive)
    return float(each[positive] @ (at.logs - entropy)[positive] + least)


def _balance(problem: Structure, matrix: Array, weights: Array, multipliers: Array) -> None:
    """Scale, from the objective inwards, the multipliers of the rows that hold a variable up."""
    rows = problem.table.rows
    for column in range(len(problem.variables) - 1, problem.choices - 1, -1):
        pull = weights * matrix[:, column]
        own = np.isin(rows, problem.owned[column])
        needed = (multipliers[rows] * pull)[~own].sum()
        if column == len(problem.variables) - 1:
            needed += 1.0
        held = -(multipliers[rows] * pull)[own].sum()
        mine = list(problem.owned[column])
        if held > 0:
            multipliers[mine] *= needed / held
        elif needed > 0:
            row = next((i for i in mine if pull[rows == i].sum() < 0), None)
            if row is not None:
                multipliers[row] = needed / -pull[rows == row].sum()
