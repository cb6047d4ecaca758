"""Bands of predictions: ranges of measured over predicted that hold 80 % of the rows left out.

A band is made of order statistics: of n rows left out, ranks floor(0.1 (n + 1)) and
ceil(0.9 (n + 1)) of measured over predicted hold 80 % of rows to come, whatever their distribution
(split conformal prediction).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.calibration.cross_validation import LeftOut, quantities
from planner.calibration.scores import coverage_of, quantiles
from planner.catalogue.profile import KNOWN, NEW_CHIP, NEW_MODEL, Band, Profile

FEWEST = 40  # rows of which a band of one engine is told
FEWEST_OWN = 10  # rows from which both ranks are of a row
COST = "usd_per_mtok"


def bands(left: LeftOut) -> tuple[dict[str, dict[str, list[float]]], dict[str, float]]:
    """Ranges of measured over predicted by engine, all together as `any`, and what they hold."""
    engines = np.array([place.engine for place in left.sample.places])
    ranges: dict[str, dict[str, list[float]]] = {"any": {}}
    coverage: dict[str, float] = {}
    for name, (ratio, fold, engine) in _ratios(left, engines).items():
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
    left: LeftOut, engines: np.ndarray
) -> Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    parts = {
        name: (left.ratio[mask], left.fold[mask], engines[mask])
        for name, mask in quantities(left.sample).items()
    }
    tokens, ratio = left.slots
    price = (ratio, left.fold[tokens], engines[tokens]) if len(tokens) else parts["tpot"]
    return {**parts, "usd_per_mtok": price}


def own_bands(left: LeftOut) -> dict[str, Band]:
    """Bands of the quantities that FEWEST_OWN of a user's own rows or more time."""
    parts = {name: left.ratio[mask] for name, mask in quantities(left.sample).items()}
    slots = left.slots[1]
    parts[COST] = slots if len(slots) >= FEWEST_OWN else parts["tpot"]
    return {name: Band(*quantiles(r)) for name, r in parts.items() if len(r) >= FEWEST_OWN}


def own_coverage(left: LeftOut) -> dict[str, float]:
    """The share of each quantity's rows inside the band that the rows of the other folds give."""
    shares = {
        name: coverage_of(left.ratio[mask], left.fold[mask], FEWEST_OWN)
        for name, mask in quantities(left.sample).items()
    }
    return {name: share for name, share in shares.items() if not np.isnan(share)}


def everywhere(
    like: Profile, measured: Mapping[str, Band]
) -> Mapping[str, Mapping[str, Mapping[str, Band]]]:
    """Bands by kind of place: one's own where they are known, elsewhere as wide as either's.

    A quantity without a band of its own keeps that of the profile it started from.
    """
    kinds = dict.fromkeys((KNOWN, NEW_MODEL, NEW_CHIP, *like.all_bands))
    shipped = {kind: _seen(like, kind) for kind in kinds}
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


def _seen(like: Profile, kind: str) -> Mapping[str, Band]:
    """The bands of a kind of place for the profile's engine."""
    kinds = like.all_bands.get(kind) or like.all_bands.get(KNOWN) or {}
    return {**like.bands, **kinds.get("any", {}), **kinds.get(like.engine, {})}
