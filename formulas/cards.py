"""How an equation or a derivation shows itself in a notebook: one block of HTML, no dependency.

Formulas stand as LaTeX between dollar signs, which a notebook typesets; words are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import sympy as sp

from formulas.nomenclature.sources import Citation
from formulas.nomenclature.symbols import meaning, unit_of_symbol
from formulas.numerics.expressions import tex

if TYPE_CHECKING:
    from formulas.algebra.derivation import Derivation
    from formulas.algebra.equation import Equation
    from formulas.algebra.steps import DerivationStep


LEFT = 'style="text-align:left"'
SIGNS = {"=": "=", "≈": r"\approx"}


def aligned(steps: Sequence[DerivationStep]) -> str:
    """All forms below each other, LaTeX."""
    lines = [f"{tex(s.lhs)} &{SIGNS[s.relation]} {tex(s.rhs)}" for s in steps]
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def equation_card(equation: Equation) -> str:
    """Title, formula, symbols with units, assumptions, source."""
    symbols = {equation.symbol, *equation.symbols, *equation.givens}
    return _block(
        equation.name,
        [_display(equation.latex())],
        [*(f"where ${inner.latex()}$" for inner in equation.where), *_assumed(equation.assumes)],
        symbols | {inner.symbol for inner in equation.where},
        equation.source,
    )


def derivation_card(derivation: Derivation) -> str:
    """Title, every step with its reason and its proof, symbols with units, source."""
    rows, symbols = [], set()
    for number, (step, proof) in enumerate(
        zip(derivation.steps, derivation.proofs, strict=True), 1
    ):
        why = f": {escape(step.why)}" if step.why else ""
        form = f"{tex(step.lhs)} {SIGNS[step.relation]} {tex(step.rhs)}"
        size = "" if step.size is None else f"; neglected over kept: ${tex(step.size)}$"
        rows.append(
            f"<div>{number}. <b>{step.verb}</b>{why}</div>"
            f"{_display(form)}<div><small>{escape(proof)}{size}</small></div>"
        )
        symbols |= step.lhs.free_symbols | step.rhs.free_symbols
    for inner in derivation.where:
        symbols |= {inner.symbol, *inner.symbols}
    notes = [f"where ${inner.latex()}$" for inner in derivation.where]
    return _block(
        derivation.name, rows, [*notes, *_assumed(derivation.assumes)], symbols, derivation.source
    )


def _block(
    name: str, rows: list[str], notes: list[str], symbols: Iterable[sp.Symbol], source: Citation
) -> str:
    listed = "".join(f"<li>{note}</li>" for note in notes)
    title = escape(name[:1].upper() + name[1:])
    words = escape(str(source))
    cited = f'<a href="{escape(source.link)}">{words}</a>' if source.link else words
    parts = [
        f"<h4>{title}</h4>",
        *rows,
        f"<ul>{listed}</ul>" if listed else "",
        _table(symbols),
        f"<p><small>Source: {cited}</small></p>",
    ]
    return "<div>\n" + "\n".join(part for part in parts if part) + "\n</div>"


def _table(symbols: Iterable[sp.Symbol]) -> str:
    ordered = sorted(symbols, key=lambda x: (x.name.lower(), x.name))
    rows = [
        f"<tr><td {LEFT}>${tex(x)}$</td><td {LEFT}><code>{escape(x.name)}</code></td>"
        f"<td {LEFT}>{escape(str(unit_of_symbol(x)))}</td>"
        f"<td {LEFT}>{escape(meaning(x))}</td></tr>"
        for x in ordered
    ]
    heads = "".join(f"<th {LEFT}>{word}</th>" for word in ("symbol", "name", "unit", "meaning"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _display(formula: str) -> str:
    return f"<div>$\\displaystyle {escape(formula, quote=False)}$</div>"


def _assumed(assumes: Iterable[str]) -> list[str]:
    return [f"assumes: {escape(each)}" for each in assumes]
