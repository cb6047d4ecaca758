"""The network format of ASTRA-sim's analytical backend: a box of chips, dimension by dimension.

    topology: [ Ring, FullyConnected, Switch ]
    npus_count: [ 2, 8, 4 ]
    bandwidth: [ 200.0, 100.0, 50.0 ]
    latency: [ 50.0, 500.0, 2000.0 ]

Bandwidths are per link and one way, latencies per link and in ns. What is called GB/s there is
2**30 byte/s (common/NetworkFunction.cpp of astra-sim/astra-network-analytical at 599a047). The
dimension that is named first counts fastest: it is the last coordinate of a chip.

A fabric can be written if every node and arc has its place in a box of chips whose lines are each
joined by a ring, mesh or switch; what has none is the reason why not.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import product
from math import prod

from topologies.fabric import fabric, limits
from topologies.fabric.fabric import Arc, Fabric, Node
from topologies.fabric.limits import TopologyError, quote, suggest
from topologies.fabric.soundness import check
from topologies.files.arc_counts import MAX_ARCS, TOO_MANY
from topologies.files.located_yaml import AtLocation, YamlDocument

RING, BLOCK_FULLY_CONNECTED, HUB = "Ring", "FullyConnected", "Switch"
BLOCKS = (RING, BLOCK_FULLY_CONNECTED, HUB)

Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class AstraDimension:
    """One coordinate of a box: how its lines are joined, chips on each, and figures of a link."""

    block: str
    side: int
    bandwidth: float  # of a link in one direction [byte/s]
    latency: float  # of a link [s]


def dimensions(G: Fabric) -> list[AstraDimension]:
    """The dimensions of `G`, in the order of the coordinates; those of a single chip left out.

    Coordinates are the ids of the chips if they are the points of a box, else their numbers in the
    order of the nodes. Raises TopologyError, naming what has no place in a box of rings, meshes and
    switches.
    """
    where = f"fabric {G.graph.get('name')!r}, in dimensions"
    places, sides = _places(fabric.accelerators(G))
    if not sides:
        raise TopologyError(where, "a single chip has no dimension")
    problems: list[str] = []
    arcs = _by_dimension(G, places, sides, problems)
    if problems:
        raise TopologyError(where, problems[:10])
    box = [_dimension(G, arcs[d], d, sides, places, problems) for d in range(len(sides))]
    if not problems:
        problems += _relay_faults(G, box)
    if problems:
        raise TopologyError(where, problems)
    return box


def _places(chips: Sequence[Node]) -> tuple[dict[Node, Coordinates], list[int]]:
    """The coordinates of each chip, and the sides that are longer than one."""
    coords = [chip for chip in chips if isinstance(chip, tuple) and chip]
    same = len(coords) == len(chips) and len(set(map(len, coords))) == 1
    if same and all(isinstance(x, int) for c in coords for x in c):
        values = [sorted(set(column)) for column in zip(*coords, strict=True)]
        if prod(map(len, values)) == len(chips):
            long = [(d, v) for d, v in enumerate(values) if len(v) > 1]
            places: dict[Node, Coordinates] = {
                c: tuple(bisect_left(v, c[d]) for d, v in long) for c in coords
            }
            return places, [len(v) for _, v in long]
    return {chip: (i,) for i, chip in enumerate(chips)}, [len(chips)] if len(chips) > 1 else []


def _by_dimension(
    G: Fabric, places: dict[Node, Coordinates], sides: list[int], problems: list[str]
) -> list[list[Arc]]:
    """Arcs of each dimension; arcs and nodes along no dimension are added to `problems`."""
    arcs: list[list[Arc]] = [[] for _ in sides]
    for node, data in G.nodes(data=True):
        if data["kind"] == fabric.ACCELERATOR:
            continue
        d = _hub_dimension(G, node, places, sides)
        if isinstance(d, str):
            problems.append(f"node {node!r}: {d}")
        else:
            arcs[d] += [*G.in_edges(node), *G.out_edges(node)]
    for u, v in G.edges:
        if u in places and v in places:
            differ = [d for d in range(len(sides)) if places[u][d] != places[v][d]]
            if len(differ) == 1:
                arcs[differ[0]].append((u, v))
            else:
                problems.append(f"arc {u!r} -> {v!r}: its ends differ in {len(differ)} coordinates")
    return arcs


def _hub_dimension(
    G: Fabric, node: Node, places: dict[Node, Coordinates], sides: list[int]
) -> int | str:
    """Dimension of the line of chips that a switch joins, or the reason why it joins no line."""
    data = G.nodes[node]
    if data["kind"] != fabric.SWITCH:
        return f"it is a {data['kind']}; chips and switches are all that a box has"
    if data.get("in_network_reduce"):
        return "it adds what passes through it, which no switch of a box does"
    if set(G.succ[node]) != set(G.pred[node]):
        return "its links go one way"
    ends = list(G.succ[node])
    if any(end not in places for end in ends):
        return "it is linked to other nodes than chips"
    differ = [d for d in range(len(sides)) if len({places[end][d] for end in ends}) > 1]
    if len(differ) != 1 or len(ends) != sides[differ[0]]:
        return f"it joins {len(ends)} chips, which are not one whole line of the box of {sides}"
    return differ[0]


def _dimension(
    G: Fabric,
    arcs: list[Arc],
    d: int,
    sides: list[int],
    places: dict[Node, Coordinates],
    problems: list[str],
) -> AstraDimension:
    """The network dimension that joins the chips along coordinate `d`."""
    side, lines = sides[d], prod(sides) // sides[d]
    hubs = [node for node in {u for u, _ in arcs} if node not in places]
    direct = [(u, v) for u, v in arcs if u in places and v in places]
    steps = {(places[v][d] - places[u][d]) % side for u, v in direct}
    relays = any(G.nodes[chip]["forward"] for chip in places)
    block = HUB
    if hubs:
        seen = {min((*places[v][:d], *places[v][d + 1 :]) for v in G.succ[hub]) for hub in hubs}
        if direct or len(hubs) != lines or len(seen) != lines:
            problems.append(
                f"coordinate {d}: one switch for each of {lines} lines was expected, and no "
                f"other links; got {len(hubs)} switches and {len(direct)} arcs between chips"
            )
    elif len(direct) == lines * side * (side - 1) and (side != 3 or not relays):
        block = BLOCK_FULLY_CONNECTED
    elif side > 2 and steps == {1, side - 1} and len(direct) == lines * 2 * side:
        block = RING
    else:
        problems.append(
            f"coordinate {d}: {len(direct)} arcs join the chips of {lines} lines of {side}, "
            "which is neither a ring nor each to each"
        )
    figures = {}
    for name in ("bandwidth", "latency"):
        values = defaultdict(list)
        for u, v in arcs:
            values[float(G.edges[u, v][name])].append((u, v))
        figures[name] = next(iter(values), 1.0)
        if len(values) > 1:
            (low, (first, *_)), (high, (second, *_)), *_ = values.items()
            problems.append(
                f"coordinate {d}: one {name} was expected, not {low:g} of {first[0]!r} -> "
                f"{first[1]!r} and {high:g} of {second[0]!r} -> {second[1]!r}"
            )
    return AstraDimension(block, side, figures["bandwidth"], figures["latency"])


def _relay_faults(G: Fabric, box: list[AstraDimension]) -> list[str]:
    """Faults where chips relay otherwise than a format of dimensions can say."""
    chips = fabric.accelerators(G)
    if len(chips) <= 2:
        return []
    wanted = len(box) > 1 or box[0].block == RING
    what = "of several dimensions or a ring" if wanted else "on one switch or one mesh"
    strange = [chip for chip in chips if G.nodes[chip]["forward"] != wanted]
    if not strange:
        return []
    does = "relays" if wanted else "does not relay"
    return [
        f"node {strange[0]!r}: a chip {what} {does} the traffic of others, and this one differs"
    ]


KEYS = ("topology", "npus_count", "bandwidth", "latency")
GIGABYTE = 2**30  # byte
MAX_VALUE = 1e15  # of the figures in a file


def is_astra(root: AtLocation) -> bool:
    """True if a document is in this format, sound or not."""
    return isinstance(root.value, dict) and bool({"topology", "npus_count"} & root.value.keys())


def parse_fabric(document: YamlDocument, where: str, name: str) -> Fabric:
    """The fabric of a document in this format, called `name`.

    A chip is its coordinates, a switch the coordinates of its chips with the word `switch` for the
    one in which they differ. Chips relay unless one switch or mesh joins them all. Raises
    TopologyError, listing every problem with its line and column.
    """
    box = [] if document.root is None else _dimensions(document.root, document)
    if document.faults:
        raise TopologyError(where, document.problems)
    G = fabric.fabric(name, orbits=True)
    relays = len(box) > 1 or box[0].block == RING
    for place in product(*(range(dimension.side) for dimension in box)):
        G.add_node(
            place, kind=fabric.ACCELERATOR, forward=relays, domain=0, coord=place, orbit="chip"
        )
    for d, dimension in enumerate(box):
        for line in product(*(range(1 if i == d else o.side) for i, o in enumerate(box))):
            # Join the chips of one line along coordinate `d`.
            chips = [(*line[:d], i, *line[d + 1 :]) for i in range(dimension.side)]
            join = partial(fabric.link, G, bandwidth=dimension.bandwidth, latency=dimension.latency)
            if dimension.block == RING:
                # A ring of two chips has a single link.
                for k in range(len(chips) if len(chips) > 2 else 1):
                    join(chips[k], chips[(k + 1) % len(chips)], orbit=f"ring {d}")
            elif dimension.block == BLOCK_FULLY_CONNECTED:
                for k, chip in enumerate(chips):
                    for peer in chips[:k]:
                        join(peer, chip, orbit=f"pair {d}")
            else:
                centre = (*chips[0][:d], "switch", *chips[0][d + 1 :])
                G.add_node(centre, kind=fabric.SWITCH, forward=True, orbit=f"switch {d}")
                for chip in chips:
                    join(chip, centre, orbit=(f"up {d}", f"down {d}"))
    return check(G)


def format_fabric(G: Fabric) -> str:
    """`G` in this format; names, tiers and domains have no place there.

    Raises TopologyError, saying what of the fabric the format cannot express.
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
    return "".join(f"{k}: [ {', '.join(v)} ]{units.get(k, '')}\n" for k, v in columns.items())


