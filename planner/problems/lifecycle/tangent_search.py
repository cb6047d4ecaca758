"""Where the tangents of a price settle: the size at which the optimum of a tangent touches it.

Beside a size that is too small the optimum of the tangent is larger, beside one too large smaller.
Steps from optimum to optimum, and secants, arrive fast where the price bends little. Where memory
or a promise begins to hold, the price has a kink: the steps jump across it, and the optimum is
found between the tangents of both sides. Above some size the layout may serve nothing at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.text.errors import SolverError

STEPS = 40  # before the two sides are sought
SLOWEST = 0.5  # of what is left after a step to what was before, for such steps to go on
SAME = 1e-11  # change of ln N at which tangents have settled
CLOSED = 1e-9  # distance in ln N of the two sides of a kink
HALVINGS = 80
FARTHEST = 0.02  # first step towards the other side, if it is not yet known; then doubled
REACH = 8  # doublings
LONGEST = 0.5  # of a step: farther off the member is no longer what it was
OVER = 0.01  # of the distance to the nearer side


@dataclass(frozen=True)
class Tangent:
    """A tangent of the price at `at` = ln N, and how far from there its program's optimum lies."""

    at: float
    price: float
    slope: float
    moved: float


Look = Callable[[float], Tangent | None]


def bracketing_tangents(
    look: Look, first: float, within: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[Tangent, Tangent | None]:
    """The tangents on both sides of the optimum, the same twice where the price is smooth.

    Parameters
    ----------
    look
        The tangent at a size in logarithms; None where the layout does not serve it, which is so
        for every larger one too.
    first
        Where to begin.
    within
        The sizes that are looked at, in logarithms; an optimum beyond is taken to lie at the end.

    Returns
    -------
    The second is None where the optimum is the largest size that the layout serves.

    Raises
    ------
    SolverError
        If no size near the first one is served, or the optimum is nowhere near it.
    """
    here = look(first)
    for k in range(REACH):
        if here is not None:
            break
        here = look(max(first - FARTHEST * 2**k / 16, within[0]))
    if here is None:
        raise SolverError("the layout serves no size near that of its plan")
    seen, step = [here], here.moved
    for _ in range(STEPS):
        if abs(here.moved) < SAME:
            return here, here
        ahead = look(here.at + min(max(step, -LONGEST), LONGEST))
        if ahead is None:
            break
        seen.append(ahead)
        if abs(ahead.moved) > SLOWEST * abs(here.moved):
            break
        step = ahead.moved * (ahead.at - here.at) / (here.moved - ahead.moved)
        here = ahead
    return _closed(look, *_bracket(look, seen, within))


def tangent_at_kink(
    low: Tangent, high: Tangent | None, moved: Callable[[Tangent, float], float]
) -> Tangent:
    """The tangent at a kink whose program's optimum is the kink itself.

    `moved` says how far the optimum lies from a touch with another slope.
    """
    if high is None or high is low:
        return low
    gentle, steep = low.slope, high.slope
    for _ in range(HALVINGS):
        slope = (gentle + steep) / 2
        if slope in (gentle, steep):
            break
        gentle, steep = (slope, steep) if moved(low, slope) > 0 else (gentle, slope)
    return Tangent(low.at, low.price, slope, moved(low, slope))


def _bracket(
    look: Look, seen: list[Tangent], within: tuple[float, float]
) -> tuple[Tangent, Tangent | None, float]:
    """The nearest sizes known to be too small and too large, and where the latter is."""
    low = max((t for t in seen if t.moved > 0), key=lambda t: t.at, default=None)
    high = min((t for t in seen if t.moved <= 0), key=lambda t: t.at, default=None)
    step = FARTHEST
    for _ in range(REACH):
        if low is not None:
            break
        assert high is not None  # one of both was seen
        found = look(max(high.at - step, within[0]))
        if found is not None and abs(found.moved) < SAME:
            return found, found, found.at
        if found is not None and found.moved <= 0:
            high = found
        else:
            low = found
        step *= 2
    if low is None:
        raise SolverError("the size of the model does not settle: every smaller one is better")
    end = high.at if high is not None else low.at + step
    for _ in range(REACH):
        if high is not None:
            break
        end = min(end, within[1])
        found = look(end)
        if found is None:
            break
        if abs(found.moved) < SAME:
            return found, found, end
        if found.moved <= 0:
            high = found
        else:
            low, step = found, 2 * step
            end = found.at + step
    return low, high, end


def _closed(
    look: Look, low: Tangent, high: Tangent | None, end: float
) -> tuple[Tangent, Tangent | None]:
    """The two sides brought together."""
    for turn in range(3 * HALVINGS):
        if end - low.at < CLOSED:
            break
        found = look(at := _between(turn, low, high, end))
        if found is None:
            high, end = None, at
        elif abs(found.moved) < SAME:
            return found, found
        elif found.moved > 0:
            low = found
        else:
            high, end = found, at
    return low, high


def _between(turn: int, low: Tangent, high: Tangent | None, end: float) -> float:
    """Where to look: at a kink where the tangents cross, else by secants; halves in turn."""
    middle = (low.at + end) / 2
    if high is None or turn % 3 == 2:
        return middle
    if turn % 3 == 1:
        at = low.at + (end - low.at) * low.moved / (low.moved - high.moved)
    elif high.slope > low.slope:
        apart = math.log(high.price / low.price) + low.slope * low.at - high.slope * high.at
        at = apart / (low.slope - high.slope)
        near = min(at - low.at, end - at)
        # A little over the crossing, so that the farther side comes nearer too.
        over = max(OVER * near, CLOSED / 4)
        at += over if at - low.at < end - at else -over
    else:
        return middle
    return at if low.at < at < end else middle
