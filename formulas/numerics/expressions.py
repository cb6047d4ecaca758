"""Small operations on SymPy trees that SymPy does slowly or not at all.

Max and Min are built and rebuilt without evaluation: comparing their branches is what takes the
time, and a branch that SymPy absorbs is a branch that can no longer be named.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp
from sympy.printing.str import StrPrinter

from formulas.nomenclature.symbols import latex_names


def as_expression(value: object) -> sp.Expr:
    """A number or expression as an expression; text is refused with a SympifyError, never run."""
    return sp.sympify(value, strict=True)


def maximum(*branches: sp.Expr) -> sp.Expr:
    """The largest of the branches, kept as they were written."""
    return sp.Max(*map(as_expression, branches), evaluate=False)


def minimum(*branches: sp.Expr) -> sp.Expr:
    """The smallest of the branches, kept as they were written."""
    return sp.Min(*map(as_expression, branches), evaluate=False)


def put(expression: sp.Basic, values: Mapping[sp.Basic, sp.Basic]) -> sp.Basic:
    """The expression with each key replaced by its value, all at once."""
    if expression in values:
        return values[expression]
    if not expression.args:
        return expression
    parts = [put(part, values) for part in expression.args]
    if all(new is old for new, old in zip(parts, expression.args, strict=True)):
        return expression
    if isinstance(expression, sp.Max | sp.Min):
        return type(expression)(*parts, evaluate=False)
    return expression.func(*parts)


def complement_power(expression: sp.Add) -> tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr] | None:
    """(c, x, n, rest) when the sum is c·(1 − (1 − x)^n) + rest, else None.

    Written out, it loses all digits at small x; −c·expm1(n·log1p(−x)) does not.
    """
    if not expression.args[0].is_Number or expression.args[0] <= 0:
        return None
    constant = expression.args[0]
    for term in expression.args[1:]:
        coefficient, power = term.as_coeff_Mul()
        if coefficient != -constant or not isinstance(power, sp.Pow):
            continue
        base, exponent = power.args
        if isinstance(base, sp.Add) and base.args[0] == 1 and not exponent.is_Number:
            rest = sp.Add(*(t for t in expression.args[1:] if t is not term))
            return constant, sp.Add(*(-t for t in base.args[1:])), exponent, rest
    return None


def text(expression: sp.Basic) -> str:
    """One readable line: `max(T_comp, T_mem)`."""
    return _Printer({"order": "none"}).doprint(expression)


def tex(expression: sp.Basic) -> str:
    """LaTeX, with the letters of the nomenclature."""
    return sp.latex(expression, symbol_names=latex_names(), order="none")


class _Printer(StrPrinter):
    """SymPy's own text, with Max, Min and ceiling in lower case."""

    def _named(self, name: str, expression: sp.Basic) -> str:
        return f"{name}({', '.join(map(self._print, expression.args))})"

    def _print_Max(self, expression: sp.Max) -> str:
        return self._named("max", expression)

    def _print_Min(self, expression: sp.Min) -> str:
        return self._named("min", expression)

    def _print_ceiling(self, expression: sp.ceiling) -> str:
        return self._named("ceil", expression)
