"""Typst's notation for formulas, written from a layout."""

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

_BIG = {"∑": "sum", "∏": "product"}


def typst_math(x: Layout, *, display: bool = False, large: bool = False) -> str:
    """The formula on a line of its own, or within one, there as large if so wished."""
    if large:
        return f"${_display(x)}$"
    return f"$ {_set(x)} $" if display else f"${_set(x)}$"


def quoted(words: str) -> str:
    """A Typst string."""
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _set(x: Layout) -> str:
    match x:
        case Mark(text, kind):
            return _mark(text, kind)
        case BoxRow(parts, spaced):
            return (" thin " if spaced else " ").join(map(_set, parts))
        case Script(base, below, above):
            under = f"_({_set(below)})" if below is not None else ""
            over = f"^({_set(above)})" if above is not None else ""
            return _grouped(base) + under + over
        case Accent(base, mark):
            return f"{mark}({_set(base)})"
        case Fraction(over, under):
            return f"frac({_set(over)}, {_set(under)})"
        case Root(inside, index):
            return (
                f"sqrt({_set(inside)})"
                if index is None
                else (f"root({_set(index)}, {_set(inside)})")
            )
        case Fence(left, inside, right):
            return f"lr({_bracket(left)} {_set(inside)} {_bracket(right)})"
        case List(parts):
            return " \\, ".join(map(_set, parts))
        case Lines(rows):
            return f"mat(delim: #none, align: #left, {'; '.join(map(_display, rows))})"
        case Cases(pairs):
            inner = ", ".join(f"{_display(v)} quad & {_display(when)}" for v, when in pairs)
            return f"cases({inner})"
        case Big(sign, below, above, body):
            return f"{_BIG[sign]}_({_set(below)})^({_set(above)}) {_set(body)}"
    raise TypeError(f"no Typst for {type(x).__name__}")


def _mark(text: str, kind: str) -> str:
    if text == ",":
        return "\\,"
    if kind == "script":
        return f"cal({text})"
    if kind == "letter":
        return text
    if kind == "sign":
        return text if text not in "⋅<>" else {"⋅": "dot.op", "<": "lt", ">": "gt"}[text]
    return f"upright({quoted(text)})" if kind == "word" else quoted(text)


def _grouped(base: Layout) -> str:
    """A base that a script belongs to as a whole, without visible brackets."""
    return (
        _set(base) if isinstance(base, Mark | Fence | Script) else f"#box($display({_set(base)})$)"
    )


def _bracket(mark: str) -> str:
    return {"(": "\\(", ")": "\\)", "{": "\\{", "}": "\\}", "|": "|"}.get(mark, mark)


def _display(x: Layout) -> str:
    return f"display({_set(x)})"
