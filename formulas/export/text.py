"""Plain text, for the terminal."""

from __future__ import annotations

from formulas import expressions
from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.export.entry import Entry, Row, entries, symbol_table
from formulas.steps import Step

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
        for number, (step, proof) in enumerate(entry.steps, 1):
            lines.append(f"  {number}. {step.verb}" + (f": {step.why}" if step.why else ""))
            lines.append(f"       {step}")
            lines.append(f"       [{proof}{_neglected(step)}]")
    else:
        lines.append(f"  {entry.steps[0][0]}")
    lines += [f"  where  {equation}" for equation in entry.where]
    lines += [f"  assumes  {assumption}" for assumption in entry.assumes]
    link = f", {entry.source.link}" if entry.source.link else ""
    lines.append(f"  source  {entry.source}{link}")
    return "\n".join(lines)


def _neglected(step: Step) -> str:
    return "" if step.size is None else f"; neglected over kept: {expressions.text(step.size)}"


def _table(rows: tuple[Row, ...]) -> str:
    names = max((len(row.symbol.name) for row in rows), default=0)
    units = max((len(row.unit) for row in rows), default=0) + 2
    return "\n".join(
        f"  {row.symbol.name:<{names}}  {f'[{row.unit}]':<{units}}  {row.meaning}" for row in rows
    )
