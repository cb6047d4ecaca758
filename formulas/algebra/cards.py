"""How an equation or a derivation shows itself in a notebook: one block of HTML, no dependency.

Formulas stand as LaTeX between dollar signs, which a notebook typesets; words are escaped.
"""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import sympy as sp

from formulas.nomenclature.sources import Citation
from formulas.nomenclature.symbols import meaning, unit_of_symbol
from formulas.numerics.expressions import tex

LEFT = 'style="text-align:left"'
SIGNS = {"=": "=", "≈": r"\approx", "≤": r"\le", "≥": r"\ge"}


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


class Readable:
    """How a derivation shows itself: LaTeX, a notebook's HTML, plain text."""

    name: str
    steps: tuple[Any, ...]

    if TYPE_CHECKING:

        @property
        def proofs(self) -> tuple[str, ...]:
            """The proof of each step."""

    def latex(self) -> str:
        """All steps, aligned."""
        lines = [f"{tex(s.lhs)} &{SIGNS[s.relation]} {tex(s.rhs)}" for s in self.steps]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        return derivation_card(self)

    def text(self) -> str:
        """All steps with their reasons and proofs, one after the other."""
        numbered = enumerate(zip(self.steps, self.proofs, strict=True), 1)
        steps = [step.text(number, proof) for number, (step, proof) in numbered]
        return "\n".join([self.name, *steps])


def derivation_card(derivation: Any) -> str:
    """HTML of a derivation: every step with its reason and proof, then its definitions."""
    rows, symbols = [], set()
    for number, (step, proof) in enumerate(
        zip(derivation.steps, derivation.proofs, strict=True), 1
    ):
        rows.append(_card_row(number, step, proof))
        symbols |= step.lhs.free_symbols | step.rhs.free_symbols
    for inner in derivation.where:
        symbols |= {inner.symbol, *inner.symbols}
    where = [inner.latex() for inner in derivation.where]
    return card(derivation.name, rows, where, derivation.assumes, symbols, derivation.source)


def _card_row(number: int, step: Any, proof: str) -> str:
    """HTML of a step: what was done and why, its form, and how it was shown to follow."""
    why = f": {escape(step.why)}" if step.why else ""
    form = f"{tex(step.lhs)} {SIGNS[step.relation]} {tex(step.rhs)}"
    size = "" if step.size is None else f"; neglected over kept: ${tex(step.size)}$"
    return (
        f"<div>{number}. <b>{step.verb}</b>{why}</div>"
        f"{display(form)}<div><small>{escape(proof)}{size}</small></div>"
    )
