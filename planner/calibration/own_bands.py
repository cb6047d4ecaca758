"""Own rows predicted by fits that did not see them, and the bands that follow.

Rows of one configuration (all but the number of requests) are left out together where there are
configurations enough, else one run at a time. A band is made of order statistics: of n rows left
out, ranks floor(0.1 (n + 1)) and ceil(0.9 (n + 1)) of measured over predicted hold 80 % of rows
to come, whatever their distribution (split conformal prediction).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.calibration.cross_validation import folds
from planner.calibration.own_fit import estimates_at, own_fit
from planner.calibration.sample import Sample
from planner.catalogue.profile import KNOWN, NEW_CHIP, NEW_MODEL, Band, Profile

__all__ = ["FEWEST", "LeftOut", "bands_of", "everywhere", "holds", "left_out", "runs_of"]

COVERAGE = 0.8
TAIL = (1 - COVERAGE) / 2
FEWEST = 10  # rows from which both ranks are of a row
CONFIGURATIONS = 5  # from which whole configurations are left out
FOLDS = 10
SEED = 20261121
COST = "usd_per_mtok"


@dataclass(frozen=True)
class LeftOut:
    """Estimates of every row by fits that did not see it [s], shape (n_rows,).

    `what` was left out together: `configuration` or `run`; `fold` says with which others.
    """

    estimate: np.ndarray
    fold: np.ndarray
    what: str


def runs_of(sample: Sample) -> int:
    """How many runs the rows are of; a run has a time per token and one to the first."""
    return len({row.id for row in sample.rows})


def left_out(sample: Sample, base: Profile, limits: Mapping[str, float]) -> LeftOut:
    """Every row predicted by a fit of the others that starts from the same profile."""
    keys, what = sample.configurations, "configuration"
    if len(np.unique(keys)) < CONFIGURATIONS:
        keys, what = np.array([row.id for row in sample.rows]), "run"
    fold = folds(keys, SEED, min(FOLDS, len(np.unique(keys))))
    estimate = np.empty(len(sample.rows))
    for k in np.unique(fold):
        found = own_fit(sample.take(fold != k), base, limits)
        estimate[fold == k] = estimates_at(sample.take(fold == k), found.profile)
    return LeftOut(estimate, fold, what)


def bands_of(sample: Sample, estimate: np.ndarray) -> dict[str, Band]:
    """Bands of the quantities that FEWEST rows or more time."""
    ratio = sample.seconds / estimate
    parts = {"tpot": ratio[~sample.prompts], "ttft": ratio[sample.prompts]}
    slots = _slots(sample, estimate)
    parts[COST] = slots if len(slots) >= FEWEST else parts["tpot"]
    return {name: _band(each) for name, each in parts.items() if len(each) >= FEWEST}


def holds(sample: Sample, left: LeftOut) -> dict[str, float]:
    """The share of each quantity's rows inside the band that the rows of the other folds give."""
    ratio, found = sample.seconds / left.estimate, {}
    for name, mask in (("tpot", ~sample.prompts), ("ttft", sample.prompts)):
        inside: list[bool] = []
        for k in np.unique(left.fold):
            here, others = mask & (left.fold == k), mask & (left.fold != k)
            if others.sum() >= FEWEST:
                band = _band(ratio[others])
                inside += ((band.low <= ratio[here]) & (ratio[here] <= band.high)).tolist()
        if inside:
            found[name] = float(np.mean(inside))
    return found


def everywhere(
    like: Profile, own: Mapping[str, Band]
) -> Mapping[str, Mapping[str, Mapping[str, Band]]]:
    """Bands by kind of place: one's own where they are known, elsewhere as wide as either's.

    A quantity without a band of its own keeps that of the profile it started from.
    """
    kinds = dict.fromkeys((KNOWN, NEW_MODEL, NEW_CHIP, *like.all_bands))
    shipped = {kind: _seen(like, kind) for kind in kinds}
    found = {KNOWN: {"any": {**shipped[KNOWN], **own}}}
    for kind in [kind for kind in shipped if kind != KNOWN]:
        found[kind] = {
            "any": {
                name: Band(min(band.low, own[name].low), max(band.high, own[name].high))
                if name in own
                else band
                for name, band in shipped[kind].items()
            }
        }
    return found


def _band(ratio: np.ndarray) -> Band:
    ordered, n = np.sort(ratio), len(ratio)
    low, high = math.floor(TAIL * (n + 1)), math.ceil((1 - TAIL) * (n + 1) - 1e-9)
    return Band(float(ordered[max(low, 1) - 1]), float(ordered[min(high, n) - 1]))


def _seen(like: Profile, kind: str) -> Mapping[str, Band]:
    """The bands of a kind of place for the profile's engine."""
    kinds = like.all_bands.get(kind) or like.all_bands.get(KNOWN) or {}
    return {**like.bands, **kinds.get("any", {}), **kinds.get(like.engine, {})}


def _slots(sample: Sample, estimate: np.ndarray) -> np.ndarray:
    """Measured over predicted time of a request in a closed loop, which is what it costs."""
    first = {r.id: i for i, r in enumerate(sample.rows) if r.looped and r.quantity == "ttft"}
    pairs = [
        (i, first[row.id])
        for i, row in enumerate(sample.rows)
        if row.quantity == "tpot" and row.id in first
    ]
    if not pairs:
        return np.empty(0)
    tokens, prompts = np.array(pairs).T
    steps = sample.column("output")[tokens] - 1
    measured = sample.seconds[prompts] + steps * sample.seconds[tokens]
    ratio: np.ndarray = measured / (estimate[prompts] + steps * estimate[tokens])
    return ratio
