"""Markdown with LaTeX formulas between dollar signs."""

from __future__ import annotations

from formulas.algebra.steps import Step
from formulas.export.document import Document, Row
from formulas.export.entry import Entry
from formulas.export.text import plain, size_words, value_words
from formulas.numerics.expressions import tex

__all__ = ["cover", "markdown", "section"]


def markdown(whole: Document) -> str:
    """Cover, then a section for every object, in chapters."""
    parts = [cover(whole)]
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            parts.append(f"## {chapter.title}\n\n{_escaped(chapter.about)}")
        parts += [section(entry) for entry in chapter.entries]
    return "\n\n".join(parts) + "\n"


def cover(whole: Document) -> str:
    """Title, how to read it, contents, symbols, assumptions, sources."""
    parts = [f"# {_escaped(whole.title)}", *map(_escaped, whole.words)]
    if whole.headed:
        parts += ["## Contents", _contents(whole)]
    if len(whole.cases) > 1 and whole.differences:
        parts += ["## Assumptions where they differ", _table(whole, whole.differences)]
    parts += ["## Symbols", _table(whole, whole.rows)]
    if whole.sources:
        cited = [
            f"- {_escaped(s.authors)}, [{_escaped(s.title)}]({s.link}) ({s.year})"
            for s in whole.sources
        ]
        parts += ["## Sources", "\n".join(cited)]
    return "\n\n".join(parts)


def section(entry: Entry) -> str:
    """One object."""
    parts = [f'### <a id="{entry.anchor}"></a>{_escaped(entry.title)}']
    parts.append(f"*{', '.join([entry.kind, *entry.tags])}*")
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            why = f" {_escaped(step.why)}" if step.why else ""
            parts.append(f"**{number}. {step.verb}**{why} — {_escaped(proof)}")
        parts.append(f"$$\n{_line(step)}\n$$")
        if step.size is not None:
            parts.append(f"Neglected over kept: ${tex(step.size)}$")
    notes = [f"- where ${equation.latex()}$" for equation in entry.where]
    notes += [
        f"- value, {case}: {_escaped(value_words(v, entry.unit))}" for case, v in entry.values
    ]
    notes += [f"- neglected, {_escaped(size_words(size))}" for size in entry.sizes]
    notes += [f"- assumes: {_escaped(assumption)}" for assumption in entry.assumes]
    link, words = entry.source.link, _escaped(str(entry.source))
    notes.append(f"- source: [{words}]({link})" if link else f"- source: {words}")
    return "\n\n".join([*parts, "\n".join(notes)])


def _contents(whole: Document) -> str:
    lines: list[str] = []
    for chapter in whole.chapters:
        links = [f"[{_escaped(entry.title)}](#{entry.anchor})" for entry in chapter.entries]
        lines += [f"- {chapter.title or 'Others'}", *(f"  - {link}" for link in links)]
    return "\n".join(lines)


def _line(step: Step) -> str:
    sign = "=" if step.exact else r"\approx"
    return f"{tex(step.lhs)} {sign} {tex(step.rhs)}"


def _escaped(words: str) -> str:
    """Words with the characters that Markdown would act on made literal."""
    for mark in ("\\", "*", "_", "<", "|", "$"):
        words = words.replace(mark, "\\" + mark)
    return words


def _table(whole: Document, rows: tuple[Row, ...]) -> str:
    names = ["symbol", "name", "unit", *whole.cases, "meaning"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [
        f"| ${tex(row.symbol)}$ | `{row.symbol.name}` | `{row.unit}` | "
        + "".join(f"{plain(value)} | " for value in row.values)
        + f"{_escaped(row.meaning)} |"
        for row in rows
    ]
    return "\n".join(lines)
