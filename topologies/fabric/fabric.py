"""The vocabulary of a fabric: which nodes, arcs and attributes a network of accelerators has.

A fabric is a `networkx.DiGraph`. A cable that carries both ways is two arcs, since the two
directions may differ. Whether a node may relay the traffic of others is said on the node
(`forward`): a switch does, a chip of a torus does, a chip behind a switch does not.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import networkx as nx

from topologies.fabric.limits import TopologyError, count_fault, latency_fault, rate_fault

Node: TypeAlias = Hashable
Arc: TypeAlias = tuple[Node, Node]
Group: TypeAlias = tuple[Node, ...]  # members of a communicator, in rank order
Attributes: TypeAlias = dict[str, Any]  # of a node, an arc or a graph, as networkx keeps them
Fabric: TypeAlias = "nx.DiGraph[Any]"
Answer = TypeVar("Answer")

SCHEMA_VERSION = 1


ACCELERATOR, SWITCH, NIC, HOST = "accelerator", "switch", "nic", "host"
NODE_KINDS = (ACCELERATOR, SWITCH, NIC, HOST)
SCALE_UP, SCALE_OUT = "scale_up", "scale_out"
TIERS = (SCALE_UP, SCALE_OUT, HOST)

NODE_ATTRIBUTES = {
    "kind": "accelerator, switch, nic or host",
    "forward": "may it relay the traffic of others?",
    "domain": "the scale-up domain an accelerator belongs to",
    "coord": "place of an accelerator in a torus",
    "in_network_reduce": "can this switch add what passes through it?",
    "orbit": "nodes of one label are interchangeable by a symmetry of the fabric",
}
ARC_ATTRIBUTES = {
    "bandwidth": "byte/s in this direction, all parallel cables together",
    "latency": "s",
    "tier": "scale_up, scale_out or host",
    "count": "parallel cables summed in this arc",
    "orbit": "arcs of one label are interchangeable by a symmetry of the fabric",
}
GRAPH_ATTRIBUTES = {
    "name": "what the fabric is called",
    "source": "where its figures come from",
    "as_of": "when they were read",
    "schema_version": "version of this vocabulary",
    "orbits": "do the nodes and arcs declare their orbits?",
}


def fabric(
    name: str, *, source: str | None = None, as_of: str | None = None, orbits: bool = False
) -> Fabric:
    """An empty fabric, to be filled with `add_node` and `link` and then checked."""
    return nx.DiGraph(
        name=name, source=source, as_of=as_of, schema_version=SCHEMA_VERSION, orbits=orbits
    )


def link(
    G: Fabric,
    a: Hashable,
    b: Hashable,
    *,
    bandwidth: float,
    latency: float = 0.0,
    tier: str = SCALE_UP,
    count: int = 1,
    one_way: bool = False,
    orbit: str | tuple[str, str] | None = None,
) -> None:
    """Join `a` and `b` by `count` equal cables, in both directions unless `one_way`.

    Raises TopologyError when a figure is unsound, or the two are joined already: cables in parallel
    are one link with a count, so that a cable listed twice is not taken for two.

    Args:
        bandwidth: Of one cable in one direction; the arc carries `count` times it. [byte/s]
        latency: From end to end of the cable. [s]
        orbit: Label of the arc there and of the arc back.

    >>> G = fabric("two chips")
    >>> link(G, 0, 1, bandwidth=25e9, count=2)
    >>> G.edges[1, 0]["bandwidth"]
    50000000000.0
    """
    there, back = (orbit, orbit) if orbit is None or isinstance(orbit, str) else orbit
    arcs = [(a, b, there)] if one_way else [(a, b, there), (b, a, back)]
    faults = [
        f"link {a!r} - {b!r}: {what} {fault}"
        for what, fault in (
            ("bandwidth", rate_fault(bandwidth)),
            ("latency", latency_fault(latency)),
            ("count", count_fault(count)),
        )
        if fault is not None
    ]
    faults += [
        f"link {u!r} -> {v!r}: these two are joined already; cables in parallel are one link "
        "with count=2"
        for u, v, _ in arcs
        if G.has_edge(u, v)
    ]
    if faults:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", faults)
    for u, v, label in arcs:
        arc = {"bandwidth": bandwidth * count, "latency": latency, "tier": tier, "count": count}
        G.add_edge(u, v, **arc, **({} if label is None else {"orbit": label}))


def cached_per_fabric(of: Callable[[Fabric], Answer]) -> Callable[[Fabric], Answer]:
    """`of`, asked once of a frozen fabric (`networkx.freeze`), whose answer must not hold it."""
    answers: WeakKeyDictionary[Fabric, Answer] = WeakKeyDictionary()

    @wraps(of)
    def answer(G: Fabric) -> Answer:
        if not nx.is_frozen(G):
            return of(G)
        if G not in answers:
            answers[G] = of(G)
        return answers[G]

    return answer


def without_orbits(G: Fabric) -> Fabric:
    """`G` itself, which declares no orbits any more."""
    G.graph["orbits"] = False
    for _, data in (*G.nodes(data=True), *((arc[:2], arc[2]) for arc in G.edges(data=True))):
        data.pop("orbit", None)
    return G


def accelerators(G: Fabric) -> list[Node]:
    """Return the accelerators of `G`, in order of insertion."""
    return [node for node, kind in G.nodes(data="kind") if kind == ACCELERATOR]


def by_domain(G: Fabric, chips: Iterable[Node] | None = None) -> dict[Node, list[Node]]:
    """Group chips, by default all accelerators, by scale-up domain, each in the order given."""
    domains: dict[Node, list[Node]] = {}
    for chip in accelerators(G) if chips is None else chips:
        domains.setdefault(G.nodes[chip].get("domain"), []).append(chip)
    return domains
