"""What repeated tokens, and parameters beyond what the data feeds, are worth.

The worth w of x, both as logarithms, is x up to a knee and then bends towards a ceiling. It is
concave, so a loss that falls with w is convex: its tangent monomials lie below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Curve", "Worth"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
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
class Worth:
    """The knees of some choices; the others count in full."""

    curved: Mapping[str, Curve]

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

    def row(self, place: int) -> Worth:
        """That of one budget."""
        here = slice(place, place + 1)
        return Worth({k: Curve(c.knee[here], c.reach[here]) for k, c in self.curved.items()})

    def without(self, choice: str) -> Worth:
        """The same, one choice counting in full."""
        return Worth({each: curve for each, curve in self.curved.items() if each != choice})
