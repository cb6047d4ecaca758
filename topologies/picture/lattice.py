"""A domain whose chips have coordinates: a grid, or a box seen from the front and above.

Long sides are shortened to their first places and the last. The links that close a side into a
ring are drawn on every row of a plane, and on the faces that one sees of a box.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from topologies.fabric.fabric import Node
from topologies.picture.scene import CHIP, Gap, label, limit_items, side_name
from topologies.picture.sheet import NodePosition, PictureSheet
from topologies.picture.svg_canvas import MUTED_COLOUR, counted_text, truncate

SPACE, DEPTH, TITLE = 96.0, (0.24, -0.22), 46.0
Coord = tuple[int, ...]
Slots = tuple[dict[int, float], ...]
PagePoint = tuple[float, float]


@dataclass(frozen=True)
class View:
    """Projection of lattice coordinates to the page.

    `axes` are the sides drawn to the right, downwards and into the page; `slots` the position of
    each place that is drawn, along each side; `gaps` those after which some are left out.
    """

    axes: tuple[int, ...]
    slots: Slots
    sides: Coord
    origin: PagePoint
    step: float

    def point(self, coord: Coord) -> PagePoint:
        """Middle of a place."""
        at = [self.slots[axis][coord[axis]] for axis in self.axes]
        right, down, deep = (*at, 0.0, 0.0)[:3]
        x, y = self.origin
        return (x + self.step * (right + DEPTH[0] * deep), y + self.step * (DEPTH[1] * deep - down))

    def drawn(self, coord: Coord) -> bool:
        """Is this place drawn?"""
        return all(c in slots for c, slots in zip(coord, self.slots, strict=True))


def is_lattice(sheet: PictureSheet, domain: Node) -> bool:
    """Do the chips of the domain fill a box, at least half of it?"""
    places = [sheet.scene.G.nodes[c].get("coord") for c in sheet.scene.domains[domain]]
    coords = [tuple(c) for c in places if c is not None]
    if len(coords) < max(3, len(places)) or len({len(c) for c in coords}) != 1:
        return False
    if not all(isinstance(x, int) and x >= 0 for c in coords for x in c):
        return False
    sides = _sides(coords)
    return len(sides) <= 3 and len(coords) * 2 >= prod(sides) and len(set(coords)) == len(coords)


def lattice_height(sheet: PictureSheet, domain: Node, many: int) -> float:
    """Height of the box around the drawing."""
    width = 940 / many
    axes, slots, _ = _frame(sheet, domain)
    across, down = _extent(slots, axes)
    return min(width * 0.62, max(150.0, SPACE * down / max(across / 9, 1) + 70)) + TITLE


def lattice(sheet: PictureSheet, domain: Node, place: NodePosition) -> None:
    """Draw a domain into the box of a place."""
    x, y, width, height = place.box
    sheet.frame(place)
    sheet.places["box", domain] = place
    axes, slots, sides = _frame(sheet, domain)
    across, down = _extent(slots, axes)
    step = min((width - 90) / across, (height - TITLE - 50) / down, SPACE)
    lifted = (len(slots[axes[2]]) - 1) * -DEPTH[1] * step if len(axes) == 3 else 0.0
    span = _spans(slots, axes)
    left = x + (width - step * (span[0] + (span[2] * DEPTH[0] if len(axes) == 3 else 0))) / 2
    free = height - TITLE - step * (span[1] if len(axes) > 1 else 0) - lifted
    origin = (left, y + height - TITLE - max(free / 2, 24))
    view = View(axes, slots, sides, origin, step)
    # Links between chips that are drawn, and dots where a side is shortened.
    G = sheet.scene.G
    members = set(sheet.scene.domains[domain])
    for link in sheet.scene.links:
        if link.a in members and link.b in members:
            a, b = (G.nodes[n]["coord"] for n in (link.a, link.b))
            if view.drawn(a) and view.drawn(b):
                apart = [abs(p - q) for p, q in zip(a, b, strict=True)]
                p, q = view.point(a), view.point(b)
                if sum(apart) == 1:
                    sheet.link(link, [p, q], most=view.step / 20)
                elif sheet.scene.faulty(link) or _at_the_rim(view, a, b):
                    sheet.rings = True
                    sheet.link(link, _bowed(view, p, q), faint=True, most=view.step / 24)
    for a, b in _breaks(view):
        sheet.ground.line([view.point(a), view.point(b)], "#94a3b8", 1.4, dash="1.5 5")
    _chips(sheet, domain, view)
    _arrows(sheet, view, x + 26, y + height - TITLE + 4)
    chips = counted_text(len(sheet.scene.domains[domain]), CHIP)
    words = f"{chips}: {', '.join(f'{side} along {side_name(d)}' for d, side in enumerate(sides))}"
    if len(sheet.scene.domains) > 1:
        words = f"domain {label(domain)}: {chips}, {' x '.join(map(str, sides))}"
    sheet.marks.caption(place.x, y + height - 12, truncate(words, width - 16, 12))


def _arrows(sheet: PictureSheet, view: View, x: float, y: float) -> None:
    directions = ((30.0, 0.0), (0.0, -30.0), (24.0, -22.0))
    for axis, (dx, dy) in zip(view.axes, directions, strict=False):
        if view.sides[axis] > 1:
            sheet.marks.line([(x, y), (x + dx, y + dy)], MUTED_COLOUR, 1.4)
            sheet.marks.caption(x + dx * 1.3, y + dy * 1.25 + 4, side_name(axis))


def _sides(coords: list[Coord]) -> Coord:
    return tuple(max(c) + 1 for c in zip(*coords, strict=True))


def _frame(sheet: PictureSheet, domain: Node) -> tuple[Coord, Slots, Coord]:
    """Sides to the right, downwards and into the page, and the places drawn along each."""
    G = sheet.scene.G
    chips = sheet.scene.domains[domain]
    sides = _sides([G.nodes[c]["coord"] for c in chips])
    axes = tuple(sorted(range(len(sides)), key=lambda d: (-sides[d], d)))
    many = sum(side > 1 for side in sides)
    limit = {0: 2, 1: 16, 2: sheet.size.side, 3: min(4, sheet.size.side)}[many]
    if any(len(each.kind.axis) > 1 for each in sheet.scene.links):
        limit = max(limit, sheet.size.side)  # a twist shows where the ring comes back
    if len(sheet.scene.domains) > 1:
        limit = min(limit, 5)
    hurt = [G.nodes[n]["coord"] for n in chips if n in sheet.damaged]
    slots = []
    for d, side in enumerate(sides):
        must = {c[d] for c in hurt[:3]}
        at: dict[int, float] = {}
        position = 0.0
        for item in limit_items(range(side), limit, must):
            if not isinstance(item, Gap):
                at[item] = position
            position += 0.35 if isinstance(item, Gap) else 1
        slots.append(at)
    return axes, tuple(slots), sides


def _spans(slots: Slots, axes: tuple[int, ...]) -> list[float]:
    return [max(slots[axis].values()) for axis in axes]


def _extent(slots: Slots, axes: Coord) -> tuple[float, float]:
    span = [*_spans(slots, axes), 0.0, 0.0]
    return max(span[0] + DEPTH[0] * span[2], 1.0), max(span[1] - DEPTH[1] * span[2], 0.6)


def _chips(sheet: PictureSheet, domain: Node, view: View) -> None:
    G = sheet.scene.G
    chips = {G.nodes[c]["coord"]: c for c in sheet.scene.domains[domain]}
    deep = view.axes[2] if len(view.axes) == 3 else None
    half = min(13.0, view.step * (0.085 if deep is not None else 0.24))
    order = sorted(chips, key=lambda c: -c[deep] if deep is not None else 0)
    for coord in order:
        if view.drawn(coord):
            x, y = view.point(coord)
            words = ".".join(map(str, coord)) if half > 11 and deep is None else ""
            sheet.node(chips[coord], NodePosition(x, y, half, half), words=words)
    for fault in sheet.faults:
        if fault.link is None and len(fault.nodes) == 2:
            ends = [c for c, chip in chips.items() if chip in fault.nodes]
            if len(ends) == 2 and all(view.drawn(c) for c in ends):
                sheet.lost(view.point(ends[0]), view.point(ends[1]), fault.text)


def _at_the_rim(view: View, a: Coord, b: Coord) -> bool:
    """Is this closing link one of those that are drawn: of a box, on its outline?"""
    if len(view.axes) < 3:
        return True
    last = [side - 1 for side in view.sides]
    right, up, deep = view.axes
    for d, i, j in ((right, up, deep), (up, right, deep), (deep, right, up)):
        rims = {(0, 0), (last[i], last[j])} if d != deep else {(0, last[j]), (last[i], 0)}
        if abs(a[d] - b[d]) == last[d] > 1 and rims & {(a[i], a[j]), (b[i], b[j])}:
            return True
    return False


def _bowed(view: View, p: PagePoint, q: PagePoint) -> list[PagePoint]:
    """Curve from `p` to `q` around chips on the straight line; bowed outwards on a box."""
    length = max(((q[0] - p[0]) ** 2 + (q[1] - p[1]) ** 2) ** 0.5, 1.0)
    across = ((q[1] - p[1]) / length, -(q[0] - p[0]) / length)
    middle = (p[0] + q[0]) / 2, (p[1] + q[1]) / 2
    if len(view.axes) < 3:
        bow = 0.5 * view.step if len(view.axes) == 2 else 0.9 * view.step
        sign = 1.0 if across[1] < 0 or (across[1] == 0 and across[0] > 0) else -1.0
    else:
        bow = 0.3 * view.step + min(0.08 * length, 0.25 * view.step)
        low, high = (view.point(tuple(map(end, view.slots))) for end in (min, max))
        x, y = (low[0] + high[0]) / 2, (low[1] + high[1]) / 2
        out = across[0] * (middle[0] - x) + across[1] * (middle[1] - y)
        sign = 1.0 if out > 0 else -1.0
    return [p, (middle[0] + sign * across[0] * bow, middle[1] + sign * across[1] * bow), q]


def _breaks(view: View) -> Iterator[tuple[Coord, Coord]]:
    for d, slots in enumerate(view.slots):
        at = list(slots)
        cuts = [(i, j) for i, j in pairwise(at) if j - i > 1]
        rest = [list(s) if e != d else [0] for e, s in enumerate(view.slots)]
        for (i, j), place in product(cuts, product(*rest)):
            yield (*place[:d], i, *place[d + 1 :]), (*place[:d], j, *place[d + 1 :])
