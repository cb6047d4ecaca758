"""Rows predicted by fits that did not see them: whole groups, or whole models, are left out.

The fits are made from the given rows alone, so that what is scored is the form of the model and
not a shipped profile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from planner.calibration.baselines import FOLDS, folds
from planner.calibration.curve_pooling import Evidence, curves_of
from planner.calibration.features import Features, features
from planner.calibration.fit_priors import RUNS, STEADY, FitSpec
from planner.calibration.hierarchy import Hierarchy, effects, fitted
from planner.calibration.sample import configuration_of, weight_of
from planner.calibration.suspects import settled, speculating
from planner.measurements.entry import Entry, Prediction
from planner.measurements.measurement import Measurement, place_of
from planner.text.errors import InputError

Predictor = Callable[[Sequence[Measurement], Features], np.ndarray]
Fit = Callable[[Sequence[Measurement], Features, np.ndarray], Predictor]
TAIL = 0.1  # on either side of the band
OUTSIDE = 20.0  # times off: no row to fit


def refitted(entries: Sequence[Entry], leave: str, fit: Fit | None = None) -> list[Entry]:
    """The entries with the estimates and bands of fits that saw nothing like them.

    Parameters
    ----------
    leave : `configurations` (a layout at its lengths) or `groups` of model, chip and engine, a
        fifth of them at a time, or `models` one by one. Of collectives, curves, or chips.
    fit : from rows, their columns and times [s] to what predicts others; `by_spec` by default.

    Raises
    ------
    InputError
        If there is nothing left to fit.
    """
    if any(entry.collective is not None for entry in entries):
        return _curves(entries, leave)
    at = [i for i, e in enumerate(entries) if e.measurement is not None and e.prediction]
    predicted = [entries[i] for i in at]
    keys = [_key(entry, leave) for entry in predicted]
    if len(set(keys)) < 2:
        raise InputError(f"--refit {leave}: rows of two {leave} or more are needed")
    fold = folds(keys, len(set(keys)) if leave == "models" else FOLDS)
    estimate = _left_out(predicted, fold, fit or by_spec)
    low, high = _bands(predicted, estimate, fold)
    refits = list(entries)
    for i, place in enumerate(at):
        time = float(estimate[i])
        made = Prediction(entries[place].bound or 0.0, time, time * low[i], time * high[i])
        method = f"refitted, {leave} left out"
        refits[place] = replace(entries[place], prediction=made, profile=method, seen=False)
    return refits


def _key(entry: Entry, leave: str) -> str:
    """What rows share that are left out together."""
    if leave == "configurations" and entry.measurement is not None:
        return configuration_of(entry.measurement)
    return entry.model if leave == "models" else entry.group


def by_spec(rows: Sequence[Measurement], columns: Features, seconds: np.ndarray) -> Predictor:
    """A fit of the runs under load and one of the static batches, as the shipped profiles have."""
    looped = np.array([row.looped for row in rows])
    fits = {
        under_load: _fitted(spec, [r for r, here in zip(rows, mask, strict=True) if here],
                            columns.take(mask), seconds[mask])
        for under_load, spec, mask in ((True, RUNS, looped), (False, STEADY, ~looped))
        if mask.any()
    }  # fmt: skip

    def times(others: Sequence[Measurement], of: Features) -> np.ndarray:
        seconds = np.empty(len(others))
        loads = np.array([row.looped for row in others])
        for load in np.unique(loads):
            here = np.flatnonzero(loads == load)
            spec = RUNS if load else STEADY
            # With no row of its kind to learn from, the other fit is all there is.
            fit = fits.get(bool(load), next(iter(fits.values())))
            places = [place_of(others[int(i)], spec.as_of) for i in here]
            seconds[here] = of.take(here).times(fit.unknowns(places))
        return seconds

    return times


def _fitted(
    spec: FitSpec, rows: Sequence[Measurement], columns: Features, seconds: np.ndarray
) -> Hierarchy:
    places = [place_of(row, spec.as_of) for row in rows]
    weights = np.array([weight_of(row) for row in rows])
    tellable = effects(places, spec.families)
    return fitted(columns, seconds, places, tellable, spec.prior, weights=weights, loss=spec.loss)


def _left_out(entries: Sequence[Entry], fold: np.ndarray, fit: Fit) -> np.ndarray:
    rows = [entry.measurement for entry in entries if entry.measurement is not None]
    columns = features(rows)
    seconds = np.array([row.seconds for row in rows])
    sound = _sound(entries)
    estimate = np.empty(len(rows))
    for k in np.unique(fold):
        seen, test = np.flatnonzero(sound & (fold != k)), np.flatnonzero(fold == k)
        model = fit([rows[i] for i in seen], columns.take(seen), seconds[seen])
        estimate[test] = model([rows[i] for i in test], columns.take(test))
    return estimate


def _sound(entries: Sequence[Entry]) -> np.ndarray:
    """Rows to fit: no repeats, nothing better than its bound, nothing that seems to speculate."""
    groups = speculating(entries)
    return np.array(
        [
            not entry.repeat
            and entry.seconds is not None
            and entry.seconds >= (entry.bound or 0.0)
            and entry.prediction is not None
            and 1 / OUTSIDE < entry.seconds / entry.prediction.estimate < OUTSIDE
            and settled(entry) not in groups
            and entry.part not in ("disaggregated", "not clean")
            for entry in entries
        ]
    )


def _bands(
    entries: Sequence[Entry], estimate: np.ndarray, fold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of measured over predicted by quantity, of the rows of other folds."""
    ratio = np.array([entry.seconds for entry in entries], dtype=float) / estimate
    kinds = np.array([f"{entry.quantity} {entry.part}" for entry in entries])
    low, high = np.ones(len(entries)), np.ones(len(entries))
    for kind in np.unique(kinds):
        for k in np.unique(fold):
            here, others = (kinds == kind) & (fold == k), (kinds == kind) & (fold != k)
            if others.any():
                low[here], high[here] = np.quantile(ratio[others], [TAIL, 1 - TAIL])
    return low, high


def _curves(entries: Sequence[Entry], leave: str) -> list[Entry]:
    """Points of swept curves, each predicted from all other curves or from those of other chips."""
    curves = curves_of([e.collective for e in entries if e.collective is not None])
    evidence = Evidence(curves)
    if len({curve.chip for curve in evidence.curves}) < 2:
        raise InputError(f"--refit {leave}: curves of two chips or more are needed")
    times = evidence.unseen_curves if leave != "models" else evidence.unseen_chips
    unseen = {
        (curve.chip, curve.operation, curve.algorithm, curve.n, float(size)): float(time)
        for curve, each in zip(evidence.curves, times, strict=True)
        for size, time in zip(curve.sizes, each, strict=True)
    }
    method = f"refitted, {'chips' if leave == 'models' else 'curves'} left out"
    places, made = [], []
    for i, entry in enumerate(entries):
        row = entry.collective
        if row is None or entry.prediction is None or not row.sweep:
            continue
        key = (row.chip, row.operation, row.algorithm, row.n, round(row.size, 3))
        if key in unseen:
            places.append(i)
            made.append(unseen[key])
    ratio = np.array([entries[i].seconds for i in places], dtype=float) / np.array(made)
    low, high = np.quantile(ratio, [TAIL, 1 - TAIL])
    refits = list(entries)
    for i, time in zip(places, made, strict=True):
        prediction = Prediction(entries[i].bound or 0.0, time, time * low, time * high)
        refits[i] = replace(entries[i], prediction=prediction, profile=method, seen=False)
    return refits
