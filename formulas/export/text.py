"""Plain text, for the terminal."""

from __future__ import annotations

from textwrap import fill

from formulas.export.document import Chapter, Document, Row
from formulas.export.entry import Entry, Size

__all__ = ["plain", "size_words", "text", "value_words"]

WIDTH = 100


def text(whole: Document) -> str:
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


def size_words(size: Size) -> str:
    """`lecture: drop x/W: 0.07 times what is kept`."""
    if size.size is None:
        return f"{size.case}: not known, {size.missing}"
    return f"{size.case}: {size.neglected}: {plain(size.size)} times what is kept{size.remark}"


def value_words(value: float, unit: str) -> str:
    """`2400 [seq]`, or that the conditions fail where a positive symbol came out negative."""
    if value < 0:
        return f"none: {plain(value)} is not positive, so a condition below does not hold"
    return f"{plain(value)} [{unit}]" if unit != "1" else plain(value)


def _cover(whole: Document) -> list[str]:
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


def _entry(entry: Entry) -> str:
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


def _table(whole: Document, rows: tuple[Row, ...]) -> str:
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
