"""Copies of a fabric side by side, and the nodes of each that lead out of it.

Who of a copy may send through the network card of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import networkx as nx

from topologies.fabric.fabric import (
    ACCELERATOR,
    NIC,
    SCALE_OUT,
    SWITCH,
    Fabric,
    Group,
    Node,
    accelerators,
    fabric,
    link,
)
from topologies.fabric.limits import TopologyError


class End(NamedTuple):
    """The nodes of a copy that send into the outer network and receive from it."""

    sender: Group
    receiver: Group


# The ends of each copy, in order of rank.
Ports: TypeAlias = list[list[End]]


def ports_of(domain: Fabric, at: str) -> list[Node]:
    """Its accelerators, or those of its switches that are farthest from them.

    Raises
    ------
    TopologyError
        When switches are asked for and there are none.
    """
    if at == "accelerators":
        return accelerators(domain)
    far = nx.multi_source_dijkstra_path_length(domain, set(accelerators(domain)), weight=None)
    # What joins the domain itself bears a word as its name, what lies within it a number first.
    tops = [
        (far[node], node)
        for node, kind in domain.nodes(data="kind")
        if kind == SWITCH and not (isinstance(node, tuple) and isinstance(node[0], int))
    ]
    if not tops:
        raise TopologyError("hierarchy", "at is 'switches' and the domain to copy has none on top")
    most = max(hops for hops, _ in tops)
    return [node for hops, node in tops if hops == most]


def copied(domain: Fabric, count: int, ports: list[Node]) -> tuple[Fabric, Ports]:
    """`count` copies of `domain` in one fabric, node `v` of copy `r` as `(r, *v)`."""
    name = f"{count} times {domain.graph.get('name')}"
    G = fabric(name, orbits=bool(domain.graph.get("orbits")))
    named = {node: node if isinstance(node, tuple) else (node,) for node in domain}
    whole = {data["domain"] for _, data in domain.nodes(data=True) if "domain" in data}
    for r in range(count):
        for node, data in domain.nodes(data=True):
            G.add_node((r, *named[node]), **data)
            if data["kind"] == ACCELERATOR:
                G.nodes[r, *named[node]]["domain"] = _domain(r, data["domain"], len(whole))
        for u, v, data in domain.edges(data=True):
            G.add_edge((r, *named[u]), (r, *named[v]), **data)
    return G, [[End(*[(r, *named[port])] * 2) for port in ports] for r in range(count)]


def _domain(copy: int, inner: Node, domains: int) -> Node:
    """Name of the scale-up domain of a chip of a copy."""
    if domains == 1:
        return copy
    return (copy, *inner) if isinstance(inner, tuple) else (copy, inner)


def ranks(ports: Ports) -> Iterable[tuple[int, list[End]]]:
    """For every rank the ends of that rank in all copies."""
    return ((i, list(column)) for i, column in enumerate(zip(*ports, strict=True)))


def fresh(G: Fabric, *labels: str) -> list[str]:
    """The labels, numbered as long as the fabric uses one of them for an orbit already."""
    used: set[str] = {str(data.get("orbit")) for _, data in G.nodes(data=True)}
    used |= {str(data.get("orbit")) for _, _, data in G.edges(data=True)}
    level, names = 1, list(labels)
    while any(orbit.startswith(label) for label in names for orbit in used):
        level += 1
        names = [f"{label} {level}" for label in labels]
    return names


RELAYS = ("none", "pxn", "all")


def relayed(G: Fabric, ports: Ports, relay: str, out: float) -> Ports:
    """Grant the permission on `G`; the ends that then lead out.

    With `pxn` every chip has a card `(..., "card")` through which it sends, a node of its own
    into which the switches beside the chip write too: its rate is what the chip and its peers
    share. What arrives goes to the chip itself. That the hand-over crosses the memory of the
    card's own chip is not charged to the links of that chip.

    Raises
    ------
    TopologyError
        With `pxn`, when the ends are no accelerators, or one has no switch beside it through
        which its peers reach its card.
    """
    if relay == "none":
        return ports
    if relay == "all":
        for node, kind in list(G.nodes(data="kind")):
            if kind == ACCELERATOR:
                G.nodes[node]["forward"] = True
        return ports
    chips = [end.receiver for copy in ports for end in copy]
    beside = {chip: [v for v in G.succ[chip] if G.nodes[v]["kind"] == SWITCH] for chip in chips}
    if any(G.nodes[chip]["kind"] != ACCELERATOR for chip in chips):
        raise TopologyError("hierarchy", "relay is 'pxn', which needs at='accelerators'")
    for chip, switches in beside.items():
        if not switches:
            fault = f"relay is 'pxn' and {chip!r} has no switch inside its domain; use 'all'"
            raise TopologyError("hierarchy", fault)
    declared = G.graph["orbits"]
    card, uplink, peers = fresh(G, "card", "to card", "peers to card")
    for chip, switches in beside.items():
        nic, of = (*chip, "card"), f" of {G.nodes[chip].get('orbit')}"
        G.add_node(nic, kind=NIC, forward=True, **({"orbit": card + of} if declared else {}))
        # The card sits beside its chip: the latency of the way out is that of the cable.
        for source in (chip, *switches):
            lane = uplink if source == chip else f"{peers} by {G.edges[source, chip].get('orbit')}"
            orbit = lane + of if declared else None
            link(G, source, nic, bandwidth=out, tier=SCALE_OUT, one_way=True, orbit=orbit)
    return [[End((*end.receiver, "card"), end.receiver) for end in copy] for copy in ports]
