"""Spans of a line: words, formulas among them, numbers, links.

An assumption or a reason names symbols as a program does; `split_prose` reads the formulas in its
words: `B*m_pos > B_0; below it every context is memory-bound` is a relation and a clause. Text is
read, never run: numbers, registered symbols, arithmetic, powers, a few functions, relations.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import sympy as sp

from formulas.export.typesetting.boxes import Layout
from formulas.export.typesetting.layout import layout, layout_number
from formulas.nomenclature.sources import Citation
from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.expressions import FUNCTIONS, build_expr, sstr


@dataclass(frozen=True)
class ProseWords:
    """Plain words, which may be emphasised."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Formula:
    """A formula within a line: its boxes, how it is typed, and the symbols in it.

    A `large` one is set as on a line of its own; `name` is what a program calls the symbol it is.
    """

    boxes: Layout
    typed: str
    symbols: frozenset[sp.Symbol] = frozenset()
    large: bool = False
    name: str = ""


@dataclass(frozen=True)
class ProseLink:
    """Words that lead to an anchor of the book, or to an address."""

    words: str
    to: str


Span: TypeAlias = ProseWords | Formula | ProseLink
Prose: TypeAlias = tuple[Span, ...]


def reason(words: str) -> Prose:
    """Words with the formulas among them."""
    return tuple(
        span
        for piece in split_prose(words)
        for span in ([ProseWords(piece)] if isinstance(piece, str) else _formula(piece))
    )


def _formula(x: sp.Basic) -> Iterator[Span]:
    if isinstance(x, sp.And):
        for number, part in enumerate(x.args):
            yield from ([ProseWords(" and ")] if number else [])
            yield from _formula(part)
    else:
        yield Formula(layout(x), sstr(x))


def prose(words: str) -> Prose:
    """Words as they are; an empty line of none."""
    return (ProseWords(words),) if words else ()


def citation(source: Citation) -> Prose:
    """A citation, which leads to the work where that has an address."""
    return (ProseLink(str(source), source.link),) if source.link else prose(str(source))


def figure_span(value: float) -> Formula:
    """A number to four digits; typed as `6.71e11`."""
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    return Formula(layout_number(value), f"{mantissa}e{int(exponent)}" if exponent else mantissa)


_TOKEN = re.compile(r"[ ]?(\*\*|<=|>=|[A-Za-z_]\w*|\d+(?:\.\d+)?|[-+*/()<>=])")
_EQUAL = re.compile(r"(?<![<>=])=(?!=)")


def split_prose(words: str) -> Iterator[str | sp.Basic]:
    """Split words into text and formulas, in order; a formula is an expression or a relation."""
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
            formula = build_expr(ast.parse(_EQUAL.sub("==", text), mode="eval").body)
        except (SyntaxError, ValueError, KeyError):
            continue
        if formula.free_symbols:
            return formula, end
    return None


def _readable(token: str) -> bool:
    return not (token[0].isalpha() or token[0] == "_") or token in SYMBOLS or token in FUNCTIONS
