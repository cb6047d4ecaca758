"""Accelerators behind one switch or several planes (HGX, NVL72), or wired each to each (MI300X)."""

from collections.abc import Sequence
from itertools import combinations

from topologies.fabric.fabric import ACCELERATOR, SWITCH, Fabric, Group, fabric, link
from topologies.fabric.fabric import link as add_link
from topologies.fabric.limits import check_arguments
from topologies.fabric.soundness import check


def switch(
    chips: int, *, up: float, latency: float = 0.0, in_network_reduce: bool = False
) -> Fabric:
    """`chips` accelerators `(i,)` on the switch `("switch",)`; none relays for another.

    Parameters
    ----------
    up : Bandwidth of one chip into the switch, and out of it. [byte/s one way]
    latency : Of the cable between a chip and the switch: two of them lie between two chips. [s]
    in_network_reduce : Whether the switch can add what passes through it.

    >>> G = switch(8, up=450e9)
    >>> G.number_of_edges(), G.edges[(0,), ("switch",)]["bandwidth"]
    (16, 450000000000.0)
    """
    check_arguments(
        "switch",
        counts={"chips": chips},
        rates={"up": up},
        latencies={"latency": latency},
        flags={"in_network_reduce": in_network_reduce},
    )
    centres = [("switch",)]
    return _behind(f"{chips} chips on a switch", chips, centres, up, latency, in_network_reduce)


def planes(
    chips: int, switches: int, *, up: float, latency: float = 0.0, in_network_reduce: bool = False
) -> Fabric:
    """`chips` accelerators `(i,)`, each with an equal share of its rate on every switch.

    The switches are `("plane", p)`: the 4 of an HGX board, the 18 of an NVL72 rack. No chip
    relays for another and no switch knows the next.

    Parameters
    ----------
    up : Bandwidth of one chip into all switches together. [byte/s one way]
    latency : Of the cable between a chip and a switch. [s]
    in_network_reduce : Whether the switches can add what passes through them.

    >>> G = planes(72, 18, up=900e9)
    >>> G.number_of_edges(), G.edges[(0,), ("plane", 3)]["bandwidth"]
    (2592, 50000000000.0)
    """
    check_arguments(
        "planes",
        counts={"chips": chips, "switches": switches},
        rates={"up": up},
        latencies={"latency": latency},
        flags={"in_network_reduce": in_network_reduce},
    )
    name = f"{chips} chips on {switches} switch planes"
    centres = [("plane", p) for p in range(switches)]
    return _behind(name, chips, centres, up / switches, latency, in_network_reduce)


def _behind(
    name: str, chips: int, centres: Sequence[Group], rate: float, latency: float, reduce: bool
) -> Fabric:
    """Each of the chips linked to each of the switches."""
    G = fabric(name, orbits=True)
    for centre in centres:
        G.add_node(centre, kind=SWITCH, forward=True, in_network_reduce=reduce, orbit="switch")
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=False, domain=0, orbit="chip")
        for centre in centres:
            link(G, (i,), centre, bandwidth=rate, latency=latency, orbit=("up", "down"))
    return check(G)


def mesh(chips: int, *, link: float, latency: float = 0.0, relay: bool = False) -> Fabric:
    """`chips` accelerators `(i,)` with one link for each pair.

    Parameters
    ----------
    link : Bandwidth of the link between two chips. [byte/s one way]
    latency : Of that link. [s]
    relay : Whether chips pass on the traffic of others; those of an MI300X board do not.

    >>> mesh(4, link=64e9).number_of_edges()
    12
    """
    check_arguments(
        "mesh",
        counts={"chips": chips},
        rates={"link": link},
        latencies={"latency": latency},
        flags={"relay": relay},
    )
    G = fabric(f"{chips} chips each wired to each", orbits=True)
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=relay, domain=0, orbit="chip")
    for i, j in combinations(range(chips), 2):
        add_link(G, (i,), (j,), bandwidth=link, latency=latency, orbit="pair")
    return check(G)
