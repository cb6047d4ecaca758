"""The document that every format writes: a cover, chapters by subject, and what they are about."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.domains import violated_conditions
from formulas.algebra.equation import Equation, slug
from formulas.algebra.steps import DerivationStep
from formulas.nomenclature.sources import Citation, Source
from formulas.nomenclature.symbols import SYMBOLS, meaning, symbol_unit
from formulas.numerics.digits import NOT_SMALL
from formulas.numerics.evaluate import collect, scalar, topo_order
from formulas.registry import by_name, description, subject, tags

Case = Mapping[str, float]
Cases = Mapping[str, Case]


@dataclass(frozen=True)
class NeglectedSize:
    """Relative size of a neglected term in one case [-], or the symbol without a value."""

    case: str
    neglected: str
    size: float | None
    missing: str = ""

    @property
    def remark(self) -> str:
        """A warning where the neglected term is half of the term kept or more."""
        large = self.size is not None and self.size >= NOT_SMALL
        return ", which is not small: the approximation fails here" if large else ""


@dataclass(frozen=True)
class ClaimEntry:
    """A claim as documents show it.

    `name` is its anchor, `factor` how far its farthest number is off, in digits, `rows` are labels
    with words, `equations` names in the catalogue.
    """

    name: str
    statement: str
    verdict: str
    factor: str
    rows: tuple[tuple[str, str], ...]
    equations: tuple[str, ...]
    source: Citation

    @property
    def derivations(self) -> tuple[tuple[str, str], ...]:
        """Anchor and title of each of its equations."""
        return tuple((name, by_name()[name].name) for name in self.equations)


@dataclass(frozen=True)
class AcceptanceTable:
    """Claims with the rule of their verdicts and its tally; shown as a table where `whole`."""

    rule: str
    tally: str
    entries: tuple[ClaimEntry, ...]
    whole: bool = True


@dataclass(frozen=True)
class FormulaEntry:
    """Equation or derivation, checked, with its value in each case.

    `home` is the module of the catalogue that holds it and `python` its name there; both are empty
    for an object from elsewhere. `values` are those of the left side, for the cases that give
    every symbol it takes. `claims` are those that rest on it.
    """

    item: Equation | Derivation
    home: str
    python: str
    values: tuple[tuple[str, float], ...]
    sizes: tuple[NeglectedSize, ...]
    claims: tuple[ClaimEntry, ...] = ()
    broken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def outside(self, case: str) -> str:
        """`; outside: ...`, the conditions that a case breaks; empty where all hold."""
        return "; outside: " + ", ".join(self.broken[case]) if self.broken.get(case) else ""

    @property
    def derived(self) -> bool:
        """True if it has steps."""
        return isinstance(self.item, Derivation)

    @property
    def steps(self) -> tuple[tuple[DerivationStep, str], ...]:
        """Its steps with their proofs, or its single line."""
        if isinstance(self.item, Derivation):
            return tuple(zip(self.item.steps, self.item.proofs, strict=True))
        return ((DerivationStep("state", self.item.symbol, self.item.rhs, ""), ""),)

    @property
    def symbols(self) -> set[sp.Symbol]:
        """The symbols that its lines print."""
        sides = (side for step, _ in self.steps for side in (step.lhs, step.rhs, step.size))
        return set().union(*(side.free_symbols for side in sides if side is not None))

    @property
    def tags(self) -> tuple[str, ...]:
        """Labels of the entry: claims of the lecture (C1 ... C50) and others."""
        return tags(self.python)

    @property
    def unit(self) -> str:
        """Unit of the left side, where that is a symbol without numbers put in."""
        return unit_of_left_side(self.item)

    @property
    def title(self) -> str:
        """The name with a capital."""
        return self.item.name[:1].upper() + self.item.name[1:]

    @property
    def anchor(self) -> str:
        """The fragment of a link to this entry."""
        return self.python or slug(self.item.name)

    @property
    def kind(self) -> str:
        """`equation`, or whether the derivation is exact."""
        if not isinstance(self.item, Derivation):
            return "equation"
        form = "exact" if self.item.exact else "approximate"
        return f"derivation, {form}, {self.item.weakest}"

    @property
    def premises(self) -> tuple[str, ...]:
        """Premises of a derivation; empty for an equation."""
        return self.item.premises if isinstance(self.item, Derivation) else ()


def _entry(
    item: Equation | Derivation, cases: Cases, claims: Sequence[ClaimEntry], home: str, python: str
) -> FormulaEntry:
    item.check()
    numbers = [(case, value_in_case(item, values)) for case, values in cases.items()]
    values = tuple((case, value) for case, value in numbers if value is not None)
    sizes = tuple(size for case in cases for size in _sizes(item, case, cases[case]))
    broken = {
        case: violated_conditions(item.assumes, item.where, cases[case]) for case, _ in values
    }
    resting = tuple(claim for claim in claims if claim.name in tags(python))
    return FormulaEntry(item, home, python, values, sizes, resting, broken)


def _sizes(item: Equation | Derivation, name: str, case: Case) -> tuple[NeglectedSize, ...]:
    """Relative sizes of all neglected terms in a case; a missing symbol is named instead."""
    if isinstance(item, Equation) or item.exact:
        return ()
    # A limit is taken at the value that the case gives; a solved symbol is what came out.
    solved = solved_symbols(item)
    try:
        strain = item.strain({x: v for x, v in case.items() if x not in solved})
    except ValueError as error:  # a symbol is missing, or the size is undefined there
        return (NeglectedSize(name, "", None, str(error)),)
    return tuple(NeglectedSize(name, term, size) for term, size in strain.items())


def solved_symbols(item: Equation | Derivation) -> set[str]:
    """Names of the symbols that a derivation solves for; empty for an equation."""
    if isinstance(item, Equation) or item.numeric or not item.lhs.is_Symbol:
        return set()
    solved = {step.solved for step in item.steps if step.solved} | {item.lhs}
    return {x.name for x in solved if not item.rhs.has(x)}


def value_in_case(item: Equation | Derivation, case: Case) -> float | None:
    """The left side, a symbol, in a case that gives every symbol it takes; else nothing.

    Not a number where the right side has no value there: a zero below a line, a root of less.
    """
    if not item.lhs.is_Symbol:
        return None
    definitions = {x: e for x, e in collect(item.where).items() if x.name not in case}
    needed = topo_order(definitions, [item.rhs])
    free = item.rhs.free_symbols.union(*(e.free_symbols for e in needed.values())) - set(needed)
    if any(x.name not in case for x in free):
        return None
    try:
        return scalar(item.where, {"value": item.rhs}, case)["value"]
    except ValueError:  # it is undefined there, and the page says so
        return math.nan


def unit_of_left_side(item: Equation | Derivation) -> str:
    """Unit of the left side, empty where that is no symbol or numbers were put in."""
    numeric = isinstance(item, Derivation) and item.numeric
    return symbol_unit(item.lhs).written if item.lhs.is_Symbol and not numeric else ""


# How to read a long document, a paragraph each.
GUIDE = Path(__file__).with_name("guide.txt").read_text("utf-8").strip().split("\n\n")


@dataclass(frozen=True)
class SymbolRow:
    """One line of the table of symbols, with its value in each case (None: not given)."""

    symbol: sp.Symbol
    unit: str
    meaning: str
    values: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """Entries of one subject, under the first sentence of the module that holds them."""

    subject: str
    description: str
    entries: tuple[FormulaEntry, ...]

    @property
    def title(self) -> str:
        """The sentence up to its colon: `Speculative decoding`."""
        return self.description.partition(":")[0].removesuffix(".")

    @property
    def about(self) -> str:
        """Part of the description after its colon, with a capital."""
        rest = self.description.partition(":")[2].strip()
        return rest[:1].upper() + rest[1:]


@dataclass(frozen=True)
class FormulaDocument:
    """Everything a format needs."""

    title: str
    chapters: tuple[Chapter, ...]
    rows: tuple[SymbolRow, ...]
    sources: tuple[Source, ...]
    cases: Cases
    about: tuple[str, ...] = ()
    acceptance: AcceptanceTable | None = None

    @property
    def claims(self) -> tuple[ClaimEntry, ...]:
        """Claims of the acceptance table, if the document prints it whole; otherwise empty."""
        shown = self.acceptance is not None and self.acceptance.whole
        return self.acceptance.entries if self.acceptance and shown else ()

    @property
    def anchors(self) -> frozenset[str]:
        """Anchors within the document that a link can lead to: entries and claims."""
        return frozenset(
            [*(entry.anchor for entry in self.entries), *(claim.name for claim in self.claims)]
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The paragraphs of the cover: a guide for long documents, then the caller's words."""
        return (*(" ".join(each.split()) for each in GUIDE if self.headed), *self.about)

    @property
    def entries(self) -> tuple[FormulaEntry, ...]:
        """Entries of all chapters."""
        return tuple(entry for chapter in self.chapters for entry in chapter.entries)

    @property
    def differences(self) -> tuple[SymbolRow, ...]:
        """Rows of the symbols whose values differ between the cases."""
        return tuple(row for row in self.rows if len(set(row.values) - {None}) > 1)

    @property
    def headed(self) -> bool:
        """True if there are enough entries for chapters and a table of contents."""
        return len(self.entries) > 3


