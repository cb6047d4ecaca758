"""The sheet of a picture: its scene, places of drawn nodes, styles of links, and the legend."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import sqrt

from topologies.fabric.fabric import ACCELERATOR, Group, Node
from topologies.picture.degraded_links import LinkFault
from topologies.picture.scene import Gap, Link, LinkClass, PictureLimits, Scene, label, side_name
from topologies.picture.svg_canvas import (
    FAULT,
    INK,
    MUTED_COLOUR,
    TIER_COLOURS,
    Canvas,
    counted_text,
    rate_text,
    time_text,
    truncate,
)

WIDTH, MARGIN, GUTTER = 1200.0, 28.0, 240.0
THICK_WIDTH, MEDIUM, THIN_WIDTH = 6.0, 2.4, 1.0
CHIP_FILL, SWITCH_FILL = "#dbeafe", "#e2e8f0"
BOX_FILL, EDGE = "#f8fafc", "#94a3b8"

PagePoint = tuple[float, float]


@dataclass(frozen=True)
class NodePosition:
    """Centre of a node, and half its width and height. [px]"""

    x: float
    y: float
    dx: float
    dy: float

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Upper left corner, width and height."""
        return self.x - self.dx, self.y - self.dy, 2 * self.dx, 2 * self.dy

    def towards(self, target: NodePosition) -> PagePoint:
        """Edge point of this node where a link to `target` begins. [px]"""
        if abs(target.y - self.y) > self.dy + target.dy:
            lean = max(-1.0, min(1.0, (target.x - self.x) / (abs(target.x - self.x) + 160)))
            edge = self.dy if target.y > self.y else -self.dy
            return self.x + lean * self.dx * 0.9, self.y + edge
        return self.x + (self.dx if target.x > self.x else -self.dx), self.y


@dataclass
class PictureSheet:
    """Three layers of paint, positions of the drawn nodes, and heights of the link classes."""

    scene: Scene
    faults: list[LinkFault]
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
        # Equal rates need no widths to distinguish them: all links are drawn at MEDIUM width.
        self.thick = min(THICK_WIDTH, MEDIUM * sqrt(self.widest / min(rates, default=1.0)))
        self.damaged = {node for fault in self.faults for node in fault.nodes}
        self.gaps: dict[Node, Node] = {}

    @property
    def damaged_domains(self) -> set[Node]:
        """Domains of the damaged nodes; None for those above all domains."""
        G, inside = self.scene.G, self.scene.inside
        return {G.nodes[node].get("domain", inside.get(node)) for node in self.damaged}

    def drawn_links(self) -> list[tuple[Link, NodePosition, NodePosition]]:
        """Links whose two ends have their places, with these."""
        at = self.places
        return [(x, at[x.a], at[x.b]) for x in self.scene.links if x.a in at and x.b in at]

    def stroke(self, rate: float) -> float:
        """Thickness of a line [px] for a bandwidth [byte/s], in proportion to its root."""
        return max(THIN_WIDTH, self.thick * sqrt(min(rate / self.widest, 1.5)))

    def node(self, node: Node, place: NodePosition, *, words: str | None = None) -> None:
        """Draw a node at a place; chips that relay are round."""
        data = self.scene.G.nodes[node]
        chip = data.get("kind") == ACCELERATOR
        colour = FAULT if node in self.damaged else INK
        fill = CHIP_FILL if chip else SWITCH_FILL
        self.places[node] = place
        relays = "relays for others" if data.get("forward") else "relays for nobody"
        adds = ", adds what passes" if data.get("in_network_reduce") else ""
        text = f"{label(node)}: {data.get('kind')}, {relays}{adds}"
        x, y, dx, dy = place.x, place.y, place.dx, place.dy
        if chip and data.get("forward"):
            self.marks.disc(x, y, min(dx, dy), fill=fill, colour=colour, tooltip=text)
        else:
            round_ = 3 if chip else dy
            self.marks.box(*place.box, fill=fill, colour=colour, round_=round_, tooltip=text)
        name = label(node, short=chip) if words is None else words
        name = f"Σ {name}" if data.get("in_network_reduce") else name
        size = min(11.0, dy * 1.1, max(7.5, 2 * dx / (0.6 * max(len(name), 1))))
        if name and dy >= 6:
            name = truncate(name, 2 * dx, size)
            self.marks.caption(x, y + size * 0.36, name, size, INK)

    def link(
        self, link: Link, points: list[PagePoint], *, faint: bool = False, most: float = THICK_WIDTH
    ) -> None:
        """Draw a link through these points; the first link of a class sets its label height."""
        faulty = self.scene.faulty(link)
        middle = sum(y for _, y in points) / len(points)
        self.heights.setdefault((*link.kind[:3], link.figures), middle)
        colour = FAULT if faulty else TIER_COLOURS.get(link.kind.tier, MUTED_COLOUR)
        self.wires.line(
            points,
            colour,
            min(self.stroke(max(link.figures.there, link.figures.back or 0.0)), most),
            dash="7 4" if faulty else "",
            tooltip=link_text(link),
            faint=faint and not faulty,
        )

    def others(self, link: Link, a: NodePosition, b: NodePosition, number: int) -> None:
        """Draw a bundle of links like this one that lead to nodes left out."""
        colour = TIER_COLOURS.get(link.kind.tier, MUTED_COLOUR)
        text = f"{number:,} more like {link_text(link)}"
        self.wires.line(
            [a.towards(b), b.towards(a)], colour, 1.2, dash="2 4", tooltip=text, faint=True
        )

    def join(self, link: Link) -> None:
        """Draw a link between two nodes that have their places."""
        a, b = self.places[link.a], self.places[link.b]
        neighbours = abs(a.x - b.x) <= a.dx + b.dx + 30 and abs(a.y - b.y) < 1
        if neighbours or abs(a.y - b.y) > a.dy + b.dy:
            self.link(link, [a.towards(b), b.towards(a)])
            return
        low = max(a.y + a.dy, b.y + b.dy)
        bow = min(14 + 0.22 * abs(a.x - b.x), 52)
        middle = ((a.x + b.x) / 2, low + 2 * bow)
        self.link(link, [(a.x, a.y + a.dy), middle, (b.x, b.y + b.dy)])

    def lost(self, a: PagePoint, b: PagePoint, text: str) -> None:
        """Draw a missing link: a broken line with a cross."""
        self.wires.line([a, b], FAULT, 1.6, dash="3 4", tooltip=text)
        x, y = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        for s in (-5, 5):
            self.marks.line([(x - 5, y - s), (x + 5, y + s)], FAULT, 2.4)

    def more(self, gap: Gap, place: NodePosition, words: str) -> None:
        """Draw a box for nodes that are left out."""
        self.places[gap] = place
        self.gaps.update(dict.fromkeys(gap.items, gap))
        self.marks.box(*place.box, fill=BOX_FILL, colour=EDGE, dash="4 3", round_=place.dy)
        size = min(11.0, (2 * place.dx - 3) / (0.6 * max(len(words), 1)))
        self.marks.caption(place.x, place.y + 0.36 * size, words, size)

    def frame(self, place: NodePosition, *, dash: str = "") -> None:
        """The box around a domain."""
        self.ground.box(*place.box, fill=BOX_FILL, colour=EDGE, round_=8, dash=dash)


