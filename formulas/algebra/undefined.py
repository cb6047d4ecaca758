"""Why an expression has no value at a point: what is divided by, or whose root, cannot be.

The branches of a Max or Min at the top of an expression, and the names they go by.
"""

from collections.abc import Mapping

import sympy as sp

from formulas.numerics.expressions import text, value_of


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


def top_extreme(expression: sp.Expr) -> sp.Expr | None:
    """The one Max or Min that is the expression, or a factor of it beside positive others."""
    factors = sp.Mul.make_args(expression)
    extremes = [f for f in factors if isinstance(f, sp.Max | sp.Min)]
    others = [f for f in factors if not isinstance(f, sp.Max | sp.Min)]
    if len(extremes) != 1 or any(f.has(sp.Max, sp.Min) for f in others):
        return None
    return extremes[0] if sp.Mul(*others).is_positive else None


def branches_of(expression: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """{branch of the Max or Min at the top: the expression with that alone}; empty without one."""
    extreme = top_extreme(expression)
    if extreme is None:
        return {}
    outer = sp.Mul(*(f for f in sp.Mul.make_args(expression) if f is not extreme))
    return {part: outer * part for part in extreme.args}
