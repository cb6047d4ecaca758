"""A picture of a fabric as SVG: domains, their interconnect, link rates, degraded links.

Plain SVG text, the same for the same fabric. Equal things are shown a few times and counted, so
that a pod of thousands of chips is drawn with a few hundred marks.
"""

from collections import Counter

from topologies.fabric.fabric import ACCELERATOR, Fabric, accelerators
from topologies.fabric.limits import TopologyError
from topologies.picture.degraded_links import find_link_faults
from topologies.picture.domain_rows import layers, round_table
from topologies.picture.scene import DETAIL_LEVELS, Scene, read
from topologies.picture.sheet import MARGIN, WIDTH, PictureSheet, classes, legend
from topologies.picture.svg_canvas import INK, MUTED_COLOUR, Canvas, counted_text, truncate

__all__ = ["svg"]

MAX_MARKS = 700
TOP = 84.0


def svg(G: Fabric) -> str:
    """`G` as an SVG document.

    Racks, nodes and other scale-up domains are boxes with their chips and their own switches;
    leaves, rails, spines stand above them by their distance; a torus is a grid or a box seen from
    above; domains wired to each other directly sit around a circle. Thickness is bandwidth, colour
    the tier; a link that is slower than its like or that is not there is red. Raises TopologyError
    when there is no accelerator to draw.

    >>> from topologies import switch
    >>> svg(switch(8, up=450e9)).splitlines()[2]
    '<title id="title">8 chips on a switch</title>'
    """
    if not accelerators(G):
        raise TopologyError(f"fabric {G.graph.get('name')!r}", "no accelerator to draw")
    scene = read(G)
    faults = find_link_faults(scene)
    # Several domains that are wired to each other with nothing above them sit around a circle.
    draw = round_table if len(scene.domains) > 1 and not scene.above else layers
    for size in DETAIL_LEVELS:
        sheet = PictureSheet(scene, faults, size)
        bottom = draw(sheet, TOP)
        if sum(len(c.marks) for c in (sheet.ground, sheet.wires, sheet.marks)) <= MAX_MARKS:
            break
    height = legend(sheet, classes(sheet, TOP - 6, bottom) + 22)
    title = str(G.graph.get("name") or "a fabric")
    description = _description(scene, len(faults))
    page = Canvas([*sheet.ground.marks, *sheet.wires.marks])
    page.text(MARGIN, 36, truncate(title, WIDTH - 2 * MARGIN, 20), size=20, bold=True, colour=INK)
    page.text(
        MARGIN, 58, truncate(description, WIDTH - 2 * MARGIN, 12.5), size=12.5, colour=MUTED_COLOUR
    )
    page.marks += sheet.marks.marks
    return page.document(WIDTH, height + 14, title, description)


def _description(scene: Scene, faults: int) -> str:
    """The fabric in a line."""
    chips = sum(map(len, scene.domains.values()))
    domains = len(scene.domains)
    words = [f"{counted_text(chips, 'chip')} in {counted_text(domains, 'scale-up domain')}"]
    kinds = Counter(str(kind) for _, kind in scene.G.nodes(data="kind") if kind != ACCELERATOR)
    words += [counted_text(many, kind) for kind, many in kinds.items()]
    words.append(counted_text(len(scene.links), "link"))
    if faults:
        words.append(counted_text(faults, "fault"))
    as_of = scene.G.graph.get("as_of")
    return ", ".join(words) + (f"; figures as of {as_of}" if as_of else "")
