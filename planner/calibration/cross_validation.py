"""Rows predicted by fits that did not see them, their errors, and the bands that they give.

A band is a range of measured over predicted that holds 80 % of the rows left out, made of order
statistics: of n rows, ranks floor(0.1 (n + 1)) and ceil(0.9 (n + 1)) hold 80 % of rows to come,
whatever their distribution (split conformal prediction).

What a prediction has to beat is the plain roofline, the highest roof of a row at full efficiency on
the layout that ran, and the best constant times it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from planner.catalogue.coefficient_spread import KNOWN, NEW_CHIP, NEW_MODEL, NOISE
from planner.catalogue.profile import COEFFICIENTS, COVERAGE, Band, Place, Profile
from planner.protocol.validation_result import Score

if TYPE_CHECKING:
    from planner.calibration.sample import Sample


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


def group_error(ratio: np.ndarray, groups: np.ndarray) -> float:
    """The mean over groups of the median |ln ratio|, each of shape (n_rows,)."""
    error = np.abs(np.log(ratio))
    return float(np.mean([np.median(error[groups == name]) for name in np.unique(groups)]))


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


FOLDS, SEED = 5, 20261121
FEWEST = 40  # rows from which an engine has a band of its own
FEWEST_OWN = 10  # rows from which both ranks are of a row
COST = "usd_per_mtok"


class RowModel(Protocol):
    """What a fit gives: times of rows."""

    def times(self, sample: Sample) -> np.ndarray:
        """Times [s], shape (n_rows,)."""


@runtime_checkable
class SpreadModel(RowModel, Protocol):
    """What a fit gives that says how far its coefficients may be off."""

    def shares(self, sample: Sample) -> np.ndarray:
        """d ln time / d ln coefficient, shape (n_rows, n_coefficients)."""

    def covariances(self, places: Sequence[Place]) -> dict[Place, np.ndarray]:
        """Covariance of the logarithms of the coefficients at each place."""


Fit: TypeAlias = "Callable[[Sample], RowModel]"


@dataclass(frozen=True)
class LeftOut:
    """Predictions of every row by fits that did not see it [s], shape (n_rows,).

    `fold` says with which others a row was left out. `shares`, shape (n_rows, n_coefficients), and
    `covariances`, one of the coefficients for each row, are those of the fit that predicted it.
    """

    sample: Sample
    fold: np.ndarray
    estimate: np.ndarray
    shares: np.ndarray | None = None
    covariances: tuple[np.ndarray, ...] = ()

    def take(self, mask: np.ndarray) -> LeftOut:
        """Some of the rows, by mask or index."""
        index = np.arange(len(self.fold))[mask]
        shares = None if self.shares is None else self.shares[index]
        covariances = tuple(self.covariances[i] for i in index) if self.covariances else ()
        sample, fold = self.sample.take(mask), self.fold[index]
        return LeftOut(sample, fold, self.estimate[index], shares, covariances)

    def sigma(self, shares: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Standard deviations of logarithms of times by what they rest on, at some rows."""
        pairs = zip(shares, (self.covariances[i] for i in rows), strict=True)
        return np.sqrt([share @ spread @ share + NOISE**2 for share, spread in pairs])

    @property
    def ratio(self) -> np.ndarray:
        """Measured over predicted, shape (n_rows,)."""
        return self.sample.seconds / self.estimate

    @property
    def slots(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that time tokens, and measured over predicted time of a slot: what requests cost."""
        tokens, prompts, steps = self._slots()
        seconds = self.sample.seconds
        measured = seconds[prompts] + steps * seconds[tokens]
        return tokens, measured / (self.estimate[prompts] + steps * self.estimate[tokens])

    def slot_shares(self) -> np.ndarray:
        """What the time of each slot rests on, shape (n_slots, n_coefficients)."""
        if self.shares is None:
            raise ValueError("a fit that does not say what its times rest on")
        tokens, prompts, steps = self._slots()
        first, later = self.estimate[prompts], steps * self.estimate[tokens]
        part = (first / (first + later))[:, None]
        shares: np.ndarray = part * self.shares[prompts] + (1 - part) * self.shares[tokens]
        return shares

    def _slots(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the tokens and of the prompts of whole runs, and the steps of each."""
        rows = self.sample.rows
        first = {row.id: i for i, row in enumerate(rows) if row.looped and row.quantity == "ttft"}
        pairs = [
            (i, first[r.id]) for i, r in enumerate(rows) if r.quantity == "tpot" and r.id in first
        ]
        tokens, prompts = np.array(pairs, dtype=int).reshape(-1, 2).T
        steps = np.array([rows[i].output - 1 for i in tokens])
        return tokens, prompts, steps


def quantities(sample: Sample) -> Mapping[str, np.ndarray]:
    """Masks of the rows that time tokens and of those that time prompts, by quantity."""
    return {"tpot": ~sample.prompts, "ttft": sample.prompts}


def folds(groups: Sequence[str] | np.ndarray, count: int = FOLDS, repeat: int = 0) -> np.ndarray:
    """A fold for every row, whole groups together, shape (n_rows,); at most as many as groups.

    Groups lie in the order of digests of their names, cut into folds of as many groups each: one
    that joins moves a few across the cuts, and leaves all others where they were. `repeat` draws
    another order.
    """
    names, group = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    digests = [blake2s(f"{repeat} {name}".encode()).digest() for name in names]
    rank = np.empty(len(names), dtype=int)
    rank[sorted(range(len(names)), key=digests.__getitem__)] = np.arange(len(names))
    fold: np.ndarray = (rank * min(count, len(names)) // max(len(names), 1))[group]
    return fold


def leave_out(
    sample: Sample, fold: np.ndarray, fit: Fit, sound: np.ndarray | None = None
) -> LeftOut:
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
        return LeftOut(sample, fold, estimate)
    none = np.zeros((len(COEFFICIENTS), len(COEFFICIENTS)))
    covariances = tuple(spreads.get(i, none) for i in range(len(estimate)))
    return LeftOut(sample, fold, estimate, shares, covariances)


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
        coverage[f"{name}_band_holds"] = coverage_of(ratio, fold)
        for name_of_engine in np.unique(engine):
            mine = engine == name_of_engine
            if mine.sum() >= FEWEST:
                ranges.setdefault(str(name_of_engine), {})[name] = quantiles(ratio[mine])
    return ranges, coverage


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


def _ratios(
    left: LeftOut, fewest: int = 1
) -> Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Ratios, folds and engines by quantity; of slots where there are `fewest`, else of tokens."""
    engines = np.array([place.engine for place in left.sample.places])
    parts = {
        name: (left.ratio[mask], left.fold[mask], engines[mask])
        for name, mask in quantities(left.sample).items()
    }
    tokens, ratio = left.slots
    enough = len(tokens) >= fewest
    return {**parts, COST: (ratio, left.fold[tokens], engines[tokens]) if enough else parts["tpot"]}


def own_bands(left: LeftOut) -> dict[str, Band]:
    """Bands of the quantities that FEWEST_OWN of a user's own rows or more time."""
    parts = _ratios(left, FEWEST_OWN).items()
    return {name: Band(*quantiles(r)) for name, (r, _, _) in parts if len(r) >= FEWEST_OWN}


def own_coverage(left: LeftOut) -> dict[str, float]:
    """The share of each quantity's rows inside the band that the rows of the other folds give."""
    masks = quantities(left.sample).items()
    shares = {x: coverage_of(left.ratio[m], left.fold[m], FEWEST_OWN) for x, m in masks}
    return {name: share for name, share in shares.items() if not np.isnan(share)}


def everywhere(
    like: Profile, measured: Mapping[str, Band]
) -> Mapping[str, Mapping[str, Mapping[str, Band]]]:
    """Bands by kind of place: one's own where they are known, elsewhere as wide as either's.

    A quantity without a band of its own keeps that of the profile it started from.
    """
    kinds = dict.fromkeys((KNOWN, NEW_MODEL, NEW_CHIP, *like.all_bands))
    shipped = {kind: {**like.bands, **like.bands_of(kind, like.engine)} for kind in kinds}
    bands_by_kind = {KNOWN: {"any": {**shipped[KNOWN], **measured}}}
    for kind in [kind for kind in shipped if kind != KNOWN]:
        bands_by_kind[kind] = {
            "any": {
                name: Band(min(band.low, measured[name].low), max(band.high, measured[name].high))
                if name in measured
                else band
                for name, band in shipped[kind].items()
            }
        }
    return bands_by_kind
