"""Markdown with LaTeX formulas between dollar signs, plain text, and a Jupyter notebook of both.

The cells of a notebook check every statement again with this package.
"""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from textwrap import fill, indent, wrap

from formulas.algebra.equation import SIGNS
from formulas.export import blocks, formula_document
from formulas.export.blocks import Article, Block, BlockDocument, BlockMarkup, Heading, Proof, Steps
from formulas.export.drawing import Drawing, characters, svg
from formulas.export.typesetting.layout import relation
from formulas.export.typesetting.markup import latex_math
from formulas.export.words import reason
from formulas.numerics.expressions import tex
from formulas.registry import dotted_module

WIDTH, MAX_WIDTH = 100, 120  # of a line, and of one of a table that is not broken
MIN_WIDTH = 35  # of the last column, where it alone is broken
INDENT = 6
LABEL = 12  # width of `the lecture`


def text(whole: BlockDocument) -> str:
    """For a terminal: figures as characters, answers behind each chapter."""
    lines = [whole.title, "=" * len(whole.title), ""]
    lines += [fill(TEXT_MARKUP.line(line), WIDTH) + "\n" for line in whole.about]
    lines += [f"  {heading.words}" for heading, _ in whole.contents]
    body = TEXT_MARKUP.written(whole.blocks).split("\n\n")
    return "\n".join(lines).rstrip() + "\n\n" + "\n\n".join(map(_wrapped, body)) + "\n"


def _wrapped(block: str) -> str:
    single = "\n" not in block and not block.startswith(" ")
    return fill(block, WIDTH) if single else block


def _text_grid(
    heads: Sequence[str], rows: Sequence[Sequence[str]], shares: tuple[float, ...]
) -> str:
    """Text table; if wider than `MAX_WIDTH`, the last column or all columns wrap their cells."""
    wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    left = WIDTH - sum(wide[:-1]) - 2 * len(wide)
    if sum(wide) > MAX_WIDTH and left > MIN_WIDTH:
        wide[-1] = left
    elif sum(wide) > MAX_WIDTH:
        wide = [max(6, int(share * (WIDTH - 2 * len(shares)))) for share in shares]
    lines = []
    for row in (heads, *rows):
        cells = [
            wrap(cell, w, break_on_hyphens=False) or [""] for cell, w in zip(row, wide, strict=True)
        ]
        for k in range(max(map(len, cells))):
            parts = [
                (c[k] if k < len(c) else "").ljust(w) for c, w in zip(cells, wide, strict=True)
            ]
            lines.append("  " + "  ".join(parts).rstrip())
    return "\n".join(lines)


def _text_kind(entry: formula_document.FormulaEntry) -> str:
    tags = f"  [{', '.join(entry.tags)}]" if entry.tags else ""
    return entry.item.name + tags + (f" ({entry.kind})" if entry.derived else "")


def _text_steps(entry: formula_document.FormulaEntry) -> str:
    if not entry.derived:
        return f"  {entry.steps[0][0]}"
    return "\n".join(step.text(n, proof) for n, (step, proof) in enumerate(entry.steps, 1))


def _text_note(row: tuple[str, str]) -> str:
    """`value  lecture: 2400 [seq]` or `source  derived here`."""
    label, _, case = row[0].partition(", ")
    return f"  {label}  {case}: {row[1]}" if case else f"  {label}  {row[1]}"


TEXT_MARKUP = BlockMarkup(
    words=lambda words: words,
    strong=lambda words: words,
    link=lambda to, words: f"{words} ({to})" if "//" in to else words,
    maths=lambda span: span.typed,
    heading=lambda level, words, anchor: (
        f"\n{words}\n{'=' * len(words)}" if level == 1 else f"{words}\n{'-' * len(words)}"
    ),
    paragraphs={},
    statement=lambda title, anchor, entry: f"{title}\n  {entry.steps[-1][0]}",
    steps=_text_steps,
    entry=lambda title, anchor, body: f"{title}\n{body}",
    grid=_text_grid,
    items=lambda lines: "\n".join(
        fill(x, WIDTH, initial_indent="  - ", subsequent_indent="    ") for x in lines
    ),
    picture=lambda drawing, anchor: indent(characters(drawing), "  "),
    answer=None,
    within="\n",
    article=lambda title, anchor, body: body,  # no title: the body begins with the name
    notes=lambda rows: "\n".join(map(_text_note, rows)),
    kind=_text_kind,
)


def claim_blocks(table: formula_document.AcceptanceTable) -> list[str]:
    """The acceptance table: its rule, a block for every claim, and the tally."""
    return [fill(table.rule, WIDTH), *map(_claim, table.entries), table.tally]


def _claim(claim: formula_document.ClaimEntry) -> str:
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


def markdown(whole: BlockDocument) -> str:
    """Markdown with LaTeX between dollar signs, pictures within."""
    return "\n\n".join([_cover(whole), MARKDOWN.written(whole.blocks)]) + "\n"


def _cover(whole: BlockDocument) -> str:
    """Title, how to read it, contents."""
    links = []
    for heading, articles in whole.contents:
        words = _escaped(heading.words)
        links.append(f"- [{words}](#{heading.anchor})" if heading.anchor else f"- {words}")
        links += [f"  - [{_escaped(each.title)}](#{each.anchor})" for each in articles]
    about = map(MARKDOWN.line, whole.about)
    return "\n\n".join(
        [f"# {_escaped(whole.title)}", *about, *(["\n".join(links)] if links else [])]
    )