def _dimensions(root: AtLocation, document: YamlDocument) -> list[AstraDimension]:
    """Dimensions of a document, slowest first; errors become faults of the document."""
    for key in root.value:
        if key not in KEYS:
            document.fault(root.keys[key], f"unknown key {quote(key)}; {suggest(key, KEYS)}")
    lists: dict[str, list[AtLocation]] = {}
    for key in KEYS:
        node = root.value.get(key)
        if node is None:
            document.fault(root, f"{key} is missing; ASTRA-sim wants {', '.join(KEYS)}")
        elif not isinstance(node.value, list) or not node.value:
            document.fault(node, f"{key} is {quote(node.plain)}; a list was expected")
        else:
            lists[key] = node.value
    many = len(lists.get("topology", ()))
    for key, items in lists.items():
        if many and len(items) != many:
            at = root.value[key]
            document.fault(at, f"{key} has {len(items)} entries, topology has {many}")
        for i, item in enumerate(items):
            if (fault := _fault(key, item.plain)) is not None:
                document.fault(item, f"{key}[{i}] {fault}")
    if document.faults:
        return []
    columns = [[item.value for item in lists[key]] for key in KEYS]
    box = [
        AstraDimension(block, side, float(rate) * GIGABYTE, _shifted(late, -9))
        for block, side, rate, late in zip(*columns, strict=True)
    ]
    links = sum(
        dimension.side - 1 if dimension.block == BLOCK_FULLY_CONNECTED else 2 for dimension in box
    )
    if (arcs := prod(dimension.side for dimension in box) * links) > MAX_ARCS:
        document.fault(root, f"up to {arcs:,} arcs; {TOO_MANY}")
    return box[::-1]


def _fault(key: str, value: object) -> str | None:
    """Reason why `value` is not a valid entry of the list `key`; None if it is valid."""
    if key == "topology":
        return None if value in BLOCKS else f"is {quote(value)}; {suggest(value, BLOCKS)}"
    if key == "npus_count":
        fault = limits.count_fault(value)
        return "is 1; a dimension joins at least 2 chips" if fault is None and value == 1 else fault
    unit = "GB/s" if key == "bandwidth" else "ns"
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_VALUE:
        return f"is {quote(value)}; a number was expected, in {unit}"
    if key == "bandwidth":
        return limits.rate_fault(float(value) * GIGABYTE)
    return limits.latency_fault(_shifted(value, -9))


def _shifted(value: float, places: int) -> float:
    return float(Decimal(repr(float(value))).scaleb(places))
