"""One-sided elasticities where the optimal multipliers are not unique.

The optimal multipliers are those that vanish on slack rows and keep the Lagrangian stationary. The
right derivative of the optimum is the largest, the left one the smallest value that the envelope
theorem gives over that set (Gol'shtein 1972, for a unique minimiser): two small linear programs.
"""

from __future__ import annotations

import numpy as np

from planner.programs.geometric.envelope import Envelope
from planner.text.errors import SolverError

__all__ = ["extremes"]

TIGHT = 1e-6
UNBOUNDED = 3


def extremes(solved: Envelope, given: int) -> tuple[float, float]:
    """d ln objective / d ln p to the left and to the right of the given's present figure."""
    from scipy.optimize import linprog

    problem = solved.problem
    rows, count = problem.table.rows, len(problem.rows)
    sizes = solved.sizes
    filled = np.bincount(rows, sizes, count)
    tight = np.flatnonzero((filled > 1 - TIGHT) | (solved.multipliers > TIGHT))
    gradients = np.zeros((count, len(problem.variables)))
    np.add.at(gradients, rows, sizes[:, None] * solved.at.matrix)
    gradients = gradients[tight] / filled[tight, None]
    goal = np.zeros(len(problem.variables))
    goal[-1] = -1.0
    rate = solved.rates(given)[tight] / filled[tight]
    # The solver's own multipliers leave a residual; a smaller one cannot be asked for.
    left = np.abs(gradients.T @ solved.multipliers[tight] - goal).max()
    room = max(1e-9, 2.0 * left)
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(
            sign * rate,
            A_ub=np.vstack([gradients.T, -gradients.T]),
            b_ub=np.concatenate([goal + room, room - goal]),
            method="highs",
        )
        if found.status == UNBOUNDED:
            ends.append(-sign * np.inf)
        elif found.status == 0 and found.fun is not None:
            ends.append(sign * float(found.fun) + 0.0)
        else:
            raise SolverError(f"{problem.title}: one-sided elasticity: {found.message}")
    return ends[0], ends[1]
