"""Accelerators wired each to each: the eight of an MI300X board."""

from __future__ import annotations

from itertools import combinations

from topologies.builders.given import counted
from topologies.fabric import ACCELERATOR, Fabric, fabric
from topologies.fabric import link as add_link
from topologies.faults import check

__all__ = ["mesh"]


def mesh(chips: int, *, link: float, latency: float = 0.0) -> Fabric:
    """`chips` accelerators `(i,)` with one link for each pair; none relays for another.

    Parameters
    ----------
    link : float
        Bandwidth of the link between two chips. [byte/s one way]
    latency : float
        Of that link. [s]

    >>> mesh(4, link=64e9).number_of_edges()
    12
    """
    counted("mesh", chips=chips)
    G = fabric(f"{chips} chips each wired to each", orbits=True)
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=False, domain=0, orbit="chip")
    for i, j in combinations(range(chips), 2):
        add_link(G, (i,), (j,), bandwidth=link, latency=latency, orbit="pair")
    return check(G)
