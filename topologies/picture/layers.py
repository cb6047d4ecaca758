"""Domains side by side, and the switches that join them above: leaves, rails, spines, cores."""

from collections import Counter, defaultdict
from typing import cast

from topologies.fabric.fabric import Arc, Node
from topologies.picture.canvas import QUIET
from topologies.picture.canvas_state import GUTTER, MARGIN, WIDTH, NodePosition, PictureSheet
from topologies.picture.domain_box import domain_box, domain_box_height, row
from topologies.picture.lattice import is_lattice, lattice, lattice_height
from topologies.picture.ring_layout import fits_ring, ring_height, ring_layout
from topologies.picture.scene import Gap, Link, Scene, chosen, shown

ROW, SWITCH = 96.0, 28.0
LEFT, ROOM = GUTTER, WIDTH - GUTTER - MARGIN


def layers(sheet: PictureSheet, top: float) -> float:
    """Draw the fabric below `top`; where the drawing ends."""
    scene = sheet.scene
    domains = _domains(sheet)
    above = scene.above
    y = top + SWITCH / 2
    base = y + ROW * len(above) - (SWITCH / 2 - 8 if above else SWITCH / 2)
    bottom = _boxes(sheet, domains, base)
    drawn = set(sheet.places)
    lines: list[tuple[float, list[Node]]] = []
    for rank, nodes in enumerate(above.values()):
        near = [node for node in nodes if _touches(scene, node, drawn)]
        items = chosen(nodes, sheet.size.row, {*near, *sheet.damaged})
        drawn |= set(shown(items))
        lines.append((y + ROW * (len(above) - 1 - rank), items))
    for height, items in lines:
        row(sheet, items, LEFT, ROOM, height, SWITCH)
    _wire(sheet, domains, lines)
    return bottom


def _domains(sheet: PictureSheet) -> list[Node]:
    """The domains to draw, one of each kind at least while there is room."""
    scene = sheet.scene
    names = list(scene.domains)
    inside = Counter(scene.inside.values())
    kinds: dict[tuple[int, int], Node] = {}
    for name in names:
        kinds.setdefault(_kind(scene, inside, name), name)
    hurt = {scene.G.nodes[n].get("domain", scene.inside.get(n)) for n in sheet.damaged}
    small = max(len(chips) for chips in scene.domains.values()) <= 2
    limit = sheet.size.chips // 3 if small else sheet.size.domains
    return chosen(names, limit, {*kinds.values(), *(hurt - {None})})


def _kind(scene: Scene, inside: Counter[Node], name: Node) -> tuple[int, int]:
    return len(scene.domains[name]), inside[name]


def _boxes(sheet: PictureSheet, domains: list[Node], y: float) -> float:
    """Draw the domains in a line; where they end."""
    names = shown(domains)
    share = max(2, sheet.size.chips // len(names))
    if len(names) == 1:
        share = min(share, 20)
    alone = len(names) == 1 and not sheet.scene.above
    heights = [_height(sheet, name, alone, len(names)) for name in names]
    weights = [
        0.75 if isinstance(d, Gap) else max(1.0, min(len(sheet.scene.domains[d]), share)) ** 0.5
        for d in domains
    ]
    unit = (ROOM - 14 * (len(domains) - 1)) / sum(weights)
    x, tall = LEFT, max(heights)
    for domain, weight in zip(domains, weights, strict=True):
        width = weight * unit
        if isinstance(domain, Gap):
            _gap(sheet, domain, x, y, width, tall)
        elif is_lattice(sheet, domain):
            lattice(sheet, domain, x, y, width, tall)
        elif fits_ring(sheet, domain, alone):
            ring_layout(sheet, domain, x, y, width, tall)
        else:
            fits = max(2, int(width / 26))
            domain_box(sheet, domain, x, y, width, tall, min(share, fits))
        x += width + 14
    return y + tall


def _height(sheet: PictureSheet, domain: Node, alone: bool, many: int) -> float:
    if is_lattice(sheet, domain):
        return lattice_height(sheet, domain, many)
    if fits_ring(sheet, domain, alone):
        return ring_height()
    return domain_box_height(sheet, domain)


def _gap(sheet: PictureSheet, gap: Gap, x: float, y: float, width: float, tall: float) -> None:
    sheet.ground.box(x, y, width, tall, fill="#f8fafc", colour="#94a3b8", round_=8, dash="5 4")
    for i, words in enumerate(("…", f"{gap.count:,} more", "domains")):
        sheet.marks.text(
            x + width / 2,
            y + tall / 2 - 14 + 18 * i,
            words,
            size=18 if i == 0 else min(12.5, width / 5),
            colour=QUIET,
            anchor="middle",
        )
    sheet.places[gap] = NodePosition(x + width / 2, y + tall / 2, width / 2, tall / 2)
    hidden = dict.fromkeys(gap.items, gap)
    for node, domain in sheet.scene.G.nodes(data="domain"):
        where = hidden.get(sheet.scene.inside.get(node, cast(Node, domain)))
        if where is not None:
            sheet.gaps[node] = where


def _wire(sheet: PictureSheet, domains: list[Node], lines: list[tuple[float, list[Node]]]) -> None:
    """Links between what is drawn; those of a domain drawn as a whole as one bundle."""
    places = sheet.places
    bundles: dict[Arc, list[Link]] = defaultdict(list)
    whole = {d for d in shown(domains) if ("box", d) in places}
    for link in sheet.scene.links:
        ends = [_end(sheet, node, whole) for node in (link.a, link.b)]
        if ends[0] == ends[1] or not all(end in places for end in ends):
            continue
        if ends == [link.a, link.b]:
            sheet.join(link)
        else:
            bundles[ends[0], ends[1]].append(link)
    for (a, b), links in bundles.items():
        p, q = places[a], places[b]
        if isinstance(a, Gap) or isinstance(b, Gap):
            sheet.others(links[0], p, q, len(links))
            continue
        sheet.link(links[0], [p.towards(q), q.towards(p)])
        if len(links) > 1:
            x, y = (p.towards(q)[0] + q.x) / 2, (p.towards(q)[1] + q.towards(p)[1]) / 2
            words = f"× {len(links):,}"
            sheet.marks.text(x + 8, y, words, size=11, colour=QUIET, backed=True)
    _missing(sheet, lines)


def _end(sheet: PictureSheet, node: Node, whole: set[Node]) -> Node:
    """The mark at which a link of `node` ends: itself, or the box of its domain."""
    domain = sheet.scene.G.nodes[node].get("domain")
    if domain in whole:
        return "box", domain
    return node if node in sheet.places else sheet.gaps.get(node, node)


def _missing(sheet: PictureSheet, lines: list[tuple[float, list[Node]]]) -> None:
    """Draw missing links as stubs, from nodes with fewer links than others of their role."""
    for fault in sheet.faults:
        if fault.link is not None or not fault.nodes or fault.nodes[0] not in sheet.places:
            continue
        place = sheet.places[fault.nodes[0]]
        rows = [height for height, kept in lines if shown(kept) and height < place.y]
        if fault.towards:
            direction = -1 if rows else 1
            edge = place.y + direction * place.dy
            sheet.lost((place.x, edge), (place.x, edge + direction * 34), fault.text)


def _touches(scene: Scene, node: Node, drawn: set[Node]) -> bool:
    G = scene.G
    return any(other in drawn for other in (*G.succ[node], *G.pred[node]))
