"""Markdown with LaTeX formulas between dollar signs, plain text, and a Jupyter notebook of both.

The cells of a notebook check every statement again with this package.
"""

import json
import re
from collections.abc import Iterator, Sequence
from textwrap import fill

from formulas.algebra.equation import SIGNS
from formulas.export.document_markup import DocumentMarkup, size_words, value_words
from formulas.export.formula_document import (
    AcceptanceTable,
    ClaimEntry,
    FormulaDocument,
    FormulaEntry,
    SymbolRow,
    solved_symbols,
)
from formulas.numerics.expressions import tex
from formulas.registry import module_of

WIDTH = 100
INDENT = 6
LABEL = 12  # width of `the lecture`


def text(whole: FormulaDocument) -> str:
    """Cover, chapters with every object and its steps."""
    parts = [*_cover(whole)]
    if whole.claims and whole.acceptance:
        parts += claim_blocks(whole.acceptance)
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            line = "-" * len(chapter.title)
            parts.append(f"{chapter.title}\n{line}\n{chapter.about}".rstrip())
        parts += [_entry(entry) for entry in chapter.entries]
    return "\n\n".join(parts) + "\n"


def claim_blocks(table: AcceptanceTable) -> list[str]:
    """The acceptance table: its rule, a block for every claim, and the tally."""
    return [fill(table.rule, WIDTH), *map(_claim, table.entries), table.tally]


def _claim(claim: ClaimEntry) -> str:
    rows = (*claim.rows, ("equations", ", ".join(claim.equations)))
    lines = [_labelled("", f"{claim.name:<{INDENT - 1}} ", claim.statement)]
    lines += [_labelled(" " * INDENT, f"{k:<{LABEL}} ", v) for k, v in rows if v]
    return "\n".join(lines)


def _labelled(indent: str, label: str, words: str) -> str:
    first = indent + label
    return fill(
        words,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )


def plain(value: float | None) -> str:
    """`6.71e11`; nothing for a value that is not given."""
    if value is None:
        return "–"
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _cover(whole: FormulaDocument) -> list[str]:
    parts = [f"{whole.title}\n{'=' * len(whole.title)}"]
    parts += [fill(paragraph, WIDTH) for paragraph in whole.words]
    if len(whole.cases) > 1 and whole.differences:
        names = " | ".join(whole.cases)
        parts.append(f"Assumptions where they differ: {names}\n{_table(whole, whole.differences)}")
    parts.append(f"Symbols\n{_table(whole, whole.rows)}")
    if whole.sources:
        lines = [f"  {s.authors}, {s.title} ({s.year}), {s.link}" for s in whole.sources]
        parts.append("Sources\n" + "\n".join(lines))
    return parts


def _entry(entry: FormulaEntry) -> str:
    tags = f"  [{', '.join(entry.tags)}]" if entry.tags else ""
    lines = [entry.item.name + tags]
    if entry.derived:
        lines[0] += f" ({entry.kind})"
        lines += [step.text(n, proof) for n, (step, proof) in enumerate(entry.steps, 1)]
    else:
        lines.append(f"  {entry.steps[0][0]}")
    lines += [f"  where  {equation}" for equation in entry.item.where]
    lines += [
        f"  value  {c}: {_value(value, entry.unit)}{entry.outside(c)}" for c, value in entry.values
    ]
    lines += [f"  size   {size_words(size, str, plain)}" for size in entry.sizes]
    lines += [f"  takes  {premise}" for premise in entry.premises]
    lines += [f"  assumes  {assumption}" for assumption in entry.item.assumes]
    lines += [f"  claim  {c.name}, {c.verdict}: {c.statement}" for c in entry.claims]
    link = f", {entry.item.source.link}" if entry.item.source.link else ""
    lines.append(f"  source  {entry.item.source}{link}")
    return "\n".join(lines)


def _table(whole: FormulaDocument, rows: tuple[SymbolRow, ...]) -> str:
    cells = [
        (row.symbol.name, f"[{row.unit}]", *map(plain, row.values), row.meaning) for row in rows
    ]
    if whole.cases:
        cells.insert(0, ("", "", *whole.cases, ""))
    wide = [max((len(line[i]) for line in cells), default=0) for i in range(2 + len(whole.cases))]
    return "\n".join(
        "  "
        + "  ".join([*(c.ljust(w) for c, w in zip(line, wide, strict=False)), line[-1]]).rstrip()
        for line in cells
    )


def _value(value: float, unit: str) -> str:
    return value_words(value, plain(value), f"[{unit}]" if unit != "1" else "")


def markdown(whole: FormulaDocument) -> str:
    """Cover, then a section for every object, in chapters."""
    return "\n\n".join([cover(whole), *MARKDOWN.chapters(whole)]) + "\n"


