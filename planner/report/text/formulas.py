"""What `planner formula` prints without a name: the list of all equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.registry import by_name, subject

__all__ = ["formulas_text", "the_formulas"]


def the_formulas() -> list[dict[str, Any]]:
    """Every equation and derivation: name, subject, title, text."""
    return [
        {"name": name, "subject": subject(name), "title": value.name, "text": str(_equation(value))}
        for name, value in by_name().items()
    ]


def formulas_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The list on a terminal, by subject."""
    lines: list[str] = []
    for row in rows:
        if f"{row['subject']}:" not in lines:
            lines += ["", f"{row['subject']}:"] if lines else [f"{row['subject']}:"]
        lines.append(f"  {row['name']:<24} {row['title']}")
    return "\n".join(lines)


def _equation(value: Equation | Derivation) -> Equation | Derivation:
    """The equation a derivation ends in; the derivation itself where it ends in numbers."""
    if isinstance(value, Equation) or value.numeric or not value.lhs.is_Symbol:
        return value
    return value.equation()
