"""How an equation or a derivation shows itself in a notebook: one block of HTML, no dependency.

Formulas stand as LaTeX between dollar signs, which a notebook typesets; words are escaped.
"""

from collections.abc import Iterable
from html import escape

import sympy as sp

from formulas.nomenclature.sources import Citation
from formulas.nomenclature.symbols import meaning, unit_of_symbol
from formulas.numerics.expressions import tex

LEFT = 'style="text-align:left"'
SIGNS = {"=": "=", "≈": r"\approx"}


def card(
    name: str,
    rows: Iterable[str],
    where: Iterable[str],
    assumes: Iterable[str],
    symbols: Iterable[sp.Symbol],
    source: Citation,
) -> str:
    """HTML of a title, rows, definitions (LaTeX), assumptions, symbols with units, and a source."""
    notes = [*(f"where ${latex}$" for latex in where), *(f"assumes: {escape(a)}" for a in assumes)]
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


def display(formula: str) -> str:
    """A formula on a line of its own, LaTeX for a notebook."""
    return f"<div>$\\displaystyle {escape(formula, quote=False)}$</div>"
