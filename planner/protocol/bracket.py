"""Bracketing search for the first change of sign, with several points evaluated together.

A difference is above zero where things are as they are at the near end, below zero where they have
changed, and not a number where there is nothing to compare. The search walks outwards until it
sees a change, then closes in on it. Who calls it says where to look next and when it is enough.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

ROUNDS = 200  # far above what halving a bracket of floats can take


@dataclass(frozen=True)
class Bracket:
    """The last point before a change and the first one after it.

    Args:
        near, ahead: where nothing has changed, and the difference there.
        far, behind: where it has, and the difference there; `far` is infinite while none is seen.
        stopped: whether a point without a difference ended the search.
        turn: rounds of the search so far.
    """

    near: float
    far: float = math.inf
    ahead: float = 1.0
    behind: float = -1.0
    stopped: bool = False
    turn: int = 0

    @property
    def closed(self) -> bool:
        """True if a change was found."""
        return not math.isinf(self.far)


def find_bracket(
    difference: Callable[[Sequence[float]], Sequence[float]],
    start: Bracket,
    propose: Callable[[Bracket], Sequence[float]],
    enough: Callable[[Bracket], bool],
) -> Bracket:
    """The bracket of the first change that is seen between `start.near` and `start.far`.

    Args:
        difference: at several points, evaluated together.
        propose: the points to look at next, from near to far; none ends the search.
        enough: whether a bracket is close.
    """

    def differences(points: Sequence[tuple[int, float]]) -> Sequence[float]:
        return difference([point for _, point in points])

    return find_brackets(differences, [start], [propose], enough)[0]


def find_brackets(
    differences: Callable[[Sequence[tuple[int, float]]], Sequence[float]],
    starts: Sequence[Bracket],
    proposes: Sequence[Callable[[Bracket], Sequence[float]]],
    enough: Callable[[Bracket], bool],
    rounds: int = ROUNDS,
) -> list[Bracket]:
    """The brackets of several searches that go on in step: `find_bracket` of each of them.

    Args:
        differences: at several points (number of the search, point), evaluated together.
    """
    brackets = list(starts)
    for _ in range(rounds):
        points: dict[int, Sequence[float]] = {}
        for number, bracket in enumerate(brackets):
            if not bracket.stopped and not enough(bracket):
                points[number] = proposes[number](bracket)
        points = {number: values for number, values in points.items() if len(values)}
        if not points:
            break
        every = [(number, point) for number, values in points.items() for point in values]
        values = iter(differences(every))
        for number, looked_at in points.items():
            here = [next(values) for _ in looked_at]
            bracket = brackets[number]
            narrowed = _narrowed(bracket, looked_at, here)
            brackets[number] = replace(narrowed, turn=bracket.turn + 1)
    return brackets


def _narrowed(bracket: Bracket, points: Sequence[float], values: Sequence[float]) -> Bracket:
    for point, value in zip(points, values, strict=True):
        if math.isnan(value):
            return replace(bracket, stopped=True)
        if value < 0:
            return replace(bracket, far=float(point), behind=float(value))
        bracket = replace(bracket, near=float(point), ahead=float(value))
    return bracket


def middle(bracket: Bracket) -> Sequence[float]:
    """The middle of a bracket in ratio: bisection in logarithms."""
    return (math.sqrt(bracket.near * bracket.far),)


def within_factor(factor: float) -> Callable[[Bracket], bool]:
    """Return a test: True if a closed bracket has its ends within `factor` of each other."""
    return lambda bracket: (
        bracket.closed and (abs(math.log(bracket.far / bracket.near)) <= math.log(factor))
    )
