"""Accelerators wired each to each: the eight of an MI300X board."""

from __future__ import annotations

from itertools import combinations

from topologies.builders.arguments import given
from topologies.fabric.fabric import ACCELERATOR, Fabric, fabric
from topologies.fabric.fabric import link as add_link
from topologies.fabric.validation import check

__all__ = ["mesh"]


def mesh(chips: int, *, link: float, latency: float = 0.0, relay: bool = False) -> Fabric:
    """`chips` accelerators `(i,)` with one link for each pair.

    Parameters
    ----------
    link : float
        Bandwidth of the link between two chips. [byte/s one way]
    latency : float
        Of that link. [s]
    relay : bool
        Whether chips pass on the traffic of others; those of an MI300X board do not.

    >>> mesh(4, link=64e9).number_of_edges()
    12
    """
    given(
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
