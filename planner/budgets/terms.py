"""A scaling law as a geometric program sees it: a floor, and monomials in size and tokens.

`loss = floor + (sum of the monomials) ** power`. With `power` 1 the requirement `loss <= L` reads
`sum <= L - floor`; Kaplan's form has its exponent outside, and reads `sum <= (L - floor) **
(1 / power)`. Either way the left side is a posynomial and the right side a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Term", "Terms"]


@dataclass(frozen=True)
class Term:
    """`coefficient * n**size * d**tokens`, n in active parameters and d in tokens.

    Attributes
    ----------
    coefficient
        Value at one parameter and one token.
    size, tokens
        Exponents of active parameters and of tokens; 0 where the term does not depend on it.
    """

    coefficient: float
    size: float
    tokens: float

    def __call__(self, n: np.ndarray | float, d: np.ndarray | float) -> np.ndarray:
        """The monomial at sizes and tokens, broadcast."""
        return self.coefficient * np.asarray(n) ** self.size * np.asarray(d) ** self.tokens


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

    def loss(self, n: np.ndarray | float, d: np.ndarray | float) -> np.ndarray:
        """The loss [nat] that floor and monomials add up to."""
        total = sum(np.asarray(term(n, d)) for term in self.terms)
        return self.floor + np.asarray(total) ** self.power

    def limit(self, loss: float) -> float:
        """What the sum of the monomials may be at most for a loss [nat]; 0 at the floor."""
        return max(loss - self.floor, 0.0) ** (1 / self.power)

    @property
    def exponents(self) -> Sequence[tuple[float, float]]:
        """(exponent of size, exponent of tokens) of each monomial, in order."""
        return [(term.size, term.tokens) for term in self.terms]
