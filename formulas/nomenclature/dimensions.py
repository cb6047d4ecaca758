"""Units as exponents over ten bases, and the unit of a SymPy expression.

Counts are bases of their own: a sequence is not a token and a token is not a parameter, so an
equation that forgets how many tokens a sequence emits does not pass.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp
from sympy.core.function import AppliedUndef

BASES = ("s", "byte", "flop", "param", "token", "seq", "chip", "USD", "J", "g")
COUNTS = ("token", "seq", "chip", "param")


class UnitError(ValueError):
    """Two sides, or two terms, that are not of the same unit."""


@dataclass(frozen=True)
class UnitProduct:
    """A product of powers of the bases, kept as sorted (base, exponent) pairs without zeros."""

    powers: tuple[tuple[str, Fraction], ...] = ()

    def __mul__(self, factor: UnitProduct) -> UnitProduct:
        total = dict(self.powers)
        for base, power in factor.powers:
            total[base] = total.get(base, Fraction(0)) + power
        return UnitProduct(tuple(sorted((b, p) for b, p in total.items() if p)))

    def __pow__(self, power: int | Fraction) -> UnitProduct:
        if not power:
            return DIMENSIONLESS
        return UnitProduct(tuple((b, p * power) for b, p in self.powers))

    def __truediv__(self, divisor: UnitProduct) -> UnitProduct:
        return self * divisor**-1

    @property
    def is_count(self) -> bool:
        """True for a count of tokens, sequences, chips or parameters, and for its reciprocal."""
        return len(self.powers) == 1 and all(b in COUNTS and abs(p) == 1 for b, p in self.powers)

    @property
    def written(self) -> str:
        """As the field writes it: `FLOP/(param·token)`, `token²`, `s/√byte`."""
        words = str(self).replace("flop", "FLOP")
        words = re.sub(r"(\w+)\*\*\(1/2\)", r"√\1", words)
        words = re.sub(r"\*\*([23])", lambda m: "²³"[int(m[1]) - 2], words)
        return words.replace("**", "^").replace("*", "·")

    def __str__(self) -> str:
        over = [_power(b, p) for b, p in self.powers if p > 0]
        under = [_power(b, -p) for b, p in self.powers if p < 0]
        top = "*".join(over) or "1"
        if not under:
            return top
        return f"{top}/{under[0]}" if len(under) == 1 else f"{top}/({'*'.join(under)})"


DIMENSIONLESS = UnitProduct()


def unit(text: str) -> UnitProduct:
    """The unit written as `flop/(param*token)`: names of bases, `*`, `/`, `**` and brackets.

    >>> str(unit("byte*s/flop") * unit("flop/s"))
    'byte'
    """
    try:
        return _unit_of_node(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError):
        raise UnitError(f"cannot read the unit {text!r}") from None


def expression_unit(
    expression: sp.Expr, lookup: Callable[[sp.Symbol], UnitProduct]
) -> UnitProduct | None:
    """The unit of an expression, given the unit of each symbol; None where any unit fits (0, ∞).

    Raises UnitError if terms of a sum, branches of a Max or sides of a relation differ, if an
    exponent or the argument of a logarithm carries a unit, or if the expression holds an unknown
    kind of node.
    """
    if expression.is_Symbol:
        return lookup(expression)
    if expression.is_number and not expression.free_symbols:
        return None if expression == 0 or expression.is_infinite else DIMENSIONLESS
    parts = expression.args
    match expression:
        case sp.Mul():
            product = DIMENSIONLESS
            for factor in parts:
                if (inner := expression_unit(factor, lookup)) is None:
                    return None
                product = product * inner
            return product
        case sp.Add() | sp.Max() | sp.Min() | sp.ceiling() | sp.floor() | sp.Abs():
            return _common(expression, parts, lookup)
        case AppliedUndef():  # any function, of a quantity of its own kind
            return _common(expression, parts, lookup)
        case sp.Sum() | sp.Integral() | sp.Derivative():
            return _calculus_rule(expression, lookup)
        case sp.Pow():
            return _power_rule(expression, lookup)
        case sp.Piecewise():
            for _, condition in parts:
                expression_unit(condition, lookup)
            return _common(expression, tuple(value for value, _ in parts), lookup)
        case sp.core.relational.Relational():
            _common(expression, parts, lookup)
            return DIMENSIONLESS
        case sp.logic.boolalg.BooleanFunction() | sp.logic.boolalg.BooleanAtom():
            for part in parts:
                expression_unit(part, lookup)
            return DIMENSIONLESS
        case sp.Function():
            for part in parts:
                if (inner := expression_unit(part, lookup)) not in (None, DIMENSIONLESS):
                    raise UnitError(f"{type(expression).__name__} of {part}, which is [{inner}]")
            return DIMENSIONLESS
    raise UnitError(f"no rule for the unit of {type(expression).__name__} in {expression}")


def _common(
    expression: sp.Basic, parts: tuple[sp.Basic, ...], lookup: Callable
) -> UnitProduct | None:
    """Return the unit shared by all parts; None if any fits; raises UnitError if two differ."""
    units = ((part, expression_unit(part, lookup)) for part in parts)
    first, common = next(((part, here) for part, here in units if here is not None), (None, None))
    for part, here in units:
        if here not in (None, common):
            raise UnitError(
                f"{first} is [{common}] but {part} is [{here}]; they meet in\n    {expression}"
            )
    return common


def _calculus_rule(
    expression: sp.Sum | sp.Integral | sp.Derivative, lookup: Callable
) -> UnitProduct | None:
    """A sum has the unit of its terms, an integral that times its variable's, a slope over it."""
    if isinstance(expression, sp.Derivative):
        whole = expression_unit(expression.expr, lookup)
        for x, times in expression.variable_count:
            whole = whole and whole / lookup(x) ** int(times)
        return whole
    inner = {}
    for x, *ends in expression.limits:  # the variable is of the unit of its ends
        inner[x] = next(filter(None, (expression_unit(end, lookup) for end in ends)), DIMENSIONLESS)
    whole = expression_unit(expression.function, lambda x: inner[x] if x in inner else lookup(x))
    for part in inner.values() if isinstance(expression, sp.Integral) else ():
        whole = whole and whole * part
    return whole


