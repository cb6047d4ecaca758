"""T = alpha + q V/(r e) + gamma sqrt(V): three coefficients fitted to a curve.

Non-negative, by relative error to the power POWER: between least squares, which serve the many,
and the least worst error, which serves the few. The efficiency cannot exceed one, so what is
fitted never beats the bound. Outliers are dealt with before: a curve is its own lower envelope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Triple", "fit_triple", "intervals"]

TURNS = 20
POWER = 2.5
LEAST = 0.01  # relative error below which points count alike


@dataclass(frozen=True)
class Triple:
    """Floor [s], efficiency [1] and mid-range term [s/byte**0.5] of a curve."""

    alpha: float
    efficiency: float
    gamma: float

    def times(self, sizes: np.ndarray, wire: np.ndarray) -> np.ndarray:
        """Times [s] of messages [byte] whose bytes on the wire take `wire` [s] at the full rate."""
        return self.alpha + wire / self.efficiency + self.gamma * np.sqrt(sizes)


def fit_triple(
    sizes: np.ndarray, wire: np.ndarray, seconds: np.ndarray, *, root: bool = True
) -> Triple:
    """The coefficients that fit a curve best.

    Parameters
    ----------
    sizes, seconds : the curve. [byte, s]
    wire : seconds that the bytes of each size take at the full rate. [s]
    root : whether there is a square-root term.
    """
    from scipy.optimize import nnls

    columns = [np.ones_like(sizes), wire] + ([np.sqrt(sizes)] if root else [])
    matrix = np.stack(columns, axis=1) / seconds[:, None]
    target = (seconds - wire) / seconds  # the efficiency's part below one is what is unknown
    scale = matrix.max(axis=0)
    weight = np.ones_like(seconds)
    found = np.zeros(len(columns))
    for _ in range(TURNS):
        found = nnls(matrix / scale * weight[:, None], target * weight)[0] / scale
        missed = np.maximum(np.abs(matrix @ found - target), LEAST)
        weight = missed ** (POWER / 2 - 1)
    return Triple(float(found[0]), float(1 / (1 + found[1])), float(found[2]) if root else 0.0)


def intervals(
    draws: Callable[[np.random.Generator], Triple], seed: int, count: int
) -> dict[str, tuple[float, float]]:
    """Ranges [10 %, 90 %] of the coefficients over refits."""
    generator = np.random.default_rng(seed)
    made = [draws(generator) for _ in range(count)]
    found = {}
    for name in ("alpha", "efficiency", "gamma"):
        low, high = np.quantile([getattr(each, name) for each in made], [0.1, 0.9])
        found[name] = (float(low), float(high))
    return found
