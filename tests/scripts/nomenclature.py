"""The page of all symbols, written from the registry: `python -m tests.scripts.nomenclature`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import sympy as sp

import formulas.nomenclature
from formulas.algebra.equation import Equation
from formulas.nomenclature.symbols import SYMBOLS, latex_names, meaning, symbol_unit
from formulas.registry import by_name
from tests.paths import ROOT

PAGE = ROOT / "docs" / "nomenclature.md"
HEAD = """\
# Nomenclature

Every symbol of `formulas`, by the table that registers it: how code writes it, how it is printed,
its unit, what it is, and the equations that give it (`planner formula NAME` shows one). All are
positive. `python -m tests.scripts.nomenclature` writes this page, and a test says when it is old.
"""
COLUMNS = "| | | unit | | given by |\n|---|---|---|---|---|\n"


def page() -> str:
    """The page as Markdown: one table for each module of symbols, names in order."""
    equations: dict[sp.Symbol, list[str]] = {}
    for name, equation in by_name().items():
        if isinstance(equation, Equation) and isinstance(equation.lhs, sp.Symbol):
            equations.setdefault(equation.lhs, []).append(f"`{name}`")
    latex, parts, listed = latex_names(), [HEAD], set[str]()
    for info in pkgutil.iter_modules(formulas.nomenclature.__path__):
        module = import_module(f"formulas.nomenclature.{info.name}")
        names = {name for name, x in vars(module).items() if SYMBOLS.get(name) is x} - listed
        if not names:
            continue
        listed |= names
        title = " ".join((module.__doc__ or "").split("\n\n")[0].split())
        table = info.name.removesuffix("_symbols")
        parts.append(f"\n## {table}\n\n{title}\n\n{COLUMNS}")
        for name in sorted(names, key=lambda name: (name.lower(), name)):
            x = SYMBOLS[name]
            defined = ", ".join(equations.get(x, ()))
            cells = (f"`{name}`", f"${latex[x]}$", str(symbol_unit(x)), meaning(x), defined)
            parts.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n")
    missing = SYMBOLS.keys() - listed
    if missing:
        raise ValueError(f"no table holds {', '.join(sorted(missing))}")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
