"""A scale-up domain as a box: its chips in a row, its own switches below them."""

from typing import Any

from topologies.fabric.fabric import Node
from topologies.picture.amounts import counted_text
from topologies.picture.canvas import QUIET, fitted
from topologies.picture.canvas_state import NodePosition, PictureSheet
from topologies.picture.scene import CHIP, Gap, chosen, label, role, shown

MESHED = 60  # links between chips and switches of a domain that an eye can follow
STEP, CHIP_SIZE, PAD, TITLE, NICS = 92.0, 30.0, 16.0, 30.0, 52.0


def domain_box_height(sheet: PictureSheet, domain: Node) -> float:
    """Height of the box."""
    rows = inner_rows(sheet, domain)
    cards = NICS if rows.pop("nic", None) else 0.0
    arcs = 64.0 if not rows and len(sheet.scene.domains[domain]) > 1 else 0.0
    return PAD + cards + CHIP_SIZE + STEP * len(rows) + arcs + TITLE


def inner_rows(sheet: PictureSheet, domain: Node) -> dict[Node, list[Node]]:
    """The other nodes of a domain: network cards, then switches and hosts by level."""
    rows: dict[Node, list[Node]] = {}
    for node, where in sheet.scene.inside.items():
        if where == domain:
            nic = sheet.scene.G.nodes[node].get("kind") == "nic"
            rows.setdefault("nic" if nic else sheet.scene.level[node], []).append(node)
    return dict(sorted(rows.items(), key=lambda pair: str(pair[0])))


def domain_box(
    sheet: PictureSheet, domain: Node, x: float, y: float, width: float, height: float, chips: int
) -> None:
    """Draw a domain of at most `chips` chips into the box whose upper left corner is given."""
    members = sheet.scene.domains[domain]
    rows = inner_rows(sheet, domain)
    cards = rows.pop("nic", [])
    sheet.ground.box(x, y, width, height, fill="#f8fafc", colour="#94a3b8", round_=8)
    line = y + PAD + (NICS if cards else 0.0) + CHIP_SIZE / 2
    most = max(2, min(sheet.size.row, int(width / 60)))
    chips = min(chips, len(members))
    while sum(min(len(nodes), most) for nodes in rows.values()) * chips > MESHED and chips > 6:
        chips, most = chips - 2, max(3, most - 1)
    picked = chosen(members, chips, sheet.damaged)
    row(sheet, picked, x, width, line, CHIP_SIZE)
    if cards:
        seen = [node for node in cards if _beside(sheet, node, set(shown(picked)))]
        row(sheet, chosen(cards, chips, {*seen, *sheet.damaged}), x, width, y + PAD + 11, 22.0)
    for depth, nodes in enumerate(rows.values(), start=1):
        row(sheet, chosen(nodes, most, sheet.damaged), x, width, line + STEP * depth, 24.0)
    room, foot = width - 16, y + height - 10
    words = domain_title(sheet, domain)
    words = fitted(words if room > 80 else label(domain), room, 12)
    sheet.marks.text(x + width / 2, foot, words, size=12, colour=QUIET, anchor="middle")


def domain_title(sheet: PictureSheet, domain: Node) -> str:
    """The domain and what is in it."""
    chips = counted_text(len(sheet.scene.domains[domain]), CHIP)
    inside = [n for n, where in sheet.scene.inside.items() if where == domain]
    kinds: dict[str, int] = {}
    for node in inside:
        name = role(sheet.scene.G, node)
        kinds[name] = kinds.get(name, 0) + 1
    others = "".join(f", {counted_text(many, name)}" for name, many in kinds.items())
    if len(sheet.scene.domains) == 1:
        return f"one scale-up domain: {chips}{others}"
    return f"domain {label(domain)}: {chips}{others}"


def row(
    sheet: PictureSheet, items: list[Any], x: float, width: float, y: float, height: float
) -> None:
    """Draw nodes side by side, a gap as how many more there are."""
    x, width = x + 6, width - 12
    slot = width / max(len(items), 1)
    chip = bool(shown(items)) and role(sheet.scene.G, shown(items)[0]) == CHIP
    half = min(height / 2 if chip else 62.0, slot / 2 - (2 if chip else 5))
    for i, item in enumerate(items):
        at = x + slot * (i + 0.5)
        if isinstance(item, Gap):
            words = f"+{item.count:,}" if half < 30 else f"… {item.count:,} more"
            place = NodePosition(at, y, max(half, min(slot / 2 - 1, 20)), height / 2 - 3)
            sheet.more(item, place, words)
        else:
            name = label(item[1:]) if _within(sheet, item) else None
            sheet.node(item, NodePosition(at, y, half, height / 2), words=name)


def _within(sheet: PictureSheet, node: Node) -> bool:
    """Does the node's name begin with its domain, which the box around it says?"""
    if not isinstance(node, tuple) or len(node) < 2 or node not in sheet.scene.inside:
        return False
    return bool(node[0] == sheet.scene.inside[node])


def _beside(sheet: PictureSheet, node: Node, chips: set[Node]) -> bool:
    G = sheet.scene.G
    return any(other in chips for other in (*G.succ[node], *G.pred[node]))
