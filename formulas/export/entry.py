"""What every format says about an equation or derivation, before it is put into its words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.sources import Citation
from formulas.steps import Step
from formulas.symbols import meaning, unit_of_symbol

__all__ = ["Entry", "Row", "entries", "symbol_table"]


@dataclass(frozen=True)
class Entry:
    """One object: its steps with their proofs, or its single line."""

    name: str
    steps: tuple[tuple[Step, str], ...]
    assumes: tuple[str, ...]
    where: tuple[Equation, ...]
    source: Citation
    tags: tuple[str, ...]
    derived: bool
    exact: bool


@dataclass(frozen=True)
class Row:
    """One line of the table of symbols."""

    symbol: sp.Symbol
    unit: str
    meaning: str


def entries(objects: Iterable[Equation | Derivation]) -> tuple[Entry, ...]:
    """The objects, checked."""
    return tuple(_entry(item) for item in objects)


def symbol_table(listed: Iterable[Entry]) -> tuple[Row, ...]:
    """Every symbol that occurs, by name."""
    found: set[sp.Symbol] = set()
    for entry in listed:
        for step, _ in entry.steps:
            found |= step.lhs.free_symbols | step.rhs.free_symbols
        for equation in entry.where:
            found |= {equation.symbol, *equation.rhs.free_symbols}
    ordered = sorted(found, key=lambda x: (x.name.lower(), x.name))
    return tuple(Row(x, str(unit_of_symbol(x)), meaning(x)) for x in ordered)


def _entry(item: Equation | Derivation) -> Entry:
    item.check()
    if isinstance(item, Derivation):
        steps = tuple(zip(item.steps, item.proofs, strict=True))
        exact = item.exact
    else:
        steps = ((Step("state", item.symbol, item.rhs, ""), ""),)
        exact = True
    return Entry(
        item.name, steps, item.assumes, item.where, item.source, item.tags,
        isinstance(item, Derivation), exact,
    )  # fmt: skip
