"""Prose of the book, in lines and in cells: words with formulas, computed numbers and links.

`$N_total*b_w/W$` is set as a formula, `{critical_batch}` is the number under the teaching set (or
`{critical_batch:lecture}`), `[how it follows](critical_batch)` leads to an entry, a chapter or an
address, and `*such words*` stand out.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.book import book_values
from formulas.book.blocks import Formula, Prose, ProseLink, ProseWords, Span
from formulas.book.book_chapter import BookChapter
from formulas.claims.claim import Claim, figure_text
from formulas.export.typesetting.boxes import BoxRow, Layout, Mark
from formulas.export.typesetting.layout import figure, layout
from formulas.nomenclature.symbols import SYMBOLS, meaning, unit_of_symbol
from formulas.numerics.digits import NOT_SMALL
from formulas.numerics.expressions import text
from formulas.registry import by_name

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
            yield from number(
                book_values.number_at(match["value"], _set(match["case"] or "teaching", sets))
            )
    if end < len(line):
        yield ProseWords(line[end:])


def _set(name: str, sets: Sets) -> Mapping[str, Fraction | float]:
    if name not in sets:
        raise book_values.BookError(
            f"there is no set of values {name!r}; there are {', '.join(sets)}"
        )
    return sets[name]


def formula(typed: str) -> Formula:
    """A formula, or two sides with a sign between them."""
    left, *others = _SIGN.split(typed.strip())
    sides = [book_values.parsed(left), *(book_values.parsed(side) for side in others[1::2])]
    parts: list[Layout] = [layout(sides[0])]
    words = text(sides[0])
    for sign, side in zip(others[::2], sides[1:], strict=True):
        parts += [Mark(_SIGNS[sign], "sign"), layout(side)]
        words += f" {sign} {text(side)}"
    symbols = frozenset().union(*(side.free_symbols for side in sides))
    return Formula(parts[0] if len(parts) == 1 else BoxRow(tuple(parts)), words, symbols)


def number(value: float, unit: str = "") -> Prose:
    """A number to four digits and its unit; a power of ten where it is large or small."""
    words = figure_text(value, unit)
    if "e" not in figure_text(value):
        return (ProseWords(words),)
    return (Formula(figure(value), figure_text(value)), ProseWords(f" {unit}" if unit else ""))


def condition_cell(relation: str, case: str, chapter: BookChapter) -> Prose:
    """Whether a relation holds in a set of values, with both its sides."""
    try:
        met = book_values.condition(relation, case, chapter.sets[case])
    except book_values.MissingValueError:
        return (ProseWords("not stated"),)
    word = ProseWords("holds: " if met.holds else "outside: ")
    return (word, *number(met.left), ProseWords(" against "), *number(met.right))


def worked(expression: str, case: Mapping[str, Fraction], scale: float) -> float | None:
    """The value, or None where the set leaves a symbol open, as the lecture often does."""
    try:
        return book_values.number_at(expression, case) / scale
    except book_values.MissingValueError:
        return None


def symbol_row(x: sp.Symbol, chapter: BookChapter, *, computed: bool) -> tuple[Prose, ...]:
    """A symbol, its meaning and unit, and its values unless the chapter computes it."""
    unit = str(unit_of_symbol(x))
    values = [None if computed else chapter.sets[case].get(x.name) for case in book_values.CASES]
    cells = (() if value is None else number(float(value)) for value in values)
    return (
        (formula(x.name),),
        (ProseWords(meaning(x)),),
        (ProseWords("" if unit == "1" else unit),),
        *cells,
    )


def condition_words(relation: str) -> ProseWords | Formula:
    """The relation as a formula, with what the catalogue gives under its symbol."""
    names = {x.name for x in formula(relation).symbols if SYMBOLS.get(x.name) != x}
    symbols = {name: book_values.equation_of(name).symbol.name for name in names}
    if len(set(symbols.values())) < len(symbols):  # two of them would read alike
        for name in names:
            relation = relation.replace(name, by_name()[name].name)
        return ProseWords(relation)
    for name, symbol in symbols.items():
        relation = relation.replace(name, symbol)
    return formula(relation)


def without_solved(item: Derivation, case: object) -> dict[str, float]:
    """The set of values without what the derivation finds."""
    solved = {step.solved for step in item.steps if step.solved} | {item.lhs}
    names = {x.name for x in solved if not item.rhs.has(x)}
    return {x: float(v) for x, v in dict(case).items() if x not in names}  # type: ignore[call-overload]


def size_words(size: float) -> str:
    """How large what was left out is, as a share of what is kept, in words."""
    remark = ": not small" if size >= NOT_SMALL else ""
    return f"{figure_text(size)} of what is kept{remark}"


def claim_line(claim: Claim, verdict: str) -> Prose:
    """What the lecture claims, the verdict on it, and our numbers."""
    ours = f" Ours: {claim.ours}." if claim.worked else ""
    remark = f"Verdict: {verdict}.{ours}" if verdict else ours.strip()
    words = ProseWords(f"{claim.statement} "), ProseWords(remark)
    return (ProseWords(f"{claim.id}. ", strong=True), *words)
