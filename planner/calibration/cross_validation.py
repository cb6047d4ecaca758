"""Rows predicted by fits that did not see them, their errors, and the bands that they give.

A band is a range of measured over predicted that holds 80 % of the rows left out, made of order
statistics: of n rows, ranks floor(0.1 (n + 1)) and ceil(0.9 (n + 1)) hold 80 % of rows to come,
whatever their distribution (split conformal prediction).

What a prediction has to beat is the plain roofline, the highest roof of a row at full efficiency on
the layout that ran, and the best constant times it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.coefficient_spread import IN_SAMPLE, NEW_CHIP, NEW_MODEL
from planner.catalogue.profile import COVERAGE, Band, Profile
from planner.protocol.results.validation_result import Score

if TYPE_CHECKING:
    from planner.calibration.sample import Sample


def score(predicted: np.ndarray, measured: np.ndarray) -> Score:
    """Errors of predicted against measured values, both of shape (n_rows,), n_rows > 0."""
    ratio = predicted / measured
    error = np.abs(ratio - 1)
    return Score(
        len(error),
        float(np.median(error)),
        float(error.mean()),
        *(float((error < limit).mean()) for limit in (0.1, 0.2)),
        *np.quantile(ratio, [0.1, 0.5, 0.9]).tolist(),
    )


def group_error(ratio: np.ndarray, groups: np.ndarray) -> float:
    """The mean over groups of the median |ln ratio|, each of shape (n_rows,)."""
    error = np.abs(np.log(ratio))
    return float(np.mean([np.median(error[groups == name]) for name in np.unique(groups)]))


FULL_WEIGHT_GROUP_ROWS = 3  # minimum rows of a group for full weight in a band


def mean_by_group(values: np.ndarray, group: np.ndarray) -> float:
    """The mean of groups' means."""
    return float(group_weights(group) @ values)


def group_weights(group: np.ndarray) -> np.ndarray:
    member, weight, rows = weights_of_groups(group)
    weights: np.ndarray = (weight / rows / weight.sum())[member]
    return weights


