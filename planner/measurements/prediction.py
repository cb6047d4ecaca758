"""What is expected of measured rows: the bound, the estimate, its band, in the rows' own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from planner.catalogue.profile import COEFFICIENTS, Place, Profile, profile
from planner.measurements.measurement import Measurement, place_of, profile_of
from planner.measurements.roofline_bound import bounds_of
from planner.measurements.row_step import RowStep, alike_rows

BANDS = {"ttft": "ttft"}  # every other quantity is a time of decoding


@dataclass(frozen=True)
class Prediction:
    """Times of one row [s]: what nothing beats, what to expect, and the band around it."""

    bound: float
    estimate: float
    low: float
    high: float


def predict(rows: Sequence[Measurement], wanted: str = "auto") -> list[Prediction]:
    """The bound, the estimate and its band of every row, in the order of the rows.

    Parameters
    ----------
    wanted : a profile's name or file, or `auto`: the one that each row's engine asks for.

    Raises
    ------
    CatalogueError
        If there is no such profile.
    InputError
        If a row has no layout, or no network is known between its chips.
    """
    if not rows:
        return []
    profiles = [_at(wanted, row) for row in rows]
    times, bounds = estimates(rows, profiles), bounds_of(rows)
    bands = [p.band(BANDS.get(row.quantity, "tpot")) for p, row in zip(profiles, rows, strict=True)]
    return [
        Prediction(float(bound), float(time), float(time) * band.low, float(time) * band.high)
        for bound, time, band in zip(bounds, times, bands, strict=True)
    ]


def estimates(rows: Sequence[Measurement], profiles: Sequence[Profile]) -> np.ndarray:
    """Times [s] of rows by the serving step, each under a profile of its own, shape (n_rows,).

    Raises
    ------
    InputError
        If no network is known between the chips of a row.
    """
    seconds = np.empty(len(rows))
    for members in alike_rows(rows):
        coefficients = {
            name: np.array([profiles[i].values[name] for i in members]) for name in COEFFICIENTS
        }
        seconds[members] = RowStep([rows[i] for i in members]).times(coefficients)[0]
    return seconds


def _at(wanted: str, row: Measurement) -> Profile:
    """The row's profile at its place."""
    chosen = profile_of(row, wanted)
    return _resolved(chosen.name if wanted == "auto" else wanted, place_of(row, chosen.as_of))


@cache
def _resolved(name: str, place: Place) -> Profile:
    """Rows of one place share one profile, so that its unknowns are taken once."""
    return profile(name).at(place)
