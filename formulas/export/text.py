"""Plain text, for the terminal."""

from __future__ import annotations

from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.export.entry import Entry, Row, entries, symbol_table

__all__ = ["text"]


def text(objects: tuple[Equation | Derivation, ...]) -> str:
    """Every object with its steps, then the table of symbols."""
    listed = entries(objects)
    parts = [_entry(entry) for entry in listed]
    parts.append(_table(symbol_table(listed)))
    return "\n\n".join(parts) + "\n"


def _entry(entry: Entry) -> str:
    tags = f"  [{', '.join(entry.tags)}]" if entry.tags else ""
    lines = [entry.name + tags]
    if entry.derived:
        lines += [step.text(n, proof) for n, (step, proof) in enumerate(entry.steps, 1)]
    else:
        lines.append(f"  {entry.steps[0][0]}")
    lines += [f"  where  {equation}" for equation in entry.where]
    lines += [f"  assumes  {assumption}" for assumption in entry.assumes]
    link = f", {entry.source.link}" if entry.source.link else ""
    lines.append(f"  source  {entry.source}{link}")
    return "\n".join(lines)


def _table(rows: tuple[Row, ...]) -> str:
    names = max((len(row.symbol.name) for row in rows), default=0)
    units = max((len(row.unit) for row in rows), default=0) + 2
    return "\n".join(
        f"  {row.symbol.name:<{names}}  {f'[{row.unit}]':<{units}}  {row.meaning}" for row in rows
    )