def cover(whole: FormulaDocument) -> str:
    """Title, how to read it, contents, symbols, assumptions, sources."""
    parts = [f"# {_escaped(whole.title)}", *map(_escaped, whole.words)]
    if whole.headed:
        lines: list[str] = []
        for chapter in whole.chapters:
            links = [f"[{_escaped(entry.title)}](#{entry.anchor})" for entry in chapter.entries]
            lines += [f"- {chapter.title or 'Others'}", *(f"  - {link}" for link in links)]
        parts += ["## Contents", "\n".join(lines)]
    return "\n\n".join([*parts, *MARKDOWN.differences(whole), *MARKDOWN.back(whole)])


def _steps(entry: FormulaEntry) -> Iterator[str]:
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            why = f" {MARKDOWN.prose(step.why)}" if step.why else ""
            yield f"**{number}. {step.verb}**{why} — {_escaped(proof)}"
        yield f"$$\n{tex(step.lhs)} {SIGNS[step.relation]} {tex(step.rhs)}\n$$"
        if step.size is not None:
            yield f"Neglected over kept: ${tex(step.size)}$"


def _escaped(words: str) -> str:
    """Words with the characters that Markdown would act on made literal."""
    for mark in ("\\", "*", "_", "<", "|", "$"):
        words = words.replace(mark, "\\" + mark)
    return words


def _plain_text_table(whole: FormulaDocument, rows: tuple[SymbolRow, ...]) -> str:
    names = ["symbol", "name", "unit", *whole.cases, "meaning"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [
        f"| ${tex(row.symbol)}$ | `{row.symbol.name}` | `{row.unit}` | "
        + "".join(f"{plain(value)} | " for value in row.values)
        + f"{_escaped(row.meaning)} |"
        for row in rows
    ]
    return "\n".join(lines)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


MARKDOWN = DocumentMarkup(
    words=_escaped,
    maths=lambda x: f"${tex(x)}$",
    figure=plain,
    definition=lambda equation: f"${equation.latex()}$",
    link=lambda link, words: f"[{words}]({link})",
    inner=lambda anchor, words: f"[{words}](#{anchor})",
    grid=_grid,
    steps=_steps,
    table=_plain_text_table,
    between="\n\n",
    heading="## %s",
    chapter="## %s\n\n%s",
    title='### <a id="%(anchor)s"></a>%(title)s',
    kind="*%s*",
    item="- %s",
    listed="%s",
)


def notebook(whole: FormulaDocument) -> str:
    """JSON of format 4.5: the cover, then each object in words and as code that checks it."""
    cells: list[dict[str, object]] = [words_cell("cover", cover(whole))]
    if whole.cases:
        lines = ["cases = {"]
        for name, values in whole.cases.items():
            inner = ", ".join(f"{x!r}: {float(v)!r}" for x, v in values.items())
            lines.append(f"    {name!r}: {{{inner}}},")
        cells.append(code_cell("cases", "\n".join([*lines, "}"])))
    if whole.claims:
        cells.append(words_cell("claims", "\n\n".join(MARKDOWN.claims(whole))))
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            words = f"## {chapter.title}\n\n{chapter.about}"
            cells.append(words_cell(f"chapter-{chapter.subject}", words))
        for entry in chapter.entries:
            cells += _entry_cells(entry, whole)
    return notebook_json(cells, whole.title)


def notebook_json(cells: list[dict[str, object]], title: str) -> str:
    """A notebook of these cells, as JSON of format 4.5."""
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "title": title,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _entry_cells(entry: FormulaEntry, whole: FormulaDocument) -> Iterator[dict[str, object]]:
    yield words_cell(f"{entry.anchor}-words", MARKDOWN.section(entry, whole))
    if not entry.python:
        return  # it lives in no module that a cell could import
    lines = [
        f"from {module_of(entry.home)} import {entry.python}",
        "",
        f"assert {entry.python}.check()",
        f"print({entry.python}.latex())",
    ]
    measured = [size for size in entry.sizes if size.size is not None]
    lines += [
        f"print({case!r}, {entry.python}.strain({_without_derived(entry, case, whole)}))"
        for case in dict.fromkeys(size.case for size in measured)
    ]
    yield code_cell(f"{entry.anchor}-check", "\n".join([*lines, entry.python]))


def _without_derived(entry: FormulaEntry, case: str, whole: FormulaDocument) -> str:
    """The case without the symbols that the derivation itself finds."""
    missing = sorted(x for x in solved_symbols(entry.item) if x in whole.cases[case])
    values = f"cases[{case!r}]"
    return f"{{x: v for x, v in {values}.items() if x not in {missing!r}}}" if missing else values


def words_cell(key: str, source: str) -> dict[str, object]:
    """A cell of Markdown."""
    return {
        "cell_type": "markdown",
        "id": _id(key),
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }


def code_cell(key: str, source: str) -> dict[str, object]:
    """A cell of Python, not yet run."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": _id(key),
        "metadata": {},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


def _id(key: str) -> str:
    """1 to 64 of the characters that the format allows in the id of a cell."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", key)[-64:]
