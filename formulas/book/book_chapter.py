"""Chapters as rows: what `chapters/*.toml` hold, read and held to their form.

A chapter without its figure, an exercise without an answer or a name that the catalogue does not
have is refused in a sentence that says where.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from formulas.book import book_values
from formulas.nomenclature.symbols import did_you_mean

Row = TypeVar("Row")
FOLDER = Path(__file__).with_name("chapters")
EXERCISES = 5


@dataclass(frozen=True)
class BookChapter:
    """A chapter: its prose, the names it takes from the catalogue, and its values."""

    anchor: str
    title: str
    question: str
    figures: tuple[book_values.DrawnFigure, ...]
    assumptions: tuple[str, ...]
    parts: tuple[book_values.Part, ...]
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


def chapter_of(rows: Mapping[str, Any], anchor: str) -> BookChapter:
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
        ("parts", "part", book_values.Part),
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


def _figure(row: Mapping[str, Any], where: str) -> book_values.DrawnFigure:
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
    return _row(book_values.DrawnFigure, {**row, **drawn}, place)


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

    Raises BookError as `chapter_of` does.
    """
    read = []
    for file in sorted(FOLDER.glob("*.toml")):
        try:
            rows = tomllib.loads(file.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise book_values.BookError(f"{file.name} cannot be read: {error}") from error
        read.append(chapter_of(rows, file.stem.partition("-")[2]))
    return tuple(read)


def chosen(names: tuple[str, ...]) -> tuple[BookChapter, ...]:
    """The chapters of these anchors or numbers, all where none is named.

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
