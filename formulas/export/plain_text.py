"""Markdown with LaTeX formulas between dollar signs.

Plain text, for the terminal.
"""

from textwrap import fill

from formulas.algebra.steps import DerivationStep
from formulas.export.formula_document import (
    Chapter,
    FormulaDocument,
    FormulaEntry,
    NeglectedSize,
    SymbolRow,
)
from formulas.numerics.expressions import tex

WIDTH = 100


def text(whole: FormulaDocument) -> str:
    """Cover, chapters with every object and its steps."""
    parts = [*_cover(whole)]
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            parts.append(_heading(chapter))
        parts += [_entry(entry) for entry in chapter.entries]
    return "\n\n".join(parts) + "\n"


def plain(value: float | None) -> str:
    """`6.71e11`; nothing for a value that is not given."""
    if value is None:
        return "–"
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def size_words(size: NeglectedSize) -> str:
    """`lecture: drop x/W: 0.07 times what is kept`."""
    if size.size is None:
        return f"{size.case}: not known, {size.missing}"
    return f"{size.case}: {size.neglected}: {plain(size.size)} times what is kept{size.remark}"


def value_words(value: float, unit: str) -> str:
    """`2400 [seq]`, or that the conditions fail where a positive symbol came out negative."""
    if value < 0:
        return f"none: {plain(value)} is not positive, so a condition below does not hold"
    return f"{plain(value)} [{unit}]" if unit != "1" else plain(value)


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


def _heading(chapter: Chapter) -> str:
    return f"{chapter.title}\n{'-' * len(chapter.title)}\n{chapter.about}".rstrip()


def _entry(entry: FormulaEntry) -> str:
    tags = f"  [{', '.join(entry.tags)}]" if entry.tags else ""
    lines = [entry.name + tags]
    if entry.derived:
        lines += [step.text(n, proof) for n, (step, proof) in enumerate(entry.steps, 1)]
    else:
        lines.append(f"  {entry.steps[0][0]}")
    lines += [f"  where  {equation}" for equation in entry.where]
    lines += [f"  value  {c}: {value_words(value, entry.unit)}" for c, value in entry.values]
    lines += [f"  size   {size_words(size)}" for size in entry.sizes]
    lines += [f"  assumes  {assumption}" for assumption in entry.assumes]
    link = f", {entry.source.link}" if entry.source.link else ""
    lines.append(f"  source  {entry.source}{link}")
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


def markdown(whole: FormulaDocument) -> str:
    """Cover, then a section for every object, in chapters."""
    parts = [cover(whole)]
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            parts.append(f"## {chapter.title}\n\n{_escaped(chapter.about)}")
        parts += [section(entry) for entry in chapter.entries]
    return "\n\n".join(parts) + "\n"


def cover(whole: FormulaDocument) -> str:
    """Title, how to read it, contents, symbols, assumptions, sources."""
    parts = [f"# {_escaped(whole.title)}", *map(_escaped, whole.words)]
    if whole.headed:
        parts += ["## Contents", _contents(whole)]
    if len(whole.cases) > 1 and whole.differences:
        parts += ["## Assumptions where they differ", _plain_text_table(whole, whole.differences)]
    parts += ["## Symbols", _plain_text_table(whole, whole.rows)]
    if whole.sources:
        cited = [
            f"- {_escaped(s.authors)}, [{_escaped(s.title)}]({s.link}) ({s.year})"
            for s in whole.sources
        ]
        parts += ["## Sources", "\n".join(cited)]
    return "\n\n".join(parts)


def section(entry: FormulaEntry) -> str:
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


def _contents(whole: FormulaDocument) -> str:
    lines: list[str] = []
    for chapter in whole.chapters:
        links = [f"[{_escaped(entry.title)}](#{entry.anchor})" for entry in chapter.entries]
        lines += [f"- {chapter.title or 'Others'}", *(f"  - {link}" for link in links)]
    return "\n".join(lines)


def _line(step: DerivationStep) -> str:
    sign = "=" if step.exact else r"\approx"
    return f"{tex(step.lhs)} {sign} {tex(step.rhs)}"


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
