"""The book set from its rows: blocks of every chapter, then the catalogue as a reference.

A symbol is listed in the first chapter that uses it, ahead of its formulas, and an equation that a
step puts in is stated ahead of that step, so that nothing is used before it is said.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.algebra.steps import approximations
from formulas.book import prose as text
from formulas.book.book_values import CASES, BookError, Failure, WorkedRow, answer_words, exact
from formulas.book.curves import draw_figure
from formulas.claims.claim import UNITS, all_claims
from formulas.export import FORMATS, writer
from formulas.export import blocks as page
from formulas.export.formula_document import FormulaEntry, document, solved_symbols
from formulas.export.latex import bibtex
from formulas.export.typesetting.layout import layout
from formulas.export.words import Formula, Prose, ProseLink, ProseWords
from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.expressions import sstr
from formulas.registry import by_name, subject

CITED_SOURCES = "token-planner"  # the author of what others cite
FRONT = tomllib.loads(Path(__file__).with_name("front.toml").read_text("utf-8"))
Verdicts: TypeAlias = Mapping[str, Mapping[str, str]]
NO_VERDICTS: Verdicts = MappingProxyType({})


def book(form: str, names: Sequence[str] = (), verdicts: Verdicts = NO_VERDICTS) -> str:
    """The book, or some chapters by anchor or number, in a format of `FORMATS`.

    `verdicts` are the rows of the acceptance table by claim: `verdict` and `why`. Raises BookError
    if there is no such format or chapter, or a chapter cannot be set; DerivationError if a
    derivation does not check.
    """
    if form not in FORMATS:
        raise BookError(f"no format {form!r}; there are {', '.join(FORMATS)}")
    written = partial(writer(form), **HEADS.get(form, dict)())
    return written(book_document(tuple(names), verdicts))


def _latex_head() -> dict[str, str]:
    from formulas.export.latex import HEAD

    return {"head": HEAD.replace("11pt", "10pt") + _beside("book.tex")}


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


# Additions of the book's style to each output format.
HEADS: Mapping[str, Callable[[], dict[str, str]]] = {
    "html": lambda: {"style": _beside("book.css")},
    "latex": _latex_head,
    "typst": lambda: {"head": _beside("book.typ")},
}


def book_document(
    names: tuple[str, ...] = (), verdicts: Verdicts = NO_VERDICTS
) -> page.BlockDocument:
    """Every block of the book, or of some chapters; the appendix comes with the whole.

    Raises as `book`.
    """
    listed = text.chosen_chapters(names)
    setter = _Setter(listed, verdicts)
    blocks = [
        block for n, chapter in listed_with_numbers(listed) for block in setter.chapter(n, chapter)
    ]
    blocks += [] if names else setter.appendix()
    setter.check_links(blocks)
    title = FRONT["title"] if len(listed) != 1 else listed[0].title
    sets = {name: listed[0].sets[name] for name in CASES}
    about = tuple(text.prose(each, sets) for each in FRONT["about"])
    return page.BlockDocument(title, about, tuple(blocks))


def book_references(names: Sequence[str] = ()) -> str:
    """BibTeX of the chapters themselves, by their anchors, and of the works they cite.

    Raises BookError if there is no such chapter.
    """
    listed = text.chosen_chapters(tuple(names))
    ours = [
        f"@misc{{{CITED_SOURCES}:{chapter.anchor},\n  author = {{{{{CITED_SOURCES}}}}},\n"
        f"  title = {{{{{FRONT['title']}: {chapter.title}}}}},\n"
        f"  howpublished = {{planner derive --book {chapter.anchor}}},\n}}"
        for chapter in listed
    ]
    works = bibtex(by_name()[name] for chapter in listed for name in chapter.taken)
    return "\n\n".join([*ours, works])


def listed_with_numbers(listed: Sequence[text.BookChapter]) -> list[tuple[int, text.BookChapter]]:
    """Chapters with their numbers in the whole book."""
    whole = text.chosen_chapters(())
    return [(whole.index(chapter) + 1, chapter) for chapter in listed]


class _Setter:
    """Set chapters in order, and record the entries and symbols already stated."""

    def __init__(self, listed: Sequence[text.BookChapter], verdicts: Verdicts) -> None:
        entries = by_name()
        for chapter in listed:
            for name in chapter.taken:
                if name not in entries:
                    raise BookError(f"chapter {chapter.anchor}: {name} is not in the catalogue")
        self._listed, self._verdicts = listed, verdicts
        self._entries: dict[str, FormulaEntry] = {}
        self._carried = {name for chapter in listed for name in chapter.taken}
        self._anchors: set[str] = set()
        self._symbols: set[sp.Symbol] = set()
        self._claims = {claim.id: claim for claim in all_claims()}

    def chapter(self, number: int, chapter: text.BookChapter) -> list[page.Block]:
        """The blocks of one chapter."""
        sets, anchor = chapter.sets, chapter.anchor
        derivation = list(self._derivation(chapter))
        blocks: list[page.Block] = [page.Heading(1, f"{number}. {chapter.title}", anchor)]
        blocks.append(page.Paragraph(text.prose(chapter.question, sets), "question"))
        blocks.append(page.CodeCell(FRONT["cells"]["chapter"].format(anchor)))
        for row in chapter.figures:
            values = {**sets[row.case], **exact(row.values)}
            code = FRONT["cells"]["figure"].format(chapter.figures.index(row))
            blocks += [page.Picture(draw_figure(row, values), row.name), page.CodeCell(code)]
            caption = text.prose(row.caption, sets | {"here": values})
            blocks.append(page.Paragraph(caption, "caption"))
            lines = []
            for curve in row.curves:
                of, label = getattr(curve, "of", ""), getattr(curve, "label", "")
                entry = by_name()[of]
                lines.append((ProseWords(f"{label}: "), self._linked(of, entry.name)))
            blocks += [page.BulletList(tuple(lines))] if lines else []
        rest = [
            *self._section("Derivation", f"{anchor}-derivation", derivation),
            *self._section("Numbers", f"{anchor}-numbers", self._numbers(chapter)),
            *self._section("Where it fails", f"{anchor}-fails", self._fails(chapter)),
            *self._section("Verdict", f"{anchor}-verdict", self._verdict(chapter)),
            *self._section("Exercises", f"{anchor}-exercises", self._exercises(number, chapter)),
        ]
        listed = page.BulletList(tuple(text.prose(each, sets) for each in chapter.assumptions))
        symbols = self._new_symbols([*blocks, listed, *rest], chapter)
        blocks += self._section("Assumptions", f"{anchor}-assumptions", [listed, *symbols])
        return [*blocks, *rest]

    def _section(self, title: str, anchor: str, blocks: Iterable[page.Block]) -> list[page.Block]:
        return [page.Heading(2, title, anchor), *blocks]

    def _linked(self, name: str, words: str) -> ProseLink | ProseWords:
        whole = len(self._listed) > 1
        there = name in self._carried | self._anchors
        there = there or (whole and isinstance(by_name()[name], Derivation))
        return ProseLink(words, name) if there else ProseWords(words)

    def _entry(self, item: Equation | Derivation) -> FormulaEntry:
        key = str(id(item))
        if key not in self._entries:
            (self._entries[key],) = document([item], {}).entries
        return self._entries[key]

    def _derivation(self, chapter: text.BookChapter) -> Iterator[page.Block]:
        for part in chapter.parts:
            if part.say:
                yield page.Paragraph(text.prose(part.say, chapter.sets))
            if part.take:
                item = by_name()[part.take]
                if isinstance(item, Derivation):
                    titles = {value.name: name for name, value in by_name().items()}
                    for inner in required_entries(item):
                        name = titles.get(inner.name, "")
                        if name not in self._anchors | self._carried:
                            stated = self._entry(by_name().get(name, inner))
                            line = text.worked_line(stated.item, chapter.sets["teaching"])
                            yield page.Statement(stated, self._anchor(stated), line)
                entry = self._entry(item)
                anchor = self._anchor(entry)
                yield page.Proof(entry, anchor) if entry.derived else page.Statement(entry, anchor)
                if line := text.worked_line(item, chapter.sets["teaching"]):
                    yield page.Paragraph(line, "note")

    def _anchor(self, entry: FormulaEntry) -> str:
        name = entry.anchor
        if name in self._anchors:
            return ""
        self._anchors.add(name)
        return name

    def _new_symbols(
        self, blocks: Iterable[page.Block], chapter: text.BookChapter
    ) -> list[page.Block]:
        """The table of the symbols that the chapter is the first to use."""
        listed = list(blocks)
        used = {x for block in listed for x in printed_symbols(block) if SYMBOLS.get(x.name) == x}
        new = sorted(used - self._symbols, key=lambda x: (x.name.lower(), x.name))
        self._symbols |= used
        computed = {x.entry.item.lhs for x in listed if isinstance(x, page.Proof | page.Statement)}
        rows = tuple(text.symbol_row(x, chapter, computed=x in computed) for x in new)
        heads = ("", "meaning", "unit", *CASES)
        return [page.BookTable(heads, rows, (0.11, 0.42, 0.17, 0.15, 0.15))] if rows else []

    def _numbers(self, chapter: text.BookChapter) -> list[page.Block]:
        rows = tuple(self._number(row, chapter) for row in chapter.numbers)
        table = page.BookTable(("", *CASES), rows, (0.52, 0.24, 0.24))
        return [table, page.CodeCell(FRONT["cells"]["numbers"])]

    def _number(self, row: WorkedRow, chapter: text.BookChapter) -> tuple[Prose, ...]:
        scale = float(UNITS.get(row.unit, 1))
        values = [text.evaluate_or_none(row.of, chapter.sets[case], scale) for case in CASES]
        name = self._linked(row.of, row.what) if row.of in by_name() else ProseWords(row.what)
        cells = (
            (ProseWords("not stated"),) if value is None else text.number_prose(value, row.unit)
            for value in values
        )
        return ((name,), *cells)

    def _fails(self, chapter: text.BookChapter) -> list[page.Block]:
        blocks: list[page.Block] = []
        rows: list[tuple[Prose, ...]] = []
        for failure in chapter.fails:
            blocks.append(page.Paragraph(text.prose(failure.say, chapter.sets)))
            rows += self._measured(failure, chapter)
        table = page.BookTable(("", *CASES), tuple(rows), (0.4, 0.3, 0.3))
        return [*blocks, table] if rows else blocks

    def _measured(self, failure: Failure, chapter: text.BookChapter) -> Iterator[tuple[Prose, ...]]:
        if failure.holds:
            cells = [text.condition_cell(failure.holds, case, chapter) for case in CASES]
            yield ((text.condition_words(failure.holds),), *cells)
        if failure.of:
            item = by_name().get(failure.of)
            if not isinstance(item, Derivation) or item.exact:
                raise BookError(f"chapter {chapter.anchor}: {failure.of} neglects nothing")
            solved = solved_symbols(item)
            sets = [chapter.sets[case].items() for case in CASES]
            cases = [{x: float(v) for x, v in each if x not in solved} for each in sets]
            strains = list(map(item.strain, cases))
            for step in approximations(item):
                assert step.size is not None  # that is what makes it approximate
                boxes, typed = layout(step.size), sstr(step.size)
                title = self._linked(failure.of, item.name), ProseWords(": neglected over kept ")
                ratio = Formula(boxes, typed, frozenset(step.size.free_symbols))
                sizes = (text.size_words(strain[step.neglected]) for strain in strains)
                yield ((*title, ratio), *((ProseWords(size),) for size in sizes))

    def _verdict(self, chapter: text.BookChapter) -> list[page.Block]:
        blocks: list[page.Block] = [page.Paragraph(text.prose(chapter.verdict, chapter.sets))]
        for name in chapter.claims:
            if name not in self._claims:
                raise BookError(f"chapter {chapter.anchor}: there is no claim {name}")
        pairs = ((self._claims[name], self._verdicts.get(name, {})) for name in chapter.claims)
        return [*blocks, page.BulletList(tuple(text.claim_line(*pair) for pair in pairs))]

    def _exercises(self, number: int, chapter: text.BookChapter) -> Iterator[page.Block]:
        sets = chapter.sets
        for n, exercise in enumerate(chapter.exercises, 1):
            label = f"{number}.{n}"
            ask = (ProseWords(f"{label} ", strong=True), *text.prose(exercise.ask, sets))
            yield page.Paragraph(ask, "exercise")
            values = {**sets["teaching"], **exact(exercise.values)}
            words = answer_words(exercise, sets["teaching"])
            head = ProseWords(
                f"{words}. " if exercise.answer else "False. ", strong=bool(exercise.answer)
            )
            why = text.prose(exercise.why, sets | {"here": values})
            refused = (ProseWords(f" The checker says: {words}"),) if exercise.refused else ()
            yield page.FoldedAnswer(label, (head, *why, *refused))

    def appendix(self) -> list[page.Block]:
        """Blocks of all derivations: a link to the chapter that states it, else result and tags."""
        blocks: list[page.Block] = [page.Heading(1, "Appendix: all derivations", "all")]
        blocks.append(page.Paragraph(text.prose(FRONT["appendix"], {})))
        homes = {name: chapter for chapter in self._listed for name in chapter.taken}
        group = ""
        for name, item in by_name().items():
            if not isinstance(item, Derivation):
                continue
            if subject(name) != group:
                group = subject(name)
                blocks.append(page.Heading(2, group.replace("_", " ").capitalize(), f"all-{group}"))
            if name in homes:
                where = (ProseWords(f"{item.name}: "), ProseLink(homes[name].title, name))
                blocks.append(page.Paragraph(where, "note"))
                continue
            entry = self._entry(item)
            note: Prose = (ProseWords(", ".join([name, *entry.tags])),)
            blocks.append(page.Statement(entry, self._anchor(entry), note))
        return blocks

    def check_links(self, blocks: Iterable[page.Block]) -> None:
        """Raise BookError if a link of the whole book leads nowhere."""
        listed = list(blocks)
        there = {a for a in (getattr(block, "anchor", "") for block in listed) if a}
        if len(self._listed) < len(text.chosen_chapters(())):
            return
        for block in listed:
            for line in prose_lines(block):
                for span in line:
                    if isinstance(span, ProseLink) and "//" not in span.to and span.to not in there:
                        raise BookError(f"a link leads to {span.to}, which the book does not hold")


def required_entries(item: Derivation) -> list[Equation | Derivation]:
    """Equations and derivations put in by the steps of a derivation, each once, in order."""
    listed: dict[int, Equation | Derivation] = {}
    for step in item.steps[1:]:  # step 0 is `begin`: it puts in no equation
        for argument in step.arguments.values():
            group = argument if isinstance(argument, tuple) else (argument,)
            listed |= {id(x): x for x in group if isinstance(x, Equation | Derivation)}
    return list(listed.values())


def prose_lines(block: page.Block) -> list[Prose]:
    """Every line of prose in a block."""
    match block:
        case page.Paragraph(line, _) | page.FoldedAnswer(_, line):
            return [line]
        case page.BulletList(lines):
            return list(lines)
        case page.BookTable(_, rows, _):
            return [cell for row in rows for cell in row]
        case page.Statement(_, _, note):
            return [note]
    return []


def printed_symbols(block: page.Block) -> set[sp.Symbol]:
    """The symbols that a block prints."""
    if isinstance(block, page.Proof | page.Statement):
        return block.entry.symbols
    spans = (span for line in prose_lines(block) for span in line if isinstance(span, Formula))
    return {x for span in spans for x in span.symbols}
