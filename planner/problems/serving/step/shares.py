"""What share of a time rests on some coefficients of a profile: what it is without them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.profile import OFF

if TYPE_CHECKING:
    from planner.problems.serving.step.step import Step

QUANTITIES = ("tpot", "ttft")


def shares(step: Step, batch: float, groups: Sequence[Collection[str]]) -> dict[str, np.ndarray]:
    """Shares of the time per token and to the first token that each group takes, 0 to 1.

    The step of one layout is evaluated again with the coefficients of a group switched off: at
    efficiencies without limit and overheads of nothing. Both have shape (n_groups,).
    """
    values = step.task.profile.values
    rows = np.zeros(len(groups) + 1, dtype=int)  # the last switches nothing off
    switched = {
        name: np.array([OFF[name] if name in group else value for group in (*groups, ())])
        for name, value in values.items()
    }
    times = step.take(rows).under(switched).work(np.full(len(rows), float(batch)))
    return {name: _share(np.broadcast_to(times[name], rows.shape)) for name in QUANTITIES}


def _share(times: np.ndarray) -> np.ndarray:
    """What lacks of the last time, or comes on top where less is hidden, as a share of it."""
    whole = times[-1]
    if not whole > 0:
        return np.zeros(len(times) - 1)
    changed: np.ndarray = np.clip(np.abs(1 - times[:-1] / whole), 0.0, 1.0)
    return changed
