"""The network format of ASTRA-sim's analytical backend: what each dimension of a box of chips is.

    topology: [ Ring, FullyConnected, Switch ]
    npus_count: [ 2, 8, 4 ]
    bandwidth: [ 200.0, 100.0, 50.0 ]
    latency: [ 50.0, 500.0, 2000.0 ]

Bandwidths are per link and one way, latencies per link and in ns. What is called GB/s there is
2**30 byte/s (common/NetworkFunction.cpp of astra-sim/astra-network-analytical at 599a047). The
dimension that is named first counts fastest: it is the last coordinate of a chip.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from math import prod
from typing import Any

from topologies.fabric.errors import TopologyError, meant
from topologies.fabric.fabric import ACCELERATOR, SWITCH, Fabric, fabric, link
from topologies.fabric.limits import count_fault, latency_fault, rate_fault, shown
from topologies.fabric.validation import check
from topologies.files.arc_counts import MOST_ARCS
from topologies.files.boxes import BLOCKS, FULL, RING, Dimension, dimensions
from topologies.files.located import Document, Located

__all__ = ["fabric_of", "is_astra", "text_of"]

KEYS = ("topology", "npus_count", "bandwidth", "latency")
GIGABYTE = 2**30  # byte
GREATEST = 1e15  # of the figures in a file


def is_astra(root: Located) -> bool:
    """Whether a document is in this format, sound or not."""
    return isinstance(root.value, dict) and bool({"topology", "npus_count"} & root.value.keys())


def fabric_of(found: Document, where: str, name: str) -> Fabric:
    """The fabric of a document in this format, called `name`.

    A chip is its coordinates, a switch the coordinates of its chips with the word `switch` for
    the one in which they differ. Chips relay unless one switch or mesh joins them all.

    Raises
    ------
    TopologyError
        Listing every problem with its line and column.
    """
    box = [] if found.root is None else _dimensions(found.root, found)
    if found.faults:
        raise TopologyError(where, found.problems)
    G = fabric(name, orbits=True)
    relays = len(box) > 1 or box[0].block == RING
    for place in product(*(range(dimension.side) for dimension in box)):
        G.add_node(place, kind=ACCELERATOR, forward=relays, domain=0, coord=place, orbit="chip")
    for d, dimension in enumerate(box):
        for line in product(*(range(1 if i == d else o.side) for i, o in enumerate(box))):
            _join(G, [(*line[:d], i, *line[d + 1 :]) for i in range(dimension.side)], d, dimension)
    return check(G)


def text_of(G: Fabric) -> str:
    """`G` in this format; names, tiers and domains have no place there.

    Raises
    ------
    TopologyError
        Saying what of the fabric the format cannot express.
    """
    # The format counts the first dimension fastest, coordinates the last.
    try:
        box = dimensions(G)[::-1]
    except TopologyError as error:
        where = f"fabric {G.graph.get('name')!r}, for ASTRA-sim"
        raise TopologyError(where, error.problems) from None
    columns = {
        "topology": [dimension.block for dimension in box],
        "npus_count": [str(dimension.side) for dimension in box],
        "bandwidth": [repr(float(dimension.bandwidth) / GIGABYTE) for dimension in box],
        "latency": [repr(_shifted(dimension.latency, 9)) for dimension in box],
    }
    units = {"bandwidth": "  # GB/s of 2**30 byte", "latency": "  # ns"}
    lines = (f"{key}: [ {', '.join(v)} ]{units.get(key, '')}\n" for key, v in columns.items())
    return "".join(lines)


def _join(G: Fabric, chips: list[Any], d: int, dimension: Dimension) -> None:
    """Join the chips of one line along coordinate `d`."""
    figures: dict[str, Any] = {"bandwidth": dimension.bandwidth, "latency": dimension.latency}
    if dimension.block == RING:
        # Two chips are one link apart, whichever way round.
        for i in range(len(chips) if len(chips) > 2 else 1):
            link(G, chips[i], chips[(i + 1) % len(chips)], orbit=f"ring {d}", **figures)
    elif dimension.block == FULL:
        for i, chip in enumerate(chips):
            for other in chips[:i]:
                link(G, other, chip, orbit=f"pair {d}", **figures)
    else:
        centre = (*chips[0][:d], "switch", *chips[0][d + 1 :])
        G.add_node(centre, kind=SWITCH, forward=True, orbit=f"switch {d}")
        for chip in chips:
            link(G, chip, centre, orbit=(f"up {d}", f"down {d}"), **figures)


def _dimensions(root: Located, found: Document) -> list[Dimension]:
    """The dimensions of a document, slowest first; what is wrong with them is noted."""
    for key in root.value:
        if key not in KEYS:
            found.fault(root.keys[key], f"unknown key {shown(key)}; {meant(key, KEYS)}")
    lists: dict[str, list[Located]] = {}
    for key in KEYS:
        node = root.value.get(key)
        if node is None:
            found.fault(root, f"{key} is missing; ASTRA-sim wants {', '.join(KEYS)}")
        elif not isinstance(node.value, list) or not node.value:
            found.fault(node, f"{key} is {shown(node.plain)}; a list was expected")
        else:
            lists[key] = node.value
    many = len(lists.get("topology", ()))
    for key, items in lists.items():
        if many and len(items) != many:
            at = root.value[key]
            found.fault(at, f"{key} has {len(items)} entries, topology has {many}")
    for key, items in lists.items():
        for i, item in enumerate(items):
            if (fault := _fault(key, item.plain)) is not None:
                found.fault(item, f"{key}[{i}] {fault}")
    if found.faults:
        return []
    columns = [[item.value for item in lists[key]] for key in KEYS]
    box = [
        Dimension(block, side, float(rate) * GIGABYTE, _shifted(late, -9))
        for block, side, rate, late in zip(*columns, strict=True)
    ]
    each = sum(dimension.side - 1 if dimension.block == FULL else 2 for dimension in box)
    if (arcs := prod(dimension.side for dimension in box) * each) > MOST_ARCS:
        found.fault(root, f"up to {arcs} arcs; at most {MOST_ARCS} are made")
    return box[::-1]


def _fault(key: str, value: Any) -> str | None:
    """Why `value` is no entry of the list `key`."""
    if key == "topology":
        return None if value in BLOCKS else f"is {shown(value)}; {meant(value, BLOCKS)}"
    if key == "npus_count":
        fault = count_fault(value)
        return "is 1; a dimension joins at least 2 chips" if fault is None and value == 1 else fault
    unit = "GB/s" if key == "bandwidth" else "ns"
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < GREATEST:
        return f"is {shown(value)}; a number was expected, in {unit}"
    if key == "bandwidth":
        return rate_fault(float(value) * GIGABYTE)
    return latency_fault(_shifted(value, -9))


def _shifted(value: float, places: int) -> float:
    """`value` with its decimal point moved, as if it had been written so."""
    return float(Decimal(repr(float(value))).scaleb(places))