def weights_of_groups(group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group of each row, weight of each group (full from 3 rows) and its number of rows."""
    _, member, rows = np.unique(group, return_inverse=True, return_counts=True)
    return member, np.minimum(rows, FULL_WEIGHT_GROUP_ROWS) / FULL_WEIGHT_GROUP_ROWS, rows


def quantiles(ratio: np.ndarray) -> list[float]:
    """The range that holds COVERAGE of ratios to come, n of them seen (split conformal)."""
    ordered, n = np.sort(ratio), len(ratio)
    tail = (1 - COVERAGE) / 2
    low, high = int(np.floor(tail * (n + 1))), int(np.ceil((1 - tail) * (n + 1)))
    return [float(ordered[max(low - 1, 0)]), float(ordered[min(high, n) - 1])]


def cross_validated_coverage(ratio: np.ndarray, fold: np.ndarray, fewest: int = 1) -> float:
    """The share of ratios inside the range that the other folds give, `fewest` rows or more."""
    inside: list[bool] = []
    for k in np.unique(fold):
        if (fold != k).sum() < fewest:
            continue
        low, high = quantiles(ratio[fold != k])
        inside += ((ratio[fold == k] >= low) & (ratio[fold == k] <= high)).tolist()
    return float(np.mean(inside)) if inside else float("nan")


def constant(roofs: np.ndarray, seconds: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Times [s] of the roofline times the median that rows of other folds need, shape (n_rows,).

    A single fold has no others: its own median is taken, which favours this baseline.
    """
    scaled = np.array(roofs, dtype=float)
    for k in np.unique(fold):
        others = fold != k if (fold != k).any() else fold == k
        scaled[fold == k] *= np.median(seconds[others] / roofs[others])
    return scaled


FOLDS = 5
MIN_USER_BAND_ROWS = 10  # minimum rows so that both ranks of the interval are in the sample
COST = "usd_per_mtok"


@dataclass(frozen=True)
class LeftOut:
    """Predictions of every row by fits that did not see it [s], shape (n_rows,).

    `fold` says with which others a row was left out.
    """

    sample: Sample
    fold: np.ndarray
    estimate: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        """Measured over predicted, shape (n_rows,)."""
        return self.sample.seconds / self.estimate

    @property
    def slots(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that time tokens, and measured over predicted time of a slot: what requests cost."""
        tokens, prompts, steps = self.slot_rows()
        seconds = self.sample.seconds
        measured = seconds[prompts] + steps * seconds[tokens]
        return tokens, measured / (self.estimate[prompts] + steps * self.estimate[tokens])

    def slot_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the tokens and of the prompts of whole runs, and the steps of each."""
        rows = self.sample.rows
        first = {row.id: i for i, row in enumerate(rows) if row.looped and row.quantity == "ttft"}
        pairs = [
            (i, first[r.id]) for i, r in enumerate(rows) if r.quantity == "tpot" and r.id in first
        ]
        tokens, prompts = np.array(pairs, dtype=int).reshape(-1, 2).T
        steps = np.array([rows[i].output - 1 for i in tokens])
        return tokens, prompts, steps


def quantities(sample: Sample) -> Mapping[str, np.ndarray]:
    """Masks of the rows that time tokens and of those that time prompts, by quantity."""
    return {"tpot": ~sample.prompts, "ttft": sample.prompts}


def folds(groups: Sequence[str] | np.ndarray, count: int = FOLDS, repeat: int = 0) -> np.ndarray:
    """Fold of every row, whole groups together, shape (n_rows,); min(`count`, groups) folds.

    Groups lie in the order of digests of their names, cut into folds of as many groups each: one
    that joins moves a few across the cuts, and leaves all others where they were. `repeat` draws
    another order.
    """
    names, group = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    digests = [blake2s(f"{repeat} {name}".encode()).digest() for name in names]
    rank = np.empty(len(names), dtype=int)
    rank[sorted(range(len(names)), key=digests.__getitem__)] = np.arange(len(names))
    fold: np.ndarray = (rank * min(count, len(names)) // max(len(names), 1))[group]
    return fold


def own_bands(left: LeftOut) -> dict[str, Band]:
    """Bands of the quantities that FEWEST_OWN of a user's own rows or more time."""
    ratios = {name: left.ratio[mask] for name, mask in quantities(left.sample).items()}
    slots = left.slots[1]
    ratios[COST] = slots if len(slots) >= MIN_USER_BAND_ROWS else ratios["tpot"]
    return {name: Band(*quantiles(x)) for name, x in ratios.items() if len(x) >= MIN_USER_BAND_ROWS}


def own_coverage(left: LeftOut) -> dict[str, float]:
    """The share of each quantity's rows inside the band that the rows of the other folds give."""
    masks = quantities(left.sample).items()
    shares = {
        x: cross_validated_coverage(left.ratio[m], left.fold[m], MIN_USER_BAND_ROWS)
        for x, m in masks
    }
    return {name: share for name, share in shares.items() if not np.isnan(share)}


def regime_bands(
    like: Profile, measured: Mapping[str, Band]
) -> Mapping[str, Mapping[str, Mapping[str, Band]]]:
    """Bands by regime: measured in sample, elsewhere the hull of the measured and shipped bands.

    A quantity without a band of its own keeps that of the profile it started from.
    """
    kinds = dict.fromkeys((IN_SAMPLE, NEW_MODEL, NEW_CHIP, *like.all_bands))
    shipped = {kind: {**like.bands, **like.bands_of(kind, like.engine)} for kind in kinds}
    bands_by_kind = {IN_SAMPLE: {"any": {**shipped[IN_SAMPLE], **measured}}}
    for kind in [kind for kind in shipped if kind != IN_SAMPLE]:
        bands_by_kind[kind] = {
            "any": {
                name: Band(min(band.low, measured[name].low), max(band.high, measured[name].high))
                if name in measured
                else band
                for name, band in shipped[kind].items()
            }
        }
    return bands_by_kind
