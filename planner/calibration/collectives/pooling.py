"""Curves that were not measured, borrowed from those that were: partial pooling of effects.

log(time / nominal time) is a sum of effects that each vary smoothly with the size of the message:
of all, of the family of chips, of the operation, of the size of the group, of some pairs of these,
and, much smaller, of the one chip. One more is rough: where a library changes its protocol, a
curve has a kink, at the same size on all chips of a family. Each effect is drawn towards nothing
as strongly as its amplitude is small, which is ridge regression with a penalty for each effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.measurements.readers.collective_rows import FAMILIES

# Amplitudes of effects as relative times, and the octaves over which they vary. Errors on curves
# left out move by less than a hundredth when any of them is halved or doubled.
BROAD, FINE, KINKS, NOISE = 0.1, 0.03, 0.1, 0.03
SMOOTH, ROUGH = 3.0, 1.2
# What one expects before a measurement: start [s], latency of a step [s], share of the rate, delay
# of the square-root term [s]. A switch that adds up moves fewer bytes, at a smaller share.
START, STEP, SHARE, DELAY = 6e-6, 1e-6, 0.75, 1e-5
REDUCED_SHARE = 0.5
FUSED_START = 3e-6
STEPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ring": lambda n: n - 1,
    "in-network": lambda n: n - 1,
    "pairwise": np.ones_like,
    "fused": np.ones_like,
}


@dataclass(frozen=True)
class Cells:
    """Points of curves: what is timed, on what, and how large, each of shape (n_points,).

    `traffic` is bytes on the wire per byte, `rate` that of one chip in its group [byte/s].
    """

    chip: np.ndarray
    operation: np.ndarray
    algorithm: np.ndarray
    n: np.ndarray
    size: np.ndarray
    traffic: np.ndarray
    rate: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """All the points of several."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    @property
    def family(self) -> np.ndarray:
        """Family of each chip; a family is its own."""
        return np.array([FAMILIES.get(chip, chip) for chip in self.chip])

    @property
    def kind(self) -> np.ndarray:
        """All-gather and reduce-scatter are mirrors; a fused kernel is a kind of its own."""
        mirrored = np.where(self.operation == "reduce-scatter", "all-gather", self.operation)
        return np.where(self.algorithm == "fused", "fused", mirrored)

    @property
    def group(self) -> np.ndarray:
        """Size of the group, apart where the switch reduces."""
        reduces = np.where(self.algorithm == "in-network", "-reduces", "")
        return np.char.add(self.n.astype(int).astype(str), reduces)


def nominal(cells: Cells) -> np.ndarray:
    """Times one expects before a measurement [s], shape (n_points,)."""
    steps = np.select(
        [cells.algorithm == name for name in STEPS], [count(cells.n) for count in STEPS.values()]
    )
    steps = np.where(cells.operation == "all-reduce", 2 * steps, steps)
    wire = cells.traffic * cells.size / cells.rate
    reduced = (cells.operation == "all-reduce") & (cells.traffic == 1) & (cells.n > 2)
    share = np.where(reduced, REDUCED_SHARE, SHARE)
    start = np.where(cells.algorithm == "fused", FUSED_START, START)
    return start + STEP * steps + wire / share + np.sqrt(wire * DELAY)


class CurvePool:
    """Measured points, and what they say of points that were not measured."""

    def __init__(self, cells: Cells, seconds: np.ndarray) -> None:
        self.cells = cells
        self._residual = np.log(seconds) - np.log(nominal(cells))
        covariance = _likeness(cells, cells) + NOISE**2 * np.eye(len(seconds))
        self._precision = np.linalg.inv(covariance)
        self._weighted = self._precision @ self._residual

    def predict(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of times and their covariance, shapes (n_points,), (n_points, n_points)."""
        cross = _likeness(cells, self.cells)
        mean = np.log(nominal(cells)) + cross @ self._weighted
        return mean, _likeness(cells, cells) - cross @ self._precision @ cross.T

    def without(self, groups: Sequence[np.ndarray]) -> np.ndarray:
        """Each group of points predicted from all others [s], shape (n_points,).

        A group left out needs no new solution: its residuals follow from the precision matrix.
        """
        left = np.full(len(self._residual), np.nan)
        for points in groups:
            block = self._precision[np.ix_(points, points)]
            left[points] = self._residual[points] - np.linalg.solve(block, self._weighted[points])
        return np.exp(left) * nominal(self.cells)


def envelope(seconds: np.ndarray) -> np.ndarray:
    """Times by rising size that never fall: a message can be padded to any larger one."""
    return np.minimum.accumulate(seconds[::-1])[::-1]


def _likeness(a: Cells, b: Cells) -> np.ndarray:
    """Covariance of the effects at two sets of points, shape (n_a, n_b)."""
    chip, family, kind = (_same(getattr(a, x), getattr(b, x)) for x in ("chip", "family", "kind"))
    group, operation = _same(a.group, b.group), _same(a.operation, b.operation)
    apart = np.log2(a.size)[:, None] - np.log2(b.size)[None, :]
    smooth, rough = np.exp(-((apart / SMOOTH) ** 2) / 2), np.exp(-np.abs(apart) / ROUGH)
    broad = 1 + family + kind + group + kind * group + kind * family
    fine = chip + operation * family
    kinks = family * kind * group
    return (BROAD**2 * broad + FINE**2 * fine) * smooth + KINKS**2 * kinks * rough


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a[:, None] == b[None, :]).astype(float)
