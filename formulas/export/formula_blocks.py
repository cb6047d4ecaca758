"""Formulas as the blocks of a document: cover, claims, chapters with an article for every entry."""

import math
from collections.abc import Iterator

from formulas.export import blocks as page
from formulas.export.formula_document import FormulaDocument, FormulaEntry, NeglectedSize, SymbolRow
from formulas.export.typesetting.layout import layout, relation
from formulas.export.words import (
    Formula,
    Prose,
    ProseLink,
    ProseWords,
    citation,
    figure_span,
    prose,
    reason,
)

OURS = ("ours", "why")  # rows of a claim whose symbols are ours
SYMBOL, UNIT, CASE, CLAIM = 0.17, 0.16, 0.125, (0.09, 0.15, 0.13, 0.63)  # widths of columns


def formula_blocks(whole: FormulaDocument) -> page.BlockDocument:
    """The document with all of its parts."""
    blocks = [*_looked_up(whole), *_claims(whole)]
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            blocks.append(page.Heading(1, chapter.title, ""))
            blocks += [page.Paragraph(prose(chapter.about), "question")] if chapter.about else []
        blocks += [_article(entry, whole) for entry in chapter.entries]
    return page.BlockDocument(
        whole.title, tuple(map(prose, whole.words)), tuple(blocks), whole.cases
    )


def fragment_blocks(whole: FormulaDocument) -> list[page.Block]:
    """The entries, then their symbols and the works cited."""
    return [*(_article(entry, whole) for entry in whole.entries), *_back(whole)]


def _looked_up(whole: FormulaDocument) -> Iterator[page.Block]:
    if len(whole.cases) > 1 and whole.differences:
        yield page.Heading(1, "Assumptions where they differ", "")
        yield _symbols(whole, whole.differences)
    yield from _back(whole)


def _back(whole: FormulaDocument) -> Iterator[page.Block]:
    yield page.FoldedPart("Symbols", len(whole.rows), (_symbols(whole, whole.rows),))
    lines: tuple[Prose, ...] = tuple(
        (*prose(f"{s.authors}, "), ProseLink(s.title, s.link), *prose(f" ({s.year})"))
        for s in whole.sources
    )
    if lines:
        yield page.FoldedPart("Sources", len(lines), (page.BulletList(lines),))


def _symbols(whole: FormulaDocument, rows: tuple[SymbolRow, ...]) -> page.BookTable:
    """Symbols with their values."""
    cells: tuple[tuple[Prose, ...], ...] = tuple(
        (
            (Formula(layout(row.symbol), row.symbol.name, name=row.symbol.name),),
            prose("" if row.unit == "1" else row.unit),
            *(() if value is None else (figure_span(value),) for value in row.values),
            prose(row.meaning),
        )
        for row in rows
    )
    narrow = (SYMBOL, UNIT, *([CASE] * len(whole.cases)))
    heads = ("symbol", "unit", *whole.cases, "meaning")
    return page.BookTable(heads, cells, (*narrow, 1 - sum(narrow)))


def _claims(whole: FormulaDocument) -> Iterator[page.Block]:
    """The acceptance table and an article for every claim, where the document shows it."""
    if not whole.claims or whole.acceptance is None:
        return
    yield page.Heading(1, "Claims of the lecture", "")
    yield page.Paragraph(prose(whole.acceptance.tally))
    yield page.Paragraph(prose(whole.acceptance.rule))
    heads = ("claim", "verdict", "factor", "what the lecture says")
    yield page.BookTable(
        heads,
        tuple(
            ((ProseLink(x.name, x.name),), *map(prose, (x.verdict, x.factor, x.statement)))
            for x in whole.claims
        ),
        CLAIM,
    )
    for claim in whole.claims:
        rows = [(k, (reason if k in OURS else prose)(words)) for k, words in claim.rows if words]
        derived = [
            (_linked(name, title, whole), ProseWords("; ")) for name, title in claim.derivations
        ]
        if derived:
            rows.append(("derived in", tuple(x for pair in derived for x in pair)[:-1]))
        rows.append(("source", citation(claim.source)))
        yield page.Article(
            f"{claim.name}. {claim.statement}", claim.name, (page.Notes(tuple(rows)),)
        )


def _linked(anchor: str, words: str, whole: FormulaDocument) -> ProseLink | ProseWords:
    return ProseLink(words, anchor) if anchor in whole.anchors else ProseWords(words)


def _article(entry: FormulaEntry, whole: FormulaDocument) -> page.Article:
    title = "" if entry.title == whole.title else entry.title
    return page.Article(
        title, entry.anchor, (page.Steps(entry), page.Notes(tuple(_notes(entry, whole))))
    )


def _notes(entry: FormulaEntry, whole: FormulaDocument) -> Iterator[tuple[str, Prose]]:
    for equation in entry.item.where:
        boxes = relation(equation.symbol, "=", equation.rhs)
        yield "where", (Formula(boxes, str(equation), large=True),)
    for case, value in entry.values:
        yield f"value, {case}", (*_value(value, entry.unit), *prose(entry.outside(case)))
    for size in entry.sizes:
        yield f"neglected, {size.case}", _size(size)
    yield from (("takes", prose(premise)) for premise in entry.premises)
    yield from (("assumes", reason(assumption)) for assumption in entry.item.assumes)
    for claim in entry.claims:
        name = _linked(claim.name, claim.name, whole)
        yield "claim", (name, ProseWords(f", {claim.verdict}: {claim.statement}"))
    yield "source", citation(entry.item.source)


def _value(value: float, unit: str) -> Prose:
    """`2400 [seq]`, or that the conditions fail where a positive symbol came out negative."""
    if math.isnan(value):
        return prose("none: it is undefined there, so a condition below does not hold")
    number = figure_span(value)
    if value < 0:
        rest = " is not positive, so a condition below does not hold"
        return (ProseWords("none: "), number, ProseWords(rest))
    return (number, *prose(f" [{unit}]" if unit not in ("1", "") else ""))


def _size(size: NeglectedSize) -> Prose:
    if size.size is None:
        return prose(f"not known, {size.missing}")
    number, rest = figure_span(size.size), f" times what is kept{size.remark}"
    return (ProseWords(f"{size.neglected}: "), number, ProseWords(rest))
