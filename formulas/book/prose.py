"""Prose of the book: words with formulas, numbers that are computed, and links, read from one line.

`$N_total*b_w/W$` is set as a formula, `{critical_batch}` is the number under the teaching set (or
`{critical_batch:lecture}`), `[how it follows](critical_batch)` leads to an entry, a chapter or an
address, and `*such words*` stand out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from formulas.book.blocks import Formula, Prose, ProseLink, ProseWords, Span
from formulas.book.book_values import BookError, parsed, worth
from formulas.claims.claim import shown
from formulas.export.typesetting.boxes import BoxRow, Layout, Mark
from formulas.export.typesetting.layout import figure, layout
from formulas.numerics.expressions import text

_SPAN = re.compile(
    r"\$(?P<maths>[^$]+)\$|\[(?P<words>[^\]]+)\]\((?P<to>[^)\s]+)\)"
    r"|\{(?P<value>[^{}:]+)(?::(?P<case>\w+))?\}|\*(?P<strong>[^*]+)\*"
)
_SIGNS = {"<=": "≤", ">=": "≥", "<": "<", ">": ">", "=": "="}
_SIGN = re.compile(r"\s(<=|>=|<|>|=)\s")


Sets: TypeAlias = Mapping[str, Mapping[str, Fraction | float]]


def prose(line: str, sets: Sets) -> Prose:
    """The spans of a line, numbers worked at the named sets of values.

    Raises BookError if a formula cannot be read, or a number cannot be worked.
    """
    return tuple(_spans(" ".join(line.split()), sets))


def _spans(line: str, sets: Sets) -> Iterator[Span]:
    end = 0
    for match in _SPAN.finditer(line):
        if match.start() > end:
            yield ProseWords(line[end : match.start()])
        end = match.end()
        if match["maths"]:
            yield formula(match["maths"])
        elif match["to"]:
            yield ProseLink(match["words"], match["to"])
        elif match["strong"]:
            yield ProseWords(match["strong"], strong=True)
        else:
            yield from number(worth(match["value"], _set(match["case"] or "teaching", sets)))
    if end < len(line):
        yield ProseWords(line[end:])


def _set(name: str, sets: Sets) -> Mapping[str, Fraction | float]:
    if name not in sets:
        raise BookError(f"there is no set of values {name!r}; there are {', '.join(sets)}")
    return sets[name]


def formula(typed: str) -> Formula:
    """A formula, or two sides with a sign between them."""
    left, *others = _SIGN.split(typed.strip())
    sides = [parsed(left), *(parsed(side) for side in others[1::2])]
    parts: list[Layout] = [layout(sides[0])]
    words = text(sides[0])
    for sign, side in zip(others[::2], sides[1:], strict=True):
        parts += [Mark(_SIGNS[sign], "sign"), layout(side)]
        words += f" {sign} {text(side)}"
    symbols = frozenset().union(*(side.free_symbols for side in sides))
    return Formula(parts[0] if len(parts) == 1 else BoxRow(tuple(parts)), words, symbols)


def number(value: float, unit: str = "") -> Prose:
    """A number to four digits and its unit; a power of ten where it is large or small."""
    words = shown(value, unit)
    if "e" not in shown(value):
        return (ProseWords(words),)
    return (Formula(figure(value), shown(value)), ProseWords(f" {unit}" if unit else ""))


def plain_words(line: Prose) -> str:
    """The line without any markup."""
    return "".join(x.typed if isinstance(x, Formula) else _text(x) for x in line)


def _text(span: ProseWords | ProseLink) -> str:
    return span.text if isinstance(span, ProseWords) else span.words
