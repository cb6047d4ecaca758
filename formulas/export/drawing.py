"""Drawings as data: lines, boxes, dots and labels on a sheet, in points from the lower left.

`svg`, `pdf_strokes` and `characters` write the same drawing for a page, for TeX and for a terminal.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]

INKS: Mapping[str, str] = {
    "ink": "#1c1e21", "soft": "#7a8087", "line": "#c9c8c2", "a": "#0b57a4", "b": "#b3450b",
    "c": "#1b6b3a", "d": "#7a3e9d", "e": "#9a7d00", "fill": "#dce8f5", "fill2": "#f3e0d2",
}  # fmt: skip


@dataclass(frozen=True)
class Stroke:
    """A line through points."""

    points: tuple[Point, ...]
    ink: str = "ink"
    width: float = 1.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Area:
    """A filled rectangle: lower left corner, width, height."""

    at: Point
    size: Point
    ink: str = "fill"
    edge: str = "ink"


@dataclass(frozen=True)
class Spot:
    """A dot."""

    at: Point
    ink: str = "ink"


@dataclass(frozen=True)
class Label:
    """Words at a point: `start`, `middle` or `end` of them."""

    at: Point
    words: str
    anchor: str = "start"
    ink: str = "ink"
    upright: bool = False


@dataclass(frozen=True)
class Drawing:
    """Parts drawn on a sheet of a width and a height [pt], with a title."""

    width: float
    height: float
    parts: tuple[Stroke | Area | Spot | Label, ...]
    title: str

    def of(self, kind: type) -> Iterator[Stroke | Area | Spot | Label]:
        """The parts of one kind."""
        return (part for part in self.parts if isinstance(part, kind))

    def _repr_svg_(self) -> str:
        return svg(self)


FONT_SIZE = 10.0  # of letters [pt]
RADIUS = 3.0  # of a dot [pt]


def svg(drawing: Drawing, *, themed: bool = False, font: str = "Georgia, serif") -> str:
    """Return an `<svg>` element as wide as its container; `themed` uses the page's colours."""
    inks = {name: f"var(--draw-{name}, {hue})" if themed else hue for name, hue in INKS.items()}
    height = drawing.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width:g} {height:g}" '
        f'role="img" font-family="{font}" font-size="{FONT_SIZE:g}"><title>{escape(drawing.title)}'
        "</title>"
    ]
    parts += [_svg_part(part, height, inks) for part in drawing.parts]
    return "".join([*parts, "</svg>"])


def _svg_part(part: Stroke | Area | Spot | Label, height: float, inks: Mapping[str, str]) -> str:
    match part:
        case Stroke(points, ink, width, dash):
            path = " ".join(f"{x:.1f},{height - y:.1f}" for x, y in points)
            dashed = f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash else ""
            return (
                f'<polyline points="{path}" fill="none" stroke="{inks[ink]}" '
                f'stroke-width="{width:g}" stroke-linejoin="round"{dashed}/>'
            )
        case Area((x, y), (wide, high), ink, edge):
            return (
                f'<rect x="{x:.1f}" y="{height - y - high:.1f}" width="{wide:.1f}" '
                f'height="{high:.1f}" fill="{inks[ink]}" stroke="{inks[edge]}" stroke-width="0.5"/>'
            )
        case Spot((x, y), ink):
            return f'<circle cx="{x:.1f}" cy="{height - y:.1f}" r="{RADIUS:g}" fill="{inks[ink]}"/>'
        case Label((x, y), words, anchor, ink, upright):
            turn = f' transform="rotate(-90 {x:.1f} {height - y:.1f})"' if upright else ""
            return (
                f'<text x="{x:.1f}" y="{height - y:.1f}" text-anchor="{anchor}" '
                f'fill="{inks[ink]}"{turn}>{escape(words)}</text>'
            )
    raise TypeError(f"nothing draws {type(part).__name__}")


def pdf_strokes(drawing: Drawing) -> str:
    """Everything but the labels as operators of a PDF page, the origin at the lower left."""
    return "\n".join(_pdf_part(part) for part in drawing.parts if not isinstance(part, Label))


def _pdf_part(part: Stroke | Area | Spot | Label) -> str:
    match part:
        case Stroke(points, ink, width, dash):
            first, *others = points
            path = " ".join([_pair(first, "m"), *(_pair(point, "l") for point in others)])
            dashes = " ".join(map(str, dash))
            return f"q {_rgb(ink)} RG {width:g} w 1 j [{dashes}] 0 d {path} S Q"
        case Area(at, (wide, high), ink, edge):
            corner = f"{at[0]:.1f} {at[1]:.1f} {wide:.1f} {high:.1f} re"
            return f"q {_rgb(ink)} rg {_rgb(edge)} RG 0.5 w {corner} B Q"
        case Spot((x, y), ink):
            return f"q {_rgb(ink)} rg {_circle(x, y)} f Q"
    raise TypeError(f"nothing draws {type(part).__name__}")


def _circle(x: float, y: float) -> str:
    r, h = RADIUS, 0.5523 * RADIUS
    arcs = (
        ((r, h), (h, r), (0, r)), ((-h, r), (-r, h), (-r, 0)),
        ((-r, -h), (-h, -r), (0, -r)), ((h, -r), (r, -h), (r, 0)),
    )  # fmt: skip
    curves = [" ".join(_pair((x + a, y + b), "") for a, b in arc) + "c" for arc in arcs]
    return " ".join([_pair((x + r, y), "m"), *curves])


def _pair(point: Point, operator: str) -> str:
    return f"{point[0]:.1f} {point[1]:.1f} {operator}"


def _rgb(ink: str) -> str:
    hue = INKS[ink]
    return " ".join(f"{int(hue[i : i + 2], 16) / 255:.3f}" for i in (1, 3, 5))


COLUMNS, TEXT_LINES = 76, 24


def characters(drawing: Drawing) -> str:
    """The drawing on a terminal: curves as letters of their ink, words where they fit."""
    sheet = [[" "] * COLUMNS for _ in range(TEXT_LINES)]
    across, down = (COLUMNS - 1) / drawing.width, (TEXT_LINES - 1) / drawing.height

    def put(point: Point, letters: str, *, over: bool) -> None:
        row, column = TEXT_LINES - 1 - round(point[1] * down), round(point[0] * across)
        for k, letter in enumerate(letters):
            inside = 0 <= row < TEXT_LINES and 0 <= column + k < COLUMNS
            if inside and (over or sheet[row][column + k] == " "):
                sheet[row][column + k] = letter

    for part in drawing.parts:
        match part:
            case Stroke(points, ink):
                for point in _walked(points, drawing.width / COLUMNS):
                    put(point, ink if len(ink) == 1 else "·", over=len(ink) == 1)
            case Area((x, y), (wide, high), ink):
                mark = "▒" if ink == "fill2" else "█"
                put((x, y + high / 2), mark * max(round(wide * across) - 1, 1), over=True)
            case Spot(at):
                put(at, "●", over=True)
    for part in drawing.of(Label):
        assert isinstance(part, Label)
        if not part.upright:
            shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[part.anchor] * len(part.words)
            put((part.at[0] - shift / across, part.at[1]), part.words, over=True)
    return "\n".join("".join(row).rstrip() for row in sheet)


def _walked(points: Sequence[Point], step: float) -> Iterator[Point]:
    for (x, y), (u, v) in pairwise(points):
        count = max(1, math.ceil(math.hypot(u - x, v - y) / step))
        for k in range(count + 1):
            yield x + (u - x) * k / count, y + (v - y) * k / count
