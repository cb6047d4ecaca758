"""Formulas among words: an assumption or a reason names symbols as a program does, pages set them.

`B*m_pos > B_0; below it every context is memory-bound` is a relation and a clause. Text is read,
never run: numbers, registered symbols, the four operations, powers, a few functions, relations.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import sympy as sp

from formulas.nomenclature.symbols import SYMBOLS

_TOKEN = re.compile(r"[ ]?(\*\*|<=|>=|[A-Za-z_]\w*|\d+(?:\.\d+)?|[-+*/()<>=])")
_EQUAL = re.compile(r"(?<![<>=])=(?!=)")
_OPERATIONS: Mapping[type, Callable[[sp.Expr, sp.Expr], sp.Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}
_RELATIONS = {ast.Lt: sp.Lt, ast.LtE: sp.Le, ast.Gt: sp.Gt, ast.GtE: sp.Ge, ast.Eq: sp.Eq}
_FUNCTIONS = {
    "sqrt": sp.sqrt, "exp": sp.exp, "log": sp.log, "max": sp.Max, "min": sp.Min,
    "ceiling": sp.ceiling, "floor": sp.floor,
}  # fmt: skip


def pieces(words: str) -> Iterator[str | sp.Basic]:
    """The words in order, with what is a formula as an expression or a relation."""
    start = at = 0
    while at < len(words):
        before = words[at - 1] if at else " "
        within = before.isalnum() or before in "_." or words[at] == " "
        formula_end = None if within else _longest(words, at)
        if formula_end is None:
            at += 1
            continue
        formula, end = formula_end
        if start < at:
            yield words[start:at]
        yield formula
        start = at = end
    if start < len(words):
        yield words[start:]


def _longest(words: str, at: int) -> tuple[sp.Basic, int] | None:
    """The longest formula that begins here, and where it ends."""
    ends = []
    end = at
    while (token := _TOKEN.match(words, end)) and _readable(token[1]):
        end = token.end()
        ends.append(end)
    for end in reversed(ends):
        text = words[at:end]
        if words[end : end + 1].isalnum() or not any(mark in text for mark in "_*/<>="):
            continue
        try:
            formula = _built(ast.parse(_EQUAL.sub("==", text), mode="eval").body)
        except (SyntaxError, ValueError):
            continue
        if formula.free_symbols:
            return formula, end
    return None


def _readable(token: str) -> bool:
    return not (token[0].isalpha() or token[0] == "_") or token in SYMBOLS or token in _FUNCTIONS


def _built(node: ast.expr) -> sp.Basic:
    """The expression of a syntax tree; ValueError for anything that is no formula."""
    match node:
        case ast.Constant(int() | float() as value):
            return sp.Rational(str(value))
        case ast.Name(name) if name in SYMBOLS:
            return SYMBOLS[name]
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATIONS:
            return _OPERATIONS[type(kind)](_built(left), _built(right))
        case ast.UnaryOp(ast.USub(), inner):
            return -_built(inner)
        case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*map(_built, arguments))
        case ast.Compare(left, kinds, others) if all(type(kind) in _RELATIONS for kind in kinds):
            sides = [_built(left), *map(_built, others)]
            relations = [
                _RELATIONS[type(kind)](*pair, evaluate=False)
                for kind, pair in zip(kinds, pairwise(sides), strict=True)
            ]
            return relations[0] if len(relations) == 1 else sp.And(*relations, evaluate=False)
    raise ValueError(f"{ast.unparse(node)} is no formula")