def _steps(entry: formula_document.FormulaEntry) -> str:
    lines = []
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            why = f" {MARKDOWN.line(reason(step.why))}" if step.why else ""
            lines.append(f"**{number}. {step.verb}**{why} — {MARKDOWN.line(reason(proof))}")
        lines.append(f"$$\n{tex(step.lhs)} {SIGNS[step.relation]} {tex(step.rhs)}\n$$")
        if step.size is not None:
            lines.append(f"Neglected over kept: ${tex(step.size)}$")
    return "\n\n".join(lines)


def _escaped(words: str) -> str:
    for mark in ("\\", "*", "_", "<", "|", "$"):
        words = words.replace(mark, "\\" + mark)
    return words


def _entry(title: str, anchor: str, body: str) -> str:
    return f"{_marked(anchor)}**{title}.**\n\n{body}"


def _statement(title: str, anchor: str, entry: formula_document.FormulaEntry) -> str:
    step = entry.steps[-1][0]
    maths = latex_math(relation(step.lhs, step.relation, step.rhs))
    return _entry(title, anchor, f"$$\n{maths}\n$$")


def _marked(anchor: str) -> str:
    return f'<a id="{anchor}"></a>' if anchor else ""


def _image(drawing: Drawing, anchor: str) -> str:
    made = base64.b64encode(svg(drawing).encode()).decode()
    words = drawing.title.partition(".")[0].replace("$", "")
    return f"{_marked(anchor)}![{words}](data:image/svg+xml;base64,{made})"


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], shares: tuple[float, ...]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


MARKDOWN = BlockMarkup(
    words=_escaped,
    strong=lambda words: f"**{words}**",
    link=lambda to, words: f"[{words}]({to if '//' in to else '#' + to})",
    maths=lambda span: f"${latex_math(span.boxes)}$" + (f" `{span.name}`" if span.name else ""),
    heading=lambda level, words, anchor: f"{'#' * (level + 1)} {_marked(anchor)}{words}",
    paragraphs={"question": "*%s*", "kind": "*%s*"},
    folded=lambda title, _, body: f"## {title}\n\n{body}",
    statement=_statement,
    steps=_steps,
    entry=_entry,
    grid=_grid,
    items=lambda lines: "\n".join(f"- {line}" for line in lines),
    picture=_image,
    answer=lambda number, line: (
        f"<details><summary>answer to {number}</summary>\n\n{line}\n\n</details>"
    ),
)


def notebook(whole: BlockDocument) -> str:
    """JSON of format 4.5: the cover, then each section in words and as code that checks it."""
    starts = [i for i, x in enumerate(whole.blocks) if _begins(x)]
    front = whole.blocks[: starts[0]] if starts else whole.blocks
    cells = [words_cell("cover", "\n\n".join([_cover(whole), MARKDOWN.written(front)]))]
    if whole.cases:
        lines = ["cases = {"]
        for name, values in whole.cases.items():
            inner = ", ".join(f"{x!r}: {float(v)!r}" for x, v in values.items())
            lines.append(f"    {name!r}: {{{inner}}},")
        cells.append(code_cell("cases", "\n".join([*lines, "}"])))
    for start, end in zip(starts, [*starts[1:], len(whole.blocks)], strict=True):
        section = whole.blocks[start:end]
        anchor = getattr(section[0], "anchor", "") or f"section-{start}"
        cells.append(words_cell(anchor, MARKDOWN.written(section)))
        computed = [block.source for block in section if isinstance(block, blocks.CodeCell)]
        cells += [code_cell(f"{anchor}-{n}", source) for n, source in enumerate(computed)]
        checked = [line for entry in _entries(section) for line in _checks(entry, whole)]
        cells += [code_cell(f"{anchor}-check", "\n".join(checked))] if checked else []
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "title": whole.title,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _begins(block: Block) -> bool:
    return isinstance(block, Article) or (isinstance(block, Heading) and block.level < 3)


def _entries(blocks: Sequence[Block]) -> Iterator[formula_document.FormulaEntry]:
    for block in blocks:
        if isinstance(block, Article):
            yield from _entries(block.blocks)
        elif isinstance(block, Proof | Steps):
            yield block.entry


def _checks(entry: formula_document.FormulaEntry, whole: BlockDocument) -> Iterator[str]:
    if not entry.python:
        return  # it lives in no module that a cell could import
    yield f"from {dotted_module(entry.home)} import {entry.python}"
    yield f"assert {entry.python}.check()"
    yield f"print({entry.python}.latex())"
    for case in dict.fromkeys(size.case for size in entry.sizes if size.size is not None):
        yield f"print({case!r}, {entry.python}.strain({_without_derived(entry, case, whole)}))"


def _without_derived(entry: formula_document.FormulaEntry, case: str, whole: BlockDocument) -> str:
    missing = sorted(
        x for x in formula_document.solved_symbols(entry.item) if x in whole.cases[case]
    )
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
    return re.sub(r"[^A-Za-z0-9_-]", "-", key)[-64:]
