"""Boxes: what a formula is made of once it is laid out, before any markup.

`wrap` breaks a layout to a width, by putting terms and arguments below each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard


@dataclass(frozen=True)
class Glyph:
    """Characters of one kind: a `letter` slants, a `word` does not, a `sign` joins two operands."""

    text: str
    kind: str  # letter, script (calligraphic), word, number, sign


@dataclass(frozen=True)
class BoxRow:
    """Side by side; factors of a product have thin spaces between them."""

    parts: tuple[Layout, ...]
    spaced: bool = False


@dataclass(frozen=True)
class Script:
    """A base with something below and above at its right."""

    base: Layout
    below: Layout | None = None
    above: Layout | None = None


@dataclass(frozen=True)
class Accent:
    """A base under a `hat`, `bar`, `tilde` or `dot`."""

    base: Layout
    mark: str


@dataclass(frozen=True)
class Fraction:
    """One over the other."""

    over: Layout
    under: Layout


@dataclass(frozen=True)
class Root:
    """A square root, or one with an index."""

    inside: Layout
    index: Layout | None = None


@dataclass(frozen=True)
class Fence:
    """Brackets as high as their content."""

    left: str
    inside: Layout
    right: str


@dataclass(frozen=True)
class List:
    """Arguments, with commas."""

    parts: tuple[Layout, ...]


@dataclass(frozen=True)
class Align:
    """Below each other, aligned at the left."""

    rows: tuple[Layout, ...]


@dataclass(frozen=True)
class Cases:
    """Values, each with its condition."""

    rows: tuple[tuple[Layout, Layout], ...]


Layout: TypeAlias = (
    Glyph | BoxRow | Script | Accent | Fraction | Root | Fence | List | Align | Cases
)

SCRIPT_SCALE = 0.72  # of a script, relative to its base
LETTER, SIGN, SPACE, FENCE = 0.56, 1.2, 0.17, 0.85  # widths [em]
IF, OTHERWISE = Glyph("if ", "word"), Glyph("otherwise", "word")
COMMA = Glyph(",", "word")
TIMES = Glyph("⋅", "sign")


def text_width(x: Layout) -> float:
    """About how wide it is set. [em]"""
    match x:
        case Glyph(text, kind):
            return SIGN if kind == "sign" else LETTER * len(text)
        case BoxRow(parts, spaced):
            return sum(map(text_width, parts)) + SPACE * spaced * (len(parts) - 1)
        case Script(base, below, above):
            scripts = [text_width(each) for each in (below, above) if each is not None]
            return text_width(base) + SCRIPT_SCALE * max(scripts, default=0.0)
        case Accent(base, _):
            return text_width(base)
        case Fraction(over, under):
            return max(text_width(over), text_width(under)) + 0.3
        case Root(inside, _):
            return text_width(inside) + 1.0
        case Fence(_, inside, _):
            return text_width(inside) + FENCE
        case List(parts):
            return sum(map(text_width, parts)) + 0.6 * (len(parts) - 1)
        case Align(rows):
            return max(map(text_width, rows))
        case Cases(pairs):
            return max(text_width(value) + text_width(when) for value, when in pairs) + 3.0
    raise TypeError(f"no width for {type(x).__name__}")


def wrap(x: Layout, width: float) -> Layout:
    """The layout broken to a width [em] where possible; never wider than before."""
    if text_width(x) <= width:
        return x
    match x:
        case BoxRow(parts, spaced):
            return _relation(x, width) or (_product(parts, width) if spaced else _sum(parts, width))
        case Fraction(over, under):
            return Fraction(wrap(over, width - 0.3), wrap(under, width - 0.3))
        case Script(base, _, _):
            return replace(x, base=wrap(base, width - (text_width(x) - text_width(base))))
        case Root(inside, _):
            return replace(x, inside=wrap(inside, width - 1.0))
        case Fence(_, inside, _):
            return replace(x, inside=wrap(inside, width - FENCE))
        case List(parts):
            rows = [BoxRow((part, COMMA)) for part in parts[:-1]]
            return Align(tuple(wrap(row, width) for row in (*rows, parts[-1])))
        case Cases(pairs):
            # Put every condition below its value if a condition does not fit to its right.
            stacked = []
            for value, when in pairs:
                below = when if when == OTHERWISE else BoxRow((IF, when))
                lines = Align((wrap(value, width - 2.0), wrap(below, width - 2.0)))
                stacked.append((lines, BoxRow(())))
            return Cases(tuple(stacked))
    return x


def is_relation(x: Layout) -> TypeGuard[BoxRow]:
    """True if a layout is two sides joined by the sign of a relation."""
    signs = [Glyph(sign, "sign") for sign in "=≈<>≤≥≠"]
    return isinstance(x, BoxRow) and len(x.parts) == 3 and x.parts[1] in signs


def _relation(x: BoxRow, width: float) -> Layout | None:
    if not is_relation(x):
        return None
    left, sign, right = x.parts
    if text_width(left) <= width / 2:
        return replace(x, parts=(left, sign, wrap(right, width - text_width(left) - SIGN)))
    return Align((wrap(left, width), BoxRow((sign, wrap(right, width - SIGN)))))


def _sum(parts: Sequence[Layout], width: float) -> Layout:
    """Terms packed into lines, each line but the first beginning with its sign."""
    terms: list[list[Layout]] = [[]]
    for part in parts:
        if isinstance(part, Glyph) and part.text in "+−" and terms[-1]:
            terms.append([])
        terms[-1].append(part)
    if len(terms) == 1:
        return _widest(terms[0], width, spaced=False)
    fit = [_widest(term, width, spaced=False) for term in terms]
    return Align(_packed(fit, width)) if len(fit) > 1 else fit[0]


def _product(parts: Sequence[Layout], width: float) -> Layout:
    whole = _widest(parts, width, spaced=True)
    if text_width(whole) <= width:
        return whole
    factors = [wrap(part, width - SIGN) for part in parts if part != TIMES]
    first, *others = factors
    return Align(_packed([first, *(BoxRow((TIMES, each)) for each in others)], width))


def _widest(parts: Sequence[Layout], width: float, *, spaced: bool) -> Layout:
    widths = [text_width(part) for part in parts]
    others = sum(widths) - max(widths) + (SPACE * (len(parts) - 1) if spaced else 0.0)
    at = widths.index(max(widths))
    broken = list(parts)
    # A factor squeezed to nothing would be one letter a line.
    broken[at] = wrap(parts[at], max(width - others, width / 3))
    return BoxRow(tuple(broken), spaced) if len(broken) > 1 else broken[0]


def _packed(parts: Sequence[Layout], width: float) -> tuple[Layout, ...]:
    lines: list[list[Layout]] = [[]]
    for part in parts:
        used = sum(map(text_width, lines[-1]))
        if lines[-1] and used + text_width(part) > width:
            lines.append([])
        lines[-1].append(part)
    return tuple(BoxRow(tuple(line)) if len(line) > 1 else line[0] for line in lines)
