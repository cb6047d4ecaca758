"""Rows predicted by fits that did not see them: whole groups, or whole models, are left out.

The fits are made from the given rows alone, each of all engines first and then of one engine
starting from there, so that what is scored is the form of the model and not a shipped profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.calibration.collectives.evidence import Evidence, curves_of
from planner.calibration.features import features, predicted
from planner.calibration.prediction import Prediction
from planner.calibration.squares import solve, values_of
from planner.errors import InputError
from planner.validation.baselines import FOLDS, folds
from planner.validation.entries import Entry
from planner.validation.suspects import settled, speculating

__all__ = ["refitted"]

TAIL = 0.1  # on either side of the band
PROMPTS = 0.3  # weight of a first token under load, which holds queueing
FEWEST = 40  # rows of an engine that make a fit of its own
OUTSIDE = 20.0  # times off: no row to fit


def refitted(entries: Sequence[Entry], leave: str) -> list[Entry]:
    """The entries with the estimates and bands of fits that saw nothing like them.

    Parameters
    ----------
    leave : `groups` of model, chip and engine (a fifth of them at a time), or `models` one by one.
        Of collectives, curves, or chips.

    Raises
    ------
    InputError
        If there is nothing left to fit.
    """
    if any(entry.collective is not None for entry in entries):
        return _curves(entries, leave)
    at = [i for i, e in enumerate(entries) if e.measurement is not None and e.prediction]
    some = [entries[i] for i in at]
    keys = [entry.group if leave == "groups" else entry.model for entry in some]
    if len(set(keys)) < 2:
        raise InputError(f"--refit {leave}: rows of two {leave} or more are needed")
    fold = folds(keys, len(set(keys)) if leave == "models" else FOLDS)
    estimate = _left_out(some, fold)
    low, high = _bands(some, estimate, fold)
    found = list(entries)
    for i, place in enumerate(at):
        time = float(estimate[i])
        made = Prediction(entries[place].bound or 0.0, time, time * low[i], time * high[i])
        told = f"refitted, {leave} left out"
        found[place] = replace(entries[place], prediction=made, profile=told, seen=False)
    return found


def _left_out(some: Sequence[Entry], fold: np.ndarray) -> np.ndarray:
    columns = features([entry.measurement for entry in some if entry.measurement])
    seconds = np.array([entry.seconds for entry in some], dtype=float)
    engines = np.array([entry.engine for entry in some])
    weights = np.where([e.quantity == "ttft" and _looped(e) for e in some], PROMPTS, 1.0)
    sound = _sound(some)
    estimate = np.empty(len(some))
    for k in np.unique(fold):
        seen = sound & (fold != k)
        every = solve(columns.take(seen), seconds[seen], weights[seen])
        for engine in np.unique(engines[fold == k]):
            own, test = seen & (engines == engine), (fold == k) & (engines == engine)
            x = every
            if own.sum() >= FEWEST:
                x = solve(columns.take(own), seconds[own], weights[own], prior=every)
            estimate[test] = predicted(columns.take(test), values_of(x))
    return estimate


def _looped(entry: Entry) -> bool:
    return entry.measurement is not None and entry.measurement.looped


def _sound(some: Sequence[Entry]) -> np.ndarray:
    """Rows to fit: no repeats, nothing better than its bound, nothing that seems to speculate."""
    groups = speculating(some)
    return np.array(
        [
            not entry.repeat
            and entry.seconds is not None
            and entry.seconds >= (entry.bound or 0.0)
            and entry.prediction is not None
            and 1 / OUTSIDE < entry.seconds / entry.prediction.estimate < OUTSIDE
            and settled(entry) not in groups
            and entry.part not in ("disaggregated", "not clean")
            for entry in some
        ]
    )


def _bands(
    some: Sequence[Entry], estimate: np.ndarray, fold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of measured over predicted by quantity, of the rows of other folds."""
    ratio = np.array([entry.seconds for entry in some], dtype=float) / estimate
    kinds = np.array([f"{entry.quantity} {entry.part}" for entry in some])
    low, high = np.ones(len(some)), np.ones(len(some))
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
    times = evidence.unseen_curves if leave == "groups" else evidence.unseen_chips
    known = {
        (curve.chip, curve.operation, curve.algorithm, curve.n, float(size)): float(time)
        for curve, each in zip(evidence.curves, times, strict=True)
        for size, time in zip(curve.sizes, each, strict=True)
    }
    told = f"refitted, {'curves' if leave == 'groups' else 'chips'} left out"
    places, made = [], []
    for i, entry in enumerate(entries):
        row = entry.collective
        if row is None or entry.prediction is None or not row.sweep:
            continue
        key = (row.chip, row.operation, row.algorithm, row.n, round(row.size, 3))
        if key in known:
            places.append(i)
            made.append(known[key])
    ratio = np.array([entries[i].seconds for i in places], dtype=float) / np.array(made)
    low, high = np.quantile(ratio, [TAIL, 1 - TAIL])
    found = list(entries)
    for i, time in zip(places, made, strict=True):
        prediction = Prediction(entries[i].bound or 0.0, time, time * low, time * high)
        found[i] = replace(entries[i], prediction=prediction, profile=told, seen=False)
    return found
