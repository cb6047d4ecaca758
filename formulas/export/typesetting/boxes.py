"""Boxes: what a formula is made of once it is laid out, before any markup.

`fitted` breaks a layout to a width, by putting terms and arguments below each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard


@dataclass(frozen=True)
class Mark:
    """Letters set together: a `letter` slants, a `word` does not, a `sign` stands between two."""

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
    """Brackets as high as what they hold."""

    left: str
    inside: Layout
    right: str


@dataclass(frozen=True)
class List:
    """Arguments, with commas."""

    parts: tuple[Layout, ...]


@dataclass(frozen=True)
class Lines:
    """Below each other, aligned at the left."""

    rows: tuple[Layout, ...]


@dataclass(frozen=True)
class Cases:
    """Values, each with its condition."""

    rows: tuple[tuple[Layout, Layout], ...]


Layout: TypeAlias = Mark | BoxRow | Script | Accent | Fraction | Root | Fence | List | Lines | Cases

SMALL = 0.72  # of a script, relative to its base
LETTER, SIGN, SPACE, FENCE = 0.56, 1.2, 0.17, 0.85  # widths [em]
IF, OTHERWISE = Mark("if ", "word"), Mark("otherwise", "word")
COMMA = Mark(",", "word")
TIMES = Mark("⋅", "sign")


def width_of(x: Layout) -> float:
    """About how wide it is set. [em]"""
    match x:
        case Mark(text, kind):
            return SIGN if kind == "sign" else LETTER * len(text)
        case BoxRow(parts, spaced):
            return sum(map(width_of, parts)) + SPACE * spaced * (len(parts) - 1)
        case Script(base, below, above):
            scripts = [width_of(each) for each in (below, above) if each is not None]
            return width_of(base) + SMALL * max(scripts, default=0.0)
        case Accent(base, _):
            return width_of(base)
        case Fraction(over, under):
            return max(width_of(over), width_of(under)) + 0.3
        case Root(inside, _):
            return width_of(inside) + 1.0
        case Fence(_, inside, _):
            return width_of(inside) + FENCE
        case List(parts):
            return sum(map(width_of, parts)) + 0.6 * (len(parts) - 1)
        case Lines(rows):
            return max(map(width_of, rows))
        case Cases(pairs):
            return max(width_of(value) + width_of(when) for value, when in pairs) + 3.0
    raise TypeError(f"no width for {type(x).__name__}")


def fitted(x: Layout, width: float) -> Layout:
    """The layout broken to a width [em] where possible; never wider than before."""
    if width_of(x) <= width:
        return x
    match x:
        case BoxRow(parts, spaced):
            return _relation(x, width) or (_product(parts, width) if spaced else _sum(parts, width))
        case Fraction(over, under):
            return Fraction(fitted(over, width - 0.3), fitted(under, width - 0.3))
        case Script(base, _, _):
            return replace(x, base=fitted(base, width - (width_of(x) - width_of(base))))
        case Root(inside, _):
            return replace(x, inside=fitted(inside, width - 1.0))
        case Fence(_, inside, _):
            return replace(x, inside=fitted(inside, width - FENCE))
        case List(parts):
            rows = [BoxRow((part, COMMA)) for part in parts[:-1]]
            return Lines(tuple(fitted(row, width) for row in (*rows, parts[-1])))
        case Cases(pairs):
            # Every condition below its value, where one does not fit beside it.
            stacked = []
            for value, when in pairs:
                below = when if when == OTHERWISE else BoxRow((IF, when))
                lines = Lines((fitted(value, width - 2.0), fitted(below, width - 2.0)))
                stacked.append((lines, BoxRow(())))
            return Cases(tuple(stacked))
    return x


def is_relation(x: Layout) -> TypeGuard[BoxRow]:
    """Whether it is two sides with the sign of a relation between them."""
    signs = [Mark(sign, "sign") for sign in "=≈<>≤≥≠"]
    return isinstance(x, BoxRow) and len(x.parts) == 3 and x.parts[1] in signs


def _relation(x: BoxRow, width: float) -> Layout | None:
    """Both sides of `a = b`, the second on a line of its own where the first is wide."""
    if not is_relation(x):
        return None
    left, sign, right = x.parts
    if width_of(left) <= width / 2:
        return replace(x, parts=(left, sign, fitted(right, width - width_of(left) - SIGN)))
    return Lines((fitted(left, width), BoxRow((sign, fitted(right, width - SIGN)))))


def _sum(parts: Sequence[Layout], width: float) -> Layout:
    """Terms packed into lines, each line but the first beginning with its sign."""
    terms: list[list[Layout]] = [[]]
    for part in parts:
        if isinstance(part, Mark) and part.text in "+−" and terms[-1]:
            terms.append([])
        terms[-1].append(part)
    if len(terms) == 1:
        return _widest(terms[0], width, spaced=False)
    fit = [_widest(term, width, spaced=False) for term in terms]
    return Lines(_packed(fit, width)) if len(fit) > 1 else fit[0]


def _product(parts: Sequence[Layout], width: float) -> Layout:
    """Its widest factor broken; where that does not do, factors packed into lines."""
    whole = _widest(parts, width, spaced=True)
    if width_of(whole) <= width:
        return whole
    factors = [fitted(part, width - SIGN) for part in parts if part != TIMES]
    first, *others = factors
    return Lines(_packed([first, *(BoxRow((TIMES, each)) for each in others)], width))


def _widest(parts: Sequence[Layout], width: float, *, spaced: bool) -> Layout:
    """The parts in a row, the widest of them broken."""
    widths = [width_of(part) for part in parts]
    others = sum(widths) - max(widths) + (SPACE * (len(parts) - 1) if spaced else 0.0)
    at = widths.index(max(widths))
    broken = list(parts)
    # A factor squeezed to nothing would be one letter a line.
    broken[at] = fitted(parts[at], max(width - others, width / 3))
    return BoxRow(tuple(broken), spaced) if len(broken) > 1 else broken[0]


def _packed(parts: Sequence[Layout], width: float) -> tuple[Layout, ...]:
    lines: list[list[Layout]] = [[]]
    for part in parts:
        used = sum(map(width_of, lines[-1]))
        if lines[-1] and used + width_of(part) > width:
            lines.append([])
        lines[-1].append(part)
    return tuple(BoxRow(tuple(line)) if len(line) > 1 else line[0] for line in lines)
