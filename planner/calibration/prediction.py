"""What is expected of measured rows: the bound, the estimate, its band, in the rows' own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.calibration.features import features, predicted
from planner.calibration.ideal import bound_of
from planner.calibration.measurements import Measurement
from planner.calibration.profile import choose_profile

__all__ = ["Prediction", "predict"]

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
    wanted : a profile's name, or `auto`: the one that each row's chip and engine ask for.
    """
    found: list[Prediction] = []
    columns = features(rows)
    for i, row in enumerate(rows):
        profile, _ = choose_profile(wanted, row.chip.name)
        time = float(predicted(columns.take(np.array([i])), profile.values)[0])
        band = profile.band(BANDS.get(row.quantity, "tpot"))
        found.append(Prediction(bound_of(row), time, time * band.low, time * band.high))
    return found
