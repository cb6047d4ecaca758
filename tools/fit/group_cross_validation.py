"""Rows predicted by fits that did not see them: whole groups, or whole models, are left out.

The fits are made from the given rows alone, so that what is scored is the form of the model and
not a shipped profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from planner.measurements.entry import Entry, Prediction
from planner.measurements.measurement import is_new, row_context
from planner.text.errors import InputError
from planner.validation.estimates import MeasurementFiles, PredictedTables, predict_files
from planner.validation.validation_document import inferred_speculation, speculation_group
from tools.fit.curve_pooling import Evidence, curves_of
from tools.fit.leave_outs import LEAVE_OUTS, Residuals
from tools.fit.left_out_errors import Fit, SpreadLeftOut
from tools.fit.published_sample import left_out_because, weighed
from tools.fit.serving_fit import RUNS, STEADY, FitSpec, fit_of

TAIL = 0.1  # on either side of the band
OUTSIDE = 20.0  # times off: no row to fit


def refitted(entries: Sequence[Entry], leave: str, fit: Fit | None = None) -> list[Entry]:
    """The entries with the estimates and bands of fits that saw nothing like them.

    Rows that a way of leaving out never leaves out, or whose like are all that could be fitted,
    stay as they are. Raises InputError if that is all of them.

    Parameters
    ----------
    leave : a word of LEAVE_OUTS: `configurations` (a layout at its lengths) or `groups` of model,
        chip and engine, a fifth of them at a time, or `models`, `chips`, `engines`, ... one by one.
        Of collectives, curves, or chips.
    fit : from rows to what predicts others; by default those of the shipped profiles, one of runs
        under load with clean batches of their engines, and one of batches of engines before.
    """
    if any(entry.collective is not None for entry in entries):
        return _curves(entries, leave)
    refits = list(entries)
    for spec in (RUNS, STEADY):
        at = [i for i, entry in enumerate(entries) if _spec_of(entry) is spec]
        for i, made in _left_out([entries[i] for i in at], leave, spec, fit).items():
            method = f"refitted, {leave} left out"
            refits[at[i]] = replace(entries[at[i]], prediction=made, profile=method, seen=False)
    if not any(entry.profile.startswith("refitted") for entry in refits):
        raise InputError(f"--refit {leave}: rows of two {leave} or more are needed")
    return refits


def refitted_tables(
    files: MeasurementFiles,
    leave: str,
    facts: Mapping[str, str] = MappingProxyType({}),
    folders: Sequence[Path] = (),
) -> PredictedTables:
    """Every table of files with its entries, predicted by fits to the other rows of all of them.

    Rows of all tables are fitted together, as for the profiles that ship; curves table by table.
    """
    read, tables = predict_files(files, facts=facts, folders=folders), []
    rows = [entry for _, entries in read.tables for entry in entries if entry.measurement]
    refits = iter(refitted(rows, leave) if rows else rows)
    for table, entries in read.tables:
        made = [next(refits) if entry.measurement else entry for entry in entries]
        curves = any(entry.collective for entry in entries)
        tables.append((table, refitted(made, leave) if curves else made))
    return replace(read, tables=tuple(tables))


def _spec_of(entry: Entry) -> FitSpec | None:
    row = entry.measurement
    if row is None or entry.prediction is None:
        return None
    return RUNS if row.looped or is_new(row) else STEADY


def _left_out(
    entries: Sequence[Entry], leave: str, spec: FitSpec, fit: Fit | None
) -> dict[int, Prediction]:
    """Predictions of the rows of one fit, by index, each by a fit of the sound rows unlike it."""
    rows = [entry.measurement for entry in entries if entry.measurement is not None]
    sample = weighed(rows, [row_context(row, spec.as_of) for row in rows])
    by, sound = {each.word: each for each in LEAVE_OUTS}[leave], _sound(entries)
    fold = by.fold(sample)
    if not all((sound & (fold != k)).any() for k in np.unique(fold)):
        return {}
    left = by.predictions(sample, fit or fit_of(spec), sound)
    low, high = _bands(entries, left)
    predictions = {}
    for i in np.flatnonzero(fold >= 0).tolist():
        time = float(left.estimate[i])
        bound = entries[i].bound or 0.0
        predictions[i] = Prediction(bound, time, time * float(low[i]), time * float(high[i]))
    return predictions


def _sound(entries: Sequence[Entry]) -> np.ndarray:
    """Rows to fit: no repeats, nothing better than its bound, nothing that seems to speculate."""
    groups = inferred_speculation(entries)

    def sound(entry: Entry) -> bool:
        row, seconds, prediction = entry.measurement, entry.seconds, entry.prediction
        if row is None or seconds is None or prediction is None or entry.repeat:
            return False
        possible = seconds >= (entry.bound or 0.0) and speculation_group(entry) not in groups
        near = 1 / OUTSIDE < seconds / prediction.estimate < OUTSIDE
        return possible and near and not left_out_because(row)

    return np.array([sound(entry) for entry in entries], dtype=bool)


def _bands(entries: Sequence[Entry], left: SpreadLeftOut) -> tuple[np.ndarray, np.ndarray]:
    """Ends of measured over predicted by what a time rests on, as a profile's, of other folds.

    Where all rows of a kind were left out together, or a fit does not say what its times rest on,
    those of the profile and plain quantiles.
    """
    index, fold = np.arange(len(entries)), left.fold
    sigma = np.ones(len(index)) if left.shares is None else left.sigma(left.shares, index)
    whole = Residuals(np.log(left.ratio), sigma, fold, left.sample.column("group"), index)
    kinds = np.array([f"{entry.quantity} {entry.part}" for entry in entries])
    made = [entry.prediction for entry in entries if entry.prediction is not None]
    low, high = (np.array([getattr(x, end) / x.estimate for x in made]) for end in ("low", "high"))
    for kind in np.unique(kinds):
        for k in np.unique(fold[fold >= 0]):
            here, others = ((kinds == kind) & (fold >= 0) & mask for mask in (fold == k, fold != k))
            if here.any() and others.any():
                basis = whole.take(others)
                scatter = 0.0 if left.shares is None else basis.scatter()
                least, most, _ = basis.ends(scatter)
                wide = np.hypot(sigma[here], scatter)
                low[here], high[here] = np.exp(least * wide), np.exp(most * wide)
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
