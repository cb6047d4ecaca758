"""Detection of degraded fabrics: links slower than their class, and missing links.

A fabric does not say what it has lost. A link is taken for missing where at least three in four
nodes of the same role have one more of the same kind, or where a torus has a hole.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from topologies.fabric.fabric import Fabric, Group, Node
from topologies.picture.scene import CHIP, Link, Scene, label, role, side_name
from topologies.picture.svg_canvas import rate_text, xml_text

MIN_HEALTHY_RATIO = 0.75


@dataclass(frozen=True)
class LinkFault:
    """A fault: its nodes and its text; `link` is set if the link is only slow."""

    nodes: Group
    text: str
    link: Link | None = None
    towards: str = ""


def find_link_faults(scene: Scene) -> list[LinkFault]:
    """Every fault that shows, slow links first."""
    damages = [*_slow(scene), *_holes(scene), *_fewer(scene)]
    return [replace(fault, text=xml_text(fault.text)) for fault in damages]


def _slow(scene: Scene) -> Iterator[LinkFault]:
    usual = {c.kind: c.rate for c in reversed(scene.classes) if not c.faulty}
    for link in scene.links:
        if scene.faulty(link):
            ends = f"{label(link.a)} - {label(link.b)}"
            slow = min(link.figures.there, link.figures.back or link.figures.there)
            text = f"{ends}: {rate_text(slow)}, not {rate_text(usual[link.kind])}"
            yield LinkFault((link.a, link.b), text, link)


def _holes(scene: Scene) -> Iterator[LinkFault]:
    """Neighbours in a box of chips that nothing joins, and chips that are not there."""
    G = scene.G
    for chips in scene.domains.values():
        at = {tuple(c): v for v in chips if (c := G.nodes[v].get("coord")) is not None}
        if len(at) < max(3, len(chips)) or len({len(place) for place in at}) > 1:
            continue
        sides = [max(c) + 1 for c in zip(*at, strict=True)]
        if min(min(place) for place in at) < 0 or len(at) < MIN_HEALTHY_RATIO * prod(sides):
            continue
        places = list(product(*map(range, sides)))
        for place in places:
            if place not in at:
                yield LinkFault((), f"{'.'.join(map(str, place))}: no chip")
        for d, side in enumerate(sides):
            pairs = [
                (at[place], at[after])
                for place in places
                if (after := (*place[:d], place[d] + 1, *place[d + 1 :]))[d] < side
                and place in at
                and after in at
            ]
            open_ = [(a, b) for a, b in pairs if not (G.has_edge(a, b) and G.has_edge(b, a))]
            if len(open_) <= (1 - MIN_HEALTHY_RATIO) * len(pairs):
                for a, b in open_:
                    yield LinkFault((a, b), f"{label(a)} - {label(b)}: no link")
            yield from _open_rings(G, at, sides, d)


def _open_rings(
    G: Fabric, at: dict[tuple[int, ...], Node], sides: list[int], d: int
) -> Iterator[LinkFault]:
    """Rows along side `d` that do not close, where most of them do."""
    side = sides[d]
    ends = [place for place in at if place[d] == side - 1]
    if side < 3 or not ends:
        return
    lost = [
        place
        for place in ends
        if not any(G.nodes[n].get("coord", place)[d] == 0 for n in (*G.succ[at[place]],))
        or not any(G.nodes[n].get("coord", place)[d] == 0 for n in (*G.pred[at[place]],))
    ]
    if len(lost) <= (1 - MIN_HEALTHY_RATIO) * len(ends):
        for place in lost:
            first = at.get((*place[:d], 0, *place[d + 1 :]))
            nodes = (at[place],) if first is None else (at[place], first)
            yield LinkFault(nodes, f"{label(at[place])}: the ring along {side_name(d)} is open")


def _fewer(scene: Scene) -> Iterator[LinkFault]:
    """Nodes with fewer links of a kind than most nodes of their role, seen from below."""
    named = {node: role(scene.G, node) for node in scene.G}
    has: dict[tuple[str, tuple[str, str], str, str], Counter[Node]] = defaultdict(Counter)
    for link in scene.links:
        if link.kind.axis:
            continue
        for node, neighbour in ((link.a, link.b), (link.b, link.a)):
            if scene.level[node] <= scene.level[neighbour]:
                has[(*link.kind[:2], named[node], named[neighbour])][node] += 1
    members: dict[str, list[Node]] = defaultdict(list)
    for node, word in named.items():
        members[word].append(node)
    # Chips in domains of several sizes differ in their number of peers without a fault.
    mixed = len({len(chips) for chips in scene.domains.values()}) > 1
    for (_, _, mine, towards), counts in has.items():
        if mine == CHIP and towards == CHIP and mixed:
            continue
        usual, many = Counter(counts[n] for n in members[mine]).most_common(1)[0]
        if many < 3 or many < MIN_HEALTHY_RATIO * len(members[mine]):
            continue
        for node in members[mine]:
            if counts[node] < usual:
                lost = usual - counts[node]
                what = "no link" if not counts[node] else f"{lost} of {usual} links missing"
                text = f"{mine} {label(node, short=False)}: {what} to {towards}"
                yield LinkFault((node,), text, towards=towards)
