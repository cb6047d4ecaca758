"""Markdown with LaTeX formulas between dollar signs."""

from __future__ import annotations

from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.export.entry import Entry, Row, entries, symbol_table
from formulas.expressions import tex
from formulas.steps import Step

__all__ = ["markdown"]


def markdown(objects: tuple[Equation | Derivation, ...]) -> str:
    """A section for every object, then the table of symbols."""
    listed = entries(objects)
    parts = [_entry(entry) for entry in listed]
    parts.append(_table(symbol_table(listed)))
    return "\n\n".join(parts) + "\n"


def _entry(entry: Entry) -> str:
    parts = [f"## {entry.name[:1].upper()}{entry.name[1:]}"]
    if entry.tags:
        parts.append(f"*{', '.join(entry.tags)}*")
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            parts.append(f"**{number}. {step.verb}** {step.why}".rstrip() + f" — {proof}")
        parts.append(f"$$\n{_line(step)}\n$$")
        if step.size is not None:
            parts.append(f"Neglected over kept: ${tex(step.size)}$")
    notes = [f"- where ${equation.latex()}$" for equation in entry.where]
    notes += [f"- assumes: {_escaped(assumption)}" for assumption in entry.assumes]
    link = entry.source.link
    notes.append(f"- source: [{entry.source}]({link})" if link else f"- source: {entry.source}")
    return "\n\n".join([*parts, "\n".join(notes)])


def _line(step: Step) -> str:
    sign = "=" if step.exact else r"\approx"
    return f"{tex(step.lhs)} {sign} {tex(step.rhs)}"


def _escaped(words: str) -> str:
    """Words with the characters that Markdown would act on made literal."""
    for mark in ("\\", "*", "_", "<"):
        words = words.replace(mark, "\\" + mark)
    return words


def _table(rows: tuple[Row, ...]) -> str:
    lines = ["| symbol | name | unit | meaning |", "|---|---|---|---|"]
    lines += [
        f"| ${tex(row.symbol)}$ | `{row.symbol.name}` | `{row.unit}` | {row.meaning} |"
        for row in rows
    ]
    return "\n".join(lines)
