"""Rows predicted by fits that did not see them: their errors, and the bands they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from planner.calibration.hierarchy import Hierarchy
from planner.calibration.sample import Sample
from planner.calibration.scores import held, quantiles, score

__all__ = ["LeftOut", "bands", "errors", "folds", "leave_out", "spreads"]

FOLDS = 5
FEWEST = 40  # rows of which a band of its own is told
Fit = Callable[[Sample], Hierarchy]


@dataclass(frozen=True)
class LeftOut:
    """Predictions of every row by fits that did not see it [s], shape (n_rows,)."""

    sample: Sample
    fold: np.ndarray
    estimate: np.ndarray

    def take(self, mask: np.ndarray) -> LeftOut:
        """Some of the rows."""
        return LeftOut(self.sample.take(mask), self.fold[mask], self.estimate[mask])

    @property
    def ratio(self) -> np.ndarray:
        """Measured over predicted, shape (n_rows,)."""
        return self.sample.seconds / self.estimate


def folds(groups: np.ndarray, seed: int, count: int = FOLDS) -> np.ndarray:
    """A fold for every row, whole groups together, shape (n_rows,)."""
    names = np.unique(groups)
    shuffled = np.random.default_rng(seed).permutation(len(names))
    return shuffled[np.searchsorted(names, groups)] % count


def leave_out(sample: Sample, fold: np.ndarray, fit: Fit) -> LeftOut:
    """Predict each fold by a fit of the others."""
    estimate = np.empty(len(sample.rows))
    for k in np.unique(fold):
        test = sample.take(fold == k)
        x = fit(sample.take(fold != k)).unknowns(test.places)
        estimate[fold == k] = test.columns.times(x)
    return LeftOut(sample, fold, estimate)


def errors(left: LeftOut, floor: np.ndarray, prefix: str = "") -> dict[str, float]:
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
        constant = score(scaled, seconds)
        found |= {
            **score(left.estimate[mask], seconds).named(prefix + name),
            f"{prefix}{name}_roofline_median": score(floor[mask], seconds).median,
            f"{prefix}{name}_constant_median": constant.median,
            f"{prefix}{name}_constant_mean": constant.mean,
        }
    return found


def bands(left: LeftOut) -> tuple[dict[str, dict[str, list[float]]], dict[str, float]]:
    """Ranges of measured over predicted by engine, all together as `any`, and what they hold."""
    engines = np.array([place.engine for place in left.sample.places])
    ranges: dict[str, dict[str, list[float]]] = {"any": {}}
    kept: dict[str, float] = {}
    for name, (ratio, fold, engine) in _ratios(left, engines).items():
        if not len(ratio):
            continue
        ranges["any"][name] = quantiles(ratio)
        kept[f"{name}_band_holds"] = held(ratio, fold)
        for one in np.unique(engine):
            own = engine == one
            if own.sum() >= FEWEST:
                ranges.setdefault(str(one), {})[name] = quantiles(ratio[own])
    return ranges, kept


def spreads(left: LeftOut) -> dict[str, float]:
    """How far logarithms of measured over predicted price lie apart, as half the middle 68 %.

    `alike` within runs of one model, chip, engine, version and format, whose layouts, lengths and
    batches differ: what two plans of one kind do not share. `other` among all runs.
    """
    tokens, ratio = _slots(left)
    if not len(tokens):
        tokens, ratio = np.arange(len(left.sample.rows)), left.ratio
    error = np.log(ratio)
    rows = left.sample.rows
    cell = np.array([f"{rows[i].group} {rows[i].version} {rows[i].precision}" for i in tokens])
    within = error.copy()
    for one in np.unique(cell):
        within[cell == one] -= np.median(error[cell == one])
    return {"alike": _half(within), "other": _half(error)}


def _half(error: np.ndarray) -> float:
    low, high = np.quantile(error, [0.16, 0.84])
    return float(high - low) / 2


def _ratios(
    left: LeftOut, engines: np.ndarray
) -> Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    parts = {
        name: (left.ratio[mask], left.fold[mask], engines[mask])
        for name, mask in _quantities(left.sample).items()
    }
    tokens, ratio = _slots(left)
    price = (ratio, left.fold[tokens], engines[tokens]) if len(tokens) else parts["tpot"]
    return {**parts, "usd_per_mtok": price}


def _quantities(sample: Sample) -> Mapping[str, np.ndarray]:
    return {"tpot": ~sample.prompts, "ttft": sample.prompts}


def _slots(left: LeftOut) -> tuple[np.ndarray, np.ndarray]:
    """Rows that time tokens, and measured over predicted time of a slot: what chip time costs."""
    rows = left.sample.rows
    first = {row.id: i for i, row in enumerate(rows) if row.looped and row.quantity == "ttft"}
    pairs = [(i, first[r.id]) for i, r in enumerate(rows) if r.quantity == "tpot" and r.id in first]
    if not pairs:
        return np.empty(0, dtype=int), np.empty(0)
    tokens, prompts = np.array(pairs).T
    steps = left.sample.column("output")[tokens] - 1
    measured = left.sample.seconds[prompts] + steps * left.sample.seconds[tokens]
    return tokens, measured / (left.estimate[prompts] + steps * left.estimate[tokens])
