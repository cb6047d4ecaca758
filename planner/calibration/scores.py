"""How far predictions are from measurements: errors, and bands that hold a share of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["COVERAGE", "Score", "held", "quantiles", "score"]

COVERAGE = 0.8


@dataclass(frozen=True)
class Score:
    """Errors of predictions: count, median and mean absolute relative error, shares within."""

    n: int
    median: float
    mean: float
    within_10: float
    within_20: float

    def named(self, prefix: str) -> dict[str, float]:
        """The same by name, as a profile's file has it."""
        return {
            f"{prefix}_rows": self.n,
            f"{prefix}_median": self.median,
            f"{prefix}_mean": self.mean,
            f"{prefix}_within_10": self.within_10,
            f"{prefix}_within_20": self.within_20,
        }


def score(predicted: np.ndarray, seconds: np.ndarray) -> Score:
    """Errors of predicted against measured times, of shape (n_rows,) each."""
    error = np.abs(predicted / seconds - 1)
    return Score(
        len(error),
        float(np.median(error)),
        float(error.mean()),
        float((error < 0.1).mean()),
        float((error < 0.2).mean()),
    )


def quantiles(ratio: np.ndarray) -> list[float]:
    """The range that holds COVERAGE of ratios to come, n of them seen (split conformal)."""
    ordered, n = np.sort(ratio), len(ratio)
    tail = (1 - COVERAGE) / 2
    low, high = int(np.floor(tail * (n + 1))), int(np.ceil((1 - tail) * (n + 1)))
    return [float(ordered[max(low - 1, 0)]), float(ordered[min(high, n) - 1])]


def held(ratio: np.ndarray, fold: np.ndarray) -> float:
    """The share of ratios inside the range that the other folds give."""
    inside = []
    for k in np.unique(fold):
        if not (fold != k).any():
            continue
        low, high = quantiles(ratio[fold != k])
        inside += ((ratio[fold == k] >= low) & (ratio[fold == k] <= high)).tolist()
    return float(np.mean(inside)) if inside else float("nan")
