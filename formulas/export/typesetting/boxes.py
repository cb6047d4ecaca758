"""Boxes: what a formula is made of once it is laid out, before any markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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


@dataclass(frozen=True)
class Big:
    """A sum or product sign with its limits, and what it runs over."""

    sign: str
    below: Layout
    above: Layout
    body: Layout


Layout: TypeAlias = (
    Mark | BoxRow | Script | Accent | Fraction | Root | Fence | List | Lines | Cases | Big
)
