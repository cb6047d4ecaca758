"""Monomials c * x**s that stand in for a function of one variable.

The tangent touches: value and slope are exact at a point. The chord passes through both ends of an
interval and lies below a function that is concave in logarithms there. Both are straight lines on
log-log paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import sympy as sp

from planner.problem.coefficients import slope
from planner.problem.posynomial import ProblemError

__all__ = ["Monomial", "chord", "tangent"]

SAMPLES = 65
TOLERANCE = 1e-9


class Monomial(NamedTuple):
    """coefficient * variable**exponent."""

    coefficient: float
    exponent: float


def tangent(expression: sp.Expr, variable: sp.Symbol, at: float) -> Monomial:
    """The monomial with the value and the slope of `expression` at `at`.

    Raises ProblemError where the value is not positive.
    """
    value = _value(expression, variable, at)
    exponent = float(slope(expression, variable).xreplace({variable: sp.Float(at)})) * at / value
    return Monomial(value * at**-exponent, exponent)


def chord(expression: sp.Expr, variable: sp.Symbol, lo: float, hi: float) -> Monomial:
    """The monomial through `expression` at `lo` and `hi`, below it in between.

    Raises ProblemError where the expression is not concave in logarithms on [lo, hi], judged at 65
    points, since the chord would not lie below it.
    """
    if not 0 < lo < hi:
        raise ProblemError(f"chord of {expression}: 0 < {lo} < {hi} does not hold")
    points = np.geomspace(lo, hi, SAMPLES)
    heights = np.log([_value(expression, variable, point) for point in points])
    middle = (heights[:-2] + heights[2:]) / 2
    room = TOLERANCE * (1 + np.abs(heights).max())
    if (middle > heights[1:-1] + room).any():
        where = points[1 + int(np.argmax(middle - heights[1:-1]))]
        raise ProblemError(
            f"chord of {expression} on {variable} in [{lo:g}, {hi:g}]: it bends upward in "
            f"logarithms near {variable} = {where:.4g}, so its chord is no under-estimate; use a "
            "narrower interval or the larger of two tangents"
        )
    exponent = float((heights[-1] - heights[0]) / np.log(hi / lo))
    return Monomial(float(np.exp(heights[0])) * lo**-exponent, exponent)


def _value(expression: sp.Expr, variable: sp.Symbol, at: float) -> float:
    value = expression.xreplace({variable: sp.Float(at)})
    if value.free_symbols:
        raise ProblemError(f"{expression}: no number for {sorted(map(str, value.free_symbols))}")
    found = value.evalf()
    if not (found.is_real and found.is_finite and found > 0):
        raise ProblemError(f"{expression} is {found} at {variable} = {at:g}, not positive")
    return float(found)
