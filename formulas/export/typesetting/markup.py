"""Markup: a layout in MathML, in LaTeX (amsmath) and in Typst, by one walk and a table for each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

from formulas.export.typesetting import boxes
from formulas.export.typesetting.layout import alternating
from formulas.nomenclature.symbols import GREEK


@dataclass(frozen=True)
class Markup:
    """Functions and templates of a notation that write a layout.

    Attributes:
        mark: Writes text of a kind.
        names: Of brackets and accents; one that is left out stands for itself.
        row: Around parts in a row, and what stands between parts, factors and arguments.
        base: Encloses what a script belongs to.
        lines, cases: One of them, what stands between two, and what stands around all.
        forms: Of the other boxes, by the parts that they have: "over under" is a fraction.
    """

    mark: Callable[[str, str], str]
    names: Mapping[str, str]
    row: tuple[str, str, str, str]
    base: Callable[[boxes.Layout, str], str]
    lines: tuple[Callable[[str], str], str, str]
    cases: tuple[str, str, str]
    forms: Mapping[str, str]

    def __call__(self, x: boxes.Layout) -> str:
        """The layout, written."""
        around, space, thin, comma = self.row
        match x:
            case boxes.Glyph(text, kind):
                return self.mark(text, kind)
            case boxes.BoxRow(parts, spaced):
                return around % (thin if spaced else space).join(map(self, parts))
            case boxes.List(parts):
                return around % comma.join(map(self, parts))
            case boxes.Align(rows):
                line, between, whole = self.lines
                return whole % between.join(line(self(row)) for row in rows)
            case boxes.Cases(pairs):
                case, between, whole = self.cases
                return whole % between.join(case % (self(v), self(when)) for v, when in pairs)
        written = {
            name: self.names.get(part, part) if isinstance(part, str) else self(part)
            for name, part in vars(x).items()
            if part is not None
        }
        if isinstance(x, boxes.Script):
            written["base"] = self.base(x.base, written["base"])
        return self.forms[" ".join(written)] % written


# Script capitals share a block of Unicode, except the letters that older blocks had already.
_SCRIPT = dict(zip("BEFHILMR", "ℬℰℱℋℐℒℳℛ", strict=True))
_TABLE = '<mtable class="left" displaystyle="true">%s</mtable>'
_FENCED = '<mo form="{}" fence="true" stretchy="true">{}</mo>'.format


def _mathml_mark(text: str, kind: str) -> str:
    if kind == "sign" or text == ",":
        return f"<mo>{escape(text)}</mo>"
    if kind == "number":
        return f"<mn>{escape(text)}</mn>"
    if kind == "script":
        return f"<mi>{_SCRIPT.get(text) or chr(0x1D49C + ord(text) - ord('A'))}</mi>"
    if kind == "letter":
        return f"<mi>{escape(text)}</mi>"
    if " " in text:
        return f"<mtext>{escape(text).replace(' ', '&#160;')}</mtext>"
    upright = ' mathvariant="normal"' if len(text) == 1 else ""
    return f"<mi{upright}>{escape(text)}</mi>"


def _mathml_line(row: str) -> str:
    line = f"<mtr><mtd>{row}</mtd></mtr>"
    return line.replace("<mtd><mrow><mo>", '<mtd><mrow><mo form="infix">')


_MATHML = Markup(
    mark=_mathml_mark,
    names={"hat": "^", "bar": "¯", "tilde": "~", "dot": "˙"},
    row=("<mrow>%s</mrow>", "", '<mspace width="0.17em"/>', "<mo>,</mo>"),
    base=lambda _, written: written,
    lines=(_mathml_line, "", _TABLE),
    cases=(
        "<mtr><mtd>%s</mtd><mtd>%s</mtd></mtr>",
        "",
        f"<mrow>{_FENCED('prefix', '{')}{_TABLE}</mrow>",
    ),
    forms={
        "base below": "<msub>%(base)s%(below)s</msub>",
        "base above": "<msup>%(base)s%(above)s</msup>",
        "base below above": "<msubsup>%(base)s%(below)s%(above)s</msubsup>",
        "base mark": '<mover accent="true">%(base)s<mo>%(mark)s</mo></mover>',
        "over under": "<mfrac>%(over)s%(under)s</mfrac>",
        "inside": "<msqrt>%(inside)s</msqrt>",
        "inside index": "<mroot>%(inside)s%(index)s</mroot>",
        "left inside right": "<mrow>"
        f"{_FENCED('prefix', '%(left)s')}%(inside)s{_FENCED('postfix', '%(right)s')}</mrow>",
    },
)


def mathml(x: boxes.Layout, *, display: bool = False, large: bool = False) -> str:
    """One `<math>` element: on a line of its own, or within one, there as large if so wished."""
    how = ' display="block"' if display else ' displaystyle="true"' if large else ""
    return f"<math{how}>{_MATHML(x)}</math>"


_COMMANDS = {letter: f"\\{name}" for name, letter in GREEK.items()} | alternating(
    r"+ +  − -  ⋅ \cdot  = =  ≈ \approx  ≠ \ne  < <  > >  * *  ⋆ \star  ′ \prime  ∘ \circ "
    r"† \dagger  ≤ \le  ≥ \ge  ∞ \infty  → \to"
)


def _latex_mark(text: str, kind: str) -> str:
    if text in _COMMANDS:
        return _COMMANDS[text]
    if len(text) == 1 and not text.isalnum():
        return text
    if kind == "script":
        return rf"\mathcal{{{text}}}"
    if kind == "word":
        escaped = text.replace("_", r"\_")
        return rf"\text{{{escaped}}}" if " " in text else rf"\mathrm{{{escaped}}}"
    return text.replace("−", "-")


latex_math = Markup(
    mark=_latex_mark,
    names=alternating(r"⌈ \lceil  ⌉ \rceil  ⌊ \lfloor  ⌋ \rfloor  { \{  } \}"),
    row=("%s", " ", r" \, ", r",\; "),
    base=lambda _, written: f"{{{written}}}",
    # A line that begins with a sign needs something before it to be set as a binary one.
    lines=(r"& \displaystyle {}".format, r" \\ ", r"\begin{aligned} %s \end{aligned}"),
    cases=(r"\displaystyle %s & %s", r" \\ ", r"\begin{cases} %s \end{cases}"),
    forms={
        "base below": "%(base)s_{%(below)s}",
        "base above": "%(base)s^{%(above)s}",
        "base below above": "%(base)s_{%(below)s}^{%(above)s}",
        "base mark": r"\%(mark)s{%(base)s}",
        "over under": r"\frac{%(over)s}{%(under)s}",
        "inside": r"\sqrt{%(inside)s}",
        "inside index": r"\sqrt[%(index)s]{%(inside)s}",
        "left inside right": r"\left%(left)s %(inside)s \right%(right)s",
    },
)


def typst_string(words: str) -> str:
    """A Typst string."""
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _typst_mark(text: str, kind: str) -> str:
    if text == ",":
        return "\\,"
    if kind == "script":
        return f"cal({text})"
    if kind == "letter":
        return text
    if kind == "sign":
        return text if text not in "⋅<>" else {"⋅": "dot.op", "<": "lt", ">": "gt"}[text]
    return f"upright({typst_string(text)})" if kind == "word" else typst_string(text)


def _typst_base(base: boxes.Layout, written: str) -> str:
    return (
        written
        if isinstance(base, boxes.Glyph | boxes.Fence | boxes.Script)
        else f"#box($display({written})$)"
    )


_TYPST = Markup(
    mark=_typst_mark,
    names=alternating(r"( \(  ) \)  { \{  } \}"),
    row=("%s", " ", " thin ", " \\, "),
    base=_typst_base,
    lines=("display({})".format, "; ", "mat(delim: #none, align: #left, %s)"),
    cases=('display(%s) quad & display("" %s)', ", ", "cases(%s)"),  # a condition may be empty
    forms={
        "base below": "%(base)s_(%(below)s)",
        "base above": "%(base)s^(%(above)s)",
        "base below above": "%(base)s_(%(below)s)^(%(above)s)",
        "base mark": "%(mark)s(%(base)s)",
        "over under": "frac(%(over)s, %(under)s)",
        "inside": "sqrt(%(inside)s)",
        "inside index": "root(%(index)s, %(inside)s)",
        "left inside right": "lr(%(left)s %(inside)s %(right)s)",
    },
)


def typst_math(x: boxes.Layout, *, display: bool = False, large: bool = False) -> str:
    """The formula on a line of its own, or within one, there as large if so wished."""
    if large:
        return f"$display({_TYPST(x)})$"
    return f"$ {_TYPST(x)} $" if display else f"${_TYPST(x)}$"
