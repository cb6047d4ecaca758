"""How far predictions are from measurements: errors, and bands that hold a share of the rows.

What a prediction has to beat is the plain roofline, the highest roof of a row at full efficiency on
the layout that ran, and the best constant times it.
"""

from __future__ import annotations

import numpy as np

from planner.protocol.validation_result import Score

COVERAGE = 0.8


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


def constant(roofs: np.ndarray, seconds: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Times [s] of the roofline times the median that rows of other folds need, shape (n_rows,).

    A single fold has no others: its own median is taken, which favours this baseline.
    """
    scaled = np.array(roofs, dtype=float)
    for k in np.unique(fold):
        others = fold != k if (fold != k).any() else fold == k
        scaled[fold == k] *= np.median(seconds[others] / roofs[others])
    return scaled
