"""A LaTeX document that stands alone: `article` with `amsmath`."""

from __future__ import annotations

from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.export.entry import Entry, Row, entries, symbol_table
from formulas.expressions import tex
from formulas.sources import Citation
from formulas.steps import Step

__all__ = ["latex"]

HEAD = r"""\documentclass[a4paper]{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage[margin=25mm]{geometry}
\usepackage{amsmath}
\usepackage{longtable}
\usepackage[hidelinks]{hyperref}
\setlength{\parindent}{0pt}
\begin{document}
"""
TAIL = "\\end{document}\n"

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\to}",
    "≤": r"\ensuremath{\le}",
    "≥": r"\ensuremath{\ge}",
    "√": r"\ensuremath{\surd}",
    "∞": r"\ensuremath{\infty}",
}


def latex(objects: tuple[Equation | Derivation, ...]) -> str:
    """A section for every object, then the table of symbols."""
    listed = entries(objects)
    body = "\n".join(_entry(entry) for entry in listed)
    return HEAD + body + _table(symbol_table(listed)) + TAIL


def _entry(entry: Entry) -> str:
    lines = [rf"\section*{{{_escaped(entry.name[:1].upper() + entry.name[1:])}}}"]
    if entry.tags:
        lines.append(rf"\textit{{{_escaped(', '.join(entry.tags))}}}")
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            lines.append("")
            words = f"{step.verb}: {step.why}" if step.why else step.verb
            lines.append(rf"{number}. {_escaped(words)} ({_escaped(proof)})")
        lines.append(_display(step))
        if step.size is not None:
            lines.append(rf"Neglected over kept: $\displaystyle {tex(step.size)}$")
    notes = [rf"\item where $\displaystyle {equation.latex()}$" for equation in entry.where]
    notes += [rf"\item assumes: {_escaped(assumption)}" for assumption in entry.assumes]
    notes.append(rf"\item source: {_source(entry.source)}")
    return "\n".join([*lines, r"\begin{itemize}", *notes, r"\end{itemize}", ""])


def _display(step: Step) -> str:
    sign = "=" if step.exact else r"\approx"
    return f"\\[\n{tex(step.lhs)} {sign} {tex(step.rhs)}\n\\]"


def _source(source: Citation) -> str:
    words = _escaped(str(source))
    if not source.link:
        return words
    link = source.link.replace("%", r"\%").replace("#", r"\#")
    return rf"\href{{{link}}}{{{words}}}"


def _table(rows: tuple[Row, ...]) -> str:
    lines = [
        rf"${tex(row.symbol)}$ & {_escaped(row.unit)} & {_escaped(row.meaning)} \\" for row in rows
    ]
    return "\n".join(
        [
            r"\section*{Symbols}",
            r"\begin{longtable}{llp{90mm}}",
            r"symbol & unit & meaning \\ \hline",
            *lines,
            r"\end{longtable}",
            "",
        ]
    )


def _escaped(words: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in words)
