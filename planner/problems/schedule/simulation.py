"""An event simulation of departing batches: every request with its own arrival and departure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from planner.protocol.document import Unit

SEED = 20261124
BATCHES = 64  # whose means give the standard error
LEAST_BATCH = 64  # intervals
WITHOUT_END = 1e9  # seats, more than ever come in one interval


@dataclass(frozen=True)
class SimulatedTimes:
    """What the simulation gives, with the standard error of its mean (means of batches).

    `off` is the simulated mean over the closed form, less one.
    """

    mean: Annotated[float, Unit("s")]
    error: Annotated[float, Unit("s")]
    worst: Annotated[float, Unit("s")]
    requests: Annotated[int, Unit("seq")]
    off: Annotated[float, Unit("1")]


def simulated_intervals(
    per_interval: float, capacity: float, requests: int
) -> tuple[float, float, float, int]:
    """Mean time, its standard error, the longest [intervals], and how many requests there were.

    Requests arrive at random moments and board in their order, at most `capacity` with each
    departure; a tenth of the time is let pass before the first that counts.
    """
    seats = min(capacity, WITHOUT_END)
    rng = np.random.default_rng(SEED)
    spans = max(LEAST_BATCH, round(requests / per_interval / BATCHES))
    queue: np.ndarray = np.empty(0)  # ages of those left behind, oldest first [intervals]
    means, counts, longest = [], [], 0.0
    for number in range(-max(1, BATCHES // 10), BATCHES):
        arriving = rng.poisson(per_interval, spans)
        moments = np.sort(np.repeat(np.arange(spans), arriving) + rng.random(arriving.sum()))
        waiting = np.concatenate([queue, moments])
        left = len(queue) + np.cumsum(arriving - seats, dtype=float)
        left -= np.minimum(np.minimum.accumulate(left), 0.0)
        boarded = len(queue) + np.cumsum(arriving) - left  # by each departure, since the start
        gone = int(boarded[-1])
        departure = 1 + np.searchsorted(boarded, np.arange(gone), side="right")
        times = departure + 1 - waiting[:gone]
        queue = waiting[gone:] - spans
        if number >= 0 and gone:
            means.append(times.mean())
            counts.append(gone)
            longest = max(longest, float(times.max()))
    weights = np.array(counts) / sum(counts)
    mean = float(weights @ means)
    error = float(np.sqrt(np.sum((weights * (np.array(means) - mean)) ** 2)))
    return mean, error, longest, sum(counts)
