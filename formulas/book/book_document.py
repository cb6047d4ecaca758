"""The book set from its rows: blocks of every chapter, then the catalogue as a reference.

A symbol is listed in the first chapter that uses it, ahead of its formulas, and an equation that a
step puts in is stated ahead of that step, so that nothing is used before it is said.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.algebra.steps import approximations
from formulas.book.book_values import CASES, BookError, Failure, WorkedRow, answer_words, exact
from formulas.book.curves import draw_figure
from formulas.book.prose import (
    BookChapter,
    chosen_chapters,
    claim_line,
    condition_cell,
    condition_words,
    evaluate_or_none,
    number_prose,
    prose,
    size_words,
    symbol_row,
    without_solved,
)
from formulas.claims.claim import UNITS, all_claims
from formulas.export import FORMATS, writer
from formulas.export.blocks import (
    Block,
    BlockDocument,
    BookTable,
    BulletList,
    FoldedAnswer,
    Heading,
    Paragraph,
    Picture,
    Proof,
    Statement,
)
from formulas.export.formula_document import FormulaEntry, document
from formulas.export.latex import bibtex
from formulas.export.typesetting.layout import layout
from formulas.export.words import Formula, Prose, ProseLink, ProseWords
from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.expressions import sstr
from formulas.registry import by_name, subject

CITED_SOURCES = "token-planner"  # the author of what others cite
TITLE = "The economics of a token, in seven chapters"
BOOK_DESCRIPTION = (
    "This text follows a blackboard lecture on what a token of a language model costs, and works "
    "every statement of it out. Each chapter asks one question, draws it, lists what is assumed, "
    "derives the answer, works it in numbers, says where it stops being true, and ends with a "
    "verdict on what the lecture claims and five exercises.",
    "Nothing here is typed that an equation gives. Every step of a derivation was checked when "
    "this was written, every curve is computed by the equation it names, and so is every number "
    "of a table and every answer. A sign of equality is exact; a wavy sign neglects a term, whose "
    "size is given where the result is used.",
    "Two sets of values stand side by side. Under *lecture* are the figures the lecture works "
    "with; several of them lie exactly on a balance, where a ratio is one or a context has no "
    "room left. Under *teaching* is a small machine with a small model, chosen so that no two "
    "things balance and the numbers come out round.",
)


APPENDIX = (
    "Every derivation of the catalogue by subject: a link where a chapter tells it, its last line "
    "where none does. The command *planner derive* prints the steps of each by its name."
)


def book(
    form: str, names: Sequence[str] = (), verdicts: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The book, or some chapters by anchor or number, in a format of `FORMATS`.

    `verdicts` are the words of the acceptance table by claim. Raises BookError if there is no such
    format or chapter, or a chapter cannot be set; DerivationError if a derivation does not check.
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
    names: tuple[str, ...] = (), verdicts: Mapping[str, str] = MappingProxyType({})
) -> BlockDocument:
    """Every block of the book, or of some chapters; the appendix comes with the whole.

    Raises as `book`.
    """
    listed = chosen_chapters(names)
    setter = _Setter(listed, verdicts)
    blocks = [
        block for n, chapter in listed_with_numbers(listed) for block in setter.chapter(n, chapter)
    ]
    blocks += [] if names else setter.appendix()
    setter.check_links(blocks)
    title = TITLE if len(listed) != 1 else listed[0].title
    sets = {name: listed[0].sets[name] for name in CASES}
    return BlockDocument(
        title, tuple(prose(each, sets) for each in BOOK_DESCRIPTION), tuple(blocks)
    )


def book_references(names: Sequence[str] = ()) -> str:
    """BibTeX of the chapters themselves, by their anchors, and of the works they cite.

    Raises BookError if there is no such chapter.
    """
    listed = chosen_chapters(tuple(names))
    ours = [
        f"@misc{{{CITED_SOURCES}:{chapter.anchor},\n  author = {{{{{CITED_SOURCES}}}}},\n"
        f"  title = {{{{{TITLE}: {chapter.title}}}}},\n"
        f"  howpublished = {{planner derive --book {chapter.anchor}}},\n}}"
        for chapter in listed
    ]
    works = bibtex(by_name()[name] for chapter in listed for name in chapter.taken)
    return "\n\n".join([*ours, works])


def listed_with_numbers(listed: Sequence[BookChapter]) -> list[tuple[int, BookChapter]]:
    """Chapters with their numbers in the whole book."""
    whole = chosen_chapters(())
    return [(whole.index(chapter) + 1, chapter) for chapter in listed]


class _Setter:
    """Set chapters in order, and record the entries and symbols already stated."""

    def __init__(self, listed: Sequence[BookChapter], verdicts: Mapping[str, str]) -> None:
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

    def chapter(self, number: int, chapter: BookChapter) -> list[Block]:
        """The blocks of one chapter."""
        sets, anchor = chapter.sets, chapter.anchor
        derivation = list(self._derivation(chapter))
        blocks: list[Block] = [Heading(1, f"{number}. {chapter.title}", anchor)]
        blocks.append(Paragraph(prose(chapter.question, sets), "question"))
        for row in chapter.figures:
            values = {**sets[row.case], **exact(row.values)}
            blocks.append(Picture(draw_figure(row, values), row.name))
            blocks.append(Paragraph(prose(row.caption, sets | {"here": values}), "caption"))
            lines = []
            for curve in row.curves:
                of, label = getattr(curve, "of", ""), getattr(curve, "label", "")
                entry = by_name()[of]
                lines.append((ProseWords(f"{label}: "), self._linked(of, entry.name)))
            blocks += [BulletList(tuple(lines))] if lines else []
        rest = [
            *self._section("Derivation", f"{anchor}-derivation", derivation),
            *self._section("Numbers", f"{anchor}-numbers", [self._numbers(chapter)]),
            *self._section("Where it fails", f"{anchor}-fails", self._fails(chapter)),
            *self._section("Verdict", f"{anchor}-verdict", self._verdict(chapter)),
            *self._section("Exercises", f"{anchor}-exercises", self._exercises(number, chapter)),
        ]
        listed = BulletList(tuple(prose(each, sets) for each in chapter.assumptions))
        symbols = self._new_symbols([*blocks, listed, *rest], chapter)
        blocks += self._section("Assumptions", f"{anchor}-assumptions", [listed, *symbols])
        return [*blocks, *rest]

    def _section(self, title: str, anchor: str, blocks: Iterable[Block]) -> list[Block]:
        return [Heading(2, title, anchor), *blocks]

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

    def _derivation(self, chapter: BookChapter) -> Iterator[Block]:
        for part in chapter.parts:
            if part.say:
                yield Paragraph(prose(part.say, chapter.sets))
            if part.take:
                item = by_name()[part.take]
                if isinstance(item, Derivation):
                    titles = {value.name: name for name, value in by_name().items()}
                    for inner in required_entries(item):
                        name = titles.get(inner.name, "")
                        if name not in self._anchors | self._carried:
                            stated = self._entry(by_name().get(name, inner))
                            yield Statement(stated, self._anchor(stated))
                entry = self._entry(item)
                anchor = self._anchor(entry)
                yield Proof(entry, anchor) if entry.derived else Statement(entry, anchor)

    def _anchor(self, entry: FormulaEntry) -> str:
        name = entry.anchor
        if name in self._anchors:
            return ""
        self._anchors.add(name)
        return name

    def _new_symbols(self, blocks: Iterable[Block], chapter: BookChapter) -> list[Block]:
        """The table of the symbols that the chapter is the first to use."""
        listed = list(blocks)
        used = {x for block in listed for x in printed_symbols(block) if SYMBOLS.get(x.name) == x}
        new = sorted(used - self._symbols, key=lambda x: (x.name.lower(), x.name))
        self._symbols |= used
        computed = {x.entry.item.lhs for x in listed if isinstance(x, Proof | Statement)}
        rows = tuple(symbol_row(x, chapter, computed=x in computed) for x in new)
        heads = ("", "meaning", "unit", *CASES)
        return [BookTable(heads, rows, (0.11, 0.42, 0.17, 0.15, 0.15))] if rows else []

    def _numbers(self, chapter: BookChapter) -> Block:
        rows = tuple(self._number(row, chapter) for row in chapter.numbers)
        return BookTable(("", *CASES), rows, (0.52, 0.24, 0.24))

    def _number(self, row: WorkedRow, chapter: BookChapter) -> tuple[Prose, ...]:
        scale = float(UNITS.get(row.unit, 1))
        values = [evaluate_or_none(row.of, chapter.sets[case], scale) for case in CASES]
        name = self._linked(row.of, row.what) if row.of in by_name() else ProseWords(row.what)
        cells = (
            (ProseWords("not stated"),) if value is None else number_prose(value, row.unit)
            for value in values
        )
        return ((name,), *cells)

    def _fails(self, chapter: BookChapter) -> list[Block]:
        blocks: list[Block] = []
        rows: list[tuple[Prose, ...]] = []
        for failure in chapter.fails:
            blocks.append(Paragraph(prose(failure.say, chapter.sets)))
            rows += self._measured(failure, chapter)
        return [*blocks, *([BookTable(("", *CASES), tuple(rows), (0.4, 0.3, 0.3))] if rows else [])]

    def _measured(self, failure: Failure, chapter: BookChapter) -> Iterator[tuple[Prose, ...]]:
        if failure.holds:
            cells = [condition_cell(failure.holds, case, chapter) for case in CASES]
            yield ((condition_words(failure.holds),), *cells)
        if failure.of:
            item = by_name().get(failure.of)
            if not isinstance(item, Derivation) or item.exact:
                raise BookError(f"chapter {chapter.anchor}: {failure.of} neglects nothing")
            strains = [item.strain(without_solved(item, chapter.sets[case])) for case in CASES]
            for step in approximations(item):
                assert step.size is not None  # that is what makes it approximate
                boxes, typed = layout(step.size), sstr(step.size)
                title = self._linked(failure.of, item.name), ProseWords(": neglected over kept ")
                ratio = Formula(boxes, typed, frozenset(step.size.free_symbols))
                sizes = (size_words(strain[step.neglected]) for strain in strains)
                yield ((*title, ratio), *((ProseWords(size),) for size in sizes))

    def _verdict(self, chapter: BookChapter) -> list[Block]:
        blocks: list[Block] = [Paragraph(prose(chapter.verdict, chapter.sets))]
        for name in chapter.claims:
            if name not in self._claims:
                raise BookError(f"chapter {chapter.anchor}: there is no claim {name}")
        pairs = ((self._claims[name], self._verdicts.get(name, "")) for name in chapter.claims)
        return [*blocks, BulletList(tuple(claim_line(*pair) for pair in pairs))]

    def _exercises(self, number: int, chapter: BookChapter) -> Iterator[Block]:
        sets = chapter.sets
        for n, exercise in enumerate(chapter.exercises, 1):
            label = f"{number}.{n}"
            ask = (ProseWords(f"{label} ", strong=True), *prose(exercise.ask, sets))
            yield Paragraph(ask, "exercise")
            values = {**sets["teaching"], **exact(exercise.values)}
            words = answer_words(exercise, sets["teaching"])
            head = ProseWords(
                f"{words}. " if exercise.answer else "False. ", strong=bool(exercise.answer)
            )
            why = prose(exercise.why, sets | {"here": values})
            refused = (ProseWords(f" The checker says: {words}"),) if exercise.refused else ()
            yield FoldedAnswer(label, (head, *why, *refused))

    def appendix(self) -> list[Block]:
        """Blocks of all derivations: a link to the chapter that states it, else result and tags."""
        blocks: list[Block] = [Heading(1, "Appendix: all derivations", "all")]
        blocks.append(Paragraph(prose(APPENDIX, {})))
        homes = {name: chapter for chapter in self._listed for name in chapter.taken}
        group = ""
        for name, item in by_name().items():
            if not isinstance(item, Derivation):
                continue
            if subject(name) != group:
                group = subject(name)
                blocks.append(Heading(2, group.replace("_", " ").capitalize(), f"all-{group}"))
            if name in homes:
                where = (ProseWords(f"{item.name}: "), ProseLink(homes[name].title, name))
                blocks.append(Paragraph(where, "note"))
                continue
            entry = self._entry(item)
            note: Prose = (ProseWords(", ".join([name, *entry.tags])),)
            blocks.append(Statement(entry, self._anchor(entry), note))
        return blocks

    def check_links(self, blocks: Iterable[Block]) -> None:
        """Raise BookError if a link of the whole book leads nowhere."""
        listed = list(blocks)
        there = {a for a in (getattr(block, "anchor", "") for block in listed) if a}
        if len(self._listed) < len(chosen_chapters(())):
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


def prose_lines(block: Block) -> list[Prose]:
    """Every line of prose in a block."""
    match block:
        case Paragraph(line, _) | FoldedAnswer(_, line):
            return [line]
        case BulletList(lines):
            return list(lines)
        case BookTable(_, rows, _):
            return [cell for row in rows for cell in row]
        case Statement(_, _, note):
            return [note]
    return []


def printed_symbols(block: Block) -> set[sp.Symbol]:
    """The symbols that a block prints."""
    if isinstance(block, Proof | Statement):
        return block.entry.symbols
    spans = (span for line in prose_lines(block) for span in line if isinstance(span, Formula))
    return {x for span in spans for x in span.symbols}
