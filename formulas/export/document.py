"""The document that every format writes: a cover, chapters by subject, and what they are about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.export.entry import Cases, FormulaEntry, entries
from formulas.nomenclature.sources import Source
from formulas.nomenclature.symbols import SYMBOLS, meaning, unit_of_symbol
from formulas.registry import description

GUIDE = (
    "Every line is a statement that was checked when this was written: units on both sides, and "
    "each step of a derivation against the one before it. After a step stands what was done and "
    "why, and in brackets how it was shown to follow: symbolically, at exact rational points, by "
    "definition, or as a limit.",
    "A sign of equality (=) is exact. A wavy sign (≈) neglects a term; beside it stands the size "
    "of what was neglected over what was kept, as a formula and, where values are given, as a "
    "number. A derivation with one such step is called approximate.",
    "Tags such as C8 number the claims of the lecture that these pages examine. Without a suffix a "
    "symbol means all chips of one replica together; with chip it means one of them.",
)


@dataclass(frozen=True)
class SymbolRow:
    """One line of the table of symbols, with its value in each case (None: not given)."""

    symbol: sp.Symbol
    unit: str
    meaning: str
    values: tuple[float | None, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether two cases give it different values."""
        return len(set(self.values) - {None}) > 1


@dataclass(frozen=True)
class Chapter:
    """Entries of one subject, under the first sentence of the module that holds them."""

    subject: str
    about: str
    entries: tuple[FormulaEntry, ...]

    @property
    def title(self) -> str:
        """`decode_bound` as `Decode bound`."""
        words = self.subject.replace("_", " ").replace("kvcache", "KV cache")
        return words[:1].upper() + words[1:]


@dataclass(frozen=True)
class FormulaDocument:
    """Everything a format needs."""

    title: str
    chapters: tuple[Chapter, ...]
    rows: tuple[SymbolRow, ...]
    sources: tuple[Source, ...]
    cases: Cases
    about: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """What the cover says: how to read it, where that needs saying, and the caller's words."""
        return (*(GUIDE if self.headed else ()), *self.about)

    @property
    def entries(self) -> tuple[FormulaEntry, ...]:
        """Of all chapters."""
        return tuple(entry for chapter in self.chapters for entry in chapter.entries)

    @property
    def differences(self) -> tuple[SymbolRow, ...]:
        """Symbols on which the cases do not agree."""
        return tuple(row for row in self.rows if row.differs)

    @property
    def headed(self) -> bool:
        """Whether there is enough for chapters and a table of contents."""
        return len(self.entries) > 3


def document(
    objects: Iterable[Equation | Derivation],
    cases: Cases,
    title: str | None = None,
    about: tuple[str, ...] = (),
) -> FormulaDocument:
    """The objects, checked, in chapters, with their symbols, sources and values.

    Raises
    ------
    DerivationError
        If a step does not follow.
    """
    listed = entries(objects, cases)
    chapters = tuple(
        Chapter(home, description(home) if home else "", tuple(group))
        for home, group in groupby(listed, key=lambda entry: entry.home)
    )
    if title is None:
        title = listed[0].title if len(listed) == 1 else "Equations and derivations"
    return FormulaDocument(title, chapters, _rows(listed, cases), _sources(listed), cases, about)


def _rows(listed: Iterable[FormulaEntry], cases: Cases) -> tuple[SymbolRow, ...]:
    """Every symbol that occurs, by name; letters that a sum runs over are not among them."""
    symbols: set[sp.Symbol] = set()
    for entry in listed:
        for step, _ in entry.steps:
            symbols |= step.lhs.free_symbols | step.rhs.free_symbols
            symbols |= step.size.free_symbols if step.size is not None else set()
        for equation in entry.where:
            symbols |= {equation.symbol, *equation.rhs.free_symbols}
    registered = (x for x in symbols if SYMBOLS.get(x.name) == x)
    ordered = sorted(registered, key=lambda x: (x.name.lower(), x.name))
    return tuple(
        SymbolRow(
            x, str(unit_of_symbol(x)), meaning(x), tuple(c.get(x.name) for c in cases.values())
        )
        for x in ordered
    )


def _sources(listed: Iterable[FormulaEntry]) -> tuple[Source, ...]:
    cited = [entry.source for entry in listed]
    cited += [equation.source for entry in listed for equation in entry.where]
    works = {citation.source.key: citation.source for citation in cited if citation.source}
    return tuple(sorted(works.values(), key=lambda s: (s.authors.lower(), s.year, s.title)))
