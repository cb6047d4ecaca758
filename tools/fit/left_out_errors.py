"""Errors and bands of rows left out of fits that ship, by how far coefficients may be off.

Beside what the product keeps of a user's own rows: spreads of the coefficients, and rows that no
fit may see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from planner.calibration.cross_validation import (
    COST,
    LeftOut,
    constant,
    cross_validated_coverage,
    quantiles,
    quantities,
    score,
)
from planner.catalogue.coefficient_spread import NOISE, RunContext
from planner.catalogue.profile import COEFFICIENTS

if TYPE_CHECKING:
    from planner.calibration.sample import Sample

FEWEST = 40  # rows from which an engine has a band of its own


class RowModel(Protocol):
    """What a fit gives: times of rows."""

    def times(self, sample: Sample) -> np.ndarray:
        """Times [s], shape (n_rows,)."""


Fit: TypeAlias = "Callable[[Sample], RowModel]"


@runtime_checkable
class SpreadModel(RowModel, Protocol):
    """What a fit gives that says how far its coefficients may be off."""

    def shares(self, sample: Sample) -> np.ndarray:
        """d ln time / d ln coefficient, shape (n_rows, n_coefficients)."""

    def covariances(self, places: Sequence[RunContext]) -> dict[RunContext, np.ndarray]:
        """Covariance of the logarithms of the coefficients at each place."""


@dataclass(frozen=True)
class SpreadLeftOut(LeftOut):
    """Rows left out, with what their times rest on.

    `shares`, shape (n_rows, n_coefficients), and `covariances`, one of the coefficients for each
    row, are those of the fit that predicted it.
    """

    shares: np.ndarray | None = None
    covariances: tuple[np.ndarray, ...] = ()

    def take(self, mask: np.ndarray) -> SpreadLeftOut:
        """Some of the rows, by mask or index."""
        index = np.arange(len(self.fold))[mask]
        shares = None if self.shares is None else self.shares[index]
        covariances = tuple(self.covariances[i] for i in index) if self.covariances else ()
        sample, fold = self.sample.take(mask), self.fold[index]
        return SpreadLeftOut(sample, fold, self.estimate[index], shares, covariances)

    def sigma(self, shares: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Standard deviations of logarithms of times by what they rest on, at some rows."""
        pairs = zip(shares, (self.covariances[i] for i in rows), strict=True)
        return np.sqrt([share @ spread @ share + NOISE**2 for share, spread in pairs])

    def slot_shares(self) -> np.ndarray:
        """What the time of each slot rests on, shape (n_slots, n_coefficients)."""
        if self.shares is None:
            raise ValueError("a fit that does not say what its times rest on")
        tokens, prompts, steps = self.slot_rows()
        first, later = self.estimate[prompts], steps * self.estimate[tokens]
        part = (first / (first + later))[:, None]
        shares: np.ndarray = part * self.shares[prompts] + (1 - part) * self.shares[tokens]
        return shares


def leave_out(
    sample: Sample, fold: np.ndarray, fit: Fit, sound: np.ndarray | None = None
) -> SpreadLeftOut:
    """Predict each fold by a fit of the `sound` rows of the others, of all rows by default.

    Rows of a fold below zero are never left out, and have no prediction.
    """
    estimate = np.full(len(sample.rows), np.nan)
    shares = np.zeros((len(estimate), len(COEFFICIENTS)))
    spreads: dict[int, np.ndarray] = {}
    for k in np.unique(fold[fold >= 0]):
        others = fold != k if sound is None else sound & (fold != k)
        model, unseen = fit(sample.take(others)), sample.take(fold == k)
        estimate[fold == k] = model.times(unseen)
        if isinstance(model, SpreadModel):
            shares[fold == k] = model.shares(unseen)
            at = model.covariances(unseen.places)
            rows = np.flatnonzero(fold == k).tolist()
            spreads |= {i: at[place] for i, place in zip(rows, unseen.places, strict=True)}
    if not spreads:
        return SpreadLeftOut(sample, fold, estimate)
    none = np.zeros((len(COEFFICIENTS), len(COEFFICIENTS)))
    covariances = tuple(spreads.get(i, none) for i in range(len(estimate)))
    return SpreadLeftOut(sample, fold, estimate, shares, covariances)


def errors(left: LeftOut, floor: np.ndarray, prefix: str = "") -> dict[str, float]:
    """Scores by quantity: of the estimate, of the roofline, of a constant times the roofline."""
    scores: dict[str, float] = {}
    for name, mask in quantities(left.sample).items():
        if not mask.any():
            continue
        seconds, roofs = left.sample.seconds[mask], floor[mask]
        scaled = score(constant(roofs, seconds, left.fold[mask]), seconds)
        scores |= {
            **score(left.estimate[mask], seconds).named(prefix + name),
            f"{prefix}{name}_roofline_median": score(roofs, seconds).median,
            f"{prefix}{name}_constant_median": scaled.median,
            f"{prefix}{name}_constant_mean": scaled.mean,
        }
    return scores


def bands(left: LeftOut) -> tuple[dict[str, dict[str, list[float]]], dict[str, float]]:
    """Ranges of measured over predicted by engine, all together as `any`, and what they hold."""
    ranges: dict[str, dict[str, list[float]]] = {"any": {}}
    coverage: dict[str, float] = {}
    for name, (ratio, fold, engine) in _ratios(left).items():
        if not len(ratio):
            continue
        ranges["any"][name] = quantiles(ratio)
        coverage[f"{name}_band_holds"] = cross_validated_coverage(ratio, fold)
        for name_of_engine in np.unique(engine):
            mine = engine == name_of_engine
            if mine.sum() >= FEWEST:
                ranges.setdefault(str(name_of_engine), {})[name] = quantiles(ratio[mine])
    return ranges, coverage


def _ratios(left: LeftOut) -> Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Ratios, folds and engines by quantity; of slots where there are any, else of tokens."""
    engines = np.array([place.engine for place in left.sample.places])
    parts = {
        name: (left.ratio[mask], left.fold[mask], engines[mask])
        for name, mask in quantities(left.sample).items()
    }
    tokens, ratio = left.slots
    return {
        **parts,
        COST: (ratio, left.fold[tokens], engines[tokens]) if len(tokens) else parts["tpot"],
    }


def spreads(left: LeftOut) -> dict[str, float]:
    """How far logarithms of measured over predicted price lie apart, as half the middle 68 %.

    `alike` within runs of one model, chip, engine, version and format, whose layouts, lengths and
    batches differ: what two plans of one kind do not share. `other` among all runs.
    """
    tokens, ratio = left.slots
    if not len(tokens):
        tokens, ratio = np.arange(len(left.sample.rows)), left.ratio
    error = np.log(ratio)
    rows = left.sample.rows
    cell = np.array([f"{rows[i].group} {rows[i].version} {rows[i].precision}" for i in tokens])
    within = error.copy()
    for name in np.unique(cell):
        within[cell == name] -= np.median(error[cell == name])
    return {"alike": _half(within), "other": _half(error)}


def _half(error: np.ndarray) -> float:
    low, high = np.quantile(error, [0.16, 0.84])
    return float(high - low) / 2
