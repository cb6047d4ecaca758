"""Rows predicted by fits that did not see them: whole groups, or whole models, are left out.

The fits are made from the given rows alone, so that what is scored is the form of the model and
not a shipped profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.cross_validation import Fit, LeftOut
from planner.calibration.curve_pooling import Evidence, curves_of
from planner.calibration.fit import RUNS, STEADY, fit_of
from planner.calibration.hierarchy import Hierarchy
from planner.calibration.leave_outs import LEAVE_OUTS
from planner.calibration.sample import Sample, sample_of
from planner.measurements.entry import Entry, Prediction
from planner.measurements.measurement import place_of
from planner.text.errors import InputError
from planner.validation.entry_scores import settled, speculating

TAIL = 0.1  # on either side of the band
OUTSIDE = 20.0  # times off: no row to fit
UNSOUND = ("disaggregated", "not clean")


def refitted(entries: Sequence[Entry], leave: str, fit: Fit | None = None) -> list[Entry]:
    """The entries with the estimates and bands of fits that saw nothing like them.

    Raises InputError if there is nothing left to fit.

    Parameters
    ----------
    leave : a word of LEAVE_OUTS: `configurations` (a layout at its lengths) or `groups` of model,
        chip and engine, a fifth of them at a time, or `models`, `chips`, `engines`, ... one by one;
        rows that it never leaves out stay as they are. Of collectives, curves, or chips.
    fit : from rows to what predicts others; `fit_by_load` by default.
    """
    if any(entry.collective is not None for entry in entries):
        return _curves(entries, leave)
    at = [i for i, e in enumerate(entries) if e.measurement is not None and e.prediction]
    predicted = [entries[i] for i in at]
    rows = [entry.measurement for entry in predicted if entry.measurement is not None]
    sample = sample_of(
        rows, [place_of(row, (RUNS if row.looped else STEADY).as_of) for row in rows]
    )
    by = {each.word: each for each in LEAVE_OUTS}[leave]
    if len(set(by.keys(sample))) < 2:
        raise InputError(f"--refit {leave}: rows of two {leave} or more are needed")
    left = by.predictions(sample, fit or fit_by_load, _sound(predicted))
    low, high = _bands(predicted, left)
    refits = list(entries)
    for i in np.flatnonzero(left.fold >= 0).tolist():
        place, time = at[i], float(left.estimate[i])
        made = Prediction(entries[place].bound or 0.0, time, time * low[i], time * high[i])
        method = f"refitted, {leave} left out"
        refits[place] = replace(entries[place], prediction=made, profile=method, seen=False)
    return refits


@dataclass(frozen=True)
class FitByLoad:
    """A fit of the runs under load and one of the static batches, as the shipped profiles have."""

    fits: Mapping[bool, Hierarchy]

    def times(self, sample: Sample) -> np.ndarray:
        """Times [s] of rows, shape (n_rows,)."""
        seconds, loads = np.empty(len(sample.rows)), sample.column("looped")
        for load in np.unique(loads):
            # With no row of its kind to learn from, the other fit is all there is.
            fit = self.fits.get(bool(load), next(iter(self.fits.values())))
            seconds[loads == load] = fit.times(sample.take(loads == load))
        return seconds


def fit_by_load(sample: Sample) -> FitByLoad:
    """The shipped profiles' own fits, of the rows of each kind that there are."""
    loads = sample.column("looped")
    return FitByLoad(
        {
            load: fit_of(spec)(sample.take(loads == load))
            for load, spec in ((True, RUNS), (False, STEADY))
            if (loads == load).any()
        }
    )


def _sound(entries: Sequence[Entry]) -> np.ndarray:
    """Rows to fit: no repeats, nothing better than its bound, nothing that seems to speculate."""
    groups = speculating(entries)

    def sound(entry: Entry) -> bool:
        seconds, prediction = entry.seconds, entry.prediction
        if seconds is None or prediction is None or entry.repeat or settled(entry) in groups:
            return False
        possible = seconds >= (entry.bound or 0.0) and entry.part not in UNSOUND
        return possible and 1 / OUTSIDE < seconds / prediction.estimate < OUTSIDE

    return np.array([sound(entry) for entry in entries])


def _bands(entries: Sequence[Entry], left: LeftOut) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of measured over predicted by quantity, of the rows of other folds.

    Where all rows of a kind were left out together, those of the profile.
    """
    ratio, fold = left.ratio, left.fold
    kinds = np.array([f"{entry.quantity} {entry.part}" for entry in entries])
    made = [entry.prediction for entry in entries if entry.prediction is not None]
    low, high = (np.array([getattr(x, end) / x.estimate for x in made]) for end in ("low", "high"))
    for kind in np.unique(kinds):
        for k in np.unique(fold[fold >= 0]):
            here, others = ((kinds == kind) & (fold >= 0) & mask for mask in (fold == k, fold != k))
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
