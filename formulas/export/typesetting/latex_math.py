"""LaTeX's notation for formulas (amsmath), written from a layout."""

from formulas.export.typesetting.boxes import (
    Accent,
    Big,
    BoxRow,
    Cases,
    Fence,
    Fraction,
    Layout,
    Lines,
    List,
    Mark,
    Root,
    Script,
)
from formulas.export.typesetting.notation import GREEK, alternating

_COMMANDS = {letter: f"\\{name}" for name, letter in GREEK.items()} | alternating(
    r"+ +  − -  ⋅ \cdot  = =  ≈ \approx  ≠ \ne  < <  > >  * *  ⋆ \star  ′ \prime  ∘ \circ "
    r"† \dagger  ≤ \le  ≥ \ge  ∞ \infty  ∑ \sum  ∏ \prod  → \to"
)
_BRACKETS = alternating(r"⌈ \lceil  ⌉ \rceil  ⌊ \lfloor  ⌋ \rfloor  { \{  } \}")


def latex_math(x: Layout) -> str:
    """The formula, without its dollar signs."""
    match x:
        case Mark(text, kind):
            return _mark(text, kind)
        case BoxRow(parts, spaced):
            return (r" \, " if spaced else " ").join(map(latex_math, parts))
        case Script(base, below, above):
            under = f"_{{{latex_math(below)}}}" if below is not None else ""
            over = f"^{{{latex_math(above)}}}" if above is not None else ""
            return f"{{{latex_math(base)}}}{under}{over}"
        case Accent(base, mark):
            return rf"\{mark}{{{latex_math(base)}}}"
        case Fraction(over, under):
            return rf"\frac{{{latex_math(over)}}}{{{latex_math(under)}}}"
        case Root(inside, index):
            degree = "" if index is None else f"[{latex_math(index)}]"
            return rf"\sqrt{degree}{{{latex_math(inside)}}}"
        case Fence(left, inside, right):
            first, last = (_BRACKETS.get(each, each) for each in (left, right))
            return rf"\left{first} {latex_math(inside)} \right{last}"
        case List(parts):
            return ",\\; ".join(map(latex_math, parts))
        case Lines(rows):
            return _aligned([_display(row) for row in rows])
        case Cases(pairs):
            lines = [rf"{_display(value)} & {latex_math(when)}" for value, when in pairs]
            return r"\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}"
        case Big(sign, below, above, body):
            limits = f"_{{{latex_math(below)}}}^{{{latex_math(above)}}}"
            return f"{_COMMANDS[sign]}{limits} {latex_math(body)}"
    raise TypeError(f"no LaTeX for {type(x).__name__}")


def _mark(text: str, kind: str) -> str:
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


def _aligned(rows: list[str]) -> str:
    # A line that begins with a sign needs something before it to be set as a binary one.
    return r"\begin{aligned} " + r" \\ ".join(f"& {row}" for row in rows) + r" \end{aligned}"


def _display(x: Layout) -> str:
    return rf"\displaystyle {latex_math(x)}"
