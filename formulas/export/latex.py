"""A LaTeX document that stands alone: `article` with what every TeX installation has.

Words as LaTeX sets them: its own characters made literal, others by their commands.
"""

from pathlib import Path

from formulas.algebra.steps import DerivationStep
from formulas.export.formula_document import (
    Chapter,
    FormulaDocument,
    FormulaEntry,
    NeglectedSize,
    SymbolRow,
)
from formulas.export.typesetting.boxes import fitted
from formulas.export.typesetting.layout import GREEK, alternating, figure, layout, relation
from formulas.export.typesetting.markup import latex_math

_SPECIAL = alternating(
    r"\ \textbackslash{}  & \&  % \%  $ \$  # \#  _ \_  { \{  } \}  ~ \textasciitilde{} "
    r"^ \textasciicircum{}  – --  — ---  ‘ `  ’ '  “ ``  ” ''  … \ldots{}  µ \ensuremath{\mu}"
)
_SPECIAL |= {"\u00a0": "~", "\u2009": r"\,", "\u202f": r"\,"}
_MATHS = alternating(
    r"< <  > >  | |  ≈ \approx  → \to  ← \gets  ↔ \leftrightarrow  ⇔ \Leftrightarrow "
    r"⇒ \Rightarrow  ≤ \le  ≥ \ge  ≠ \ne  √ \surd  ∞ \infty  × \times  ÷ \div  ± \pm  − - "
    r"· \cdot  ⋅ \cdot  ∝ \propto  ∂ \partial  ∑ \sum  Σ \Sigma  ∏ \prod  ∈ \in  ≪ \ll  ≫ \gg "
    r"⌈ \lceil  ⌉ \rceil  ⌊ \lfloor  ⌋ \rfloor  ⁻ ^{-}  ½ \tfrac{1}{2}  ° ^{\circ}  ∀ \forall "
    r"∃ \exists  ⊕ \oplus  ≡ \equiv  ∼ \sim  ′ '  ² ^{2}  ³ ^{3}  ¹ ^{1}"
)
_MATHS |= {mark: f"^{{{digit}}}" for digit, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_MATHS |= {mark: f"_{{{digit}}}" for digit, mark in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_MATHS |= {letter: f"\\{name}" for name, letter in GREEK.items()}


def latex_words(words: str) -> str:
    """The words, safe in LaTeX.

    Raises
    ------
    ValueError
        If a character has no rule and is no Latin letter.
    """
    return "".join(map(_letter, words))


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
    parts += [r"\begin{document}", r"\maketitle", *_cover(whole)]
    for chapter in whole.chapters:
        if whole.headed and chapter.subject:
            parts.append(_chapter(chapter))
        parts += [_entry(entry) for entry in chapter.entries]
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def _cover(whole: FormulaDocument) -> list[str]:
    parts = [latex_words(paragraph) for paragraph in whole.words]
    if len(whole.cases) > 1 and whole.differences:
        parts += [r"\section{Assumptions where they differ}", _table(whole, whole.differences)]
    if whole.headed:
        parts += [r"\newpage\tableofcontents\newpage"]
    parts += [r"\section{Symbols}", _table(whole, whole.rows)]
    if whole.sources:
        cited = [
            rf"\item {latex_words(s.authors)}, {_link(s.link, s.title)} ({s.year})"
            for s in whole.sources
        ]
        parts += [r"\section{Sources}", _list(cited)]
    return parts


def _chapter(chapter: Chapter) -> str:
    head = rf"\newpage\section{{{latex_words(chapter.title)}}}"
    return f"{head}\n\n\\emph{{{latex_words(chapter.about)}}}"


def _entry(entry: FormulaEntry) -> str:
    lines = [rf"\subsection{{{latex_words(entry.title)}}}\label{{{entry.anchor}}}"]
    lines.append(rf"\textit{{{latex_words(', '.join([entry.kind, *entry.tags]))}}}")
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            why = f" {latex_words(step.why)}" if step.why else ""
            head = rf"\textbf{{{number}. {step.verb}}}{why}"
            lines += ["", rf"{head} {{\small[{latex_words(proof)}]}}\nopagebreak"]
        lines.append(_display(step))
        if step.size is not None:
            size = latex_math(fitted(layout(step.size), WIDTH / 2))
            lines.append(rf"Neglected over kept: $\displaystyle {size}$")
    return "\n".join([*lines, _notes(entry)])


def _notes(entry: FormulaEntry) -> str:
    notes = [
        rf"\item where ${_math(relation(layout(e.symbol), '=', layout(e.rhs)))}$"
        for e in entry.where
    ]
    notes += [
        rf"\item value, {latex_words(case)}: {_value(value, entry.unit)}"
        for case, value in entry.values
    ]
    notes += [rf"\item {_size(size)}" for size in entry.sizes]
    notes += [rf"\item assumes: {latex_words(assumption)}" for assumption in entry.assumes]
    source = entry.source
    cited = _link(source.link, str(source)) if source.link else latex_words(str(source))
    return _list([*notes, rf"\item source: {cited}"])


def _size(size: NeglectedSize) -> str:
    head = f"neglected, {latex_words(size.case)}: "
    if size.size is None:
        return f"{head}not known, {latex_words(size.missing)}"
    number = latex_math(figure(size.size))
    return f"{head}{latex_words(size.neglected)}: ${number}$ times what is kept{size.remark}"


def _value(value: float, unit: str) -> str:
    number = f"${latex_math(figure(value))}$"
    if value < 0:
        return f"none: {number} is not positive, so a condition below does not hold"
    return f"{number} {latex_words(f'[{unit}]')}" if unit != "1" else number


def _display(step: DerivationStep) -> str:
    sign = "=" if step.exact else "≈"
    return f"\\[\n{_math(relation(layout(step.lhs), sign, layout(step.rhs)))}\n\\]"


def _math(x: object) -> str:
    return rf"\displaystyle {latex_math(fitted(x, WIDTH))}"  # type: ignore[arg-type]


def _list(items: list[str]) -> str:
    return "\n".join(
        [r"\begin{itemize}\setlength{\itemsep}{1pt plus 2pt}", *items, r"\end{itemize}"]
    )


def _link(link: str, words: str) -> str:
    address = link.replace("%", r"\%").replace("#", r"\#")
    return rf"\href{{{address}}}{{{latex_words(words)}}}"


def _unit(unit: str) -> str:
    """A unit that may be broken after its signs."""
    broken = latex_words(unit)
    return (
        broken.replace("/", r"/\allowbreak ")
        .replace("**", r"\textasciicircum{}")
        .replace("*", r"\ensuremath{\cdot}\allowbreak ")
    )


def _table(whole: FormulaDocument, rows: tuple[SymbolRow, ...]) -> str:
    cases = len(whole.cases)
    meaning = 98 - 19 * cases
    heads = ["symbol", "unit", *map(latex_words, whole.cases), "meaning"]
    lines = [
        " & ".join(
            [
                rf"${latex_math(layout(row.symbol))}$",
                rf"\raggedright {_unit(row.unit)}",
                *("" if v is None else f"${latex_math(figure(v))}$" for v in row.values),
                rf"\raggedright {latex_words(row.meaning)}",
            ]
        )
        + r" \tabularnewline"
        for row in rows
    ]
    columns = f"@{{}}lp{{23mm}}{'r' * cases}p{{{meaning}mm}}@{{}}"
    head = " & ".join(heads) + r" \\ \midrule \endhead"
    start = rf"\begingroup\small\begin{{longtable}}[l]{{{columns}}} \toprule"
    return "\n".join([start, head, *lines, r"\bottomrule \end{longtable}\endgroup"])