def _power_rule(expression: sp.Pow, lookup: Callable) -> UnitProduct | None:
    base, exponent = expression.as_base_exp() if expression.is_Pow else expression.args
    below = expression_unit(base, lookup)
    if below is None:
        return None
    if exponent.is_Rational:
        return below ** Fraction(int(exponent.p), int(exponent.q))
    above = expression_unit(exponent, lookup)
    if above not in (None, DIMENSIONLESS) and not above.is_count:
        raise UnitError(f"the exponent {exponent} is [{above}], not a number or a count")
    if below != DIMENSIONLESS:
        raise UnitError(f"{base} is [{below}] and cannot be raised to {exponent}")
    return DIMENSIONLESS


def _power(base: str, power: Fraction) -> str:
    if power == 1:
        return base
    return f"{base}**{power}" if power.denominator == 1 else f"{base}**({power})"


def _unit_of_node(node: ast.expr) -> UnitProduct:
    match node:
        case ast.Name(base) if base in BASES:
            return UnitProduct(((base, Fraction(1)),))
        case ast.Constant(1):
            return DIMENSIONLESS
        case ast.BinOp(left, ast.Mult(), right):
            return _unit_of_node(left) * _unit_of_node(right)
        case ast.BinOp(left, ast.Div(), right):
            return _unit_of_node(left) / _unit_of_node(right)
        case ast.BinOp(left, ast.Pow(), right):
            return _unit_of_node(left) ** _exponent(right)
    raise UnitError(f"{ast.unparse(node)!r} is not made of the bases {', '.join(BASES)}")


def _exponent(node: ast.expr) -> Fraction:
    """`2`, `-2` or `(1/2)` after `**`."""
    match node:
        case ast.Constant(int(number)):
            return Fraction(number)
        case ast.UnaryOp(ast.USub(), operand):
            return -_exponent(operand)
        case ast.BinOp(left, ast.Div(), right):
            return _exponent(left) / _exponent(right)
    raise UnitError(f"cannot read the exponent {ast.unparse(node)!r}")
