"""Rows predicted by fits that did not see them, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.calibration.features import Features
from planner.calibration.sample import Sample
from planner.calibration.scores import score
from planner.catalogue.profile import Place

FOLDS = 5


class RowModel(Protocol):
    """What a fit gives: times of rows from their columns and places."""

    def times(self, columns: Features, places: Sequence[Place]) -> np.ndarray:
        """Times [s], shape (n_rows,)."""


Fit = Callable[[Sample], RowModel]


@dataclass(frozen=True)
class LeftOut:
    """Predictions of every row by fits that did not see it [s], shape (n_rows,).

    `fold` says with which others a row was left out.
    """

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

    @property
    def slots(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that time tokens, and measured over predicted time of a slot: what requests cost."""
        rows = self.sample.rows
        first = {row.id: i for i, row in enumerate(rows) if row.looped and row.quantity == "ttft"}
        pairs = [
            (i, first[r.id]) for i, r in enumerate(rows) if r.quantity == "tpot" and r.id in first
        ]
        if not pairs:
            return np.empty(0, dtype=int), np.empty(0)
        tokens, prompts = np.array(pairs).T
        steps, seconds = self.sample.column("output")[tokens] - 1, self.sample.seconds
        measured = seconds[prompts] + steps * seconds[tokens]
        return tokens, measured / (self.estimate[prompts] + steps * self.estimate[tokens])


def quantities(sample: Sample) -> Mapping[str, np.ndarray]:
    """Masks of the rows that time tokens and of those that time prompts, by quantity."""
    return {"tpot": ~sample.prompts, "ttft": sample.prompts}


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
        estimate[fold == k] = fit(sample.take(fold != k)).times(test.columns, test.places)
    return LeftOut(sample, fold, estimate)


def errors(left: LeftOut, floor: np.ndarray, prefix: str = "") -> dict[str, float]:
    """Scores by quantity: of the estimate, of the roofline, of a constant times the roofline."""
    scores: dict[str, float] = {}
    for name, mask in quantities(left.sample).items():
        if not mask.any():
            continue
        seconds, fold = left.sample.seconds[mask], left.fold[mask]
        scaled = floor[mask].copy()
        for k in np.unique(fold):
            rest = fold != k if (fold != k).any() else fold == k
            scaled[fold == k] *= np.median(seconds[rest] / floor[mask][rest])
        constant = score(scaled, seconds)
        scores |= {
            **score(left.estimate[mask], seconds).named(prefix + name),
            f"{prefix}{name}_roofline_median": score(floor[mask], seconds).median,
            f"{prefix}{name}_constant_median": constant.median,
            f"{prefix}{name}_constant_mean": constant.mean,
        }
    return scores
