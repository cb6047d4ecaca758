"""Validation of a fabric: every fault, each with its place, in one error."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain, islice, product
from numbers import Integral

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from topologies.fabric import fabric, limits
from topologies.fabric.fabric import Arc, Attributes, Fabric, Node
from topologies.fabric.limits import TopologyError, quote, suggest

MAX_NAMED = 16  # islands listed in a message, by a member each
PLAIN_TYPES = {bool, int, float, str}  # types whose equal values have equal faults
SPREAD = 1e12  # max ratio of bandwidths that the flow solver resolves


def check(G: Fabric) -> Fabric:
    """`G` itself, if it is sound.

    Raises TopologyError, listing every problem: attributes unknown, missing or of the wrong kind;
    ends of arcs that are not declared; self-loops; accelerators that cannot reach each other,
    either because no arcs lead there or because those in between do not forward; bandwidths that
    differ by more than `SPREAD`.
    """
    problems = [*_of_graph(G), *_of_nodes(G), *_of_arcs(G)]
    # Reachability of a graph with undeclared ends or bad kinds would only repeat those faults.
    if not problems:
        problems = [*_reach_faults(G), *_spread_faults(G)]
    if problems:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", problems)
    return G


def suspicions(G: Fabric) -> list[str]:
    """Warnings about bandwidths below 1 MB/s or above 100 TB/s, most likely unit slips.

    One line for all arcs of a bandwidth.
    """
    alike: dict[str, list[str]] = {}
    for u, v, arc in G.edges(data=True):
        sound = limits.rate_fault(arc.get("bandwidth")) is None
        if sound and (odd := limits.rate_warning(arc["bandwidth"])) is not None:
            alike.setdefault(odd, []).append(f"arc {u!r} -> {v!r}")
    return [
        f"{arcs[0]}{f' and {len(arcs) - 1} more' if len(arcs) > 1 else ''}: bandwidth {odd}"
        for odd, arcs in alike.items()
    ]


def _of_graph(G: Fabric) -> Iterator[str]:
    if not isinstance(G, nx.DiGraph) or G.is_multigraph():
        raise TopologyError("check", f"a networkx.DiGraph was expected, not {type(G).__name__}")
    yield from (f"fabric: {fault}" for fault in graph_faults(G.graph))
    if not fabric.accelerators(G):
        yield f"fabric: no node of kind {fabric.ACCELERATOR!r}"


def node_faults(data: Attributes, *, orbits: bool = False) -> Iterator[str]:
    """Faults of the attributes of one node; with `orbits` an orbit is required."""
    yield from _unknown(data, fabric.NODE_ATTRIBUTES)
    if data.get("kind") not in fabric.NODE_KINDS:
        yield (
            f"kind is {quote(data.get('kind'))}; one of {', '.join(fabric.NODE_KINDS)} was expected"
        )
    if not isinstance(data.get("forward"), bool):
        yield (
            f"forward is {quote(data.get('forward'))}; True or False was expected: "
            "may it relay the traffic of others?"
        )
    if data.get("kind") == fabric.ACCELERATOR and data.get("domain") is None:
        yield "no domain; every accelerator names its scale-up domain"
    reduces = data.get("in_network_reduce", False)
    if not isinstance(reduces, bool):
        yield f"in_network_reduce is {quote(reduces)}; True or False was expected"
    if "coord" in data and not _is_place(data["coord"]):
        yield f"coord is {quote(data['coord'])}; a tuple of whole numbers was expected"
    for name in ("domain", "orbit"):
        if data.get(name) is not None and not _is_label(data[name]):
            yield f"{name} is {quote(data[name])}; a name, a whole number or a tuple was expected"
    if orbits and data.get("orbit") is None:
        yield "no orbit, though the fabric declares its orbits"


def arc_faults(data: Attributes, *, orbits: bool = False) -> Iterator[str]:
    """Faults of the attributes of one arc; with `orbits` an orbit is required."""
    yield from _unknown(data, fabric.ARC_ATTRIBUTES)
    for name, fault in (("bandwidth", limits.rate_fault), ("latency", limits.latency_fault)):
        if name not in data:
            yield f"no {name}"
        elif (wrong := fault(data[name])) is not None:
            yield f"{name} {wrong}"
    if data.get("tier") not in fabric.TIERS:
        yield f"tier is {quote(data.get('tier'))}; one of {', '.join(fabric.TIERS)} was expected"
    if (wrong := limits.count_fault(data.get("count", 1))) is not None:
        yield f"count {wrong}"
    if data.get("orbit") is not None and not _is_label(data["orbit"]):
        yield f"orbit is {quote(data['orbit'])}; a name, a whole number or a tuple was expected"
    if orbits and data.get("orbit") is None:
        yield "no orbit, though the fabric declares its orbits"


def graph_faults(data: Attributes) -> Iterator[str]:
    """Faults of the attributes of the graph."""
    yield from _unknown(data, fabric.GRAPH_ATTRIBUTES)
    for name in ("name", "source", "as_of"):
        text = data.get(name)
        if text is not None and not (isinstance(text, str) and text.isprintable()):
            yield f"{name} is {quote(text)}; a line of text was expected"
    current = fabric.SCHEMA_VERSION
    version = data.get("schema_version", current)
    if isinstance(version, bool) or version != current:
        yield f"schema_version is {quote(version)}; {current} is the one that is read"
    if not isinstance(data.get("orbits", False), bool):
        yield f"orbits is {quote(data['orbits'])}; True or False was expected"


def _of_nodes(G: Fabric) -> Iterator[str]:
    orbits = bool(G.graph.get("orbits"))
    for node, data in G.nodes(data=True):
        place = f"node {node!r}"
        if not data:
            ends = [*G.pred[node], *G.succ[node]]
            yield (
                f"{place}: it is not declared"
                + (f"; an arc from or to {ends[0]!r} names it" if ends else "")
            )
            continue
        yield from (f"{place}: {fault}" for fault in node_faults(data, orbits=orbits))


def _of_arcs(G: Fabric) -> Iterator[str]:
    orbits = bool(G.graph.get("orbits"))
    alike: dict[Hashable, list[str]] = {}  # {attributes: faults}, once for arcs of equal attributes
    for u, v, data in G.edges(data=True):
        if u == v:
            yield f"arc {u!r} -> {v!r}: a node cannot be linked to itself"
        types = tuple(map(type, data.values()))
        key = (*data, *types, *data.values()) if PLAIN_TYPES.issuperset(types) else (u, v)
        if key not in alike:
            alike[key] = [*arc_faults(data, orbits=orbits)]
        yield from (f"arc {u!r} -> {v!r}: {fault}" for fault in alike[key])


def _is_place(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(x, Integral) and not isinstance(x, bool) for x in value
    )


def _is_label(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_label, value))
    return isinstance(value, str | Integral) and not isinstance(value, bool)


def _unknown(attributes: Attributes, vocabulary: Mapping[str, str]) -> Iterator[str]:
    for name in attributes:
        if name not in vocabulary:
            yield f"unknown attribute {quote(name)}; {suggest(name, vocabulary)}"


def _reach_faults(G: Fabric) -> Iterator[str]:
    chips = set(fabric.accelerators(G))
    if len({*map(_strong_parts(G, list(G)).__getitem__, chips)}) > 1:
        islands = [part & chips for part in nx.strongly_connected_components(G) if part & chips]
        sizes = Counter(map(len, islands))
        sample = ", ".join(repr(min(island, key=repr)) for island in islands[:MAX_NAMED])
        more = f" and {len(islands) - MAX_NAMED} more" if len(islands) > MAX_NAMED else ""
        yield (
            f"fabric: the accelerators form {len(islands)} islands, of "
            + ", ".join(f"{size} chips ({times} times)" for size, times in sorted(sizes.items()))
            + f", without a way there and back between them; members: {sample}{more}"
        )
        return
    stranded = unreachable(G)
    examples = [f"{a!r} to {b!r}" for a, b in islice(stranded, 3)]
    if examples:
        yield (
            f"fabric: no permitted path from {', from '.join(examples)}"
            f"{' and others' if len(examples) == 3 else ''}: the nodes in between do not forward; "
            "set forward on those that may relay, or add a switch"
        )


def _spread_faults(G: Fabric) -> Iterator[str]:
    rates = {arc["bandwidth"]: (u, v) for u, v, arc in G.edges(data=True)}
    least, most = min(rates, default=1.0), max(rates, default=1.0)
    if most > SPREAD * least:
        fast, slow = ("{!r} -> {!r}".format(*rates[rate]) for rate in (most, least))
        yield (
            f"arc {fast} has {most:.3g} byte/s and arc {slow} {least:.3g}: at most "
            f"{SPREAD:g} times as much can be told apart"
        )


def _strong_parts(G: Fabric, nodes: list[Node]) -> dict[Node, int]:
    number = {node: i for i, node in enumerate(nodes)}
    heads = [[number[v] for v in G.succ[u] if v in number] for u in nodes]
    at = np.cumsum([0, *map(len, heads)])
    head = np.fromiter(chain.from_iterable(heads), np.int32, at[-1])
    arcs = csr_array((np.ones(head.size), head, at), shape=(len(nodes),) * 2)
    _, part = connected_components(arcs, connection="strong")
    return dict(zip(nodes, part.tolist(), strict=True))


def unreachable(G: Fabric) -> Iterator[Arc]:
    """Ordered pairs of accelerators with no path whose inner nodes all forward.

    Accelerators are first gathered into classes that see the same parts of the forwarding
    network, so that a rack of a thousand chips is one question and not a million.
    """
    chips = fabric.accelerators(G)
    if len(chips) < 2:
        return
    relays = [node for node, forward in G.nodes(data="forward") if forward]
    part_of = _strong_parts(G, relays)
    parts: nx.DiGraph[int] = nx.DiGraph()
    parts.add_nodes_from(part_of.values())
    if len(parts) > 1:
        ends = ((part_of[u], part_of[v]) for u in relays for v in G.succ[u] if v in part_of)
        parts.add_edges_from((a, b) for a, b in ends if a != b)
    beyond = {part: nx.descendants(parts, part) | {part} for part in parts}
    classes: dict[tuple[frozenset[int], frozenset[int]], list[Node]] = defaultdict(list)
    for chip in chips:
        # A forwarding chip is itself a relay; relays linked to a chip are its ways in and out.
        here = {part_of[chip]} if chip in part_of else set()
        first = here | {part_of[v] for v in G.succ[chip] if v in part_of}
        last = here | {part_of[v] for v in G.pred[chip] if v in part_of}
        reached = frozenset[int]().union(*(beyond[part] for part in first))
        classes[reached, frozenset(last)].append(chip)
    for (reached, _), sources in classes.items():
        for (_, entrances), targets in classes.items():
            if reached.isdisjoint(entrances):
                for a, b in product(sources, targets):
                    if a != b and not G.has_edge(a, b):
                        yield a, b
