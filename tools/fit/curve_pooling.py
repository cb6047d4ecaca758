"""Curves of collectives that were not measured, borrowed from those that were.

log(time / nominal time) is a sum of effects that each vary smoothly with the size of the message:
of all, of the family of chips, of the operation, of the size of the group, of some pairs of these,
and, much smaller, of the one chip. One more is rough: where a library changes its protocol, a
curve has a kink, at the same size on all chips of a family. Each effect is drawn towards nothing
as strongly as its amplitude is small, which is ridge regression with a penalty for each effect.

A curve is one operation by one algorithm in groups of one size on one chip; it is always left out
whole, and the errors of all ways to predict it are those on curves left out.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator

from planner.catalogue.collective_curves import ANY_CHIP
from planner.catalogue.profile import COVERAGE
from planner.measurements.measurement import CollectiveRow
from planner.measurements.readers.collective_rows import (
    FAMILIES,
    MACHINES,
    REDUCE_FROM,
    collective_row,
)
from planner.network.collective_times import Triple
from planner.network.collective_times import fit_triple as fit_by_choices
from planner.network.group import Group, place_group
from topologies import machine


def read_collectives(path: Path) -> tuple[list[CollectiveRow], Mapping[str, int]]:
    """Rows that state a time and a size, and how many others there are, by reason."""
    rows, reasons = [], Counter[str]()
    with path.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file):
            row = collective_row(cells)
            if isinstance(row, str):
                reasons[row] += 1
            else:
                rows.append(row)
    return rows, dict(sorted(reasons.items()))


def rate_of(chip: str, operation: str, n: int) -> float:
    """Rate of one chip in a group of its usual machine [byte/s]."""
    return place_group(machine(MACHINES[chip]), n, chip).rate(operation)


def reduces(family: str, algorithm: str, n: int) -> bool:
    """Whether the switch adds up what an all-reduce sends; fused kernels let it do long ones."""
    if algorithm == "fused":
        return n >= REDUCE_FROM.get(family, n + 1)
    return algorithm == "in-network"


def traffic_of(operation: str, algorithm: str, n: int, *, family: str = "") -> float:
    """Bytes on the wire per byte in a group of `n` chips."""
    group = Group(ANY_CHIP, n, 1, 1.0, 1.0, reduces=reduces(family, algorithm, n))
    return group.traffic(operation, algorithm)


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


def scipy_least_squares(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Non-negative least squares by SciPy, as the shipped curves are fitted."""
    from scipy.optimize import nnls

    return np.asarray(nnls(matrix, target)[0])


fit_triple = partial(fit_by_choices, least_squares=scipy_least_squares)


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


LIBRARY = frozenset({"ring", "in-network", "pairwise"})
POOLED = LIBRARY | {"fused"}


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


def curves_of(rows: Sequence[CollectiveRow]) -> list[MeasuredCurves]:
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
    size, time = np.log(curve.sizes), np.log(envelope(curve.seconds))
    times = time.copy()
    for i in range(1, len(size) - 1):
        times[i] = PchipInterpolator(np.delete(size, i), np.delete(time, i))(size[i])
    return np.exp(times)