def link_text(link: Link) -> str:
    """Ends, rates, cables and latency of a link in words."""
    there, back, latency, count = link.figures
    ways = f" there, {rate_text(back)} back" if back is not None else ", this way only"
    rate = f"{rate_text(there)}{' one way' if back == there else ways}"
    cables = f", {count} cables" if count > 1 else ""
    return f"{label(link.a)} – {label(link.b)}: {rate}{cables}, {time_text(latency)}"


TIERS = {"scale_up": "scale-up", "scale_out": "scale-out", "host": "host"}
MIN_HEIGHT, MAX_FAULTS, MAX_CLASSES = 60.0, 6, 12


def classes(sheet: PictureSheet, top: float, bottom: float) -> float:
    """Label each class of link once, near its drawn links; returns the y below the labels."""
    groups: dict[Group, list[LinkClass]] = defaultdict(list)
    for link in sheet.scene.classes:
        if not link.faulty:
            groups[(*link.kind[:3], link.figures)].append(link)
    wanted = sorted(groups, key=lambda key: sheet.heights.get(key, bottom))
    keys, left_out = wanted[:MAX_CLASSES], wanted[MAX_CLASSES:]
    y = top
    places = []
    for key in keys:
        y = max(y, min(sheet.heights.get(key, bottom) - MIN_HEIGHT / 2, bottom - MIN_HEIGHT))
        places.append(y)
        y += MIN_HEIGHT
    over = y - max(bottom, top)
    for i in range(len(places) - 1, -1, -1):  # entries pushed below the drawing move up
        room = places[i - 1] + MIN_HEIGHT if i else top
        shift = max(0.0, min(over, places[i] - room))
        places[i] -= shift if over > 0 else 0.0
    for key, at in zip(keys, places, strict=True):
        _class(sheet, groups[key], at)
    if left_out:
        words = f"and {counted_text(len(left_out), 'other class')} of links"
        sheet.marks.text(MARGIN, y + 14, words, size=11, colour=MUTED_COLOUR)
        y += 24
    return max(y, bottom)


