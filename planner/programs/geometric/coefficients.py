"""Expressions of the givens as one tape, walked at every solve for values and for slopes.

The slopes are derivatives to the logarithm of a given, d c / d ln p = p dc/dp, so that a given or a
coefficient that is zero needs no special case.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sp

from formulas.numerics.lowering import record
from formulas.numerics.slopes import slopes_along, values_along
from formulas.numerics.tape import Tape

__all__ = ["Coefficients"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


class Coefficients:
    """The distinct expressions among those registered, as one function of the givens."""

    def __init__(self, givens: Sequence[sp.Symbol]) -> None:
        self.givens = tuple(givens)
        self.expressions: list[sp.Expr] = []
        self._index: dict[sp.Expr, int] = {}

    def register(self, expression: sp.Expr) -> int:
        """The place of an expression in `values`; to be called before the first evaluation."""
        place = self._index.get(expression)
        if place is None:
            place = self._index[expression] = len(self.expressions)
            self.expressions.append(expression)
        return place

    def values(self, figures: Sequence[float]) -> Array:
        """Every expression at these figures for the givens.

        Raises ArithmeticError or ValueError where an expression has no value.
        """
        given = dict(zip(self._names, map(float, figures), strict=True))
        return np.array(list(values_along(self._tape, given).values()), dtype=np.float64)

    def slopes(self, figures: Sequence[float]) -> tuple[Indices, Indices, Array]:
        """`(place, given, p dc/dp)` for every pair that depends on each other, as three arrays."""
        given = dict(zip(self._names, map(float, figures), strict=True))
        along = slopes_along(self._tape, self._names, given)
        table = np.array([along[slot][0] for slot in self._tape.outputs.values()])
        places, givens = np.nonzero(table)
        return places, givens, table[places, givens]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The givens' own names, or numbers where two givens of different kinds share a name."""
        own = tuple(given.name for given in self.givens)
        return own if len(set(own)) == len(own) else tuple(f"_{i}" for i in range(len(own)))

    @cached_property
    def _tape(self) -> Tape:
        """The expressions as a tape, along which slopes are carried without symbolic derivatives.

        A hundred givens have thousands of those, which SymPy takes a second for; the tape takes
        milliseconds, once.
        """
        body = {str(i): each for i, each in enumerate(self.expressions)}
        if any(given.name != name for given, name in zip(self.givens, self._names, strict=True)):
            names = dict(zip(self.givens, map(sp.Symbol, self._names), strict=True))
            body = {i: each.xreplace(names) for i, each in body.items()}
        return record(body, {})
