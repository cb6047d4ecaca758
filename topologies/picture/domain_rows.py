"""Domains side by side as boxes, and above them the switches that join them, level by level.

Ring layout of nodes wired to each other without a switch above: on a circle, links across.

Either the chips of one domain (a full mesh), or whole domains (the groups of a dragonfly).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import cos, hypot, pi, sin
from typing import cast

from topologies.fabric.fabric import Arc, Node
from topologies.picture.lattice import is_lattice, lattice, lattice_height
from topologies.picture.scene import CHIP, Gap, Link, label, limit_items, role, without_gaps
from topologies.picture.sheet import GUTTER, MARGIN, WIDTH, NodePosition, PictureSheet
from topologies.picture.svg_canvas import MUTED_COLOUR, truncate

RADIUS, HALF = 165.0, 15.0
TABLE, CHIP_OFFSET = 190.0, 62.0


def fits_ring(sheet: PictureSheet, domain: Node, alone: bool) -> bool:
    """Is this the only domain, of chips that are wired to each other?"""
    return alone and len(sheet.scene.domains[domain]) > 2 and not sheet.scene.inner_rows(domain)


def ring_layout(sheet: PictureSheet, domain: Node, place: NodePosition) -> None:
    """Draw the chips of a domain on a circle."""
    _, y, _, height = place.box
    sheet.frame(place)
    sheet.places["box", domain] = place
    middle = (place.x, y + (height - 24) / 2)
    items = limit_items(sheet.scene.domains[domain], 24, sheet.damaged)
    for i, item in enumerate(items):
        at = _around(middle, RADIUS, i / len(items))
        if isinstance(item, Gap):
            sheet.more(item, NodePosition(*at, 20, 10), f"+{item.count:,}")
        else:
            sheet.node(item, NodePosition(*at, HALF, HALF))
    for link, a, b in sheet.drawn_links():
        sheet.link(link, [(a.x, a.y), (b.x, b.y)])
    for fault in sheet.faults:
        ends = [(p.x, p.y) for n in fault.nodes if (p := sheet.places.get(n)) is not None]
        if fault.link is None and ends:
            u, v = ends[0]  # where the other end is not drawn, a stub towards the middle
            stub = u + 0.3 * (middle[0] - u), v + 0.3 * (middle[1] - v)
            sheet.lost((u, v), ends[-1] if len(ends) > 1 else stub, fault.text)
    sheet.marks.caption(place.x, y + height - 12, sheet.scene.domain_title(domain))


def round_table(sheet: PictureSheet, top: float) -> float:
    """Draw the domains around a circle, what wires them on it and their chips outside."""
    middle = ((GUTTER + WIDTH - MARGIN) / 2, top + TABLE + CHIP_OFFSET + 62)
    domains = limit_items(list(sheet.scene.domains), 10, sheet.damaged_domains)
    share = 1 / len(domains)
    for i, domain in enumerate(domains):
        turn = i * share
        if isinstance(domain, Gap):
            x, y = _around(middle, TABLE + 20, turn)
            sheet.more(domain, NodePosition(x, y, 46, 13), f"… {domain.count:,} more")
        else:
            _chip_position(sheet, domain, middle, turn, share)
    # Across the circle, bent towards its middle the more the farther they go.
    for link, a, b in sheet.drawn_links():
        far = [hypot(p.x - middle[0], p.y - middle[1]) for p in (a, b)]
        pull = 0.12 if link.kind.tier == "scale_up" else 0.72
        x, y = (a.x + b.x) / 2, (a.y + b.y) / 2
        bent = (x + pull * (middle[0] - x), y + pull * (middle[1] - y))
        across = abs(far[0] - far[1]) <= 20
        sheet.link(link, [(a.x, a.y), *([bent] if across else []), (b.x, b.y)])
    return middle[1] + TABLE + CHIP_OFFSET + 58


def _chip_position(
    sheet: PictureSheet, domain: Node, middle: tuple[float, float], turn: float, share: float
) -> None:
    """One domain: its switches on the circle, its chips beyond them."""
    scene = sheet.scene
    switches = [node for nodes in sheet.scene.inner_rows(domain).values() for node in nodes]
    chips = scene.domains[domain]
    posts = switches or chips
    items = limit_items(posts, 4, sheet.damaged)
    part = share * 0.84 / len(items)
    start = turn - share * 0.42
    half = min(16.0, TABLE * 2 * pi * part * 0.4)
    for i, item in enumerate(items):
        at = start + part * (i + 0.5)
        x, y = _around(middle, TABLE, at)
        if isinstance(item, Gap):
            sheet.more(item, NodePosition(x, y, half, 9), f"+{item.count:,}")
            continue
        parts = item if isinstance(item, tuple) else (item,)
        numbers = [part for part in parts if not isinstance(part, str)] or parts
        words = ".".join(map(str, numbers)) if switches else label(item)
        sheet.node(item, NodePosition(x, y, half, 10), words=words)
        if switches:
            _outer_nodes(sheet, item, middle, at, part)
    x, y = _around(middle, TABLE + CHIP_OFFSET + 24, turn)
    words = f"domain {label(domain)}"
    sheet.marks.text(x, y + 4, words, size=12, colour=MUTED_COLOUR, anchor="middle", backed=True)


def _outer_nodes(
    sheet: PictureSheet, post: Node, middle: tuple[float, float], at: float, part: float
) -> None:
    """The chips of one switch, outside the circle."""
    G = sheet.scene.G
    mine = [n for n in G.pred[post] if G.nodes[n].get("kind") == "accelerator"]
    items = limit_items(mine, 3, sheet.damaged)
    for i, chip in enumerate(items):
        x, y = _around(
            middle, TABLE + CHIP_OFFSET - 14, at + part * ((i + 0.5) / len(items) - 0.5) * 0.9
        )
        if isinstance(chip, Gap):
            sheet.marks.caption(x, y + 4, f"+{chip.count}", 10)
        else:
            sheet.node(chip, NodePosition(x, y, 7, 7), words="")


def _around(middle: tuple[float, float], radius: float, turn: float) -> tuple[float, float]:
    angle = 2 * pi * turn - pi / 2
    return middle[0] + radius * cos(angle), middle[1] + radius * sin(angle)


ROW_SIZE, SWITCH = 96.0, 28.0
ROW_LEFT, ROW_WIDTH = GUTTER, WIDTH - GUTTER - MARGIN


def layers(sheet: PictureSheet, top: float) -> float:
    """Draw the fabric below `top`; where the drawing ends."""
    scene = sheet.scene
    # One domain of each kind at least, while there is room.
    names = list(scene.domains)
    inside = Counter(scene.inside.values())
    kinds: dict[tuple[int, int], Node] = {}
    for name in names:
        kinds.setdefault((len(scene.domains[name]), inside[name]), name)
    small = max(len(chips) for chips in scene.domains.values()) <= 2
    limit = sheet.size.chips // 3 if small else sheet.size.domains
    domains = limit_items(names, limit, {*kinds.values(), *(sheet.damaged_domains - {None})})
    above = scene.above
    y = top + SWITCH / 2
    base = y + ROW_SIZE * len(above) - (SWITCH / 2 - 8 if above else SWITCH / 2)
    bottom = _boxes(sheet, domains, base)
    drawn = set(sheet.places)
    lines: list[tuple[float, list[Node]]] = []
    for rank, nodes in enumerate(above.values()):
        near = [node for node in nodes if scene.beside(node, drawn)]
        items = limit_items(nodes, sheet.size.row, {*near, *sheet.damaged})
        drawn |= set(without_gaps(items))
        lines.append((y + ROW_SIZE * (len(above) - 1 - rank), items))
    for height, items in lines:
        draw_row(sheet, items, ROW_LEFT, ROW_WIDTH, height, SWITCH)
    _wire(sheet, domains, lines)
    return bottom


def _boxes(sheet: PictureSheet, domains: list[Node], y: float) -> float:
    """Draw the domains in a line; where they end."""
    names = without_gaps(domains)
    share = max(2, sheet.size.chips // len(names))
    if len(names) == 1:
        share = min(share, 20)
    alone = len(names) == 1 and not sheet.scene.above
    heights = [_height(sheet, name, alone, len(names)) for name in names]
    weights = [
        0.75 if isinstance(d, Gap) else max(1.0, min(len(sheet.scene.domains[d]), share)) ** 0.5
        for d in domains
    ]
    unit = (ROW_WIDTH - 14 * (len(domains) - 1)) / sum(weights)
    x, tall = ROW_LEFT, max(heights)
    for domain, weight in zip(domains, weights, strict=True):
        width = weight * unit
        place = NodePosition(x + width / 2, y + tall / 2, width / 2, tall / 2)
        if isinstance(domain, Gap):
            _gap(sheet, domain, place)
        elif is_lattice(sheet, domain):
            lattice(sheet, domain, place)
        elif fits_ring(sheet, domain, alone):
            ring_layout(sheet, domain, place)
        else:
            domain_box(sheet, domain, place, min(share, max(2, int(width / 26))))
        x += width + 14
    return y + tall


def _height(sheet: PictureSheet, domain: Node, alone: bool, many: int) -> float:
    if is_lattice(sheet, domain):
        return lattice_height(sheet, domain, many)
    if fits_ring(sheet, domain, alone):
        return 2 * (RADIUS + 34) + 40
    rows = sheet.scene.inner_rows(domain)
    cards = NICS if rows.pop("nic", None) else 0.0
    arcs = 64.0 if not rows and len(sheet.scene.domains[domain]) > 1 else 0.0
    return PAD + cards + CHIP_SIZE + STEP * len(rows) + arcs + TITLE


def _gap(sheet: PictureSheet, gap: Gap, place: NodePosition) -> None:
    sheet.frame(place, dash="5 4")
    for i, words in enumerate(("…", f"{gap.count:,} more", "domains")):
        size = 18 if i == 0 else min(12.5, 2 * place.dx / 5)
        sheet.marks.caption(place.x, place.y - 14 + 18 * i, words, size)
    sheet.places[gap] = place
    hidden = dict.fromkeys(gap.items, gap)
    for node, domain in sheet.scene.G.nodes(data="domain"):
        where = hidden.get(sheet.scene.inside.get(node, cast(Node, domain)))
        if where is not None:
            sheet.gaps[node] = where


def _wire(sheet: PictureSheet, domains: list[Node], lines: list[tuple[float, list[Node]]]) -> None:
    """Draw the links; links of a domain drawn as a box are bundled."""
    places = sheet.places
    bundles: dict[Arc, list[Link]] = defaultdict(list)
    whole = {d for d in without_gaps(domains) if ("box", d) in places}
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
            sheet.marks.text(x + 8, y, words, size=11, colour=MUTED_COLOUR, backed=True)
    # Draw missing links as stubs, from nodes with fewer links than others of their role.
    for fault in sheet.faults:
        if fault.link is not None or not fault.nodes or fault.nodes[0] not in sheet.places:
            continue
        place = sheet.places[fault.nodes[0]]
        rows = [height for height, kept in lines if without_gaps(kept) and height < place.y]
        if fault.towards:
            direction = -1 if rows else 1
            edge = place.y + direction * place.dy
            sheet.lost((place.x, edge), (place.x, edge + direction * 34), fault.text)


def _end(sheet: PictureSheet, node: Node, whole: set[Node]) -> Node:
    domain = sheet.scene.G.nodes[node].get("domain")
    if domain in whole:
        return "box", domain
    return node if node in sheet.places else sheet.gaps.get(node, node)


MAX_MESH_LINKS = 60  # links between chips and switches of a domain that an eye can follow
STEP, CHIP_SIZE, PAD, TITLE, NICS = 92.0, 30.0, 16.0, 30.0, 52.0


def domain_box(sheet: PictureSheet, domain: Node, place: NodePosition, chips: int) -> None:
    """Draw a domain of at most `chips` chips into the box of a place."""
    x, y, width, height = place.box
    members = sheet.scene.domains[domain]
    rows = sheet.scene.inner_rows(domain)
    cards = rows.pop("nic", [])
    sheet.frame(place)
    line = y + PAD + (NICS if cards else 0.0) + CHIP_SIZE / 2
    most = max(2, min(sheet.size.row, int(width / 60)))
    chips = min(chips, len(members))
    while (
        sum(min(len(nodes), most) for nodes in rows.values()) * chips > MAX_MESH_LINKS and chips > 6
    ):
        chips, most = chips - 2, max(3, most - 1)
    picked = limit_items(members, chips, sheet.damaged)
    draw_row(sheet, picked, x, width, line, CHIP_SIZE)
    if cards:
        seen = [node for node in cards if sheet.scene.beside(node, set(without_gaps(picked)))]
        draw_row(
            sheet, limit_items(cards, chips, {*seen, *sheet.damaged}), x, width, y + PAD + 11, 22.0
        )
    for depth, nodes in enumerate(rows.values(), start=1):
        draw_row(
            sheet, limit_items(nodes, most, sheet.damaged), x, width, line + STEP * depth, 24.0
        )
    room, foot = width - 16, y + height - 10
    words = sheet.scene.domain_title(domain)
    words = truncate(words if room > 80 else label(domain), room, 12)
    sheet.marks.caption(place.x, foot, words)


def draw_row(
    sheet: PictureSheet, items: Sequence[Node], x: float, width: float, y: float, height: float
) -> None:
    """Draw nodes side by side, a gap as how many more there are."""
    x, width = x + 6, width - 12
    slot = width / max(len(items), 1)
    chip = bool(without_gaps(items)) and role(sheet.scene.G, without_gaps(items)[0]) == CHIP
    half = min(height / 2 if chip else 62.0, slot / 2 - (2 if chip else 5))
    for i, item in enumerate(items):
        at = x + slot * (i + 0.5)
        if isinstance(item, Gap):
            words = f"+{item.count:,}" if half < 30 else f"… {item.count:,} more"
            place = NodePosition(at, y, max(half, min(slot / 2 - 1, 20)), height / 2 - 3)
            sheet.more(item, place, words)
        else:
            # The box around a node shows its domain: the label drops this prefix.
            parts = item if isinstance(item, tuple) and item in sheet.scene.inside else ()
            inner = len(parts) > 1 and parts[0] == sheet.scene.inside[item]
            name = label(parts[1:]) if inner else None
            sheet.node(item, NodePosition(at, y, half, height / 2), words=name)
