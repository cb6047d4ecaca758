"""Which measured rows a profile may be fitted on, and what is left out, by reason.

A row that no steady decoding explains is left out and counted, never absorbed: repeats, runs
marked unfinished, rows faster than the bound, and rows in which tokens were drafted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.features import Features, features
from planner.catalogue.profile import Place
from planner.measurements.measurement import Measurement
from planner.measurements.networks import network_between
from planner.measurements.places import NEW, place_of
from planner.measurements.roofline_bound import bounds_of

__all__ = [
    "Sample",
    "configuration_of",
    "runs_sample",
    "steady_sample",
    "untold_sample",
    "weight_of",
]

TTFT_WEIGHT = 0.3  # first tokens under load hold queueing that no coefficient describes
# The few published steps of engines of 2025 are all there is of groups of more than eight chips.
WIDE_WEIGHT = 5.0
POOLED_WEIGHT = 0.5  # the number of requests that decode is worked out, not given


@dataclass(frozen=True)
class Sample:
    """Rows with their columns, times [s], weights and places, and how many were left out, why."""

    rows: tuple[Measurement, ...]
    columns: Features
    seconds: np.ndarray
    weights: np.ndarray
    places: tuple[Place, ...]
    left_out: dict[str, int]

    def take(self, mask: np.ndarray) -> Sample:
        """Some of the rows, by mask or index."""
        index = np.arange(len(self.rows))[mask]
        return replace(
            self,
            rows=tuple(self.rows[i] for i in index),
            columns=self.columns.take(index),
            seconds=self.seconds[index],
            weights=self.weights[index],
            places=tuple(self.places[i] for i in index),
        )

    def column(self, name: str) -> np.ndarray:
        """An attribute of every row."""
        return np.array([getattr(row, name) for row in self.rows])

    @property
    def configurations(self) -> np.ndarray:
        """What rows share that differ in the number of requests alone, as text."""
        return np.array([configuration_of(row) for row in self.rows])

    @property
    def prompts(self) -> np.ndarray:
        """Mask of the rows that time prompts; the others time tokens."""
        return self.column("quantity") == "ttft"


def configuration_of(row: Measurement) -> str:
    """A layout of a model, engine and chip at its lengths: rows that differ in the batch alone."""
    ways = " ".join(f"{name} {n}" for name, n in sorted((row.layout or {}).items()))
    told = f"{row.group} {row.precision} {row.version} {row.prompt:g} {row.output:g}"
    return f"{told} {ways} {row.chips} {row.pooled}"


def runs_sample(rows: Sequence[Measurement], as_of: str) -> Sample:
    """Runs of whole engines that may be fitted: TPOT and TTFT of one pool, TPOT of two.

    Clean steady batches of the same engines may be among the rows.
    """
    return _sample(rows, _no_run, as_of)


def untold_sample(rows: Sequence[Measurement], as_of: str) -> Sample:
    """Runs of two pools that no fit may see, because something about them is worked out."""
    return _sample(rows, _not_untold, as_of)


def steady_sample(rows: Sequence[Measurement], as_of: str) -> Sample:
    """Clean steady batches of engines before those of the runs, where the network is known."""
    return _sample(rows, _not_steady, as_of)


def _sample(
    rows: Sequence[Measurement], refused: Callable[[Measurement], str], as_of: str
) -> Sample:
    left_out: Counter[str] = Counter()
    kept = []
    for row, bound in zip(rows, bounds_of(rows), strict=True):
        why = _unfit(row, float(bound)) or refused(row)
        if why:
            left_out[why] += 1
        else:
            kept.append(row)
    seconds = np.array([row.seconds for row in kept])
    weights = [weight_of(row) for row in kept]
    places = tuple(place_of(row, as_of) for row in kept)
    return Sample(tuple(kept), features(kept), seconds, np.array(weights), places, dict(left_out))


def weight_of(row: Measurement) -> float:
    """What a row counts in a fit."""
    if row.looped and row.quantity == "ttft":
        return TTFT_WEIGHT
    if not row.looped and _new(row):
        return WIDE_WEIGHT
    return POOLED_WEIGHT if row.pooled else 1.0


def _unfit(row: Measurement, bound: float) -> str:
    if row.repeats:
        return "a repeat of another row"
    if row.layout is None:
        return "layout not understood"
    if network_between(row.chip.name, row.machine, row.chips) is None:
        return "no network known between the chips"
    if row.seconds < bound:
        return "faster than the bound"
    return ""


def _drafted(row: Measurement) -> str:
    return "tokens are drafted" if row.drafts or row.speculated else ""


def _no_run(row: Measurement) -> str:
    if not row.looped:
        if not row.quality.startswith("clean"):
            return f"quality {row.quality}"
        return _drafted(row) or ("" if _new(row) else "of an engine before those of the runs")
    if row.quality == "wip":
        return "marked unfinished"
    if row.pooled and row.quantity == "ttft":
        return "prompts of a pool of their own: their queue is not told"
    return _drafted(row) or ("workers or requests of the pools not told" if row.assumed else "")


def _not_untold(row: Measurement) -> str:
    if row.quality == "wip":
        return "marked unfinished"
    return "" if place_of(row, "2026-01").assumed else "all of it is told"


def _not_steady(row: Measurement) -> str:
    if not row.quality.startswith("clean"):
        return f"quality {row.quality}"
    return "of an engine of the runs" if _new(row) else _drafted(row)


def _new(row: Measurement) -> bool:
    year = row.engine.rpartition("-")[2]
    return year.isdigit() and int(year) >= NEW
