"""Errors of predictions: how far off, how often within, and whether the band holds what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from planner.calibration.baselines import constant
from planner.measurements.entry import Entry

__all__ = ["GROUPINGS", "Score", "band_share", "grouped", "score", "section"]

GROUPINGS: Mapping[str, Callable[[Entry], str]] = {
    "engine": lambda entry: entry.engine,
    "chip": lambda entry: entry.chip,
    "model": lambda entry: entry.model,
}


@dataclass(frozen=True)
class Score:
    """Errors of n predictions: |predicted/measured - 1| and the range of predicted/measured.

    `median` and `mean` are of the error, `within_10` and `within_20` shares of rows, `low` and
    `high` the 10 % and 90 % quantiles of the ratio and `middle` its median.
    """

    n: int
    median: float
    mean: float
    within_10: float
    within_20: float
    low: float
    middle: float
    high: float


def score(predicted: np.ndarray, measured: np.ndarray) -> Score:
    """Errors of predicted against measured values, both of shape (n_rows,), n_rows > 0."""
    ratio = predicted / measured
    error = np.abs(ratio - 1)
    low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
    return Score(
        len(error),
        float(np.median(error)),
        float(error.mean()),
        float((error < 0.1).mean()),
        float((error < 0.2).mean()),
        float(low),
        float(middle),
        float(high),
    )


def band_share(entries: Sequence[Entry]) -> float:
    """Share of scored entries whose measured time lies in the band of its prediction."""
    held = [
        e.prediction.low <= e.seconds <= e.prediction.high
        for e in entries
        if e.prediction is not None and e.seconds is not None
    ]
    return float(np.mean(held))


def section(entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Scores of the estimate and of both baselines, None where nothing can be scored.

    Errors are those of the value in its own unit: a rate is scored as a rate.
    """
    some = [entry for entry in entries if entry.scored]
    if not some:
        return None
    measured = np.array([entry.measured for entry in some], dtype=float)
    estimate = np.array(
        [entry.own(entry.prediction.estimate) for entry in some if entry.prediction]
    )
    found: dict[str, Any] = {
        "estimate": asdict(score(estimate, measured)),
        "band": {"coverage": 0.8, "holds": band_share(some)},
        "roofline": None,
        "constant": None,
    }
    roofed = [entry for entry in some if entry.roofline]
    if len(roofed) == len(some):
        roofs = np.array([entry.roofline for entry in roofed], dtype=float)
        seconds = np.array([entry.seconds for entry in roofed], dtype=float)
        scaled = constant(roofs, seconds, [entry.group for entry in roofed])
        for name, times in (("roofline", roofs), ("constant", scaled)):
            own = [entry.own(float(time)) for entry, time in zip(roofed, times, strict=True)]
            found[name] = asdict(score(np.array(own), measured))
    return found


def grouped(entries: Sequence[Entry], by: str) -> list[dict[str, Any]]:
    """Scores of the entries of each engine, chip or model, those with most rows first."""
    names: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.scored:
            names.setdefault(GROUPINGS[by](entry), []).append(entry)
    rows = []
    for name, some in names.items():
        found = section(some)
        if found is not None:
            held = found["band"]["holds"]
            rows.append({by: name, **found["estimate"], "band_holds": held})
    return sorted(rows, key=lambda row: (-row["n"], row[by]))
