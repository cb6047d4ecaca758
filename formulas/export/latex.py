"""A LaTeX document that stands alone: `article` with what every TeX installation has.

Words as LaTeX sets them: its own characters made literal, others by their commands. The works that
equations and derivations cite, as BibTeX.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.export.blocks import BlockDocument, BlockMarkup
from formulas.export.drawing import Drawing, Label, pdf_strokes
from formulas.export.formula_document import FormulaEntry, document
from formulas.export.typesetting.boxes import Glyph, text_width, wrap
from formulas.export.typesetting.layout import alternating, layout, relation
from formulas.export.typesetting.markup import latex_math
from formulas.export.words import Formula, reason
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
DOT = rf"\ensuremath{{{_MATHS['·']}}}"  # in units
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
HEADINGS = {
    1: r"\newpage\section{%s}", 2: r"\subsection*{%s}",
    3: r"\subsubsection*{%s}",
}  # fmt: skip


def latex(whole: BlockDocument, head: str = HEAD) -> str:
    """Write a LaTeX article that needs no other file."""
    title = rf"\title{{{latex_words(whole.title)}}}\author{{}}\date{{}}"
    parts = [head + title, r"\begin{document}", r"\maketitle", *map(LATEX.line, whole.about)]
    parts += [r"\tableofcontents"] if whole.contents else []
    return "\n\n".join([*parts, LATEX.written(whole.blocks), r"\end{document}"]) + "\n"


def _maths(span: Formula) -> str:
    if span.large:
        return rf"$\displaystyle {latex_math(wrap(span.boxes, WIDTH))}$"
    return f"${latex_math(span.boxes)}$"


def _heading(level: int, words: str, anchor: str) -> str:
    if not anchor:
        return HEADINGS[level] % words
    listed = rf"\phantomsection\addcontentsline{{toc}}{{subsection}}{{{words}}}"
    return HEADINGS[level] % words + (listed if level == 3 else "") + rf"\label{{{anchor}}}"


def _link(to: str, words: str) -> str:
    if "//" not in to:
        return rf"\hyperref[{to}]{{{words}}}"
    address = to.replace("%", r"\%").replace("#", r"\#")
    return rf"\href{{{address}}}{{{words}}}"


def _marked(title: str, anchor: str) -> str:
    mark = rf"\phantomsection\label{{{anchor}}}" if anchor else ""
    return rf"{mark}\textbf{{{title}.}}"


def _statement(title: str, anchor: str, entry: FormulaEntry) -> str:
    step = entry.steps[-1][0]
    boxes = wrap(relation(step.lhs, step.relation, step.rhs), WIDTH)
    line = rf"\hspace{{1em}}\mbox{{$\displaystyle {latex_math(boxes)}$}}"
    return rf"{{\raggedright {_marked(title, anchor)}{line}\par}}"


def _steps(entry: FormulaEntry) -> str:
    lines = []
    for number, (step, proof) in enumerate(entry.steps, 1):
        if entry.derived:
            why = f" {LATEX.line(reason(step.why))}" if step.why else ""
            head = rf"\textbf{{{number}. {step.verb}}}{why}"
            lines.append(f"\n{head} {{\\small[{LATEX.line(reason(proof))}]}}\\nopagebreak")
        form = latex_math(wrap(relation(step.lhs, step.relation, step.rhs), WIDTH))
        lines.append(f"\\[\n\\displaystyle {form}\n\\]")
        if step.size is not None:
            size = latex_math(wrap(layout(step.size), WIDTH / 2))
            lines.append(rf"Neglected over kept: $\displaystyle {size}$")
    return "\n".join(lines)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], shares: tuple[float, ...]) -> str:
    """A table over pages, in small print."""
    columns = "".join(rf"p{{\dimexpr{share:.3f}\linewidth-2\tabcolsep\relax}}" for share in shares)
    lines = [
        " & ".join(rf"\raggedright {_cell(cell)}" for cell in row) + r" \tabularnewline"
        for row in rows
    ]
    head = " & ".join(heads) + r" \tabularnewline \midrule \endhead"
    start = rf"\begingroup\small\begin{{longtable}}[l]{{@{{}}{columns}@{{}}}} \toprule"
    return "\n".join([start, head, *lines, r"\bottomrule \end{longtable}\endgroup"])


def _cell(cell: str) -> str:
    unit = "/" in cell and "\\" not in cell.replace(DOT, "")
    for sign in ("/", "*", DOT) if unit else ():
        cell = cell.replace(sign, sign + r"\allowbreak ")
    return cell


def _picture(drawing: Drawing, anchor: str) -> str:
    labels = []
    sides = {"start": "l", "middle": "", "end": "r"}
    for part in drawing.parts:
        if isinstance(part, Label):
            words = latex_words(part.words)
            box = rf"\makebox(0,0)[b{sides[part.anchor]}]{{\drawnwords {words}}}"
            box = rf"\rotatebox{{90}}{{\drawnwords {words}}}" if part.upright else box
            x, y = part.at
            shift = 2.6 * len(part.words) if part.upright else 0.0
            labels.append(rf"\put({x - (6 if part.upright else 0):.1f},{y - shift:.1f}){{{box}}}")
    size = f"({drawing.width:g},{drawing.height:g})"
    return "\n".join([
        rf"\begin{{center}}\phantomsection\label{{{anchor}}}\setlength{{\unitlength}}{{1bp}}%",
        rf"\begin{{picture}}{size}\put(0,0){{\drawn{{{pdf_strokes(drawing)}}}}}", *labels,
        r"\end{picture}\end{center}",
    ])  # fmt: skip


LATEX = BlockMarkup(
    words=latex_words,
    strong=lambda words: rf"\textbf{{{words}}}",
    link=_link,
    maths=_maths,
    heading=_heading,
    paragraphs={
        "": "%s", "question": "\\emph{%s}", "caption": "{\\small %s}", "note": "{\\small %s}",
        "exercise": "%s", "kind": "\\textit{%s}",
    },
    statement=_statement,
    steps=_steps,
    entry=lambda title, anchor, body: f"{_marked(title, anchor)}\\nopagebreak\n{body}",
    grid=_grid,
    items=lambda lines: "\n".join([
        r"\begin{itemize}\setlength{\itemsep}{1pt plus 2pt}", *(rf"\item {x}" for x in lines),
        r"\end{itemize}",
    ]),
    picture=_picture,
    answer=None,
    within="\n",
)  # fmt: skip


def fragment(objects: Iterable[Equation | Derivation]) -> str:
    """Numbered equations for a paper of one's own: no preamble, amsmath alone.

    Step 3 of a derivation is `eq:NAME_3`, an equation `eq:NAME`, what it puts in `eq:NAME_SYMBOL`.
    Raises DerivationError if a step does not follow.
    """
    return "\n\n".join(map(_numbered, document(objects, {}).entries)) + "\n"


def _numbered(entry: FormulaEntry) -> str:
    rows = []
    for number, (step, proof) in enumerate(entry.steps, 1):
        why = LATEX.line(reason(f"{step.verb}: {step.why} [{proof}]" if entry.derived else ""))
        mark = f"{entry.anchor}_{number}" if entry.derived else entry.anchor
        rows.append((why, step.lhs, step.relation, step.rhs, mark))
    for inner in entry.item.where:
        mark = f"{entry.anchor}_{inner.symbol.name}"
        why = "where" if inner == entry.item.where[0] else ""
        rows.append((why, inner.symbol, "=", inner.rhs, mark))
    text = rf"\noindent\textbf{{{latex_words(entry.title)}.}} {rows[0][0]}" + "\n\\begin{align}\n"
    for number, (why, left, sign, right, mark) in enumerate(rows):
        text += (r" \\" + rf" \intertext{{{why}}}" * bool(why) + "\n") if number else ""
        boxes = wrap(layout(left), WIDTH / 2)
        wide = latex_math(wrap(layout(right), WIDTH - 6 - text_width(boxes)))
        text += f"{latex_math(boxes)} &{latex_math(Glyph(sign, 'sign'))} {wide}"
        text += rf" \label{{eq:{mark}}}"
    notes = "; ".join(LATEX.line(reason(each)) for each in entry.item.assumes)
    text += "\n\\end{align}" + (f"\nAssumed: {notes}." if notes else "")
    work = entry.item.source
    return text + f"\n% source: {work}" + (f", \\cite{{{work.source.key}}}" if work.source else "")


def bibtex(objects: Iterable[Equation | Derivation]) -> str:
    """One entry for each work, by key; works without a paper of their own are `misc`."""
    works: dict[str, Source] = {}
    for item in objects:
        for citation in (item.source, *(inner.source for inner in item.where)):
            if citation.source is not None:
                works[citation.source.key] = citation.source
    return "\n\n".join(_entry(works[key]) for key in sorted(works)) + "\n" * bool(works)


def _entry(work: Source) -> str:
    """BibTeX entry of a work; the authors are in braces, so that `et al.` is not split."""
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
