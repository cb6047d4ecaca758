"""Interconnects of copies of a fabric: a spine, rails, or a Clos network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from topologies.builders.arguments import ratio_fault
from topologies.builders.copies import End, Ports, fresh, ranks
from topologies.fabric.fabric import SCALE_OUT, SWITCH, Fabric, Group, Node
from topologies.fabric.fabric import link as add_link
from topologies.fabric.limits import count_fault

JOINTS = ("spine", "rails", "clos")

# The name of a switch and the ends that hang on it.
Leaf: TypeAlias = tuple[Group, list[End]]


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


def joined(G: Fabric, ports: Ports, join: str, trunks: Trunks, out: float, latency: float) -> None:
    """Add to `G` what joins the ends of its copies: `spine`, `rails` or `clos`."""
    if join == "spine":
        _join_spine(G, ports, out, latency)
    elif join == "rails":
        _join_rails(G, ports, out, latency, trunks)
    else:
        join_clos(G, ports, out, latency, trunks)


def _join_spine(G: Fabric, ports: Ports, out: float, latency: float) -> None:
    """One switch that every end is linked to."""
    (spine,) = fresh(G, "spine")
    _switch(G, ("spine",), spine)
    _attach(G, [(("spine",), [end for copy in ports for end in copy])], out, latency)


def _join_rails(G: Fabric, ports: Ports, out: float, latency: float, trunks: Trunks) -> None:
    """A switch for the ends of each rank, and spines above them if they are oversubscribed."""
    (rail,) = fresh(G, "rail")
    below = [(("rail", i), ends) for i, ends in ranks(ports)]
    for name, ends in below:
        _switch(G, name, rail + _of(G, ends[0].sender))
    _attach(G, below, out, latency)
    if trunks.oversubscription is not None:
        rate = len(ports) * out / trunks.ratios[0]
        tops = [("spine", s) for s in range(trunks.spines)]
        _above(G, [([name for name, _ in below], tops)], rate, latency)


def join_clos(G: Fabric, ports: Ports, out: float, latency: float, trunks: Trunks) -> None:
    """Leaves for the ends, spines for the leaves, and cores for the pods of three levels."""
    size, ratios = trunks.leaf or 1, trunks.ratios
    leaves = _leaves(ports, size, rail_optimised=trunks.rail_optimised)
    many = trunks.pod or len(leaves)
    pods = [leaves[i : i + many] for i in range(0, len(leaves), many)]
    _part(G, ports, pods, trunks)
    (leaf,) = fresh(G, "leaf")
    for name, ends in leaves:
        _switch(G, name, leaf + _of(G, ends[0].sender))
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
        (("leaf", first // size, i), ends)
        for first in range(0, len(ports), size)
        for i, ends in ranks(ports[first : first + size])
    ]


def _part(G: Fabric, ports: Ports, pods: list[list[Leaf]], trunks: Trunks) -> None:
    """Split the declared orbits where leaves or pods are not filled alike; drop them where cut.

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


def without_orbits(G: Fabric) -> None:
    """Declare no orbits any more."""
    G.graph["orbits"] = False
    for _, data in G.nodes(data=True):
        data.pop("orbit", None)
    for _, _, data in G.edges(data=True):
        data.pop("orbit", None)


def _of(G: Fabric, node: Node) -> str:
    """The orbit of a node, to tell apart what hangs on nodes of different orbits."""
    return f" of {G.nodes[node].get('orbit')}"


def _switch(G: Fabric, name: Node, orbit: str) -> None:
    G.add_node(name, kind=SWITCH, forward=True, **({"orbit": orbit} if G.graph["orbits"] else {}))


def _attach(G: Fabric, below: Sequence[Leaf], out: float, latency: float) -> None:
    """Link ends to the switch that each hangs on."""
    there, back = fresh(G, "out", "in")
    figures: dict[str, Any] = {
        "bandwidth": out,
        "latency": latency,
        "tier": SCALE_OUT,
        "one_way": True,
    }
    for name, ends in below:
        for end in ends:
            of = _of(G, end.sender)
            labels = (there + of, back + of) if G.graph["orbits"] else (None, None)
            add_link(G, end.sender, name, orbit=labels[0], **figures)
            add_link(G, name, end.receiver, orbit=labels[1], **figures)


def _above(
    G: Fabric, tiers: Sequence[tuple[Sequence[Group], Sequence[Group]]], rate: float, latency: float
) -> None:
    """Link the switches of each tier to all those above them, in equal shares of `rate`.

    Parameters
    ----------
    tiers
        Switches below and the switches above them, for each part of the network.
    rate : float
        Of one switch below, to all above it together. [byte/s one way]
    """
    word = str(tiers[0][1][0][0])
    top, there, back = fresh(G, word, f"to {word}", f"from {word}")
    for below, tops in tiers:
        among = sorted({_of(G, name) for name in below})
        for above in tops:
            _switch(G, above, f"{top}{among}")
            for name in below:
                of = f"{_of(G, name)} to {among}"
                label = (there + of, back + of) if G.graph["orbits"] else None
                share = rate / len(tops)
                add_link(
                    G, name, above, bandwidth=share, latency=latency, tier=SCALE_OUT, orbit=label
                )
