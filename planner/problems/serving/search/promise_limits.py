"""Layouts that keep their promises, each with the requested chance.

A plan that sits on its promise keeps it in about every second case. The measured error of an
estimate is a band; read as log-normal it says by which factor the time must lie below its promise
for that to hold with a chance. The factor is that of each layout at its own batch: it rests on what
of its time which coefficients take, and on how far it lies from the rows that measured them.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.step.drafting import with_accepted
from planner.problems.serving.step.shares import coefficient_shares, extrapolation_masks
from planner.text.tolerances import QUANTILE_90

if TYPE_CHECKING:
    from planner.problems.serving.step.step import Step

TIMES = ("tpot", "ttft")
# Error band that each limited time uses; the band of a whole request combines both.
BAND_TIMES = {"tpot": "tpot", "ttft": "ttft", "ttft_p95": "ttft", "ttft_p99": "ttft"}
WHOLE = "latency"
STEP, MIN_RATIO = 0.8, 0.05  # of a batch that fails to the next tried, squared from then on
BLOCK_SIZE = 50_000  # layouts whose factors are worked out together: 30 evaluations each


def quantile_factor(low: np.ndarray, high: np.ndarray, chance: float) -> np.ndarray:
    """Factor on a time for this quantile of its band, which two ratios give; at least 1.

    No plan is taken whose estimate breaks a promise, however likely the truth lies below it.
    """
    deviations = NormalDist().inv_cdf(chance)
    low, high = np.log(low), np.log(high)
    log_factor = (low + high) / 2 + deviations * (high - low) / (2 * QUANTILE_90)
    return np.asarray(np.exp(np.maximum(log_factor, 0)))


def time_bands(step: Step, batch: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Ends of the bands of both times as ratios, accepted drafts in them, shape (n_layouts,)."""
    task, rests = step.task, coefficient_shares(step, batch)
    beyond = extrapolation_masks(task, step.layouts, batch)
    bands = {time: task.profile.band_ends(time, rests[time], beyond) for time in TIMES}
    if task.drafts:
        bands["tpot"] = with_accepted(task, "tpot", bands["tpot"], (None, None))
    return bands


def by_chance(step: Step) -> bool:
    """True if promises hold with a chance, and the times are estimates, not lower bounds."""
    return step.task.chance is not None and not step.bound


def quantile_factors(step: Step, batch: np.ndarray, also: str = "") -> dict[str, np.ndarray]:
    """Factors of limited times at the requested quantile, by output, shape (n_layouts,).

    Empty where nothing is promised of a time, or where the plan is chosen on the bound; `also` is
    one more output.
    """
    promised = [name for name in (*BAND_TIMES, WHOLE) if name == also or name in step.task.limits]
    if not by_chance(step) or not promised:
        return {}
    if step.one_task:  # of one layout at many values as well
        return _factors(step, batch, promised)
    factors = {name: np.ones(len(step.layouts)) for name in promised}
    for rows, part in step.by_task():
        for name, factor in _factors(part, batch[rows], promised).items():
            factors[name][rows] = factor
    return factors


def _factors(step: Step, batch: np.ndarray, promised: list[str]) -> dict[str, np.ndarray]:
    task, bands = step.task, time_bands(step, batch)
    by_time = {time: quantile_factor(*band, task.chance or 0.5) for time, band in bands.items()}
    factors = {name: by_time[BAND_TIMES[name]] for name in promised if name in BAND_TIMES}
    if WHOLE in promised and task.mode != "aggregated":
        factors[WHOLE] = by_time["tpot" if task.mode == "decode" else "ttft"]
    elif WHOLE in promised:
        # Both times of a request are off together at worst.
        work = step.work(batch)
        parts = {"ttft": work["ttft"], "tpot": work["tpot"] * (task.output_tokens - 1)}
        late = sum(parts[time] * by_time[time] for time in TIMES)
        factors[WHOLE] = np.asarray(late / sum(parts.values()))
    return factors


class PromiseLimits:
    """Limits of layouts at batches, tested against values with the requested chance.

    Args:
        step: the model on n layouts.
        batch: sequences per replica, shape (n,).
    """

    def __init__(self, step: Step, batch: np.ndarray) -> None:
        self._step, self._batch = step, np.broadcast_to(batch, (len(step.layouts),))
        self._factors: dict[str, np.ndarray] = {}
        self._seen = np.zeros(len(step.layouts), dtype=bool)

    def hold(self, values: Mapping[str, np.ndarray], rows: np.ndarray | None = None) -> np.ndarray:
        """True if values keep all limits, for all layouts or for some `rows`, shape of the rows."""
        at = np.arange(self._seen.size) if rows is None else rows
        limits = {
            name: limit[at] if isinstance(limit, np.ndarray) else limit
            for name, limit in self._step.limits.items()
        }
        good = np.ones(at.size, dtype=bool)
        for name, limit in limits.items():
            good = good & (values[name] <= limit)
        sure = np.flatnonzero(good)
        for name, factor in self._at(at[sure]).items():
            value = np.broadcast_to(values[name], good.shape)[sure] * factor
            limit = np.broadcast_to(limits[name], good.shape)[sure]
            good[sure] &= value <= limit
        return good

    def _at(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        missing = np.unique(rows[~self._seen[rows]])
        for k in range(0, missing.size, BLOCK_SIZE):
            part = missing[k : k + BLOCK_SIZE]
            for name, factor in quantile_factors(self._step.take(part), self._batch[part]).items():
                self._factors.setdefault(name, np.ones(self._seen.size))[part] = factor
        self._seen[missing] = True
        return {name: factor[rows] for name, factor in self._factors.items()}


def lowered(step: Step, batch: np.ndarray) -> np.ndarray:
    """Largest batches, at most `batch`, for layouts to keep their promises with the chance.

    `batch` are the largest that keep them by expectation, 0 where none does. A factor changes
    slowly with the batch, and not always one way: below the first smaller batch that holds none is
    looked for, between it and what failed the largest is found by bisection.
    """
    if not by_chance(step) or not {*BAND_TIMES, WHOLE} & step.task.limits.keys():
        return batch
    names = tuple(step.limits)

    def holds(rows: np.ndarray, tried: np.ndarray) -> np.ndarray:
        part = step.take(rows)
        return PromiseLimits(part, tried).hold(part.only(names, tried))

    batch = batch.copy()
    rows = np.flatnonzero(batch >= 1)
    rows = rows[~holds(rows, batch[rows])]
    bad, ratio = batch[rows], STEP
    good = np.zeros(rows.size)
    left = np.arange(rows.size)
    while left.size:
        left = left[bad[left] > 1]
        tried = np.maximum(np.floor(bad[left] * ratio), 1.0)
        fits = holds(rows[left], tried)
        good[left[fits]] = tried[fits]
        left, tried = left[~fits], tried[~fits]
        bad[left] = tried
        ratio = max(ratio**2, MIN_RATIO)
    while (left := np.flatnonzero((good > 0) & (bad - good > 1))).size:
        tried = np.floor((good[left] + bad[left]) / 2)
        fits = holds(rows[left], tried)
        good[left[fits]], bad[left[~fits]] = tried[fits], tried[~fits]
    batch[rows] = good
    return batch
