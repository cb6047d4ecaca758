"""Documents in Markdown, LaTeX and Typst by one walk, with the forms of each in a table.

An assumption or a reason names symbols as a program does, and `pieces` reads the formulas among its
words: `B*m_pos > B_0; below it every context is memory-bound` is a relation and a clause. Text is
read, never run: numbers, registered symbols, arithmetic, powers, a few functions, relations.
"""

import ast
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sympy as sp

from formulas.algebra.equation import Equation
from formulas.export.formula_document import (
    ClaimEntry,
    FormulaDocument,
    FormulaEntry,
    NeglectedSize,
    SymbolRow,
)
from formulas.nomenclature.sources import Citation
from formulas.nomenclature.symbols import SYMBOLS

SET = ("ours", "why")  # rows of a claim whose symbols are ours


@dataclass(frozen=True)
class DocumentMarkup:
    """How a notation writes the parts of a document.

    Attributes
    ----------
    words, maths, figure, definition, link : Write words, a formula among them, a number, an
        equation among words, and the words of a link behind its address.
    inner : Writes the words of a link to an anchor of the same document.
    grid : Writes a table of words under its heads; the last column is the wide one.
    steps : Writes the steps of an entry.
    table : Writes symbols with their values.
    between : Stands between the parts of an entry.
    heading, chapter, title, kind, item, listed : Around words; of a chapter its title and what it
        is about, of an entry title and anchor.
    """

    words: Callable[[str], str]
    maths: Callable[[sp.Basic], str]
    figure: Callable[[float], str]
    definition: Callable[[Equation], str]
    link: Callable[[str, str], str]
    inner: Callable[[str, str], str]
    grid: Callable[[Sequence[str], Sequence[Sequence[str]]], str]
    steps: Callable[[FormulaEntry], Iterator[str]]
    table: Callable[[FormulaDocument, tuple[SymbolRow, ...]], str]
    between: str
    heading: str
    chapter: str
    title: str
    kind: str
    item: str
    listed: str

    def prose(self, words: str) -> str:
        """Words with their formulas set."""
        return "".join(
            self.words(piece) if isinstance(piece, str) else self.maths(piece)
            for piece in pieces(words)
        )

    def differences(self, whole: FormulaDocument) -> list[str]:
        """Symbols on which the cases do not agree, under a heading."""
        if len(whole.cases) < 2 or not whole.differences:
            return []
        title = self.heading % "Assumptions where they differ"
        return [title, self.table(whole, whole.differences)]

    def back(self, whole: FormulaDocument) -> list[str]:
        """All symbols, and the works cited."""
        cited = [
            f"{self.words(s.authors)}, {self.link(s.link, self.words(s.title))} ({s.year})"
            for s in whole.sources
        ]
        sources = [self.heading % "Sources", self._list(cited)] if cited else []
        return [self.heading % "Symbols", self.table(whole, whole.rows), *sources]

    def claims(self, whole: FormulaDocument) -> Iterator[str]:
        """The acceptance table and a section for every claim, where the document shows it."""
        if not whole.claims or whole.acceptance is None:
            return
        yield self.chapter % ("Claims of the lecture", self.words(whole.acceptance.tally))
        yield self.words(whole.acceptance.rule)
        heads = ("claim", "verdict", "factor", "what the lecture says")
        yield self.grid(
            heads,
            [
                (self.inner(x.name, x.name), *map(self.words, (x.verdict, x.factor, x.statement)))
                for x in whole.claims
            ],
        )
        yield from (self._claim(claim, whole.anchors) for claim in whole.claims)

    def _claim(self, claim: ClaimEntry, anchors: frozenset[str]) -> str:
        title = self.title % {
            "title": self.words(f"{claim.name}. {claim.statement}"),
            "anchor": claim.name,
        }
        rows = [
            f"{label}: {(self.prose if label in SET else self.words)(words)}"
            for label, words in claim.rows
        ]
        titles = [(name, self.words(title)) for name, title in claim.derivations]
        derived = [self.inner(name, x) if name in anchors else x for name, x in titles]
        rows += [f"derived in: {'; '.join(derived)}"] if derived else []
        rows.append(f"source: {self._cited(claim.source)}")
        return self.between.join([title, self._list(rows)])

    def _cited(self, source: Citation) -> str:
        words = self.words(str(source))
        return self.link(source.link, words) if source.link else words

    def chapters(self, whole: FormulaDocument) -> Iterator[str]:
        """The claims, then a section for every entry, in chapters."""
        yield from self.claims(whole)
        for chapter in whole.chapters:
            if whole.headed and chapter.subject:
                yield self.chapter % (self.words(chapter.title), self.words(chapter.about))
            yield from (self.section(entry, whole) for entry in chapter.entries)

    def section(self, entry: FormulaEntry, whole: FormulaDocument) -> str:
        """One entry: its title, unless the document has it, its steps, what is to be said of it."""
        title = self.title % {"title": self.words(entry.title), "anchor": entry.anchor}
        head = [] if entry.title == whole.title else [title]
        kind = self.kind % self.words(", ".join([entry.kind, *entry.tags]))
        notes = self._list(self._notes(entry, whole.anchors))
        return self.between.join([*head, kind, *self.steps(entry), notes])

    def _notes(self, entry: FormulaEntry, anchors: frozenset[str]) -> Iterator[str]:
        yield from (f"where {self.definition(equation)}" for equation in entry.item.where)
        for case, value in entry.values:
            unit = self.words(f"[{entry.unit}]") if entry.unit != "1" else ""
            words = value_words(value, self.figure(value), unit)
            yield f"value, {self.words(case)}: {words}{self.words(entry.outside(case))}"
        for size in entry.sizes:
            yield f"neglected, {size_words(size, self.words, self.figure)}"
        yield from (f"takes: {self.words(premise)}" for premise in entry.premises)
        yield from (f"assumes: {self.prose(assumption)}" for assumption in entry.item.assumes)
        for claim in entry.claims:
            name = self.inner(claim.name, claim.name) if claim.name in anchors else claim.name
            yield f"claim {name}, {claim.verdict}: {self.words(claim.statement)}"
        yield f"source: {self._cited(entry.item.source)}"

    def _list(self, items: Iterable[str]) -> str:
        return self.listed % "\n".join(self.item % item for item in items)


def value_words(value: float, number: str, unit: str) -> str:
    """`2400 [seq]`, or that the conditions fail where a positive symbol came out negative."""
    if math.isnan(value):
        return "none: it is undefined there, so a condition below does not hold"
    if value < 0:
        return f"none: {number} is not positive, so a condition below does not hold"
    return f"{number} {unit}" if unit else number


def size_words(
    size: NeglectedSize, words: Callable[[str], str], figure: Callable[[float], str]
) -> str:
    """`lecture: drop x/W: 0.07 times what is kept`."""
    if size.size is None:
        return f"{words(size.case)}: not known, {words(size.missing)}"
    head = f"{words(size.case)}: {words(size.neglected)}"
    return f"{head}: {figure(size.size)} times what is kept{size.remark}"


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
