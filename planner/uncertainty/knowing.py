"""What knowing uncertain givens before choosing is worth: the expected value of information.

A choice made now is best on average; one made after everything is known is best at each draw. The
difference of what they cost is the value of perfect information (Raiffa and Schlaifer 1961). Of
one given alone it is taken from the mean cost of every choice at a value of the given, a cubic in
its quantile fitted by least squares (Strong, Oakley and Brennan 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Knowing", "frequent", "knowing"]

DEGREE = 3


@dataclass(frozen=True)
class Knowing:
    """Value of knowing all, and each given alone, in the unit of the output.

    `best` is the place of the choice that is best on average, `mean` its mean; `draws` are those
    at which every choice has a plan, on which all of it rests.
    """

    best: int
    mean: float
    all: float
    each: tuple[float, ...]
    draws: int


def knowing(costs: np.ndarray, shares: np.ndarray) -> Knowing | None:
    """From the costs of choices at draws, shape (n, k), and the draws' shares, shape (n, d).

    Less is better; a choice without a plan is nan. None where too few draws are left.
    """
    kept = np.isfinite(costs).all(axis=1)
    costs, shares = costs[kept], shares[kept]
    if len(costs) <= 4 * (DEGREE + 1):
        return None
    means = costs.mean(axis=0)
    best = int(means.argmin())
    every = float(means[best] - costs.min(axis=1).mean())
    each = tuple(_alone(costs, shares[:, i]) for i in range(shares.shape[1]))
    return Knowing(best, float(means[best]), max(every, 0.0), each, len(costs))


def _alone(costs: np.ndarray, share: np.ndarray) -> float:
    basis = np.polynomial.legendre.legvander(2 * share - 1, DEGREE)
    weights = np.linalg.lstsq(basis, costs, rcond=None)[0]
    fitted = basis @ weights
    return max(float(fitted.mean(axis=0).min() - fitted.min(axis=1).mean()), 0.0)


def frequent(choices: Sequence[str | None], most: int) -> list[tuple[str, float]]:
    """The choices with the share of all draws at which each is best, the most frequent first."""
    counted: dict[str, int] = {}
    for choice in choices:
        if choice is not None:
            counted[choice] = counted.get(choice, 0) + 1
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(name, count / len(choices)) for name, count in ranked[:most]]
