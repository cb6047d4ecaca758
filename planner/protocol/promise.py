"""Chance of keeping a promise: estimate against limit, log-normal with the error band."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import Annotated

from planner.protocol.document import Unit
from planner.text.tolerances import QUANTILE_90, REL_TOL

SURE_CHANCE, LIKELY = 0.9, 0.5  # min chance of a promise called sure, and of one called likely
# Newton search of a chance: limit and tolerance in standard deviations, and max iterations.
MAX_SIGMA, SIGMA_TOL, ROUNDS = 8.0, 1e-9, 60


@dataclass(frozen=True)
class PromiseChance:
    """A promised time: the estimate, its limit, and the chance that it holds.

    `word` says it: sure from nine in ten, likely from even odds, else unlikely, and broken where
    the estimate itself is beyond the limit. `chance` is null where nothing is known of the error.
    """

    promise: str
    value: float
    limit: float
    chance: Annotated[float, Unit("1")] | None
    word: str


def chance_word(chance: float | None, *, within: bool) -> str:
    """Word for the chance of a promise; without a chance `kept` if the estimate is `within`."""
    if not within:
        return "broken"
    if chance is None:
        return "kept"
    return "sure" if chance >= SURE_CHANCE else "likely" if chance >= LIKELY else "unlikely"


def sum_chance(limit: float, parts: Sequence[tuple[float, float, float]]) -> float:
    """Chance that a sum of times is at most `limit` [s].

    Each part is an estimate [s] with the ends of its band as ratios, a tenth of runs below the one,
    a tenth above the other; times between them are log-normal, and of several all are off alike.
    """
    logs = [
        (log(time) + (log(low) + log(high)) / 2, (log(high) - log(low)) / (2 * QUANTILE_90))
        for time, low, high in parts
        if time > 0
    ]
    if not logs:
        return 1.0
    deviations = 0.0
    # The logarithm of such a sum is convex and rises: Newton's steps stay on one side of the root.
    for _ in range(ROUNDS):
        late = [exp(middle + deviations * spread) for middle, spread in logs]
        off = log(sum(late) / limit)
        slope = sum(x * spread for x, (_, spread) in zip(late, logs, strict=True)) / sum(late)
        if slope == 0:
            return float(off <= REL_TOL)
        step = off / slope
        deviations = max(-MAX_SIGMA, min(deviations - step, MAX_SIGMA))
        if abs(step) < SIGMA_TOL:
            break
    return NormalDist().cdf(deviations)
