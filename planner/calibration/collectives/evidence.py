"""Measured curves, what the pool says of each when it is left out, and the errors of all variants.

A curve is one operation by one algorithm in groups of one size on one chip; it is always left out
whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import PchipInterpolator

from planner.calibration.collectives.pooling import Cells, CurvePool, envelope
from planner.measurements.readers.collective_rows import (
    FAMILIES,
    MACHINES,
    Row,
    rate_of,
    traffic_of,
)
from planner.network.coefficients import Triple, fit_triple

LIBRARY = frozenset({"ring", "in-network", "pairwise"})
POOLED = LIBRARY | {"fused"}
COVERAGE = 0.8


@dataclass(frozen=True)
class MeasuredCurves:
    """One curve: sizes [byte] and times [s] by rising size; `traffic` and `rate` of its group."""

    chip: str
    operation: str
    algorithm: str
    n: int
    sizes: np.ndarray
    seconds: np.ndarray
    traffic: float
    rate: float

    @property
    def wire(self) -> np.ndarray:
        """Seconds that the bytes take at the full rate."""
        return self.traffic * self.sizes / self.rate

    def fitted(self, seconds: np.ndarray | None = None, *, root: bool = True) -> Triple:
        """Coefficients of this curve, or of other times of the same messages."""
        times = envelope(self.seconds) if seconds is None else seconds
        return fit_triple(self.sizes, self.wire, times, root=root)


def curves_of(rows: Sequence[Row]) -> list[MeasuredCurves]:
    """The curves of the sweeps, in a fixed order; repeats of a size count by their median."""
    sweeps: dict[tuple[str, str, str, int], dict[float, list[float]]] = {}
    for row in rows:
        if row.sweep and row.chip in MACHINES:
            key = (row.chip, row.operation, row.algorithm, row.n)
            sweeps.setdefault(key, {}).setdefault(round(row.size, 3), []).append(row.seconds)
    made = []
    for (chip, operation, algorithm, n), points in sorted(sweeps.items()):
        sizes = np.array(sorted(points))
        seconds = np.array([float(np.median(points[size])) for size in sizes])
        rate = rate_of(chip, operation, n)
        traffic = traffic_of(operation, algorithm, n, family=FAMILIES[chip])
        made.append(MeasuredCurves(chip, operation, algorithm, n, sizes, seconds, traffic, rate))
    return made


def cells_of(curve: MeasuredCurves, chip: str | None = None) -> Cells:
    """The points of a curve, or the same points on another chip or family."""
    count = len(curve.sizes)

    def full(value: object) -> np.ndarray:
        return np.full(count, value)

    return Cells(
        full(chip or curve.chip), full(curve.operation), full(curve.algorithm), full(curve.n),
        curve.sizes, full(curve.traffic), full(curve.rate),
    )  # fmt: skip


class Evidence:
    """Pooled curves with their predictions by fits that saw neither them nor what is like them."""

    def __init__(self, curves: Sequence[MeasuredCurves]) -> None:
        self.curves = [curve for curve in curves if curve.algorithm in POOLED]
        self.pool = CurvePool(
            Cells.joined([cells_of(curve) for curve in self.curves]),
            np.concatenate([envelope(curve.seconds) for curve in self.curves]),
        )
        lengths = [len(curve.sizes) for curve in self.curves]
        self.at = np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])

    def left_out(self, together: Sequence[str]) -> list[np.ndarray]:
        """Times of every curve by a pool without the curves of the same name in `together` [s]."""
        names = np.array(together)
        groups = [
            np.concatenate([points for points, same in zip(self.at, names == name, strict=True)
                            if same])
            for name in dict.fromkeys(together)
        ]  # fmt: skip
        pool = self.pool.without(groups)
        return [np.maximum.accumulate(pool[points]) for points in self.at]

    @cached_property
    def unseen_curves(self) -> list[np.ndarray]:
        """Each curve by all others [s]."""
        return self.left_out([str(i) for i in range(len(self.curves))])

    @cached_property
    def unseen_chips(self) -> list[np.ndarray]:
        """Each curve by those of other chips [s]."""
        return self.left_out([curve.chip for curve in self.curves])

    @cached_property
    def unseen_families(self) -> list[np.ndarray]:
        """Each curve by those of other families [s]."""
        return self.left_out([FAMILIES[curve.chip] for curve in self.curves])

    def borrowed_triples(self, predicted: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Three coefficients fitted to what was predicted for each curve, as times [s]."""
        return [
            curve.fitted(times).times(curve.sizes, curve.wire)
            for curve, times in zip(self.curves, predicted, strict=True)
        ]

    def variants(self) -> dict[str, list[np.ndarray]]:
        """Times of every curve by each way to predict them, by name."""
        seen = [(curve, curve.fitted(), curve.fitted(root=False)) for curve in self.curves]
        return {
            "fitted_two_coefficients": [two.times(c.sizes, c.wire) for c, _, two in seen],
            "fitted": [three.times(c.sizes, c.wire) for c, three, _ in seen],
            "unseen_curves": self.unseen_curves,
            "unseen_curves_fitted": self.borrowed_triples(self.unseen_curves),
            "unseen_chips": self.unseen_chips,
            "unseen_families": self.unseen_families,
        }

    def errors(self) -> dict[str, Mapping[str, float]]:
        """Scores of each variant on the library's curves, and on those of fused kernels."""
        scores_by_variant: dict[str, Mapping[str, float]] = {}
        for name, predicted in self.variants().items():
            for suffix, wanted in (("", LIBRARY), ("_fused", POOLED - LIBRARY)):
                pairs = [
                    (times, curve.seconds)
                    for curve, times in zip(self.curves, predicted, strict=True)
                    if curve.algorithm in wanted
                ]
                if pairs:
                    scores_by_variant[name + suffix] = scores(pairs)
        return scores_by_variant

    def bands(self) -> dict[str, tuple[float, float]]:
        """Quantiles of measured over predicted that hold COVERAGE, by kind of evidence."""
        variants = self.variants()
        return {
            "measured": _band(self.curves, [_between(curve) for curve in self.curves]),
            "fitted": _band(self.curves, variants["fitted"]),
            "borrowed": _band(self.curves, variants["unseen_curves"]),
            "family": _band(self.curves, variants["unseen_chips"]),
            "any": _band(self.curves, variants["unseen_families"]),
        }


def scores(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Relative errors of predictions, given (predicted, measured) curve by curve."""
    errors = [np.abs(predicted / measured - 1) for predicted, measured in pairs]
    every, worst = np.concatenate(errors), [float(error.max()) for error in errors]
    return {
        "curves": len(errors),
        "rows": len(every),
        "median": float(np.median(every)),
        "mean": float(every.mean()),
        "mean_of_worst": float(np.mean(worst)),
        "worst": float(np.max(worst)),
    }


def _band(curves: Sequence[MeasuredCurves], predicted: Sequence[np.ndarray]) -> tuple[float, float]:
    ratio = [c.seconds / times for c, times in zip(curves, predicted, strict=True)]
    low, high = np.quantile(np.concatenate(ratio), [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(min(low, 1.0)), float(max(high, 1.0))


def _between(curve: MeasuredCurves) -> np.ndarray:
    """Each inner point interpolated from all others, on logarithms; the ends from themselves."""
    size, time = np.log(curve.sizes), np.log(envelope(curve.seconds))
    times = time.copy()
    for i in range(1, len(size) - 1):
        times[i] = PchipInterpolator(np.delete(size, i), np.delete(time, i))(size[i])
    return np.exp(times)
