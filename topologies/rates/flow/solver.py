"""The one place where a linear program of the flow engine is handed to HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from topologies.fabric.errors import TopologyError

__all__ = ["maximum"]

Floats = NDArray[np.float64]

# Variables beyond which an interior point, ended by a crossover, is quicker than the simplex.
INNER = 5000


def maximum(at_most: Any, limits: Floats, balanced: Any) -> tuple[float, Floats, Floats]:
    """The largest last variable, all variables, and what one unit of each limit adds to it.

    Parameters
    ----------
    at_most, limits
        `at_most @ x <= limits`.
    balanced
        `balanced @ x == 0`; and x is not negative.

    Raises
    ------
    TopologyError
        When the solver does not report an optimum, with what it reports.
    """
    cost = np.zeros(at_most.shape[1])
    cost[-1] = -1.0
    method = "highs-ipm" if cost.size > INNER else "highs-ds"
    # Its type stubs know no sparse matrices.
    solve: Any = linprog
    answer = solve(
        cost,
        A_ub=at_most,
        b_ub=limits,
        A_eq=balanced,
        b_eq=np.zeros(balanced.shape[0]),
        method=method,
    )
    if answer.status != 0:
        raise TopologyError(
            "concurrent flow", f"no optimum, solver status {answer.status}: {answer.message}"
        )
    return float(-answer.fun), answer.x, np.maximum(-answer.ineqlin.marginals, 0.0)
