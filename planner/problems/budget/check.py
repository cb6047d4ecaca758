"""The first-order conditions once more, without multipliers and by another solver.

At the optimum every choice lowers the loss in proportion to what it costs, and the limit is met.
"""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
from scipy.optimize import root

from planner.problems.budget.optimum import start
from planner.problems.budget.posynomial_form import Array, Budgets

TOLERANCE = 1e-12
ATTEMPTS: tuple[Literal["hybr", "lm"], ...] = ("hybr", "lm")
ASIDE = 0.3  # of a logarithm from an answer to be checked


def conditions(budgets: Budgets, answer: Array | None = None) -> tuple[Array, float] | None:
    """The point (J,) where the conditions of one budget hold, and their largest violation.

    SciPy's solver of equations from a point of its own, then from one beside the answer (J,) that
    it is to check; None where it finds nothing.
    """

    def violated(point: Array) -> Array:
        at = point[None, :]
        cost, loss = budgets.costs(at), budgets.losses(at)
        limited = loss if budgets.aim == "cost" else cost
        weights, gains = cost.slope[0], -loss.slope[0]
        # Percent of the loss per percent of the cost, of every choice against the last.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(gains[:-1] * weights[-1]) - np.log(gains[-1] * weights[:-1])
        return np.append(ratios, limited.value - budgets.limit)

    starts = [start(budgets)[0], *([] if answer is None else [answer - ASIDE])]
    for first, method in product(starts, ATTEMPTS):
        with np.errstate(all="ignore"):
            found = root(violated, first, method=method, tol=TOLERANCE)
            error = float(np.abs(violated(found.x)).max())
        if error < 1e-7:
            return np.asarray(found.x, dtype=np.float64), error
    return None
