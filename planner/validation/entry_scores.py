"""Scores of entries: how far off, how often within, and whether the band holds what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from planner.calibration.baselines import constant
from planner.calibration.scores import score
from planner.measurements.entry import Entry

GROUPINGS: Mapping[str, Callable[[Entry], str]] = {
    "engine": lambda entry: entry.engine,
    "chip": lambda entry: entry.chip,
    "model": lambda entry: entry.model,
}


def band_share(entries: Sequence[Entry]) -> float:
    """Share of scored entries whose measured time lies in the band of its prediction."""
    inside = [
        e.prediction.low <= e.seconds <= e.prediction.high
        for e in entries
        if e.prediction is not None and e.seconds is not None
    ]
    return float(np.mean(inside))


def section(entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Scores of the estimate and of both baselines, None where nothing can be scored.

    Errors are those of the value in its own unit: a rate is scored as a rate.
    """
    scored = [entry for entry in entries if entry.scored]
    if not scored:
        return None
    measured = np.array([entry.measured for entry in scored], dtype=float)
    estimate = np.array(
        [entry.in_unit(entry.prediction.estimate) for entry in scored if entry.prediction]
    )
    scores: dict[str, Any] = {
        "estimate": asdict(score(estimate, measured)),
        "band": {"coverage": 0.8, "holds": band_share(scored)},
        "roofline": None,
        "constant": None,
    }
    roofed = [entry for entry in scored if entry.roofline]
    if len(roofed) == len(scored):
        roofs = np.array([entry.roofline for entry in roofed], dtype=float)
        seconds = np.array([entry.seconds for entry in roofed], dtype=float)
        scaled = constant(roofs, seconds, [entry.group for entry in roofed])
        for name, times in (("roofline", roofs), ("constant", scaled)):
            in_unit = [
                entry.in_unit(float(time)) for entry, time in zip(roofed, times, strict=True)
            ]
            scores[name] = asdict(score(np.array(in_unit), measured))
    return scores


def grouped(entries: Sequence[Entry], by: str) -> list[dict[str, Any]]:
    """Scores of the entries of each engine, chip or model, those with most rows first."""
    names: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.scored:
            names.setdefault(GROUPINGS[by](entry), []).append(entry)
    rows = []
    for name, members in names.items():
        scores = section(members)
        if scores is not None:
            coverage = scores["band"]["holds"]
            rows.append({by: name, **scores["estimate"], "band_holds": coverage})
    return sorted(rows, key=lambda row: (-row["n"], row[by]))
