"""A scaling law as a geometric program sees it: a floor, and monomials in size and tokens.

`loss = floor + (sum of the monomials) ** power`. With `power` 1 the requirement `loss <= L` reads
`sum <= L - floor`; Kaplan's form has its exponent outside, and reads `sum <= (L - floor) **
(1 / power)`. Either way the left side is a posynomial and the right side a number.

Repeated tokens, and parameters beyond what the data feeds, count for less: the effective amount,
both as logarithms, is the amount up to a knee and then bends towards a ceiling. It is concave, so
a loss that falls with it is convex: its tangent monomials lie below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp] | npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Saturation:
    """One knee: x up to `knee` counts in full, beyond it at most `reach` knees more.

    `knee` (P,) is a logarithm of tokens or parameters, `reach` (P,) is R_half or R_excess. The
    value is that of `repetition_worth` and `excess_worth` in `formulas`.
    """

    knee: Array
    reach: Array

    def at(self, x: Array) -> tuple[Array, Array, Array]:
        """Worth at x (P,), its slope and its second derivative, all in logarithms."""
        over = np.expm1(np.maximum(x - self.knee, 0.0))
        with np.errstate(over="ignore"):
            left = np.exp(-over / self.reach)
        whole = 1.0 + self.reach * (1.0 - left)
        slope = (1.0 + over) * left / whole
        bend = slope * (1.0 - (1.0 + over) / self.reach) - slope**2
        beyond = x > self.knee
        value = np.where(beyond, self.knee + np.log(whole), x)
        return value, np.where(beyond, slope, 1.0), np.where(beyond, bend, 0.0)

    def inverse(self, worth: Array) -> Array:
        """The x of a worth; infinite at and above the ceiling."""
        over = np.expm1(np.maximum(worth - self.knee, 0.0)) / self.reach
        with np.errstate(divide="ignore", invalid="ignore"):
            x = self.knee + np.log1p(-self.reach * np.log1p(-np.minimum(over, 1.0)))
        return np.where(worth <= self.knee, worth, x)

    @property
    def ceiling(self) -> Array:
        """The worth that nothing reaches."""
        return self.knee + np.log1p(self.reach)


@dataclass(frozen=True)
class EffectiveAmounts:
    """The knees of some choices; the others count in full."""

    curved: Mapping[str, Saturation]

    def at(self, choice: str, x: Array) -> tuple[Array, Array, Array]:
        """Worth, slope and second derivative of one choice."""
        if choice in self.curved:
            return self.curved[choice].at(x)
        return x, np.ones_like(x), np.zeros_like(x)

    def all(self, choices: tuple[str, ...], point: Array) -> tuple[Array, Array, Array]:
        """The same for all choices at points (P, J)."""
        columns = [self.at(each, point[:, j]) for j, each in enumerate(choices)]
        value, rate, bend = (np.stack(each, axis=1) for each in zip(*columns, strict=True))
        return value, rate, bend

    def rows(self, index: Rows) -> EffectiveAmounts:
        """Those of some budgets, by their numbers or by a mask."""
        curves = self.curved.items()
        return EffectiveAmounts({k: Saturation(c.knee[index], c.reach[index]) for k, c in curves})

    def without(self, choice: str) -> EffectiveAmounts:
        """The same, one choice counting in full."""
        return EffectiveAmounts(
            {each: curve for each, curve in self.curved.items() if each != choice}
        )


Number = np.ndarray | float


@dataclass(frozen=True)
class Term:
    """`coefficient * n**size * d**tokens * d_rl**rl`, in active parameters and in tokens.

    Attributes
    ----------
    coefficient
        Value at one parameter, one token and one token of reinforcement learning.
    size, tokens, rl
        Exponents of active parameters, of tokens of pre-training and of reinforcement learning;
        0 where the term does not depend on it.
    """

    coefficient: float
    size: float
    tokens: float
    rl: float = 0.0

    def __call__(self, n: Number, d: Number, d_rl: Number = 1.0) -> np.ndarray:
        """The monomial at sizes and tokens, broadcast."""
        of_size = self.coefficient * np.asarray(n, float) ** self.size
        return of_size * np.asarray(d, float) ** self.tokens * np.asarray(d_rl, float) ** self.rl


@dataclass(frozen=True)
class Terms:
    """A law, or its tangent at a point, as a floor and monomials.

    Attributes
    ----------
    floor
        Loss [nat] that no size and no tokens remove, at the sparsity asked for.
    terms
        The monomials.
    power
        Exponent outside the sum; 1 but for Kaplan's form.
    """

    floor: float
    terms: tuple[Term, ...]
    power: float = 1.0

    def loss(self, n: Number, d: Number, d_rl: Number = 1.0) -> np.ndarray:
        """The loss [nat] that floor and monomials add up to."""
        return self.floor + self.excess(n, d, d_rl)

    def excess(self, n: Number, d: Number, d_rl: Number = 1.0) -> np.ndarray:
        """The loss [nat] above the floor, to full precision however small."""
        total = sum(np.asarray(term(n, d, d_rl)) for term in self.terms)
        return np.asarray(total) ** self.power

    def limit(self, loss: float) -> float:
        """What the sum of the monomials may be at most for a loss [nat]; 0 at the floor."""
        return max(loss - self.floor, 0.0) ** (1 / self.power)
