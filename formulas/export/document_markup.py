"""Documents in Markdown, LaTeX and Typst by one walk, with the forms of each in a table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from formulas.algebra.equation import Equation
from formulas.export.formula_document import FormulaDocument, FormulaEntry, NeglectedSize, SymbolRow


@dataclass(frozen=True)
class DocumentMarkup:
    """How a notation writes the parts of a document.

    Attributes
    ----------
    words, figure, definition, link : Write words, a number, an equation among words, and the words
        of a link behind its address.
    steps : Writes the steps of an entry.
    table : Writes symbols with their values.
    between : Stands between the parts of an entry.
    heading, chapter, title, kind, item, listed : Around words; of a chapter its title and what it
        is about, of an entry title and anchor.
    """

    words: Callable[[str], str]
    figure: Callable[[float], str]
    definition: Callable[[Equation], str]
    link: Callable[[str, str], str]
    steps: Callable[[FormulaEntry], Iterator[str]]
    table: Callable[[FormulaDocument, tuple[SymbolRow, ...]], str]
    between: str
    heading: str
    chapter: str
    title: str
    kind: str
    item: str
    listed: str

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

    def chapters(self, whole: FormulaDocument) -> Iterator[str]:
        """A section for every entry, in chapters."""
        for chapter in whole.chapters:
            if whole.headed and chapter.subject:
                yield self.chapter % (self.words(chapter.title), self.words(chapter.about))
            yield from map(self.section, chapter.entries)

    def section(self, entry: FormulaEntry) -> str:
        """One entry: its title, its steps and what is to be said of them."""
        title = self.title % {"title": self.words(entry.title), "anchor": entry.anchor}
        kind = self.kind % self.words(", ".join([entry.kind, *entry.tags]))
        return self.between.join([title, kind, *self.steps(entry), self._list(self._notes(entry))])

    def _notes(self, entry: FormulaEntry) -> Iterator[str]:
        yield from (f"where {self.definition(equation)}" for equation in entry.item.where)
        for case, value in entry.values:
            unit = self.words(f"[{entry.unit}]") if entry.unit != "1" else ""
            yield f"value, {self.words(case)}: {value_words(value, self.figure(value), unit)}"
        for size in entry.sizes:
            yield f"neglected, {size_words(size, self.words, self.figure)}"
        yield from (f"assumes: {self.words(assumption)}" for assumption in entry.item.assumes)
        source = entry.item.source
        link, words = source.link, self.words(str(source))
        yield f"source: {self.link(link, words) if link else words}"

    def _list(self, items: Iterable[str]) -> str:
        return self.listed % "\n".join(self.item % item for item in items)


def value_words(value: float, number: str, unit: str) -> str:
    """`2400 [seq]`, or that the conditions fail where a positive symbol came out negative."""
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
