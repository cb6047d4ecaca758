"""Prose of the book, in lines and in cells: words with formulas, computed numbers and links.

`$N_total*b_w/W$` is set as a formula, `{critical_batch}` is the number under the teaching set (or
`{critical_batch:lecture}`), `[how it follows](critical_batch)` leads to an entry, a chapter or an
address, and `*such words*` stand out.

Chapters as rows: what `chapters/*.toml` hold, read and held to their form.

A chapter without its figure, an exercise without an answer or a name that the catalogue does not
have is refused in a sentence that says where.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.domains import violated_conditions
from formulas.algebra.equation import Equation
from formulas.book import book_values
from formulas.claims.claim import Claim, figure_text
from formulas.export.typesetting.boxes import BoxRow, Glyph, Layout
from formulas.export.typesetting.layout import layout, layout_number
from formulas.export.words import Formula, Prose, ProseLink, ProseWords, Span, reason
from formulas.nomenclature.symbol_error import SymbolError
from formulas.nomenclature.symbols import SYMBOLS, did_you_mean, meaning, symbol_unit
from formulas.numerics.digits import NOT_SMALL
from formulas.numerics.evaluate import scalar
from formulas.numerics.expressions import sstr
from formulas.registry import by_name

Row = TypeVar("Row")
PUT_IN = 8  # numbers in one line
FOLDER = Path(__file__).with_name("chapters")
EXERCISES = 5


@dataclass(frozen=True)
class BookChapter:
    """A chapter: its prose, the names it takes from the catalogue, and its values."""

    anchor: str
    title: str
    question: str
    figures: tuple[book_values.BookFigureRow, ...]
    assumptions: tuple[str, ...]
    parts: tuple[book_values.DerivationPart, ...]
    numbers: tuple[book_values.WorkedRow, ...]
    fails: tuple[book_values.Failure, ...]
    claims: tuple[str, ...]
    verdict: str
    exercises: tuple[book_values.Exercise, ...]
    lecture: book_values.Values = field(default_factory=dict, hash=False)
    teaching: book_values.Values = field(default_factory=dict, hash=False)

    @property
    def sets(self) -> dict[str, dict[str, Fraction]]:
        """The sets of values of the chapter by name."""
        return {
            name: {**book_values.base_case(name), **book_values.exact(getattr(self, name))}
            for name in book_values.CASES
        }

    @property
    def taken(self) -> tuple[str, ...]:
        """Names of the catalogue that its derivation tells."""
        return tuple(part.take for part in self.parts if part.take)


def _row(kind: type[Row], row: Mapping[str, Any], where: str) -> Row:
    """A row of a type, with nothing missing and nothing more.

    Raises BookError otherwise.
    """
    names = [x.name for x in fields(kind)]  # type: ignore[arg-type]
    for key in row:
        if key not in names:
            raise book_values.BookError(f"{where}: {key} is unknown{did_you_mean(key, names)}")
    for x in fields(kind):  # type: ignore[arg-type]
        optional = x.default is not MISSING or x.default_factory is not MISSING
        if x.name not in row and not optional:
            raise book_values.BookError(f"{where}: {x.name} is missing")
    return kind(**row)


def parse_chapter(rows: Mapping[str, Any], anchor: str) -> BookChapter:
    """A chapter from the tables of its file.

    Raises BookError if something is missing, unknown, or has no figure.
    """
    where, rest = f"chapter {anchor}", dict(rows)
    figures = tuple(_figure(row, where) for row in rest.pop("figure", ()))
    if not figures:
        raise book_values.BookError(f"{where} has no figure; draw one under [[figure]]")
    exercises = tuple(_exercise(row, where) for row in rest.pop("exercise", ()))
    if len(exercises) != EXERCISES:
        raise book_values.BookError(f"{where} has {len(exercises)} exercises, not {EXERCISES}")
    tables: tuple[tuple[str, str, type], ...] = (
        ("parts", "part", book_values.DerivationPart),
        ("numbers", "number", book_values.WorkedRow),
        ("fails", "fails", book_values.Failure),
    )
    listed: dict[str, tuple[object, ...]] = {
        name: tuple(_row(kind, row, f"{where}, {key}") for row in rest.pop(key, ()))
        for name, key, kind in tables
    }
    rest |= {"assumptions": tuple(rest.get("assumptions", ()))}
    rest |= {"claims": tuple(rest.get("claims", "").split())}
    whole = {**rest, **listed, "figures": figures, "exercises": exercises, "anchor": anchor}
    return _row(BookChapter, whole, where)


def _figure(row: Mapping[str, Any], where: str) -> book_values.BookFigureRow:
    place = f"{where}, figure {row.get('name', '')}".rstrip()
    kinds: tuple[tuple[str, type], ...] = (
        ("curves", book_values.CurveRow),
        ("bars", book_values.BarRow),
    )
    drawn: dict[str, tuple[object, ...]] = {
        key: tuple(_row(kind, each, f"{place}, {key}") for each in row.get(key, ()))
        for key, kind in kinds
    }
    if not (drawn["curves"] or drawn["bars"]):
        raise book_values.BookError(f"{place}: it has neither curves nor bars")
    return _row(book_values.BookFigureRow, {**row, **drawn}, place)


def _exercise(row: Mapping[str, Any], where: str) -> book_values.Exercise:
    refused = row.get("refused")
    place = f"{where}, exercise {row.get('ask', '')[:40]!r}"
    made = None if refused is None else _row(book_values.FalseStep, refused, place)
    exercise = _row(book_values.Exercise, {**row, "refused": made}, place)
    if not (exercise.answer or exercise.refused):
        raise book_values.BookError(f"{place}: it has no answer")
    return exercise


@cache
def chapters() -> tuple[BookChapter, ...]:
    """Every chapter, in the order of the lecture.

    Raises BookError as `parse_chapter` does.
    """
    read = []
    for file in sorted(FOLDER.glob("*.toml")):
        try:
            rows = tomllib.loads(file.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise book_values.BookError(f"{file.name} cannot be read: {error}") from error
        read.append(parse_chapter(rows, file.stem.partition("-")[2]))
    return tuple(read)


def chosen_chapters(names: tuple[str, ...]) -> tuple[BookChapter, ...]:
    """Return the chapters of these anchors or numbers, all chapters if `names` is empty.

    Raises BookError if there is no such chapter.
    """
    by_anchor = {x.anchor: x for x in chapters()}
    numbered = {str(i): x for i, x in enumerate(chapters(), 1)}
    for name in names:
        if name not in by_anchor | numbered:
            hint = did_you_mean(name, by_anchor) or f"; there are {', '.join(by_anchor)}"
            raise book_values.BookError(f"the book has no chapter {name!r}{hint}")
    picked = dict.fromkeys((by_anchor | numbered)[name].anchor for name in names)
    return tuple(by_anchor[anchor] for anchor in picked) if names else chapters()


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
            name = match["case"] or "teaching"
            if name not in sets:
                raise book_values.BookError(
                    f"there is no set of values {name!r}; there are {', '.join(sets)}"
                )
            yield from number_prose(book_values.evaluate_expression(match["value"], sets[name]))
    if end < len(line):
        yield ProseWords(line[end:])


def formula(typed: str) -> Formula:
    """A formula, or two sides with a sign between them."""
    left, *others = _SIGN.split(typed.strip())
    sides = [
        book_values.parse_expression(left),
        *(book_values.parse_expression(side) for side in others[1::2]),
    ]
    parts: list[Layout] = [layout(sides[0])]
    words = sstr(sides[0])
    for sign, side in zip(others[::2], sides[1:], strict=True):
        parts += [Glyph(_SIGNS[sign], "sign"), layout(side)]
        words += f" {sign} {sstr(side)}"
    symbols = frozenset().union(*(side.free_symbols for side in sides))
    return Formula(parts[0] if len(parts) == 1 else BoxRow(tuple(parts)), words, symbols)


def number_prose(value: float, unit: str = "") -> Prose:
    """A number to four digits and its unit; a power of ten where it is large or small."""
    words = figure_text(value, unit)
    if "e" not in figure_text(value):
        return (ProseWords(words),)
    return (
        Formula(layout_number(value), figure_text(value)),
        ProseWords(f" {unit}" if unit else ""),
    )


def condition_cell(relation: str, case: str, chapter: BookChapter) -> Prose:
    """Table cell: `holds` or `outside`, with the values of both sides of a relation."""
    try:
        met = book_values.condition(relation, case, chapter.sets[case])
    except book_values.MissingValueError:
        return (ProseWords("not stated"),)
    word = ProseWords("holds: " if met.holds else "outside: ")
    return (word, *number_prose(met.left), ProseWords(" against "), *number_prose(met.right))


def evaluate_or_none(expression: str, case: Mapping[str, Fraction], scale: float) -> float | None:
    """The value, or None where the set leaves a symbol open, as the lecture often does."""
    try:
        return book_values.evaluate_expression(expression, case) / scale
    except book_values.MissingValueError:
        return None


def symbol_row(x: sp.Symbol, chapter: BookChapter, *, computed: bool) -> tuple[Prose, ...]:
    """A symbol, its meaning and unit, and its values unless the chapter computes it."""
    unit = symbol_unit(x).written
    values = [None if computed else chapter.sets[case].get(x.name) for case in book_values.CASES]
    cells = (() if value is None else number_prose(float(value)) for value in values)
    return (
        (formula(x.name),),
        (ProseWords(meaning(x)),),
        (ProseWords("" if unit == "1" else unit),),
        *cells,
    )


def condition_words(relation: str) -> ProseWords | Formula:
    """Return the relation as a formula, with symbols for catalogue names; words if ambiguous."""
    names = {x.name for x in formula(relation).symbols if SYMBOLS.get(x.name) != x}
    symbols = {name: book_values.equation_named(name).symbol.name for name in names}
    if len(set(symbols.values())) < len(symbols):  # duplicate symbols are ambiguous
        for name in names:
            relation = relation.replace(name, by_name()[name].name)
        return ProseWords(relation)
    for name, symbol in symbols.items():
        relation = relation.replace(name, symbol)
    return formula(relation)


def worked_line(item: Equation | Derivation, case: Mapping[str, Fraction]) -> Prose:
    """A result with numbers and units put in; empty if the set leaves a symbol open.

    Also empty where more than `PUT_IN` numbers are put in: the table of symbols lists them.
    """
    symbols = sorted(item.rhs.free_symbols, key=lambda x: x.name)
    if not item.lhs.is_Symbol or len(symbols) > PUT_IN:
        return ()
    numbers = {x: float(v) for x, v in case.items() if x != item.lhs.name}
    inner = [each for each in item.where if each.symbol.name not in numbers]
    try:
        values = scalar(inner, {**{x.name: x for x in symbols}, "": item.rhs}, numbers)
    except SymbolError:  # a symbol is open, or the result undefined there
        return ()
    sign = item.steps[-1].relation if isinstance(item, Derivation) else "="
    spans, before = list[Span](), iter(("In numbers: ", " with "))
    for x in (item.lhs, *symbols):
        value, unit = values.get(x.name, values[""]), symbol_unit(x).written.removeprefix("1")
        signs = ProseWords(" = " if spans else f" {sign} ")
        words = ProseWords(next(before, ", "))
        spans += [words, formula(x.name), signs, *number_prose(value, unit)]
    broken = violated_conditions(item.assumes, item.where, numbers)
    return (*spans, *reason("; outside: " + ", ".join(broken) + "." if broken else "."))


def size_words(size: float) -> str:
    """Relative size of a neglected term in words, as a share of the kept term."""
    remark = ": not small" if size >= NOT_SMALL else ""
    return f"{figure_text(size)} of what is kept{remark}"


def claim_line(claim: Claim, verdict: Mapping[str, str]) -> Prose:
    """Line of a claim: the statement, our numbers, the verdict with what decides it, its reason."""
    ours = f"Ours: {claim.ours}. " if claim.worked else ""
    judged = f"Verdict: {verdict['verdict']}. " if verdict else ""
    words = ProseWords(f"{claim.statement} {ours}"), ProseWords(judged)
    return (ProseWords(f"{claim.id}. ", strong=True), *words, *reason(verdict.get("why", "")))
