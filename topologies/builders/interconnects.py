"""Copies of a fabric side by side, and what joins them: a spine, rails, or a Clos network."""

from __future__ import annotations  # signatures are read by their words (files.description)

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
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
    without_orbits,
)
from topologies.fabric.limits import TopologyError, count_fault, ratio_fault


class Port(NamedTuple):
    """The nodes of a copy that send into the outer network and receive from it."""

    sender: Group
    receiver: Group


Ports: TypeAlias = list[list[Port]]  # The ends of each copy, in order of rank.


def domain_ports(domain: Fabric, at: str) -> list[Node]:
    """Ends of `domain`: its accelerators, or its switches farthest from them.

    Raises TopologyError when switches are asked for and there are none.
    """
    if at == "accelerators":
        return accelerators(domain)
    far = nx.multi_source_dijkstra_path_length(domain, set(accelerators(domain)), weight=None)
    # Top switches have a word as their name; nodes inside the domain have a tuple led by a number.
    tops = [
        (far[node], node)
        for node, kind in domain.nodes(data="kind")
        if kind == SWITCH and not (isinstance(node, tuple) and isinstance(node[0], int))
    ]
    if not tops:
        raise TopologyError("hierarchy", "at is 'switches' and the domain to copy has none on top")
    most = max(hops for hops, _ in tops)
    return [node for hops, node in tops if hops == most]


def replicate_fabric(domain: Fabric, count: int, ports: list[Node]) -> tuple[Fabric, Ports]:
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
    return G, [[Port(*[(r, *named[port])] * 2) for port in ports] for r in range(count)]


def _domain(copy: int, inner: Node, domains: int) -> Node:
    if domains == 1:
        return copy
    return (copy, *inner) if isinstance(inner, tuple) else (copy, inner)


def unused_orbits(G: Fabric, *labels: str) -> list[str]:
    """Orbit labels that `G` does not use yet: the given ones, numbered if need be."""
    used: set[str] = {str(data.get("orbit")) for _, data in G.nodes(data=True)}
    used |= {str(data.get("orbit")) for _, _, data in G.edges(data=True)}
    level, names = 1, list(labels)
    while any(orbit.startswith(label) for label in names for orbit in used):
        level += 1
        names = [f"{label} {level}" for label in labels]
    return names


RELAYS = ("none", "pxn", "all")


