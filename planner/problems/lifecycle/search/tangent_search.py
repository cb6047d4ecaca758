"""Search for the size that is the optimum of the price tangent taken there.

Beside a size that is too small the optimum of the tangent is larger, beside one too large smaller.
Steps from optimum to optimum, and secants, arrive fast where the price bends little. Where memory
or a promise begins to hold, the price has a kink: the steps jump across it, and the optimum is
sought between the tangents of both sides. Above some size the layout may serve nothing at all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.text.errors import SolverError

STEPS = 40  # before the two sides are sought
MAX_RATIO = 0.5  # max |offset| after a secant step over that before it; above, these steps end
POINT_TOLERANCE = 1e-11  # ln N; offset of a settled tangent
CLOSED = 1e-9  # distance in ln N of the two sides of a kink
# ln N from the largest size served to one too large: nearer, solvers fail and slopes are noise.
SIZE_TOL = 1e-7
MAX_BISECTIONS = 80
FIRST_STEP = 0.02  # first step towards the other side, if it is not yet known; then doubled
MAX_DOUBLINGS = 8  # doublings
MAX_LOG_STEP = 0.5  # ln N, longest secant step: farther off, the scaled member is another model
OVERSHOOT = 0.01  # of the distance to the nearer side


@dataclass(frozen=True)
class Tangent:
    """Price tangent at `at` = ln N; `offset` is the distance to the optimum of its program."""

    at: float
    price: float
    slope: float
    offset: float


TangentOracle = Callable[[float], Tangent | None]


def bracketing_tangents(
    look: TangentOracle, first: float, within: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[Tangent, Tangent | None]:
    """The tangents on both sides of the optimum, the same twice where the price is smooth.

    Args:
        look: The tangent at a size in logarithms; None where the layout does not serve it, which is
            so for every larger one too.
        first: Where to begin.
        within: The sizes that are looked at, in logarithms; an optimum beyond is taken to lie at
            the end.

    The second is None where the optimum is the largest size that the layout serves.

    Raises SolverError if no size near the first one is served, or the optimum is nowhere near it.
    """
    here = look(first)
    for k in range(MAX_DOUBLINGS):
        if here is not None:
            break
        here = look(max(first - FIRST_STEP * 2**k / 16, within[0]))
    if here is None:
        raise SolverError("the layout serves no size near that of its plan")
    seen, step = [here], here.offset
    for _ in range(STEPS):
        if abs(here.offset) < POINT_TOLERANCE:
            return here, here
        ahead = look(here.at + min(max(step, -MAX_LOG_STEP), MAX_LOG_STEP))
        if ahead is None:
            break
        seen.append(ahead)
        if abs(ahead.offset) > MAX_RATIO * abs(here.offset):
            break
        step = ahead.offset * (ahead.at - here.at) / (here.offset - ahead.offset)
        here = ahead
    return _closed(look, *_bracket(look, seen, within))


def tangent_at_kink(
    low: Tangent, high: Tangent | None, offset: Callable[[Tangent, float], float]
) -> Tangent:
    """The tangent at a kink whose program's optimum is the kink itself.

    `offset` says how far the optimum lies from a touch with another slope.
    """
    if high is None or high is low:
        return low
    gentle, steep = low.slope, high.slope
    for _ in range(MAX_BISECTIONS):
        slope = (gentle + steep) / 2
        if slope in (gentle, steep):
            break
        gentle, steep = (slope, steep) if offset(low, slope) > 0 else (gentle, slope)
    return Tangent(low.at, low.price, slope, offset(low, slope))


def _bracket(
    look: TangentOracle, seen: list[Tangent], within: tuple[float, float]
) -> tuple[Tangent, Tangent | None, float]:
    """The nearest sizes known to be too small and too large, and where the latter is."""
    low = max((t for t in seen if t.offset > 0), key=lambda t: t.at, default=None)
    high = min((t for t in seen if t.offset <= 0), key=lambda t: t.at, default=None)
    step = FIRST_STEP
    for _ in range(MAX_DOUBLINGS):
        if low is not None:
            break
        assert high is not None  # `seen` has a tangent on at least one side
        tangent = look(max(high.at - step, within[0]))
        if tangent is not None and abs(tangent.offset) < POINT_TOLERANCE:
            return tangent, tangent, tangent.at
        if tangent is not None and tangent.offset <= 0:
            high = tangent
        else:
            low = tangent
        step *= 2
    if low is None:
        raise SolverError("the size of the model does not settle: every smaller one is better")
    end = high.at if high is not None else low.at + step
    for _ in range(MAX_DOUBLINGS):
        if high is not None:
            break
        end = min(end, within[1])
        tangent = look(end)
        if tangent is None:
            break
        if abs(tangent.offset) < POINT_TOLERANCE:
            return tangent, tangent, end
        if tangent.offset <= 0:
            high = tangent
        else:
            low, step = tangent, 2 * step
            end = tangent.at + step
    return low, high, end


def _closed(
    look: TangentOracle, low: Tangent, high: Tangent | None, end: float
) -> tuple[Tangent, Tangent | None]:
    """The two sides brought together."""
    for turn in range(3 * MAX_BISECTIONS):
        if end - low.at < (CLOSED if high is not None else SIZE_TOL):
            break
        tangent = look(at := _between(turn, low, high, end))
        if tangent is None:
            high, end = None, at
        elif abs(tangent.offset) < POINT_TOLERANCE:
            return tangent, tangent
        elif tangent.offset > 0:
            low = tangent
        else:
            high, end = tangent, at
    return low, high


def _between(turn: int, low: Tangent, high: Tangent | None, end: float) -> float:
    """Next ln N to try: in turn the tangents' crossing at a kink, a secant step, the middle."""
    middle = (low.at + end) / 2
    if high is None or turn % 3 == 2:
        return middle
    if turn % 3 == 1:
        at = low.at + (end - low.at) * low.offset / (low.offset - high.offset)
    elif high.slope > low.slope:
        apart = math.log(high.price / low.price) + low.slope * low.at - high.slope * high.at
        at = apart / (low.slope - high.slope)
        near = min(at - low.at, end - at)
        # A little over the crossing, so that the farther side comes nearer too.
        over = max(OVERSHOOT * near, CLOSED / 4)
        at += over if at - low.at < end - at else -over
    else:
        return middle
    return at if low.at < at < end else middle