def document(
    objects: Iterable[Equation | Derivation],
    cases: Cases,
    title: str | None = None,
    about: tuple[str, ...] = (),
    acceptance: AcceptanceTable | None = None,
) -> FormulaDocument:
    """The objects, checked, in chapters, with their symbols, sources and values.

    Raises DerivationError if a step does not follow.
    """
    homes = {id(value): (subject(name), name) for name, value in by_name().items()}
    claims = acceptance.entries if acceptance else ()
    listed = [_entry(item, cases, claims, *homes.get(id(item), ("", ""))) for item in objects]
    chapters = tuple(
        Chapter(home, description(home) if home else "", tuple(group))
        for home, group in groupby(listed, key=lambda entry: entry.home)
    )
    if title is None:
        title = listed[0].title if len(listed) == 1 else "Equations and derivations"
    rows, sources = _rows(listed, cases), _sources(listed)
    return FormulaDocument(title, chapters, rows, sources, cases, about, acceptance)


def _rows(listed: Iterable[FormulaEntry], cases: Cases) -> tuple[SymbolRow, ...]:
    """Every symbol that occurs, by name."""
    symbols: set[sp.Symbol] = set()
    for entry in listed:
        symbols |= entry.symbols
        for equation in entry.item.where:
            symbols |= {equation.symbol, *equation.rhs.free_symbols}
    registered = (x for x in symbols if SYMBOLS.get(x.name) == x)
    ordered = sorted(registered, key=lambda x: (x.name.lower(), x.name))
    return tuple(
        SymbolRow(
            x, symbol_unit(x).written, meaning(x), tuple(c.get(x.name) for c in cases.values())
        )
        for x in ordered
    )


def _sources(listed: Iterable[FormulaEntry]) -> tuple[Source, ...]:
    cited = [entry.item.source for entry in listed]
    cited += [equation.source for entry in listed for equation in entry.item.where]
    works = {citation.source.key: citation.source for citation in cited if citation.source}
    return tuple(sorted(works.values(), key=lambda s: (s.authors.lower(), s.year, s.title)))
