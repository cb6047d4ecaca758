"""MathML: a layout in the markup that browsers set without any script (MathML Core)."""

from html import escape

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

_THIN = '<mspace width="0.17em"/>'
# Script capitals stand in one block of Unicode, save those that older blocks had already.
_ACCENTS = {"hat": "^", "bar": "¯", "tilde": "~", "dot": "˙"}
_SCRIPT = dict(zip("BEFHILMR", "ℬℰℱℋℐℒℳℛ", strict=True))


def mathml(x: Layout, *, display: bool = False, large: bool = False) -> str:
    """One `<math>` element: on a line of its own, or within one, there as large if so wished."""
    how = ' display="block"' if display else ' displaystyle="true"' if large else ""
    return f"<math{how}>{_set(x)}</math>"


def _set(x: Layout | None) -> str:
    match x:
        case None:
            return "<mrow></mrow>"
        case Mark(text, kind):
            return _mark(text, kind)
        case BoxRow(parts, spaced):
            return f"<mrow>{(_THIN if spaced else '').join(map(_set, parts))}</mrow>"
        case Script(base, below, above):
            return _script(base, below, above)
        case Accent(base, mark):
            return f'<mover accent="true">{_set(base)}<mo>{_ACCENTS[mark]}</mo></mover>'
        case Fraction(over, under):
            return f"<mfrac>{_set(over)}{_set(under)}</mfrac>"
        case Root(inside, index):
            if index is None:
                return f"<msqrt>{_set(inside)}</msqrt>"
            return f"<mroot>{_set(inside)}{_set(index)}</mroot>"
        case Fence(left, inside, right):
            return f"<mrow>{_fence(left, 'prefix')}{_set(inside)}{_fence(right, 'postfix')}</mrow>"
        case List(parts):
            return "<mrow>" + "<mo>,</mo>".join(map(_set, parts)) + "</mrow>"
        case Lines(rows):
            return _table([[row] for row in rows], continued=True)
        case Cases(pairs):
            return f"<mrow>{_fence('{', 'prefix')}{_table([list(p) for p in pairs])}</mrow>"
        case Big(sign, below, above, body):
            limits = f"<mo>{sign}</mo>{_set(below)}{_set(above)}"
            return f"<mrow><munderover>{limits}</munderover>{_set(body)}</mrow>"
    raise TypeError(f"no MathML for {type(x).__name__}")


def _mark(text: str, kind: str) -> str:
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


def _script(base: Layout, below: Layout | None, above: Layout | None) -> str:
    if above is None:
        return f"<msub>{_set(base)}{_set(below)}</msub>"
    if below is None:
        return f"<msup>{_set(base)}{_set(above)}</msup>"
    return f"<msubsup>{_set(base)}{_set(below)}{_set(above)}</msubsup>"


def _fence(mark: str, form: str) -> str:
    return f'<mo form="{form}" fence="true" stretchy="true">{escape(mark)}</mo>'


def _table(rows: list[list[Layout]], *, continued: bool = False) -> str:
    body = "".join(
        "<mtr>" + "".join(f"<mtd>{_set(cell)}</mtd>" for cell in row) + "</mtr>" for row in rows
    )
    if continued:
        # A sign that begins a line still stands between two terms, and is spaced so.
        body = body.replace("<mtd><mrow><mo>", '<mtd><mrow><mo form="infix">')
    return f'<mtable class="left" displaystyle="true">{body}</mtable>'
