"""Coefficients drawn from their standard errors, so that an answer can bear an interval.

The level of a term and its exponent are fitted to the same runs, far from one parameter and one
token, so they err together: with the size of the term at the centre of the runs known well, a
larger exponent goes with a larger level. Drawn apart, they would spread the term over orders of
magnitude.

Where a covariance is known it is used. Where only standard errors are, each exponent is drawn by
its own, and the logarithm of the level follows it by the logarithm of the centre of the fitted
range (the geometric mean of its ends), as if the term were known best there; what the standard
error of the level has beyond that is drawn apart, and where it has less, the level follows by as
much as it has. Errors of the rest are taken as independent. Levels are drawn as logarithms: a
level has the published value as its median and the published standard error as its standard
deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from planner.catalogue.laws import Covariance

__all__ = ["SLOPES", "drawn_values", "spread_of_level"]

# {exponent: (its level, the range it is read over, sign with which the level follows)}
SLOPES: Mapping[str, tuple[str, str, float]] = {
    "alpha_N": ("A_N", "n", 1.0),
    "beta_D": ("B_D", "d", 1.0),
    "a_size": ("k_size", "arithmetic", -1.0),
    "a_tokens": ("k_tokens", "arithmetic", -1.0),
}
LEVELS = frozenset(level for level, _, _ in SLOPES.values())
LEAST_EXPONENT = 1e-3
REDRAWN = 20

Step = Callable[[np.random.Generator], dict[str, float]]


def drawn_values(
    values: Mapping[str, float],
    errors: Mapping[str, float],
    covariance: Covariance | None,
    limits: Mapping[str, tuple[float, float]],
    count: int,
    rng: np.random.Generator,
) -> list[dict[str, float]]:
    """`count` sets of values; exponents that would not be positive are drawn again."""
    step = _joint(values, covariance) if covariance else _apart(values, errors, limits)
    drawn: list[dict[str, float]] = []
    for _ in range(REDRAWN * max(count, 1)):
        if len(drawn) == count:
            break
        found = {**values, **step(rng)}
        if all(found[x] > LEAST_EXPONENT for x in found if x in SLOPES):
            drawn.append(found)
    return drawn


def spread_of_level(value: float, error: float) -> float:
    """Standard deviation of the logarithm of a level with a median and a standard error."""
    return math.sqrt(math.log((1 + math.sqrt(1 + 4 * (error / value) ** 2)) / 2))


def _joint(values: Mapping[str, float], covariance: Covariance) -> Step:
    """Draws by a covariance of coordinates, logarithms among them."""
    spread = np.asarray(covariance.spread)
    weights, axes = np.linalg.eigh(np.asarray(covariance.correlation))
    root = spread[:, None] * axes * np.sqrt(np.maximum(weights, 0.0))

    def step(rng: np.random.Generator) -> dict[str, float]:
        moved = {}
        for name, shift in zip(covariance.of, root @ rng.standard_normal(len(spread)), strict=True):
            bare = name.removeprefix("ln ")
            moved[bare] = values[bare] * math.exp(shift) if bare != name else values[bare] + shift
        return moved

    return step


def _apart(
    values: Mapping[str, float],
    errors: Mapping[str, float],
    limits: Mapping[str, tuple[float, float]],
) -> Step:
    """Draws by standard errors, each level following its exponent about the centre of the range."""
    leading = {level: exponent for exponent, (level, _, _) in SLOPES.items() if exponent in errors}

    def step(rng: np.random.Generator) -> dict[str, float]:
        moved = {}
        for name, error in errors.items():
            if name not in leading:
                moved[name] = _moved(name, values[name], error, rng.standard_normal())
        for level, exponent in leading.items():
            if level not in values:
                continue
            _, key, sign = SLOPES[exponent]
            reach = math.log(_centre(limits, key)) if key in limits else 0.0
            if level in errors:
                own = spread_of_level(values[level], errors[level])
                reach = min(reach, own / errors[exponent])
                rest = math.sqrt(max(own**2 - (reach * errors[exponent]) ** 2, 0.0))
            else:
                rest = 0.0
            follow = sign * reach * (moved[exponent] - values[exponent])
            shift = follow + rest * rng.standard_normal()
            moved[level] = values[level] * math.exp(shift)
        return moved

    return step


def _moved(name: str, value: float, error: float, by: float) -> float:
    """A coefficient moved by so many standard errors, a level in its logarithm."""
    if name in LEVELS:
        return value * math.exp(spread_of_level(value, error) * by)
    return value + error * by


def _centre(limits: Mapping[str, tuple[float, float]], key: str) -> float:
    low, high = limits[key]
    return math.sqrt(low * high)
