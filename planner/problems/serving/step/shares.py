"""What share of a time rests on some coefficients of a profile: what it is without them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.profile import COEFFICIENTS, OFF

if TYPE_CHECKING:
    from planner.problems.serving.step.step import Step

QUANTITIES = ("tpot", "ttft")
REST = 1e-9  # of the time of a coefficient that is switched off
TINY = 1e-30  # s
DIGITS = 9  # of a share: the last ones hang on what else is computed beside


def shares(step: Step, batch: float, groups: Sequence[Collection[str]]) -> dict[str, np.ndarray]:
    """Shares of the time per token and to the first token that each group takes, 0 to 1.

    The step of one layout is evaluated again with the coefficients of a group switched off, but for
    a rest that nobody sees: where nothing at all took time, a rate would be of none. Both have
    shape (n_groups,).
    """
    values = step.task.profile.values
    rows = np.zeros(len(groups) + 1, dtype=int)  # the last switches nothing off
    switched = {
        name: np.array([_off(name, value) if name in group else value for group in (*groups, ())])
        for name, value in values.items()
    }
    times = step.take(rows).under(switched).work(np.full(len(rows), float(batch)))
    return {name: _share(np.broadcast_to(times[name], rows.shape)) for name in QUANTITIES}


def _off(name: str, value: float) -> float:
    """A coefficient that takes a share of its time that nobody sees."""
    return value / REST if OFF[name] else value * REST


def by_coefficient(step: Step, batch: float) -> dict[str, dict[str, float]]:
    """The share that each coefficient takes, by quantity and name."""
    names = tuple(step.task.profile.values)
    parts = shares(step, batch, [(name,) for name in names])
    return {
        quantity: dict(zip(names, values.tolist(), strict=True))
        for quantity, values in parts.items()
    }


def _share(times: np.ndarray) -> np.ndarray:
    """What lacks of the last time, or comes on top where less is hidden, as a share of it."""
    whole = times[-1]
    if not whole > 0:
        return np.zeros(len(times) - 1)
    changed: np.ndarray = np.clip(np.abs(1 - times[:-1] / whole), 0.0, 1.0)
    return changed


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
