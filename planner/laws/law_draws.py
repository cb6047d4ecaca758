"""Coefficients sampled from their standard errors, to give an answer an error interval.

The level of a term and its exponent are fitted to the same runs, far from one parameter and one
token, so they err together: with the size of the term at the centre of the runs known well, a
larger exponent goes with a larger level. Drawn apart, they would spread the term over orders of
magnitude.

Where a covariance is known it is used, levels as logarithms. Where only standard errors are, the
loss at the centre of the fitted ranges (the geometric mean of their ends) is held, as what the
runs tell best: each exponent is drawn by its own error and the level follows so that its term
stays at the centre; where the floor is drawn higher, the terms at the centre are that much lower,
in proportion. The errors of the levels are then not used: they say the same once more. Errors of
what is neither level, exponent nor floor are taken as independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.scaling_laws import Covariance
from planner.text.errors import FieldError

if TYPE_CHECKING:
    from planner.laws.scaling_law import ScalingLaw

# {exponent: (its level, key of its input's range, sign of the shift of the level)}
SLOPES: Mapping[str, tuple[str, str, float]] = {
    "alpha_N": ("A_N", "n", 1.0),
    "beta_D": ("B_D", "d", 1.0),
    "a_size": ("k_size", "arithmetic", -1.0),
    "a_tokens": ("k_tokens", "arithmetic", -1.0),
}
LEVEL_COEFFICIENTS = frozenset(level for level, _, _ in SLOPES.values())
MIN_EXPONENT, MAX_EXPONENT = 1e-4, 5.0  # limits of an exponent; draws outside are rejected
MIN_REDUCIBLE_SHARE = 0.1  # of the terms at the centre, however high the floor is drawn
MAX_REDRAWS = 20

Step = Callable[[np.random.Generator], dict[str, float]]


def sample_values(law: ScalingLaw, count: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """`count` sets of values; those that make no law, as with an exponent below zero, are left.

    Raises FieldError if most of them make none.
    """
    step = _joint(law.values, law.covariance) if law.covariance else _independent_draws(law)
    candidates = ({**law.values, **step(rng)} for _ in range(MAX_REDRAWS * max(count, 1)))
    drawn = list(islice(filter(_sound, candidates), count))
    if len(drawn) < count:
        raise FieldError(
            ("law", "its standard errors are so large that most laws drawn from them are none: an "
                    "exponent below zero, or fewer experts at the limit than at one"),
        )  # fmt: skip
    return drawn


def block_diagonal_covariance(
    dense: Covariance | None, routing: Covariance | None, routed: Iterable[str]
) -> Covariance | None:
    """Both covariances side by side, errors of one law independent of those of the other.

    None where the dense law has none; of the routed one, those coefficients that are kept.
    """
    if dense is None or routing is None:
        return dense
    names = {*routed}
    rows = [i for i, x in enumerate(routing.of) if x.removeprefix("ln ") in names]
    first, second = len(dense.of), len(rows)
    return Covariance(
        of=(*dense.of, *(routing.of[i] for i in rows)),
        spread=(*dense.spread, *(routing.spread[i] for i in rows)),
        correlation=(
            *((*row, *(0.0,) * second) for row in dense.correlation),
            *((*(0.0,) * first, *(routing.correlation[i][j] for j in rows)) for i in rows),
        ),
        source=f"{dense.source}; {routing.source}",
    )


def unusable_exponents(law: ScalingLaw) -> tuple[str, ...]:
    """Exponents whose errors cannot be used, as the range that their levels follow is unsaid."""
    slopes = [(x, *SLOPES[x]) for x in law.errors if x in SLOPES]
    return tuple(x for x, level, key, _ in slopes if level in law.values and key not in law.limits)


def _sound(values: Mapping[str, float]) -> bool:
    low, high = values.get("E_first", 0.0), values.get("E_limit", math.inf)
    powers = [x for name, x in values.items() if name in SLOPES or name.endswith("_route")]
    return all(MIN_EXPONENT < x < MAX_EXPONENT for x in powers) and high > 2 * low


def _exp(x: float) -> float:
    return math.exp(min(x, 600.0))


def _joint(values: Mapping[str, float], covariance: Covariance) -> Step:
    """Draws by a covariance of coordinates, logarithms among them."""
    spread = np.asarray(covariance.spread)
    weights, axes = np.linalg.eigh(np.asarray(covariance.correlation))
    root = spread[:, None] * axes * np.sqrt(np.maximum(weights, 0.0))

    def step(rng: np.random.Generator) -> dict[str, float]:
        moved = {}
        for name, shift in zip(covariance.of, root @ rng.standard_normal(len(spread)), strict=True):
            bare = name.removeprefix("ln ")
            moved[bare] = values[bare] * _exp(shift) if bare != name else values[bare] + shift
        return moved

    return step


def _independent_draws(law: ScalingLaw) -> Step:
    """Draws by standard errors that hold the loss at the centre of the ranges."""
    values, errors, limits = law.values, law.errors, law.limits
    led = {SLOPES[x][0]: x for x in errors if x in SLOPES and SLOPES[x][1] in limits}
    reach = {}  # how far the logarithm of a level follows its exponent
    for level, exponent in led.items():
        _, key, sign = SLOPES[exponent]
        reach[level] = sign * math.log(math.sqrt(limits[key][0] * limits[key][1]))
    terms = {
        x: values[x] * math.exp(-reach[x] * values[led[x]]) for x in ("A_N", "B_D") if x in led
    }

    def step(rng: np.random.Generator) -> dict[str, float]:
        moved = {}
        for name, error in errors.items():
            if name not in led:
                value, by = values[name], rng.standard_normal()
                moved[name] = value + error * by
                if name in LEVEL_COEFFICIENTS:  # it errs in its logarithm
                    moved[name] = value * _exp(error / value * by)
        rise = moved.get("loss_min", 0.0) - values.get("loss_min", 0.0)
        left = max(1 - rise / sum(terms.values()), MIN_REDUCIBLE_SHARE) if terms else 1.0
        for level, exponent in led.items():
            if level in values:
                shift = reach[level] * (moved[exponent] - values[exponent])
                share = left if level in terms else 1.0
                moved[level] = values[level] * _exp(shift) * share
        return moved

    return step