def add_relays(G: Fabric, ports: Ports, relay: str, out: float) -> Ports:
    """Let chips of `G` relay as `relay` says; the ends that then lead out.

    With `pxn` every chip has a card `(..., "card")` through which it sends, a node of its own into
    which the switches beside the chip write too: its rate is what the chip and its peers share.
    What arrives goes to the chip itself. That the hand-over crosses the memory of the card's own
    chip is not charged to the links of that chip. Raises TopologyError with `pxn`, when the ends
    are no accelerators, or one has no switch beside it through which its peers reach its card.
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
    card, uplink, peers = unused_orbits(G, "card", "to card", "peers to card")
    for chip, switches in beside.items():
        nic, of = (*chip, "card"), f" of {G.nodes[chip].get('orbit')}"
        G.add_node(nic, kind=NIC, forward=True, orbit=card + of)
        # The link from a chip to its card has no latency: the cable adds that of the way out.
        for source in (chip, *switches):
            lane = uplink if source == chip else f"{peers} by {G.edges[source, chip].get('orbit')}"
            link(G, source, nic, bandwidth=out, tier=SCALE_OUT, one_way=True, orbit=lane + of)
    return [[Port((*end.receiver, "card"), end.receiver) for end in copy] for copy in ports]


JOINTS = ("spine", "rails", "clos")

Leaf: TypeAlias = tuple[Group, list[Port]]  # The name of a switch and the ends that hang on it.


@dataclass(frozen=True)
class Trunks:
    """Shape of a Clos network: radix, levels, oversubscription. See `clos` for each."""

    leaf: int | None = None
    levels: int = 2
    oversubscription: float | Sequence[float] | None = None
    spines: int = 1
    pod: int | None = None
    cores: int = 1
    rail_optimised: bool = False

    @property
    def ratios(self) -> list[float]:
        """Oversubscription of leaves and, with three levels, of pods."""
        ratio = 1.0 if self.oversubscription is None else self.oversubscription
        single = isinstance(ratio, str) or not isinstance(ratio, Sequence)
        return [ratio] * (self.levels - 1) if single else list(ratio)  # type: ignore[arg-type,list-item]


def trunk_faults(join: str, trunks: Trunks) -> Iterator[str]:
    """Faults of the shape, and arguments that the kind of interconnect does not take."""
    for name in ("spines", "cores", "leaf", "pod"):
        value = getattr(trunks, name)
        if value is not None and (fault := count_fault(value)) is not None:
            yield f"{name} {fault}"
    if trunks.levels not in (2, 3) or isinstance(trunks.levels, bool):
        yield f"levels is {trunks.levels!r}; 2 or 3 was expected"
        return
    ratios = trunks.ratios
    if len(ratios) != trunks.levels - 1:
        yield (
            f"oversubscription has {len(ratios)} entries; {trunks.levels - 1} were expected, "
            "one for each level above the leaves"
        )
    for o in ratios:
        if (fault := ratio_fault("oversubscription", o)) is not None:
            yield fault
    arguments = {
        "leaf": trunks.leaf is not None,
        "pod": trunks.pod is not None,
        "levels": trunks.levels != 2,
        "rail_optimised": trunks.rail_optimised is True,
        "cores": trunks.cores != 1,
        "spines": trunks.spines != 1,
        "oversubscription": trunks.oversubscription is not None,
    }
    used = {"spine": (), "rails": ("oversubscription", "spines")}.get(join)
    if used is not None:
        for name in (name for name, is_given in arguments.items() if is_given and name not in used):
            yield f"{name} is given, which the joint {join!r} does not have"
        if join == "rails" and arguments["spines"] and not arguments["oversubscription"]:
            yield "spines is given without oversubscription: rails have no spine unless it is said"
    elif join == "clos":
        if trunks.leaf is None:
            yield "leaf is not given: how many ends hang on one leaf switch?"
        if (trunks.levels == 3) != arguments["pod"]:
            yield "pod, the number of leaves in a pod, goes with levels=3 and only with it"
        if arguments["cores"] and trunks.levels == 2:
            yield "cores is given, which a network of two levels does not have"


def add_interconnect(
    G: Fabric, ports: Ports, join: str, trunks: Trunks, out: float, latency: float
) -> None:
    """Add to `G` what joins the ends of its copies; orbits only if it declares them.

    A `spine` is one switch for all; `rails` are one for the ends of each rank, with spines above
    them if they are oversubscribed; a `clos` network has leaves, spines and perhaps cores.
    """
    if join == "clos":
        _join_clos(G, ports, out, latency, trunks)
    elif join == "spine":
        _attach(G, [(("spine",), [end for copy in ports for end in copy])], out, latency)
    else:
        below: list[Leaf] = [
            (("rail", i), list(ends)) for i, ends in enumerate(zip(*ports, strict=True))
        ]
        _attach(G, below, out, latency)
        if trunks.oversubscription is not None:
            rate = len(ports) * out / trunks.ratios[0]
            tops = [("spine", s) for s in range(trunks.spines)]
            _above(G, [([name for name, _ in below], tops)], rate, latency)
    if not G.graph["orbits"]:
        without_orbits(G)


def _join_clos(G: Fabric, ports: Ports, out: float, latency: float, trunks: Trunks) -> None:
    """Leaves for the ends, spines for the leaves, and cores for the pods of three levels."""
    size, ratios = trunks.leaf or 1, trunks.ratios
    leaves = _leaves(ports, size, rail_optimised=trunks.rail_optimised)
    many = trunks.pod or len(leaves)
    pods = [leaves[i : i + many] for i in range(0, len(leaves), many)]
    _split_orbits(G, ports, pods, trunks)
    _attach(G, leaves, out, latency)
    up = size * out / ratios[0]
    tiers = []
    for q, members in enumerate(pods):
        indices = ("spine",) if trunks.levels == 2 else ("spine", q)
        tops = [(*indices, s) for s in range(trunks.spines)]
        tiers.append(([name for name, _ in members], tops))
    _above(G, tiers, up, latency)
    if trunks.levels == 3:
        spines = [top for _, tops in tiers for top in tops]
        beyond = many * up / ratios[1] / trunks.spines
        _above(G, [(spines, [("core", c) for c in range(trunks.cores)])], beyond, latency)


def _leaves(ports: Ports, size: int, *, rail_optimised: bool) -> list[Leaf]:
    """Names of the leaf switches and the ends that hang on each."""
    if not rail_optimised:
        ends = [end for copy in ports for end in copy]
        return [(("leaf", i // size), ends[i : i + size]) for i in range(0, len(ends), size)]
    return [
        (("leaf", first // size, i), list(ends))
        for first in range(0, len(ports), size)
        for i, ends in enumerate(zip(*ports[first : first + size], strict=True))
    ]


def _split_orbits(G: Fabric, ports: Ports, pods: list[list[Leaf]], trunks: Trunks) -> None:
    """Split the orbits if leaves or pods are filled unequally; drop all if a copy is cut.

    Whole copies below leaves may be exchanged if their leaf, and its pod, are filled alike.
    """
    if not G.graph["orbits"]:
        return
    row = len(ports[0]) if trunks.rail_optimised else 1
    whole = trunks.rail_optimised or (trunks.leaf or 1) % len(ports[0]) == 0
    if not whole or (trunks.pod or row) % row:
        without_orbits(G)
        return
    fills: dict[Node, str] = {}
    for pod in pods:
        among = sorted(len(ends) for _, ends in pod)
        for _, ends in pod:
            for end in ends:
                fills[end.sender[0]] = f"{len(ends)} in {among}"
    if len(set(fills.values())) == 1:
        return
    for node, data in G.nodes(data=True):
        data["orbit"] = f"{data['orbit']} under {fills[node[0]]}"
    for u, _, data in G.edges(data=True):
        data["orbit"] = f"{data['orbit']} under {fills[u[0]]}"


def _orbit_of(G: Fabric, node: Node) -> str:
    return f" of {G.nodes[node].get('orbit')}"


def _attach(G: Fabric, below: Sequence[Leaf], out: float, latency: float) -> None:
    """Add switches, and link to each the ends that hang on it."""
    word = str(below[0][0][0])
    (label,), (there, back) = unused_orbits(G, word), unused_orbits(G, "out", "in")
    join = partial(link, G, bandwidth=out, latency=latency, tier=SCALE_OUT, one_way=True)
    for name, ends in below:
        orbit = label if word == "spine" else label + _orbit_of(G, ends[0].sender)
        G.add_node(name, kind=SWITCH, forward=True, orbit=orbit)
        for end in ends:
            of = _orbit_of(G, end.sender)
            join(end.sender, name, orbit=there + of)
            join(name, end.receiver, orbit=back + of)


def _above(
    G: Fabric, tiers: Sequence[tuple[Sequence[Group], Sequence[Group]]], rate: float, latency: float
) -> None:
    """Link the switches of each tier to all those above, in shares of `rate` [byte/s one way]."""
    word = str(tiers[0][1][0][0])
    top, there, back = unused_orbits(G, word, f"to {word}", f"from {word}")
    for below, tops in tiers:
        among = sorted({_orbit_of(G, name) for name in below})
        for above in tops:
            G.add_node(above, kind=SWITCH, forward=True, orbit=f"{top}{among}")
            join = partial(link, G, bandwidth=rate / len(tops), latency=latency, tier=SCALE_OUT)
            for name in below:
                of = f"{_orbit_of(G, name)} to {among}"
                join(name, above, orbit=(there + of, back + of))
