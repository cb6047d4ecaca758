"""Error bands of the times of a page's pools, and their inputs outside the measured rows."""

from __future__ import annotations

from base64 import b64encode
from math import log
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.catalogue.coefficient_spread import DISTANCE_ASSUMED, DISTANCE_POOLED, IN_SAMPLE, NOISE
from planner.catalogue.hull import MAX_EXTRAPOLATION, HullDimension, added_deviation, dimensions
from planner.catalogue.profile import COEFFICIENTS, NEUTRAL
from planner.problems.serving.deployment.beyond_fit import TIMES, place_names
from planner.problems.serving.search import promise_limits
from planner.problems.serving.step.binding import engine_values
from planner.problems.serving.step.shares import DIGITS, REST
from planner.protocol import promise
from planner.protocol.plan import MIN_SHOWN_SHARE
from planner.text.tolerances import QUANTILE_90, REL_TOL

if TYPE_CHECKING:
    from planner.catalogue.profile import Profile
    from planner.problems.serving.live.pool_rows import PoolRows

# Constants shared by all pools, under their names in the scripts.
CONSTANTS = {
    "rest": REST, "noise": NOISE, "tenth": QUANTILE_90, "digits": 10**DIGITS,
    "least": MIN_SHOWN_SHARE,
    "times": TIMES, "adds": {time: dict(added_deviation(time)) for time in TIMES},
    "lower": [promise_limits.STEP, promise_limits.MIN_RATIO], "banded": promise_limits.BAND_TIMES,
    "search": [promise.MAX_SIGMA, promise.ROUNDS, promise.SIGMA_TOL], "sure": promise.SURE_CHANCE,
    "likely": promise.LIKELY, "same": REL_TOL,
}  # fmt: skip


def mode_times(mode: str) -> tuple[str, ...]:
    """Times that a pool of this mode has."""
    return tuple(time for time in TIMES if mode != ("prefill" if time == "tpot" else "decode"))


def pool_bands(rows: PoolRows) -> dict[str, Any] | None:
    """Inputs of a pool's error bands for the page; None for a bound, which has no bands.

    Coefficients by their symbols with what switches each off and the covariance of their
    logarithms; logarithms of the range of accepted drafts.
    """
    task, profile = rows.task, rows.task.profile
    if task.uses_bound:
        return None
    counted = _counted(rows)
    covariance = profile.covariance
    return {
        "names": [next(iter(engine_values({COEFFICIENTS[i]: 0.0}))) for i in counted],
        "over": [bool(NEUTRAL[COEFFICIENTS[i]]) for i in counted],
        "covariance": "" if covariance is None else _triangle(covariance[np.ix_(counted, counted)]),
        "accepted": [log(end) for end in task.accepted_range] if task.drafts else None,
    }


def time_bands(rows: PoolRows) -> dict[str, Any]:
    """Limits of the band of each time, and the standard deviations required by promises.

    Neither for a bound. Kinds of distance are those that hold of every layout.
    """
    task = rows.task
    ends = {} if task.uses_bound else {x: _ends(task.profile, x) for x in mode_times(task.mode)}
    chance = None if task.chance is None else NormalDist().inv_cdf(task.chance)
    kinds = [task.profile.regime, *task.profile.kinds]
    return {"spreads": ends, "deviations": chance, "kinds": kinds}


def hull_dimensions(rows: PoolRows) -> list[dict[str, Any]]:
    """The dimensions of a pool's hull in their order; empty for a bound, which rests on no row.

    Of a range both ends and those up to which it counts as inside, of levels those that lie
    inside, names only where they lie outside; what rests on it as places of coefficients.
    """
    task = rows.task
    hull = None if task.uses_bound else task.profile.hull
    if hull is None:
        return []
    counted = [COEFFICIENTS[i] for i in _counted(rows)]

    def described(dimension: HullDimension, words: str) -> dict[str, Any]:
        of = [k for k, name in enumerate(counted) if dimension.holds(name)]
        return {"name": dimension.name, "words": words, "prompts": dimension.prompts, "of": of,
                "widths": [hull.widths.get(counted[k], 1.0) for k in of],
                "ranged": bool(dimension.unit), "regime": dimension.regime,
                "beside": list(dimension.beside)}  # fmt: skip

    made = []
    names = place_names(task)
    for name, dimension in dimensions().items():
        if name in names:
            if not hull.covers(name, names[name]):
                made.append(described(dimension, dimension.asking(names[name])))
        elif dimension.levels:
            inside = [n for n, level in enumerate(dimension.levels) if hull.covers(name, level)]
            made.append({**described(dimension, dimension.words), "levels": inside})
        elif name in hull.ranges:
            low, high = hull.ranges[name]
            made.append({**described(dimension, dimension.words), "ends": [low, high],
                         "inside": [low / MAX_EXTRAPOLATION,
                             high * MAX_EXTRAPOLATION]})  # fmt: skip
    return made


def _triangle(matrix: np.ndarray) -> str:
    return b64encode(matrix[np.tril_indices(len(matrix))].astype("<f8").tobytes()).decode()


def _counted(rows: PoolRows) -> list[int]:
    return [i for i, name in enumerate(COEFFICIENTS) if rows.step.rests_on(name)]


def _ends(profile: Profile, time: str) -> dict[str, list[float]]:
    """Low and high end in standard deviations and the scatter by kind of distance, "" the nearest.

    Of a profile that knows no spread the logarithms of its band, which nothing widens.
    """
    spread, band = profile.coefficient_spread, profile.bands[time]
    if spread is None or profile.covariance is None:
        return {"plain": [log(band.low), log(band.high)]}
    base = profile.regime if profile.regime in (DISTANCE_POOLED, DISTANCE_ASSUMED) else IN_SAMPLE
    nearest = [kind for kind in (base, IN_SAMPLE) if time in spread.quantiles.get(kind, {})]
    if not nearest:
        return {"plain": [log(band.low), log(band.high)]}
    kinds = {profile.regime, *profile.kinds, *(x.regime for x in dimensions().values())}
    names = {"": nearest[0], **{kind: kind for kind in sorted(kinds)}}
    every = {kind: spread.quantiles.get(name, {}) for kind, name in names.items()}
    return {kind: list(ends[time]) for kind, ends in every.items() if time in ends}
