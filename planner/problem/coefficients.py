"""Expressions of the givens, compiled once to Python's `math` and evaluated at every solve.

The slopes are derivatives to the logarithm of a given, d c / d ln p = p dc/dp, so that a given or a
coefficient that is zero needs no special case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sp

from formulas.lowering import Tape, record
from formulas.slopes import slopes_along

__all__ = ["Coefficients", "compiled", "slope"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
STEPS = (sp.ceiling, sp.floor)
CORNERS = (sp.Max, sp.Min)


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
        return np.array(self._function(*figures), dtype=np.float64)

    def slopes(self, figures: Sequence[float]) -> tuple[Indices, Indices, Array]:
        """`(place, given, p dc/dp)` for every pair that depends on each other, as three arrays."""
        given = dict(zip(self._names, map(float, figures), strict=True))
        along = slopes_along(self._tape, self._names, given)
        table = np.array([along[slot][0] for slot in self._tape.outputs.values()])
        places, givens = np.nonzero(table)
        return places, givens, table[places, givens]

    @cached_property
    def _function(self) -> Callable[..., list[float]]:
        return compiled(self.givens, self.expressions)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"_{i}" for i in range(len(self.givens)))

    @cached_property
    def _tape(self) -> Tape:
        """The expressions as a tape, along which slopes are carried without symbolic derivatives.

        A hundred givens have thousands of those, which SymPy takes a second for; the tape takes
        milliseconds, once.
        """
        names = dict(zip(self.givens, map(sp.Symbol, self._names), strict=True))
        return record({str(i): each.xreplace(names) for i, each in enumerate(self.expressions)}, {})


def slope(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """d expression / d symbol: the chosen branch's at a maximum, zero for a rounding.

    SymPy's own derivative of a maximum is a product of step functions that has no value where two
    branches tie; here the first of the tied branches counts.
    """
    if symbol not in expression.free_symbols or isinstance(expression, STEPS):
        return sp.S.Zero
    if isinstance(expression, CORNERS):
        return _chosen(expression, symbol)
    corners = [each for each in expression.atoms(*CORNERS, *STEPS) if symbol in each.free_symbols]
    held = {corner: sp.Dummy(positive=True) for corner in corners}
    smooth = expression.xreplace(held)
    back = {dummy: corner for corner, dummy in held.items()}
    chain = [
        sp.diff(smooth, dummy).xreplace(back) * slope(corner, symbol)
        for corner, dummy in held.items()
        if dummy in smooth.free_symbols
    ]
    return sp.Add(sp.diff(smooth, symbol).xreplace(back), *chain)


def compiled(
    givens: Sequence[sp.Symbol], expressions: Iterable[sp.Expr]
) -> Callable[..., list[float]]:
    """A function of the givens that returns the list of values."""
    # Names of our own: a given called `lambda` or `C'` could not be an argument.
    names = [sp.Symbol(f"_{i}") for i in range(len(givens))]
    renamed = dict(zip(givens, names, strict=True))
    body = [expression.xreplace(renamed) for expression in expressions]
    function: Callable[..., list[float]] = sp.lambdify(names, body, modules="math", cse=True)
    return function


def _chosen(corner: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    compare = sp.Ge if isinstance(corner, sp.Max) else sp.Le
    *first, last = corner.args
    cases = [(slope(branch, symbol), compare(branch, corner)) for branch in first]
    return sp.Piecewise(*cases, (slope(last, symbol), True))
