"""Monomials c * x**s that stand in for a function of one variable.

The tangent touches: value and slope are exact at a point. The chord passes through both ends of an
interval and lies below a function that is concave in logarithms there. Both are straight lines on
log-log paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy as sp

from formulas.nomenclature.symbols import auxiliary
from planner.programs.geometric.posynomial import short
from planner.programs.geometric.structure import ProblemError

SAMPLES = 65
TOLERANCE = 1e-9
STEPS = (sp.ceiling, sp.floor)
CORNERS = (sp.Max, sp.Min)


class Monomial(NamedTuple):
    """coefficient * variable**exponent."""

    coefficient: float
    exponent: float


def tangent(
    expression: sp.Expr,
    variable: sp.Symbol,
    at: float,
    *,
    numbers: Mapping[sp.Symbol, float] | None = None,
) -> Monomial:
    """The monomial with the value and the slope of `expression` at `at`.

    `numbers` holds those of the other symbols. Raises ProblemError where one is missing or the
    value is not positive.
    """
    value, rate = _function(expression, variable, numbers)(at)
    exponent = rate * at / value
    return Monomial(value * at**-exponent, exponent)


def chord(
    expression: sp.Expr,
    variable: sp.Symbol,
    lo: float,
    hi: float,
    *,
    numbers: Mapping[sp.Symbol, float] | None = None,
) -> Monomial:
    """The monomial through `expression` at `lo` and `hi`, below it in between.

    Raises ProblemError as `tangent`, and where the expression is not concave in logarithms on
    [lo, hi], judged at 65 points, since the chord would not lie below it.
    """
    if not 0 < lo < hi:
        raise ProblemError(f"chord of {short(expression)}: 0 < {lo} < {hi} does not hold")
    function = _function(expression, variable, numbers)
    points = np.geomspace(lo, hi, SAMPLES)
    heights = np.log([function(point)[0] for point in points.tolist()])
    bend = (heights[:-2] + heights[2:]) / 2 - heights[1:-1]
    if (bend > TOLERANCE * (1 + np.abs(heights).max())).any():
        where = points[1 + int(np.argmax(bend))]
        raise ProblemError(
            f"chord of {short(expression)} over {variable} in [{lo:g}, {hi:g}]: it bends upward "
            f"in logarithms near {variable} = {where:.4g}, so its chord is no under-estimate; use "
            "a narrower interval or the larger of two tangents"
        )
    exponent = float((heights[-1] - heights[0]) / np.log(hi / lo))
    return Monomial(float(np.exp(heights[0])) * lo**-exponent, exponent)


def _function(
    expression: sp.Expr, variable: sp.Symbol, numbers: Mapping[sp.Symbol, float] | None
) -> Callable[[float], tuple[float, float]]:
    """Value and derivative as a function of the variable alone."""
    others = tuple(sorted(expression.free_symbols - {variable}, key=str))
    figures = numbers or {}
    if missing := [symbol for symbol in others if symbol not in figures]:
        raise ProblemError(f"{short(expression)}: no value for {', '.join(map(str, missing))}")
    function = _both((variable, *others), expression)
    rest = [float(figures[symbol]) for symbol in others]

    def evaluated(at: float) -> tuple[float, float]:
        try:
            value, rate = function(float(at), *rest)
        except (ArithmeticError, ValueError) as error:
            raise ProblemError(
                f"{short(expression)} has no value at {variable} = {at:g} ({error})"
            ) from error
        if not 0 < value < np.inf:
            raise ProblemError(f"{short(expression)} is {value} at {variable} = {at:g}")
        return value, rate

    return evaluated


@lru_cache(maxsize=256)
def _both(arguments: tuple[sp.Symbol, ...], expression: sp.Expr) -> Callable[..., list[float]]:
    return _compiled(arguments, [expression, _slope(expression, arguments[0])])


def _slope(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """d expression / d symbol: the chosen branch's at a maximum, zero for a rounding.

    SymPy's own derivative of a maximum is a product of step functions that has no value where two
    branches tie; here the first of the tied branches counts.
    """
    if symbol not in expression.free_symbols or isinstance(expression, STEPS):
        return sp.S.Zero
    if isinstance(expression, CORNERS):
        return _chosen(expression, symbol)
    corners = [each for each in expression.atoms(*CORNERS, *STEPS) if symbol in each.free_symbols]
    dummies = {corner: sp.Dummy(positive=True) for corner in corners}
    smooth = expression.xreplace(dummies)
    back = {dummy: corner for corner, dummy in dummies.items()}
    chain = [
        sp.diff(smooth, dummy).xreplace(back) * _slope(corner, symbol)
        for corner, dummy in dummies.items()
        if dummy in smooth.free_symbols
    ]
    return sp.Add(sp.diff(smooth, symbol).xreplace(back), *chain)


def _compiled(
    givens: Sequence[sp.Symbol], expressions: Iterable[sp.Expr]
) -> Callable[..., list[float]]:
    """A function of the givens that returns the list of values."""
    # Names of our own: a given called `lambda` or `C'` could not be an argument.
    names = [auxiliary(f"_{i}") for i in range(len(givens))]
    renamed = dict(zip(givens, names, strict=True))
    body = [expression.xreplace(renamed) for expression in expressions]
    function: Callable[..., list[float]] = sp.lambdify(names, body, modules="math", cse=True)
    return function


def _chosen(corner: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    compare = sp.Ge if isinstance(corner, sp.Max) else sp.Le
    *first, last = corner.args
    cases = [(_slope(branch, symbol), compare(branch, corner)) for branch in first]
    return sp.Piecewise(*cases, (_slope(last, symbol), True))
