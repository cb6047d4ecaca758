"""Errors on rows the fit did not see, beside the plain roofline and a constant times it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from planner.calibration.profile import COEFFICIENTS
from planner.calibration.sample import Sample
from planner.calibration.squares import score

__all__ = ["LeftOut", "bands", "errors", "folds", "leave_out", "roofline"]

FOLDS = 5
COVERAGE = 0.8
ROOFS = (("e_w", "e_kv"), ("e_c", "e_pf"), ("e_ar", "e_a2a"))  # memory, arithmetic, network
Fit = Callable[[Sample], np.ndarray]


@dataclass(frozen=True)
class LeftOut:
    """Predictions of every row by fits that did not see its group [s], shape (n_rows,)."""

    sample: Sample
    fold: np.ndarray
    estimate: np.ndarray

    def take(self, mask: np.ndarray) -> LeftOut:
        """Some of the rows."""
        return LeftOut(self.sample.take(mask), self.fold[mask], self.estimate[mask])


def folds(groups: np.ndarray, seed: int, count: int = FOLDS) -> np.ndarray:
    """A fold for every row, whole groups together, shape (n_rows,)."""
    names = np.unique(groups)
    shuffled = np.random.default_rng(seed).permutation(len(names))
    return shuffled[np.searchsorted(names, groups)] % count


def leave_out(sample: Sample, fold: np.ndarray, fit: Fit) -> LeftOut:
    """Predict each fold by a fit of the others."""
    estimate = np.empty(len(sample.rows))
    for k in np.unique(fold):
        x = fit(sample.take(fold != k))
        test = fold == k
        estimate[test] = sample.columns.matrix[test] @ x + sample.columns.rest[test]
    return LeftOut(sample, fold, estimate)


def roofline(sample: Sample) -> np.ndarray:
    """Each row's plain roofline [s], shape (n_rows,): the highest roof at full efficiency.

    Unlike the bound it reads the experts that uniform routing expects, on the layout that ran.
    """
    roofs = [[COEFFICIENTS.index(name) for name in names] for names in ROOFS]
    each = [sample.columns.matrix[:, columns].sum(axis=1) for columns in roofs]
    highest: np.ndarray = np.max(each, axis=0)
    return highest


def errors(left: LeftOut, floor: np.ndarray) -> dict[str, float]:
    """Scores by quantity: of the estimate, of the roofline, of a constant times the roofline."""
    found: dict[str, float] = {}
    for name, mask in _quantities(left.sample).items():
        if not mask.any():
            continue
        seconds, fold = left.sample.seconds[mask], left.fold[mask]
        scaled = floor[mask].copy()
        for k in np.unique(fold):
            rest = fold != k if (fold != k).any() else fold == k
            scaled[fold == k] *= np.median(seconds[rest] / floor[mask][rest])
        own = score(left.estimate[mask], seconds)
        found |= {
            f"{name}_rows": own.n,
            f"{name}_median": own.median,
            f"{name}_mean": own.mean,
            f"{name}_within_10": own.within_10,
            f"{name}_within_20": own.within_20,
            f"{name}_roofline_median": score(floor[mask], seconds).median,
            f"{name}_constant_median": score(scaled, seconds).median,
            f"{name}_constant_mean": score(scaled, seconds).mean,
        }
    return found


def bands(left: LeftOut) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Quantiles of measured over predicted that hold COVERAGE, and what they hold across folds."""
    quantiles, held = {}, {}
    ratio = left.sample.seconds / left.estimate
    parts = {name: (ratio[m], left.fold[m]) for name, m in _quantities(left.sample).items()}
    slots = _slots(left)
    parts["usd_per_mtok"] = slots if len(slots[0]) else parts["tpot"]
    for name, (each, fold) in parts.items():
        tail = (1 - COVERAGE) / 2
        quantiles[name] = np.quantile(each, [tail, 1 - tail]).tolist()
        inside = []
        for k in np.unique(fold):
            low, high = np.quantile(each[fold != k], [tail, 1 - tail])
            inside += ((each[fold == k] >= low) & (each[fold == k] <= high)).tolist()
        held[f"{name}_band_holds"] = float(np.mean(inside))
    return quantiles, held


def _quantities(sample: Sample) -> Mapping[str, np.ndarray]:
    return {"tpot": sample.decodes, "ttft": sample.column("quantity") == "ttft"}


def _slots(left: LeftOut) -> tuple[np.ndarray, np.ndarray]:
    """Measured over predicted time of a slot per request, which is what chip time costs."""
    rows = left.sample.rows
    first = {row.id: i for i, row in enumerate(rows) if row.looped and row.quantity == "ttft"}
    pairs = [(i, first[row.id]) for i, row in enumerate(rows) if row.quantity == "tpot"]
    if not pairs:
        return np.empty(0), np.empty(0)
    tokens, prompts = np.array(pairs).T
    steps = left.sample.column("output")[tokens] - 1
    measured = left.sample.seconds[prompts] + steps * left.sample.seconds[tokens]
    estimate = left.estimate[prompts] + steps * left.estimate[tokens]
    return measured / estimate, left.fold[tokens]
