"""Blocks that documents are made of, and formats: one walk over them, a table of forms each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from formulas.export.drawing import Drawing
from formulas.export.formula_document import Cases, FormulaEntry
from formulas.export.words import Formula, Prose, ProseLink, ProseWords, reason


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
class Steps:
    """Kind of an entry and its steps or its single line; the title precedes this block."""

    entry: FormulaEntry


@dataclass(frozen=True)
class Notes:
    """Lines with a label each."""

    rows: tuple[tuple[str, Prose], ...]


@dataclass(frozen=True)
class Article:
    """Group of blocks under its own title; if that is empty, under the document's title."""

    title: str
    anchor: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class FoldedPart:
    """Part for reference, folded where the format can: `count` items under a title."""

    title: str
    count: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class BookTable:
    """A table; `shares` are the widths of its columns, of 1."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Prose, ...], ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class BulletList:
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


@dataclass(frozen=True)
class CodeCell:
    """Python that a notebook runs in this place; other formats leave it out."""

    source: str


Block: TypeAlias = (
    "Heading | Paragraph | Statement | Proof | Steps | Notes | Article | FoldedPart | BookTable"
    " | BulletList | Picture | FoldedAnswer | CodeCell"
)


@dataclass(frozen=True)
class BlockDocument:
    """Title, words of the cover, and the blocks of all chapters; the values that they print.

    Notebooks compute again from `cases`.
    """

    title: str
    about: tuple[Prose, ...]
    blocks: tuple[Block, ...]
    cases: Cases = field(default_factory=dict)

    @property
    def contents(self) -> list[tuple[Heading, list[Article]]]:
        """The titles of the chapters, with their articles."""
        listed: list[tuple[Heading, list[Article]]] = []
        for block in self.blocks:
            if isinstance(block, Heading) and block.level == 1:
                listed.append((block, []))
            elif isinstance(block, Article) and listed:
                listed[-1][1].append(block)
        return listed


@dataclass(frozen=True)
class BlockMarkup:
    """Functions and templates of a notation that write blocks.

    Attributes:
        words, strong, link, maths: Write words, words that stand out, words that lead to an anchor
            or address, and a formula within a line.
        heading: Of a level, with words and anchor.
        paragraphs: {kind: form around a line}.
        statement: Writes title, anchor and the line of an equation.
        steps: Writes the steps of a derivation, or the line of an equation.
        entry: Around a title, an anchor and a body.
        grid: Writes heads, rows of cells and widths.
        items: Writes lines as a list.
        picture: Writes a drawing and its anchor.
        answer: Writes number and line of an answer; None gathers them behind their chapter.
        between, within: Stand between blocks, and between those of an article.
        article, folded, notes, kind: Around title, anchor and body; around title, count and body;
            of labels with lines; of an entry. None writes a heading, a list, a line of words.
    """

    words: Callable[[str], str]
    strong: Callable[[str], str]
    link: Callable[[str, str], str]
    maths: Callable[[Formula], str]
    heading: Callable[[int, str, str], str]
    paragraphs: Mapping[str, str]
    statement: Callable[[str, str, FormulaEntry], str]
    steps: Callable[[FormulaEntry], str]
    entry: Callable[[str, str, str], str]
    grid: Callable[[list[str], list[list[str]], tuple[float, ...]], str]
    items: Callable[[list[str]], str]
    picture: Callable[[Drawing, str], str]
    answer: Callable[[str, str], str] | None
    between: str = "\n\n"
    within: str = "\n\n"
    article: Callable[[str, str, str], str] | None = None
    folded: Callable[[str, int, str], str] | None = None
    notes: Callable[[Sequence[tuple[str, str]]], str] | None = None
    kind: Callable[[FormulaEntry], str] | None = None

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
        """Write all blocks; answers that do not fold follow the exercises of their chapter."""
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
            elif not isinstance(block, CodeCell) and getattr(block, "words", True):
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
                    body += self.between + self.paragraphs.get("note", "%s") % self.line(note)
                return body
            case Proof(entry, anchor):
                return self._proof(entry, anchor)
            case Steps(entry):
                return self.within.join([self._kind(entry), self.steps(entry)])
            case Notes(rows):
                lines = [(self.words(label), self.line(line)) for label, line in rows]
                written = self.notes or (lambda pairs: self.items([f"{k}: {v}" for k, v in pairs]))
                return written(lines)
            case Article(title, anchor, blocks):
                return self._article(title, anchor, self.within.join(map(self.block, blocks)))
            case FoldedPart(title, count, blocks):
                body = self.written(blocks)
                if self.folded is not None:
                    return self.folded(self.words(title), count, body)
                return self.between.join([self.heading(2, self.words(title), ""), body])
            case BookTable(heads, rows, shares):
                cells = [[self.line(cell) for cell in row] for row in rows]
                return self.grid(list(map(self.words, heads)), cells, shares)
            case BulletList(lines):
                return self.items([self.line(line) for line in lines])
            case Picture(drawing, anchor):
                return self.picture(drawing, anchor)
            case FoldedAnswer(number, line) if self.answer is not None:
                return self.answer(number, self.line(line))
        raise TypeError(f"nothing writes {type(block).__name__}")

    def _proof(self, entry: FormulaEntry, anchor: str) -> str:
        body = self.steps(entry)
        if entry.item.assumes:
            note = "; ".join(self.line(reason(each)) for each in entry.item.assumes)
            body += self.between + self.paragraphs.get("note", "%s") % f"Assumed: {note}."
        return self.entry(self.words(entry.title), anchor, body)

    def _kind(self, entry: FormulaEntry) -> str:
        if self.kind is not None:
            return self.kind(entry)
        return self.paragraphs.get("kind", "%s") % self.words(", ".join([entry.kind, *entry.tags]))

    def _article(self, title: str, anchor: str, body: str) -> str:
        if self.article is not None:
            return self.article(self.words(title), anchor, body)
        head = [self.heading(3, self.words(title), anchor)] if title else []
        return self.within.join([*head, body])
