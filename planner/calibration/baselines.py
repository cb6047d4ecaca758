"""What a prediction has to beat: the plain roofline, and the best constant times the roofline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.calibration.cross_validation import folds as shuffled
from planner.calibration.features import features
from planner.measurements.measurement import Measurement

FOLDS = 5
SEED = 20261121


def roofline(rows: Sequence[Measurement]) -> list[float]:
    """The highest roof of each row at full efficiency, on the layout that ran [s].

    Unlike the bound it reads the experts that uniform routing expects.
    """
    return features(rows).roofline.tolist() if rows else []


def folds(groups: Sequence[str], count: int = FOLDS) -> np.ndarray:
    """A fold for every row, whole groups together, shape (n_rows,); at most as many as groups."""
    names = np.asarray(groups, dtype=str)
    return shuffled(names, SEED, min(count, max(len(np.unique(names)), 1)))


def constant(roofs: np.ndarray, seconds: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Times [s] of the roofline times the median that rows of other groups need, shape (n_rows,).

    A single group has no others: its own median is taken, which favours this baseline.
    """
    fold = folds(groups)
    scaled = np.array(roofs, dtype=float)
    for k in np.unique(fold):
        others = fold != k if (fold != k).any() else fold == k
        scaled[fold == k] *= np.median(seconds[others] / roofs[others])
    return scaled
