"""Accelerators behind one non-blocking switch: an HGX board, an NVL72 rack."""

from __future__ import annotations

from topologies.builders.given import counted
from topologies.fabric import ACCELERATOR, SWITCH, Fabric, fabric, link
from topologies.faults import check

__all__ = ["switch"]


def switch(
    chips: int, *, up: float, latency: float = 0.0, in_network_reduce: bool = False
) -> Fabric:
    """`chips` accelerators `(i,)` on the switch `("switch",)`; none relays for another.

    Parameters
    ----------
    up : float
        Bandwidth of one chip into the switch, and out of it. [byte/s one way]
    latency : float
        Of the cable between a chip and the switch: two of them lie between two chips. [s]
    in_network_reduce : bool
        Whether the switch can add what passes through it.

    >>> G = switch(8, up=450e9)
    >>> G.number_of_edges(), G.edges[(0,), ("switch",)]["bandwidth"]
    (16, 450000000000.0)
    """
    counted("switch", chips=chips)
    G = fabric(f"{chips} chips on a switch", orbits=True)
    centre = ("switch",)
    G.add_node(
        centre, kind=SWITCH, forward=True, in_network_reduce=in_network_reduce, orbit="switch"
    )
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=False, domain=0, orbit="chip")
        link(G, (i,), centre, bandwidth=up, latency=latency, orbit=("up", "down"))
    return check(G)
