"""Copies of a fabric joined to a larger one: racks of nodes, pods of racks.

What joins them is a `spine`, one non-blocking switch `("spine",)`; or `rails`, a switch
`("rail", i)` for the ends of rank i of all copies; or a `clos` network of leaves, spines and, with
three levels, cores.

Whether an accelerator passes on what is not its own is said by `relay`. `none`: as the domain
says. `all`: yes, anything. `pxn`: a sender may hand over to the network card of another chip of
its copy through their switch, as NCCL does, and nothing else.

Leaves of a Clos network are `("leaf", l)`, spines `("spine", s)`; with three levels those of
pod q are `("spine", q, s)`, cores `("core", c)`. Rail-optimised leaves are `("leaf", group, rank)`.
Oversubscription o of o:1 is what may enter a switch from below over what may leave it above; a
leaf that is not full has the links above it all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from topologies.builders.interconnects import (
    JOINTS,
    RELAYS,
    Port,
    Trunks,
    add_interconnect,
    add_relays,
    domain_ports,
    replicate_fabric,
    trunk_faults,
)
from topologies.builders.switches import switch
from topologies.fabric.fabric import ACCELERATOR, Fabric, accelerators, fabric
from topologies.fabric.limits import TopologyError, check_arguments, choice_fault, count_fault
from topologies.fabric.soundness import check

PORT_CHOICES = ("accelerators", "switches")


def hierarchy(
    domain: Fabric,
    count: int,
    *,
    out: float,
    latency: float = 0.0,
    join: str = "spine",
    at: str = "accelerators",
    relay: str | None = None,
    leaf: int | None = None,
    levels: int = 2,
    oversubscription: float | Sequence[float] | None = None,
    spines: int = 1,
    pod: int | None = None,
    cores: int = 1,
    rail_optimised: bool = False,
) -> Fabric:
    """`count` copies of `domain`, any fabric, joined by one network; node `v` becomes `(r, *v)`.

    Args:
        out, latency: Bandwidth of each end's link outwards [byte/s one way]; latency of all new
            links [s].
        join: `spine`, `rails` or `clos`.
        at: The ends: all `accelerators` of a copy, or those `switches` farthest from them.
        relay: `none`, `pxn` or `all`; if not given `all` on rails without spines, else `none`.
        leaf, levels, oversubscription, spines, pod, cores, rail_optimised: As for `clos`; for
            rails, `oversubscription` puts `spines` above them.

    >>> from topologies import switch
    >>> G = hierarchy(switch(4, up=8.0), 2, out=1.0)
    >>> len(G), G.number_of_edges()
    (11, 32)
    >>> racks = hierarchy(switch(4, up=8.0), 2, out=1.0, join="rails")
    >>> pods = hierarchy(racks, 3, out=0.5, at="switches")
    >>> len(pods), pods.nodes[2, 1, 3]["domain"]
    (43, (2, 1))
    """
    trunks = Trunks(leaf, levels, oversubscription, spines, pod, cores, rail_optimised)
    bare = join == "rails" and oversubscription is None
    words = {"join": (join, JOINTS), "at": (at, PORT_CHOICES), "relay": (relay or "none", RELAYS)}
    check_arguments(
        "hierarchy",
        counts={"count": count},
        rates={"out": out},
        latencies={"latency": latency},
        flags={"rail_optimised": rail_optimised},
        others=[
            *(choice_fault(name, *word) for name, word in words.items()),
            *trunk_faults(join, trunks),
        ],
    )
    check(domain)
    G, ports = replicate_fabric(domain, count, domain_ports(domain, at))
    ports = add_relays(G, ports, relay or ("all" if bare else "none"), out)
    add_interconnect(G, ports, join, trunks, out, latency)
    return check(G)


def clos(
    chips: int,
    *,
    out: float,
    leaf: int,
    latency: float = 0.0,
    levels: int = 2,
    oversubscription: float | Sequence[float] = 1.0,
    spines: int = 1,
    pod: int | None = None,
    cores: int = 1,
    domain: Fabric | None = None,
    rail_optimised: bool = False,
    relay: str = "none",
) -> Fabric:
    """`chips` accelerators `(i,)`, or the domains they come in, below a Clos network.

    Args:
        out, latency: Bandwidth of a chip's network card [byte/s one way], latency of every link
            [s].
        leaf: Cards on one leaf switch.
        levels: 2, leaves and spines, or 3, with cores above `pod` leaves and their spines.
        oversubscription: float or one per level above the leaves. o of o:1 above the leaves and,
            with three levels, above the pods.
        spines, cores: Switches above each leaf (in each pod), and above the pods, with equal
            shares.
        domain: The scale-up domain that the chips come in; `chips` counts all of them.
        rail_optimised: Whether chips of equal rank share a leaf, instead of those of a domain.
        relay: As for `hierarchy`.

    >>> G = clos(16, out=50e9, leaf=4, oversubscription=2, spines=2)
    >>> len(G), G.edges[("leaf", 0), ("spine", 1)]["bandwidth"]
    (22, 50000000000.0)
    """
    trunks = Trunks(leaf, levels, oversubscription, spines, pod, cores, rail_optimised)
    if domain is None:
        return _loose_chips(chips, trunks, out, latency, relay)
    # The chips must fill whole copies of the domain.
    size = len(accelerators(domain))
    fault = count_fault(chips)
    if fault is None and chips % size:
        below = chips - chips % size
        fault = f"is {chips}, not whole domains of {size}; {below} or {below + size} are"
    if fault is not None:
        raise TopologyError("clos", f"chips {fault}")
    return hierarchy(
        domain, chips // size, out=out, latency=latency, join="clos", relay=relay, **asdict(trunks)
    )


def _loose_chips(chips: int, trunks: Trunks, out: float, latency: float, relay: str) -> Fabric:
    """Chips that are a domain each."""
    alone = "{} is given without a domain: chips below leaves have no others beside them"
    check_arguments(
        "clos",
        counts={"chips": chips},
        rates={"out": out},
        latencies={"latency": latency},
        others=[
            *trunk_faults("clos", trunks),
            alone.format("rail_optimised") if trunks.rail_optimised else None,
            alone.format("relay") if relay != "none" else None,
        ],
    )
    G = fabric(f"{chips} chips below {trunks.levels} levels of switches", orbits=True)
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=False, domain=i, orbit="chip")
    add_interconnect(G, [[Port((i,), (i,))] for i in range(chips)], "clos", trunks, out, latency)
    return check(G)


def rails(
    nodes: int,
    chips: int,
    *,
    up: float,
    out: float,
    latency: float = 0.0,
    out_latency: float = 0.0,
    relay: str = "all",
    oversubscription: float | None = None,
    spines: int = 1,
    in_network_reduce: bool = False,
) -> Fabric:
    """`nodes` nodes of `chips` chips; the switch `("rail", i)` joins the chips of rank i.

    Chip i of node r is `(r, i)`, the switch inside the node `(r, "switch")`.

    Args:
        up, out: Of a chip into the switch of its node, and of its network card. [byte/s one way]
        latency, out_latency: Of a link inside a node, and of one to a rail or above. [s]
        relay: `all`: chips pass on what is not theirs, so that ranks of different nodes meet.
            `pxn`: a sender writes into the card of the receiver's rank through the switch of its
            node. `none`: neither, which needs a spine.
        oversubscription: o of o:1 between a rail's cards and its links to `spines`; without it
            there are none.
        in_network_reduce: Whether the switches inside the nodes can add what passes through them.

    >>> G = rails(2, 8, up=450e9, out=50e9)
    >>> len(G), G.number_of_edges()
    (26, 64)
    """
    trunks = Trunks(oversubscription=oversubscription, spines=spines)
    check_arguments(
        "rails",
        counts={"nodes": nodes, "chips": chips},
        rates={"up": up, "out": out},
        latencies={"latency": latency, "out_latency": out_latency},
        others=[choice_fault("relay", relay, RELAYS), *trunk_faults("rails", trunks)],
    )
    node = switch(chips, up=up, latency=latency, in_network_reduce=in_network_reduce)
    G = hierarchy(
        node,
        nodes,
        out=out,
        latency=out_latency,
        join="rails",
        relay=relay,
        oversubscription=oversubscription,
        spines=spines,
    )
    G.graph["name"] = f"{nodes} nodes of {chips} chips on rails"
    return G