def _class(sheet: PictureSheet, alike: list[LinkClass], y: float) -> None:
    first = alike[0]
    colour = TIER_COLOURS.get(first.kind.tier, MUTED_COLOUR)
    there, back, latency, count = first.figures
    number = sum(each.number for each in alike)
    sheet.marks.line([(MARGIN, y + 8), (MARGIN + 22, y + 8)], colour, sheet.stroke(there))
    if back is None:
        rate = f"{rate_text(there)}, this way only"
    elif back != there:
        rate = f"{rate_text(there)}, back {rate_text(back)}"
    else:
        rate = f"{rate_text(there)} each way"
    room = GUTTER - MARGIN - 40
    sheet.marks.text(
        MARGIN + 30, y + 12, truncate(rate, room, 13), size=13, colour=colour, bold=True
    )
    axes = sorted({axis for each in alike for axis in each.kind.axis})
    along = f" along {', '.join(side_name(d) for d in axes)}" if axes else ""
    cables = f" of {count} cables" if count > 1 else ""
    lines = (
        f"{counted_text(number, 'link')}{cables}, {time_text(latency)}",
        f"{' – '.join(first.kind.roles)}{along}",
    )
    for height, words in zip((27, 41), lines, strict=True):
        line = truncate(words, room, 10.5)
        sheet.marks.text(MARGIN + 30, y + height, line, size=10.5, colour=MUTED_COLOUR)


def legend(sheet: PictureSheet, top: float) -> float:
    """Marks, thickness and faults below the drawing; where they end."""
    sheet.marks.line([(MARGIN, top), (WIDTH - MARGIN, top)], "#cbd5e1", 1)
    y = top + 26
    x = _symbols(sheet, MARGIN, y)
    y = _scale(sheet, x, y) + 14
    shown = sheet.faults[:MAX_FAULTS]
    for fault in shown:
        y += 18
        words = truncate(fault.text, WIDTH - 2 * MARGIN - 30, 12)
        sheet.marks.text(MARGIN + 14, y, words, size=12, colour=FAULT)
        sheet.marks.text(MARGIN, y, "✕", size=12, colour=FAULT, bold=True)
    if len(sheet.faults) > len(shown):
        y += 18
        words = f"and {len(sheet.faults) - len(shown):,} more"
        sheet.marks.text(MARGIN + 14, y, words, size=12, colour=FAULT)
    return y + 10


def _symbols(sheet: PictureSheet, x: float, y: float) -> float:
    G = sheet.scene.G
    chips = [d for _, d in G.nodes(data=True) if d.get("kind") == ACCELERATOR]
    others = [d for _, d in G.nodes(data=True) if d.get("kind") != ACCELERATOR]
    marks = sheet.marks
    if any(not d.get("forward") for d in chips):
        marks.box(x, y - 10, 13, 13, fill=CHIP_FILL, round_=2)
        x = _sentence(sheet, x + 19, y, "chip")
    if any(d.get("forward") for d in chips):
        marks.disc(x + 7, y - 4, 7, fill=CHIP_FILL)
        x = _sentence(sheet, x + 20, y, "chip that relays for others")
    if any(d.get("kind") == "switch" for d in others):
        marks.box(x, y - 10, 24, 13, fill=SWITCH_FILL, round_=6.5)
        x = _sentence(sheet, x + 30, y, "switch")
    if any(d.get("in_network_reduce") for d in others):
        x = _sentence(sheet, x, y, "Σ adds what passes through")
    for tier in dict.fromkeys(each.kind.tier for each in sheet.scene.links):
        marks.line([(x, y - 4), (x + 22, y - 4)], TIER_COLOURS.get(tier, MUTED_COLOUR), 3)
        x = _sentence(sheet, x + 28, y, TIERS.get(tier, tier))
    if sheet.rings:
        marks.line([(x, y), (x + 11, y - 14), (x + 22, y)], TIER_COLOURS["scale_up"], 2, faint=True)
        x = _sentence(sheet, x + 28, y, "link that closes a ring")
    if sheet.faults:
        marks.line([(x, y - 4), (x + 22, y - 4)], FAULT, 3, dash="6 4")
        x = _sentence(sheet, x + 28, y, "degraded or missing")
    return x


def _sentence(sheet: PictureSheet, x: float, y: float, words: str) -> float:
    sheet.marks.text(x, y, words, size=12, colour=INK)
    return x + 7 * len(words) + 22


def _scale(sheet: PictureSheet, x: float, y: float) -> float:
    """Draw a legend of up to three line widths and their rates; returns its baseline y."""
    rates = sorted({max(c.rate, 1.0) for c in sheet.scene.classes})
    picked = list(dict.fromkeys((rates[0], rates[len(rates) // 2], rates[-1]))) if rates else []
    if len(picked) < 2:
        return y
    if x + 130 + 118 * len(picked) > WIDTH - MARGIN:
        x, y = MARGIN, y + 24
    x = _sentence(sheet, x, y, "thickness:")
    for rate in picked:
        sheet.marks.line([(x, y - 4), (x + 22, y - 4)], INK, sheet.stroke(rate))
        x = _sentence(sheet, x + 28, y, rate_text(rate))
    return y
