"""SymPy expressions lowered to a tape: each subexpression once, sums and products n-ary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from formulas.numerics.expressions import complement_power, text
from formulas.numerics.tape import Node, Tape


def record(outputs: Mapping[str, sp.Expr], definitions: Mapping[sp.Symbol, sp.Expr]) -> Tape:
    """The tape that computes the outputs; a symbol with a definition is computed where first met.

    Raises
    ------
    TypeError
        If an expression holds a kind of node that has no array operation.
    """
    recorder = _Recorder(definitions)
    for name, expression in outputs.items():
        recorder.tape.outputs[name] = recorder.slot(expression)
    return recorder.tape


class _Recorder:
    """Appends nodes, finding those that are there already."""

    def __init__(self, definitions: Mapping[sp.Symbol, sp.Expr]) -> None:
        self.tape = Tape()
        self._definitions = definitions
        self._of_expression: dict[sp.Basic, int] = {}
        self._of_node: dict[Node, int] = {}

    def slot(self, expression: sp.Basic) -> int:
        """The slot that holds the value of the expression."""
        slot_ = self._of_expression.get(expression)
        if slot_ is None:
            slot_ = self._slot(expression)
            self._of_expression[expression] = slot_
        return slot_

    def _append(self, *node: object) -> int:
        place = self._of_node.get(node)
        if place is None:
            place = len(self.tape.nodes)
            self.tape.nodes.append(node)
            self._of_node[node] = place
        return place

    def _slot(self, x: sp.Basic) -> int:
        if x.is_Symbol:
            defined = self._definitions.get(x)
            return self._append("argument", x.name) if defined is None else self.slot(defined)
        if x.is_number and not x.free_symbols:
            return self._append("constant", float(x))
        if isinstance(x, sp.Add):
            return self._sum(x)
        if isinstance(x, sp.Mul):
            return self._product(x)
        if isinstance(x, sp.Pow):
            return self._power(x)
        if isinstance(x, sp.Piecewise):
            return self._piecewise(x)
        name = _NAMES.get(type(x))
        if name is None:
            raise TypeError(f"no array operation for {type(x).__name__} in {text(x)}")
        return self._append(name, *self._slots(x.args))

    def _slots(self, parts: Sequence[sp.Basic]) -> tuple[int, ...]:
        return tuple(self.slot(part) for part in parts)

    def _sum(self, x: sp.Add) -> int:
        complement = complement_power(x)
        if complement is not None:
            return self._complement(*complement)
        more, less = [], []
        for term in x.args:
            coefficient, rest = term.as_coeff_Mul()
            if coefficient.is_negative:
                less.append(self.slot(-coefficient * rest))
            else:
                more.append(self.slot(term))
        return self._append("sum", tuple(more), tuple(less))

    def _complement(self, c: sp.Expr, share: sp.Expr, n: sp.Expr, rest: sp.Expr) -> int:
        """c·(1 − (1 − share)^n) + rest, exact for small shares."""
        minus = self._append("negative", self.slot(share))
        logarithm = self._append("log1p", minus)
        exponent = self._append("product", (self.slot(n), logarithm), ())
        value = self._append("negative", self._append("expm1", exponent))
        if c != 1:
            value = self._append("product", (self._append("constant", float(c)), value), ())
        return value if rest == 0 else self._append("sum", (value, self.slot(rest)), ())

    def _product(self, x: sp.Mul) -> int:
        over, under = [], []
        for factor in x.args:
            if isinstance(factor, sp.Pow) and factor.args[1].is_Rational and factor.args[1] < 0:
                under.append(self.slot(1 / factor))
            elif factor.is_Rational and factor.p == 1:
                under.append(self._append("constant", float(factor.q)))
            else:
                over.append(self.slot(factor))
        return self._append("product", tuple(over), tuple(under))

    def _power(self, x: sp.Pow) -> int:
        base, exponent = x.args
        if exponent.is_Rational and exponent < 0:
            return self._append("product", (), (self.slot(1 / x),))
        if exponent == sp.Rational(1, 2):
            return self._append("sqrt", self.slot(base))
        if exponent in (2, 3):
            return self._append("product", (self.slot(base),) * int(exponent), ())
        return self._append("power", self.slot(base), self.slot(exponent))

    def _piecewise(self, x: sp.Piecewise) -> int:
        """Nested choices, the last piece innermost."""
        *pieces, (value, condition) = x.args
        if condition == sp.true:
            result = self.slot(value)
        else:
            result = self._choice(condition, value, self._append("constant", float("nan")))
        for value, condition in reversed(pieces):
            result = self._choice(condition, value, result)
        return result

    def _choice(self, condition: sp.Basic, value: sp.Expr, otherwise: int) -> int:
        return self._append("where", self.slot(condition), self.slot(value), otherwise)


_NAMES: dict[type, str] = {
    sp.Max: "maximum",
    sp.Min: "minimum",
    sp.exp: "exp",
    sp.log: "log",
    sp.ceiling: "ceil",
    sp.floor: "floor",
    sp.Abs: "absolute",
    sp.StrictLessThan: "less",
    sp.LessThan: "less_equal",
    sp.StrictGreaterThan: "greater",
    sp.GreaterThan: "greater_equal",
    sp.Equality: "equal",
    sp.Unequality: "not_equal",
    sp.And: "logical_and",
    sp.Or: "logical_or",
    sp.Not: "logical_not",
}
