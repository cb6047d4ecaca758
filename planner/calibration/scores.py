"""How far predictions are from measurements: errors, and bands that hold a share of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

COVERAGE = 0.8


@dataclass(frozen=True)
class Score:
    """Errors of n predictions: |predicted/measured - 1| and the range of predicted/measured.

    `median` and `mean` are of the error, `within_10` and `within_20` shares of rows, `low` and
    `high` the 10 % and 90 % quantiles of the ratio and `middle` its median.
    """

    n: int
    median: float
    mean: float
    within_10: float
    within_20: float
    low: float
    middle: float
    high: float

    def named(self, prefix: str) -> dict[str, float]:
        """The same by name, as a profile's file has it."""
        return {
            f"{prefix}_rows": self.n,
            f"{prefix}_median": self.median,
            f"{prefix}_mean": self.mean,
            f"{prefix}_within_10": self.within_10,
            f"{prefix}_within_20": self.within_20,
        }


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


def quantiles(ratio: np.ndarray) -> list[float]:
    """The range that holds COVERAGE of ratios to come, n of them seen (split conformal)."""
    ordered, n = np.sort(ratio), len(ratio)
    tail = (1 - COVERAGE) / 2
    low, high = int(np.floor(tail * (n + 1))), int(np.ceil((1 - tail) * (n + 1)))
    return [float(ordered[max(low - 1, 0)]), float(ordered[min(high, n) - 1])]


def coverage_of(ratio: np.ndarray, fold: np.ndarray, fewest: int = 1) -> float:
    """The share of ratios inside the range that the other folds give, `fewest` rows or more."""
    inside: list[bool] = []
    for k in np.unique(fold):
        if (fold != k).sum() < fewest:
            continue
        low, high = quantiles(ratio[fold != k])
        inside += ((ratio[fold == k] >= low) & (ratio[fold == k] <= high)).tolist()
    return float(np.mean(inside)) if inside else float("nan")
