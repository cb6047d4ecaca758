"""Why an expression has no value at a point: what is divided by, or whose root, cannot be."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from formulas.numerics.exact_value import value_of
from formulas.numerics.expressions import text

__all__ = ["undefined_because"]


def undefined_because(expression: sp.Expr, values: Mapping[sp.Symbol, float]) -> str:
    """`W is 0 there, and it is divided by`, or the like; empty when no part explains it."""
    for node in sp.preorder_traversal(expression):
        if isinstance(node, sp.Pow):
            base, power = (_value(part, values) for part in node.args)
            if base == 0 and power is not None and power < 0:
                return f"{text(node.base)} is 0 there, and it is divided by"
            if base is not None and base < 0 and power is not None and power % 1:
                return f"{text(node.base)} is {base:.4g} there, and it has no real root"
        elif isinstance(node, sp.log):
            inner = _value(node.args[0], values)
            if inner is not None and inner <= 0:
                return f"{text(node.args[0])} is {inner:.4g} there, and it has no logarithm"
    return ""


def _value(part: sp.Basic, values: Mapping[sp.Symbol, float]) -> float | None:
    """The value in floats; None where the part itself is undefined."""
    try:
        return value_of(part, values)
    except ValueError:
        return None
