"""Blocks that the book is made of, and its formats: one walk over them, a table of forms each."""

from collections.abc import Callable, Iterable, Iterator
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


@dataclass(frozen=True)
class BookMarkup:
    """How a notation writes the blocks of the book.

    Attributes
    ----------
    words, strong, link, maths : Write words, words that stand out, words that lead to an anchor
        or address, and a formula within a line.
    heading : Of a level, with words and anchor.
    paragraphs : {kind: form around a line}.
    statement : Writes title, anchor and the line of an equation.
    steps : Writes the steps of a derivation.
    entry : Around a title, an anchor and a body.
    grid : Writes heads, rows of cells and widths.
    items : Writes lines as a list.
    picture : Writes a drawing and its anchor.
    answer : Writes number and line of an answer; None gathers them behind their chapter.
    between : Stands between blocks.
    """

    words: Callable[[str], str]
    strong: Callable[[str], str]
    link: Callable[[str, str], str]
    maths: Callable[[Formula], str]
    heading: Callable[[int, str, str], str]
    paragraphs: dict[str, str]
    statement: Callable[[str, str, FormulaEntry], str]
    steps: Callable[[FormulaEntry], str]
    entry: Callable[[str, str, str], str]
    grid: Callable[[list[str], list[list[str]], tuple[float, ...]], str]
    items: Callable[[list[str]], str]
    picture: Callable[[Drawing, str], str]
    answer: Callable[[str, str], str] | None
    between: str = "\n\n"

    def line(self, spans: Prose) -> str:
        """A line of prose."""
        return "".join(map(self._span, spans))

    def _span(self, span: ProseWords | Formula | ProseLink) -> str:
        if isinstance(span, Formula):
            return self.maths(span)
        if isinstance(span, ProseLink):
            return self.link(span.to, self.words(span.words))
        written = self.words(span.text)
        return self.strong(written) if span.strong else written

    def written(self, blocks: Iterable[Block]) -> str:
        """All blocks; answers that do not fold stand behind the exercises of their chapter."""
        return self.between.join(self._rendered(list(blocks)))

    def _rendered(self, blocks: list[Block]) -> Iterator[str]:
        gathered: list[FoldedAnswer] = []
        for block in [*blocks, Heading(1, "", "")]:
            if isinstance(block, Heading) and block.level == 1 and gathered:
                yield self.heading(3, self.words("Answers"), "")
                yield self.items([self._answer(each) for each in gathered])
                gathered = []
            if isinstance(block, FoldedAnswer) and self.answer is None:
                gathered.append(block)
            elif not (isinstance(block, Heading) and not block.words):
                yield self.block(block)

    def _answer(self, block: FoldedAnswer) -> str:
        return self.strong(self.words(block.number)) + " " + self.line(block.line)

    def block(self, block: Block) -> str:
        """One block."""
        match block:
            case Heading(level, words, anchor):
                return self.heading(level, self.words(words), anchor)
            case Paragraph(line, kind):
                return self.paragraphs.get(kind, "%s") % self.line(line)
            case Statement(entry, anchor, note):
                body = self.statement(self.words(entry.title), anchor, entry)
                if note:
                    body += self.between + self.paragraphs["note"] % self.line(note)
                return body
            case Proof(entry, anchor):
                return self._proof(entry, anchor)
            case BookTable(heads, rows, shares):
                cells = [[self.line(cell) for cell in row] for row in rows]
                return self.grid(list(map(self.words, heads)), cells, shares)
            case Items(lines):
                return self.items([self.line(line) for line in lines])
            case Picture(drawing, anchor):
                return self.picture(drawing, anchor)
            case FoldedAnswer(number, line) if self.answer is not None:
                return self.answer(number, self.line(line))
        raise TypeError(f"nothing writes {type(block).__name__}")

    def _proof(self, entry: FormulaEntry, anchor: str) -> str:
        """The steps, then the conditions on a line of small print."""
        body = self.steps(entry)
        if entry.item.assumes:
            note = self.words(f"Assumed: {'; '.join(entry.item.assumes)}.")
            body += self.between + self.paragraphs["note"] % note
        return self.entry(self.words(entry.title), anchor, body)
