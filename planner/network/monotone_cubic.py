"""Monotone piecewise cubics through points (PCHIP), with nothing to import but NumPy.

SciPy's PchipInterpolator is the same polynomial; importing it costs a plan a third of a second.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["monotone_cubic"]


def monotone_cubic(x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The shape-preserving cubic interpolant of Fritsch and Butland (1984) on [x[0], x[-1]].

    Parameters
    ----------
    x, y : points, shape (n,), n of two or more, x rising. Between them y neither overshoots nor
        turns.
    """
    step = np.diff(x)
    secant = np.diff(y) / step
    slope = _slopes(step, secant)
    bend = (slope[:-1] + slope[1:] - 2 * secant) / step
    third, second = bend / step, (secant - slope[:-1]) / step - bend

    def value(at: np.ndarray) -> np.ndarray:
        place = np.clip(np.searchsorted(x, at, side="right") - 1, 0, step.size - 1)
        s = at - x[place]
        square = s * s
        result: np.ndarray = (
            y[place] + slope[place] * s + second[place] * square + third[place] * (square * s)
        )
        return result

    return value


def _slopes(step: np.ndarray, secant: np.ndarray) -> np.ndarray:
    """Derivatives at the points: weighted harmonic means of the secants, 0 where these turn."""
    if secant.size == 1:
        return np.repeat(secant, 2)
    turns = (np.sign(secant[1:]) != np.sign(secant[:-1])) | (secant[1:] == 0) | (secant[:-1] == 0)
    before, after = 2 * step[1:] + step[:-1], step[1:] + 2 * step[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (before / secant[:-1] + after / secant[1:]) / (before + after)
        inner = np.where(turns, 0.0, 1.0 / mean)
    first = _end(step[0], step[1], secant[0], secant[1])
    last = _end(step[-1], step[-2], secant[-1], secant[-2])
    return np.concatenate([[first], inner, [last]])


def _end(near: float, next_: float, secant: float, beyond: float) -> float:
    """Three-point derivative at an end, limited so that the shape stays (Moler 2004, 3.6)."""
    slope = ((2 * near + next_) * secant - near * beyond) / (near + next_)
    if np.sign(slope) != np.sign(secant):
        return 0.0
    if np.sign(secant) != np.sign(beyond) and abs(slope) > 3.0 * abs(secant):
        return 3.0 * secant
    return slope
