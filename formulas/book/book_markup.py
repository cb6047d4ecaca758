"""The book in Markdown, LaTeX, Typst and HTML by one walk, with the forms of each in a table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from formulas.book.blocks import (
    Block,
    BookTable,
    FoldedAnswer,
    Formula,
    Heading,
    Items,
    Paragraph,
    Picture,
    Proof,
    Prose,
    ProseLink,
    ProseWords,
    Statement,
)
from formulas.book.drawing import Drawing
from formulas.export.formula_document import FormulaEntry


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
        return self.between.join(self._written(list(blocks)))

    def _written(self, blocks: list[Block]) -> Iterator[str]:
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
