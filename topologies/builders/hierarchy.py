"""Scale-up domains joined by their network cards through one non-blocking spine."""

from __future__ import annotations

from topologies.builders.given import counted
from topologies.errors import TopologyError
from topologies.fabric import ACCELERATOR, SCALE_OUT, SWITCH, Fabric, accelerators, fabric, link
from topologies.faults import check

__all__ = ["hierarchy"]


def hierarchy(domain: Fabric, count: int, *, out: float, latency: float = 0.0) -> Fabric:
    """`count` copies of `domain`, every accelerator with a link of its own to the spine.

    Node `v` of copy `r` is `(r, *v)`; the spine is `("spine",)`.

    Parameters
    ----------
    domain : DiGraph
        One scale-up domain, as built by `switch`, `mesh` or `torus`.
    out : float
        Bandwidth of one chip's network card. [byte/s one way]
    latency : float
        From a chip to the spine: two such lie between chips of different domains. [s]

    >>> from topologies import switch
    >>> G = hierarchy(switch(4, up=8.0), 2, out=1.0)
    >>> len(G), G.number_of_edges()
    (11, 32)
    """
    counted("hierarchy", count=count)
    check(domain)
    spine = ("spine",)
    if any(domain.nodes[chip]["domain"] != 0 for chip in accelerators(domain)):
        raise TopologyError("hierarchy", "the domain to copy holds several domains already")
    orbits = bool(domain.graph["orbits"])
    G = fabric(f"{count} times {domain.graph['name']}", orbits=orbits)
    G.add_node(spine, kind=SWITCH, forward=True, **({"orbit": "spine"} if orbits else {}))
    for r in range(count):
        for node, data in domain.nodes(data=True):
            G.add_node((r, *node), **data)
            if data["kind"] == ACCELERATOR:
                G.nodes[r, *node]["domain"] = r
        for u, v, data in domain.edges(data=True):
            G.add_edge((r, *u), (r, *v), **data)
    for chip in accelerators(G):
        label = ("out", "in") if orbits else None
        link(G, chip, spine, bandwidth=out, latency=latency, tier=SCALE_OUT, orbit=label)
    return check(G)
