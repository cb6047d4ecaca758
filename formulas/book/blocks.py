"""Blocks: what the book is made of before any markup."""

from dataclasses import dataclass
from typing import TypeAlias

import sympy as sp

from formulas.book.drawing import Drawing
from formulas.export.formula_document import FormulaEntry
from formulas.export.typesetting.boxes import Layout


@dataclass(frozen=True)
class ProseWords:
    """Plain words, which may stand out."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Formula:
    """A formula within a line: its boxes, how it is typed, and the symbols in it."""

    boxes: Layout
    typed: str
    symbols: frozenset[sp.Symbol] = frozenset()


@dataclass(frozen=True)
class ProseLink:
    """Words that lead to an anchor of the book, or to an address."""

    words: str
    to: str


Span: TypeAlias = ProseWords | Formula | ProseLink
Prose: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True)
class Heading:
    """A title: of a chapter (1), of a section (2), of an entry (3)."""

    level: int
    words: str
    anchor: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, which may be a question, a caption or a remark in small print."""

    line: Prose
    kind: str = ""


@dataclass(frozen=True)
class Statement:
    """An equation, or the last line of a derivation, on a line of its own behind its title."""

    entry: FormulaEntry
    anchor: str
    note: Prose = ()


@dataclass(frozen=True)
class Proof:
    """A derivation with its steps, its conditions and its source."""

    entry: FormulaEntry
    anchor: str


@dataclass(frozen=True)
class BookTable:
    """A table; `shares` are the widths of its columns, of 1."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Prose, ...], ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Items:
    """A list."""

    lines: tuple[Prose, ...]


@dataclass(frozen=True)
class Picture:
    """A figure."""

    drawing: Drawing
    anchor: str


@dataclass(frozen=True)
class FoldedAnswer:
    """The answer to an exercise: folded below it, or behind the chapter."""

    number: str
    line: Prose


Block: TypeAlias = (
    Heading | Paragraph | Statement | Proof | BookTable | Items | Picture | FoldedAnswer
)


@dataclass(frozen=True)
class BookDocument:
    """Title, words of the cover, and the blocks of all chapters."""

    title: str
    about: tuple[Prose, ...]
    blocks: tuple[Block, ...]

    @property
    def contents(self) -> tuple[Heading, ...]:
        """The titles of the chapters."""
        return tuple(x for x in self.blocks if isinstance(x, Heading) and x.level == 1)
