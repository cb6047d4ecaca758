"""What share of a time rests on some coefficients of a profile: what it is without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.profile import COEFFICIENTS, OFF

if TYPE_CHECKING:
    from planner.problems.serving.step.step import Step

QUANTITIES = ("tpot", "ttft")
REST = 1e-9  # of the time of a coefficient that is switched off
TINY = 1e-30  # s
DIGITS = 9  # of a share: the last ones hang on what else is computed beside


def _off(name: str, value: float) -> float:
    """A coefficient that takes a share of its time that nobody sees."""
    return value / REST if OFF[name] else value * REST


def resting_on(step: Step, batch: np.ndarray) -> dict[str, np.ndarray]:
    """Shares of both times by coefficient, each of shape (n_coefficients, n).

    For times that are sums it is d ln time / d ln coefficient. All are of one evaluation, in which
    what rests on no coefficient is computed once.

    Parameters
    ----------
    step : of one layout, at n values of other numbers where `batch` has shape (n,).
    """
    off = np.eye(len(COEFFICIENTS) + 1, len(COEFFICIENTS), dtype=bool)  # the last row is none
    switched = {
        name: np.where(off[:, i, None], _off(name, step.task.profile.values[name]),
                       step.task.profile.values[name])
        for i, name in enumerate(COEFFICIENTS)
    }  # fmt: skip
    every = step.under(switched).work(batch)
    rows: dict[str, np.ndarray] = {}
    for quantity in QUANTITIES:
        times = np.atleast_2d(every[quantity])
        times = np.broadcast_to(times, (len(off), times.shape[1]))
        parts = np.abs(1 - times[:-1] / np.maximum(times[-1], TINY))
        rows[quantity] = np.minimum(parts, 1.0).round(DIGITS)
    return rows
