"""A LaTeX document that stands alone: `article` with what every TeX installation has.

Words as LaTeX sets them: its own characters made literal, others by their commands. The works that
equations and derivations cite, as BibTeX.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.export.document_markup import DocumentMarkup
from formulas.export.formula_document import FormulaDocument, FormulaEntry, SymbolRow
from formulas.export.typesetting.boxes import Layout, fitted
from formulas.export.typesetting.layout import alternating, figure, layout, relation
from formulas.export.typesetting.markup import latex_math
from formulas.nomenclature.sources import Source
from formulas.nomenclature.symbols import GREEK

_SPECIAL = alternating(
    r"\ \textbackslash{}  & \&  % \%  $ \$  # \#  _ \_  { \{  } \}  ~ \textasciitilde{} "
    r"^ \textasciicircum{}  – --  — ---  ‘ `  ’ '  “ ``  ” ''  … \ldots{}  µ \ensuremath{\mu}"
)
_SPECIAL |= {"\u00a0": "~", "\u2009": r"\,", "\u202f": r"\,"}
_MATHS = alternating(
    r"< <  > >  | |  ≈ \approx  → \to  ← \gets  ↔ \leftrightarrow  ⇔ \Leftrightarrow "
    r"⇒ \Rightarrow  ≤ \le  ≥ \ge  ≠ \ne  √ \surd{}  ∞ \infty  × \times  ÷ \div  ± \pm  − - "
    r"· \cdot  ⋅ \cdot  ∝ \propto  ∂ \partial  ∑ \sum  Σ \Sigma  ∏ \prod  ∈ \in  ≪ \ll  ≫ \gg "
    r"⌈ \lceil  ⌉ \rceil  ⌊ \lfloor  ⌋ \rfloor  ⁻ ^{-}  ½ \tfrac{1}{2}  ° ^{\circ}  ∀ \forall "
    r"∃ \exists  ⊕ \oplus  ≡ \equiv  ∼ \sim  ′ '  ² ^{2}  ³ ^{3}  ¹ ^{1}"
)
_MATHS |= {mark: f"^{{{digit}}}" for digit, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_MATHS |= {mark: f"_{{{digit}}}" for digit, mark in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_MATHS |= {letter: f"\\{name}" for name, letter in GREEK.items()}


# Behind a sign of a long typed formula, but not inside `**`.
_BREAKS = re.compile(r"(?<=\S{6}[*/])(?=[^\s*]\S{5})")


def latex_words(words: str) -> str:
    """The words, safe in LaTeX; a typed formula may break after an operator.

    Raises ValueError if a character has no rule and is no Latin letter.
    """
    return r"\allowbreak{}".join("".join(map(_letter, part)) for part in _BREAKS.split(words))


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter in _MATHS:
        return rf"\ensuremath{{{_MATHS[letter]}}}"
    if ord(letter) < 0x180:
        return letter
    raise ValueError(f"no LaTeX for the character {letter!r} (U+{ord(letter):04X})")


WIDTH = 36.0  # of a formula [em]
HEAD = Path(__file__).with_name("preamble.tex").read_text("utf-8")


def latex(whole: FormulaDocument) -> str:
    """Cover, then a section for every object, in chapters."""
    parts = [HEAD + rf"\title{{{latex_words(whole.title)}}}" + "\n\\author{}\\date{}"]
    parts += [r"\begin{document}", r"\maketitle", *map(latex_words, whole.words)]
    parts += LATEX.differences(whole)
    if whole.headed:
        parts += [r"\newpage\tableofcontents\newpage"]
    parts += [*LATEX.back(whole), *LATEX.chapters(whole), r"\end{document}"]
    return "\n\n".join(parts) + "\n"


def _steps(entry: FormulaEntry) -> Iterator[str]:
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            why = f" {LATEX.prose(step.why)}" if step.why else ""
            head = rf"\textbf{{{number}. {step.verb}}}{why}"
            yield f"\n{head} {{\\small[{latex_words(proof)}]}}\\nopagebreak"
        yield f"\\[\n{_math(relation(step.lhs, step.relation, step.rhs))}\n\\]"
        if step.size is not None:
            size = latex_math(fitted(layout(step.size), WIDTH / 2))
            yield rf"Neglected over kept: $\displaystyle {size}$"


def _math(x: Layout) -> str:
    return rf"\displaystyle {latex_math(fitted(x, WIDTH))}"


def _figure(value: float) -> str:
    return f"${latex_math(figure(value))}$"


def _link(link: str, words: str) -> str:
    address = link.replace("%", r"\%").replace("#", r"\#")
    return rf"\href{{{address}}}{{{words}}}"


def _unit(unit: str) -> str:
    """A unit that may be broken after its signs."""
    dot = latex_words("·")
    return latex_words(unit).replace("/", r"/\allowbreak ").replace(dot, dot + r"\allowbreak ")


def _table(whole: FormulaDocument, rows: tuple[SymbolRow, ...]) -> str:
    cases = len(whole.cases)
    meaning = 98 - 19 * cases
    heads = ["symbol", "unit", *map(latex_words, whole.cases), "meaning"]
    lines = [
        " & ".join(
            [
                rf"${latex_math(layout(row.symbol))}$",
                rf"\raggedright {_unit(row.unit)}",
                *("" if v is None else _figure(v) for v in row.values),
                rf"\raggedright {latex_words(row.meaning)}",
            ]
        )
        + r" \tabularnewline"
        for row in rows
    ]
    head = " & ".join(heads) + r" \\ \midrule \endhead"
    return longtable(f"lp{{23mm}}{'r' * cases}p{{{meaning}mm}}", head, lines)


def longtable(columns: str, head: str, lines: Sequence[str]) -> str:
    """A table over pages, of columns as LaTeX writes them, in small print."""
    start = rf"\begingroup\small\begin{{longtable}}[l]{{@{{}}{columns}@{{}}}} \toprule"
    return "\n".join([start, head, *lines, r"\bottomrule \end{longtable}\endgroup"])


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" & ".join(row) + r" \tabularnewline" for row in rows]
    head = " & ".join(heads) + r" \\ \midrule \endhead"
    return longtable("l" * (len(heads) - 1) + "p{105mm}", head, lines)


LATEX = DocumentMarkup(
    words=latex_words,
    maths=lambda x: f"${latex_math(layout(x))}$",
    figure=_figure,
    definition=lambda equation: f"${_math(relation(equation.symbol, '=', equation.rhs))}$",
    link=_link,
    inner=lambda anchor, words: rf"\hyperref[{anchor}]{{{words}}}",
    grid=_grid,
    steps=_steps,
    table=_table,
    between="\n",
    heading=r"\section{%s}",
    chapter="\\newpage\\section{%s}\n\n\\emph{%s}",
    title=r"\subsection{%(title)s}\label{%(anchor)s}",
    kind=r"\textit{%s}",
    item=r"\item %s",
    listed="\\begin{itemize}\\setlength{\\itemsep}{1pt plus 2pt}\n%s\n\\end{itemize}",
)


def bibtex(objects: Iterable[Equation | Derivation]) -> str:
    """One entry for each work, by key; works without a paper of their own are `misc`."""
    works: dict[str, Source] = {}
    for item in objects:
        for citation in (item.source, *(inner.source for inner in item.where)):
            if citation.source is not None:
                works[citation.source.key] = citation.source
    return "\n\n".join(_entry(works[key]) for key in sorted(works)) + "\n" * bool(works)


def _entry(work: Source) -> str:
    """Authors are written as they are cited, in braces: `et al.` is no name to be taken apart."""
    fields = {
        "author": f"{{{latex_words(work.authors)}}}",
        "title": f"{{{latex_words(work.title)}}}",
        "year": str(work.year),
        "url": work.link,
    }
    _, _, paper = work.link.partition("arxiv.org/abs/")
    _, _, name = work.link.partition("doi.org/")
    fields |= {"eprint": paper, "archiveprefix": "arXiv"} if paper else {}
    fields |= {"doi": name} if name else {}
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items()]
    kind = "article" if paper or name else "misc"
    return "\n".join([f"@{kind}{{{work.key},", *lines, "}"])
