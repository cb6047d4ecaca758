"""Ring layout of nodes wired to each other without a switch above: on a circle, links across.

Either the chips of one domain (a full mesh), or whole domains (the groups of a dragonfly).
"""

from math import cos, hypot, pi, sin

from topologies.fabric.fabric import Group, Node
from topologies.picture.scene import Gap, Link, chosen, label
from topologies.picture.sheet import GUTTER, MARGIN, WIDTH, NodePosition, PictureSheet
from topologies.picture.svg_canvas import QUIET

RADIUS, HALF = 165.0, 15.0
TABLE, OUT = 190.0, 62.0


def fits_ring(sheet: PictureSheet, domain: Node, alone: bool) -> bool:
    """Is this the only domain, of chips that are wired to each other?"""
    return alone and len(sheet.scene.domains[domain]) > 2 and not sheet.scene.inner_rows(domain)


def ring_height() -> float:
    """Height of the box around the circle."""
    return 2 * (RADIUS + 34) + 40


def ring_layout(sheet: PictureSheet, domain: Node, place: NodePosition) -> None:
    """Draw the chips of a domain on a circle."""
    _, y, _, height = place.box
    sheet.frame(place)
    sheet.places["box", domain] = place
    middle = (place.x, y + (height - 24) / 2)
    items = chosen(sheet.scene.domains[domain], 24, sheet.damaged)
    for i, item in enumerate(items):
        at = _around(middle, RADIUS, i / len(items))
        if isinstance(item, Gap):
            sheet.more(item, NodePosition(*at, 20, 10), f"+{item.count:,}")
        else:
            sheet.node(item, NodePosition(*at, HALF, HALF))
    for link in sheet.scene.links:
        if link.a in sheet.places and link.b in sheet.places:
            a, b = sheet.places[link.a], sheet.places[link.b]
            sheet.link(link, [(a.x, a.y), (b.x, b.y)])
    for fault in sheet.faults:
        ends = [(p.x, p.y) for n in fault.nodes if (p := sheet.places.get(n)) is not None]
        if fault.link is None and ends:
            end = ends[-1] if len(ends) > 1 else _towards(ends[0], middle)
            sheet.lost(ends[0], end, fault.text)
    sheet.marks.caption(place.x, y + height - 12, sheet.scene.domain_title(domain))


def is_round(sheet: PictureSheet) -> bool:
    """Are there several domains, wired to each other with nothing above them?"""
    scene = sheet.scene
    return len(scene.domains) > 1 and not scene.above


def round_table(sheet: PictureSheet, top: float) -> float:
    """Draw the domains around a circle, what wires them on it and their chips outside."""
    middle = ((GUTTER + WIDTH - MARGIN) / 2, top + TABLE + OUT + 62)
    domains = chosen(list(sheet.scene.domains), 10, sheet.damaged_domains)
    share = 1 / len(domains)
    for i, domain in enumerate(domains):
        turn = i * share
        if isinstance(domain, Gap):
            x, y = _around(middle, TABLE + 20, turn)
            sheet.more(domain, NodePosition(x, y, 46, 13), f"… {domain.count:,} more")
        else:
            _chip_position(sheet, domain, middle, turn, share)
    for link in sheet.scene.links:
        if link.a in sheet.places and link.b in sheet.places:
            _chord(sheet, link, middle)
    return middle[1] + TABLE + OUT + 58


def _chip_position(
    sheet: PictureSheet, domain: Node, middle: tuple[float, float], turn: float, share: float
) -> None:
    """One domain: its switches on the circle, its chips beyond them."""
    scene = sheet.scene
    switches = [node for nodes in sheet.scene.inner_rows(domain).values() for node in nodes]
    chips = scene.domains[domain]
    posts = switches or chips
    items = chosen(posts, 4, sheet.damaged)
    part = share * 0.84 / len(items)
    start = turn - share * 0.42
    half = min(16.0, TABLE * 2 * pi * part * 0.4)
    for i, item in enumerate(items):
        at = start + part * (i + 0.5)
        x, y = _around(middle, TABLE, at)
        if isinstance(item, Gap):
            sheet.more(item, NodePosition(x, y, half, 9), f"+{item.count:,}")
            continue
        words = label(item) if not switches else ".".join(str(p) for p in _numbers(item))
        sheet.node(item, NodePosition(x, y, half, 10), words=words)
        if switches:
            _outer_nodes(sheet, item, middle, at, part)
    x, y = _around(middle, TABLE + OUT + 24, turn)
    words = f"domain {label(domain)}"
    sheet.marks.text(x, y + 4, words, size=12, colour=QUIET, anchor="middle", backed=True)


def _outer_nodes(
    sheet: PictureSheet, post: Node, middle: tuple[float, float], at: float, part: float
) -> None:
    """The chips of one switch, outside the circle."""
    G = sheet.scene.G
    mine = [n for n in G.pred[post] if G.nodes[n].get("kind") == "accelerator"]
    items = chosen(mine, 3, sheet.damaged)
    for i, chip in enumerate(items):
        x, y = _around(middle, TABLE + OUT - 14, at + part * ((i + 0.5) / len(items) - 0.5) * 0.9)
        if isinstance(chip, Gap):
            sheet.marks.caption(x, y + 4, f"+{chip.count}", 10)
        else:
            sheet.node(chip, NodePosition(x, y, 7, 7), words="")


def _chord(sheet: PictureSheet, link: Link, middle: tuple[float, float]) -> None:
    """A link across the circle, bent towards its middle the more the farther it goes."""
    a, b = sheet.places[link.a], sheet.places[link.b]
    far = [hypot(p.x - middle[0], p.y - middle[1]) for p in (a, b)]
    if abs(far[0] - far[1]) > 20:
        sheet.link(link, [(a.x, a.y), (b.x, b.y)])
        return
    pull = 0.12 if link.kind.tier == "scale_up" else 0.72
    x, y = (a.x + b.x) / 2, (a.y + b.y) / 2
    bent = (x + pull * (middle[0] - x), y + pull * (middle[1] - y))
    sheet.link(link, [(a.x, a.y), bent, (b.x, b.y)])


def _numbers(node: Node) -> Group:
    parts = node if isinstance(node, tuple) else (node,)
    return tuple(p for p in parts if not isinstance(p, str)) or parts


def _around(middle: tuple[float, float], radius: float, turn: float) -> tuple[float, float]:
    angle = 2 * pi * turn - pi / 2
    return middle[0] + radius * cos(angle), middle[1] + radius * sin(angle)


def _towards(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return a[0] + 0.3 * (b[0] - a[0]), a[1] + 0.3 * (b[1] - a[1])
