"""State of a picture: the scene, positions of drawn nodes, styles of links."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from topologies.fabric.fabric import ACCELERATOR, Group, Node
from topologies.picture.amounts import rate_text, time_text
from topologies.picture.canvas import FAULT, INK, QUIET, TIER_COLOURS, Canvas, fitted
from topologies.picture.degraded_links import Damage
from topologies.picture.scene import Gap, Link, PictureLimits, Scene, label

WIDTH, MARGIN, GUTTER = 1200.0, 28.0, 240.0
THICK, MEDIUM, THIN = 6.0, 2.4, 1.0
CHIP_FILL, SWITCH_FILL = "#dbeafe", "#e2e8f0"

Point = tuple[float, float]


@dataclass(frozen=True)
class NodePosition:
    """Centre of a node, and half its width and height. [px]"""

    x: float
    y: float
    dx: float
    dy: float

    def towards(self, target: NodePosition) -> Point:
        """The point of its edge at which a link to `other` begins."""
        if abs(target.y - self.y) > self.dy + target.dy:
            lean = max(-1.0, min(1.0, (target.x - self.x) / (abs(target.x - self.x) + 160)))
            edge = self.dy if target.y > self.y else -self.dy
            return self.x + lean * self.dx * 0.9, self.y + edge
        return self.x + (self.dx if target.x > self.x else -self.dx), self.y


@dataclass
class PictureSheet:
    """Three layers of paint, the places of what is drawn, and the height of each class of link."""

    scene: Scene
    faults: list[Damage]
    size: PictureLimits
    ground: Canvas = field(default_factory=Canvas)
    wires: Canvas = field(default_factory=Canvas)
    marks: Canvas = field(default_factory=Canvas)
    places: dict[Node, NodePosition] = field(default_factory=dict)
    heights: dict[Group, float] = field(default_factory=dict)
    rings: bool = False

    def __post_init__(self) -> None:
        rates = {each.rate for each in self.scene.classes}
        self.widest = max(rates, default=1.0)
        # Where all links are alike thickness says nothing, so that they are drawn thin.
        self.thick = min(THICK, MEDIUM * sqrt(self.widest / min(rates, default=1.0)))
        self.damaged = {node for fault in self.faults for node in fault.nodes}
        self.gaps: dict[Node, Node] = {}

    def stroke(self, rate: float) -> float:
        """Thickness of a line for a bandwidth: its area of cable, so to speak."""
        return max(THIN, self.thick * sqrt(min(rate / self.widest, 1.5)))

    def node(self, node: Node, place: NodePosition, *, words: str | None = None) -> None:
        """Draw a node where it is put; chips that relay are round."""
        data = self.scene.G.nodes[node]
        chip = data.get("kind") == ACCELERATOR
        colour = FAULT if node in self.damaged else INK
        fill = CHIP_FILL if chip else SWITCH_FILL
        self.places[node] = place
        text = _node_text(node, data)
        x, y, dx, dy = place.x, place.y, place.dx, place.dy
        if chip and data.get("forward"):
            self.marks.disc(x, y, min(dx, dy), fill=fill, colour=colour, tooltip=text)
        else:
            round_ = 3 if chip else dy
            self.marks.box(
                x - dx,
                y - dy,
                2 * dx,
                2 * dy,
                fill=fill,
                colour=colour,
                round_=round_,
                tooltip=text,
            )
        name = label(node, short=chip) if words is None else words
        name = f"Σ {name}" if data.get("in_network_reduce") else name
        size = min(11.0, dy * 1.1, max(7.5, 2 * dx / (0.6 * max(len(name), 1))))
        if name and dy >= 6:
            name = fitted(name, 2 * dx, size)
            self.marks.text(x, y + size * 0.36, name, size=size, anchor="middle")

    def link(
        self, link: Link, points: list[Point], *, faint: bool = False, most: float = THICK
    ) -> None:
        """Draw a link through these points; the first of a class says where its label stands."""
        faulty = self.scene.faulty(link)
        middle = sum(y for _, y in points) / len(points)
        self.heights.setdefault((*link.kind[:3], link.figures), middle)
        colour = FAULT if faulty else TIER_COLOURS.get(link.tier, QUIET)
        self.wires.line(
            points,
            colour,
            min(self.stroke(max(link.there, link.back or 0.0)), most),
            dash="7 4" if faulty else "",
            tooltip=link_text(link),
            faint=faint and not faulty,
        )

    def others(self, link: Link, a: NodePosition, b: NodePosition, number: int) -> None:
        """Draw that links like this one lead to what is not drawn."""
        colour = TIER_COLOURS.get(link.tier, QUIET)
        text = f"{number:,} more like {link_text(link)}"
        self.wires.line(
            [a.towards(b), b.towards(a)], colour, 1.2, dash="2 4", tooltip=text, faint=True
        )

    def join(self, link: Link) -> None:
        """Draw a link between two nodes that have their places."""
        a, b = self.places[link.a], self.places[link.b]
        if abs(a.y - b.y) > a.dy + b.dy:
            self.link(link, [a.towards(b), b.towards(a)])
            return
        if abs(a.x - b.x) <= a.dx + b.dx + 30 and abs(a.y - b.y) < 1:
            self.link(link, [a.towards(b), b.towards(a)])
            return
        low = max(a.y + a.dy, b.y + b.dy)
        bow = min(14 + 0.22 * abs(a.x - b.x), 52)
        middle = ((a.x + b.x) / 2, low + 2 * bow)
        self.link(link, [(a.x, a.y + a.dy), middle, (b.x, b.y + b.dy)])

    def lost(self, a: Point, b: Point, text: str) -> None:
        """Draw what should be there and is not: a broken line with a cross."""
        self.wires.line([a, b], FAULT, 1.6, dash="3 4", tooltip=text)
        x, y = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        for s in (-5, 5):
            self.marks.line([(x - 5, y - s), (x + 5, y + s)], FAULT, 2.4)

    def more(self, gap: Gap, place: NodePosition, words: str) -> None:
        """Draw that there are more of the same."""
        x, y, dx, dy = place.x, place.y, place.dx, place.dy
        self.places[gap] = place
        self.gaps.update(dict.fromkeys(gap.items, gap))
        self.marks.box(
            x - dx, y - dy, 2 * dx, 2 * dy, fill="#f8fafc", colour="#94a3b8", dash="4 3", round_=dy
        )
        size = min(11.0, (2 * dx - 3) / (0.6 * max(len(words), 1)))
        self.marks.text(x, y + 0.36 * size, words, size=size, colour=QUIET, anchor="middle")


def link_text(link: Link) -> str:
    """A link in a sentence."""
    rate = f"{rate_text(link.there)} one way" if link.back == link.there else _unequal(link)
    cables = f", {link.count} cables" if link.count > 1 else ""
    return f"{label(link.a)} – {label(link.b)}: {rate}{cables}, {time_text(link.latency)}"


def _unequal(link: Link) -> str:
    if link.back is None:
        return f"{rate_text(link.there)}, this way only"
    return f"{rate_text(link.there)} there, {rate_text(link.back)} back"


def _node_text(node: Node, data: dict[str, Any]) -> str:
    relays = "relays for others" if data.get("forward") else "relays for nobody"
    adds = ", adds what passes" if data.get("in_network_reduce") else ""
    return f"{label(node)}: {data.get('kind')}, {relays}{adds}"
