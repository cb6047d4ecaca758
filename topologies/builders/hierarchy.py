"""Copies of a fabric joined to a larger one: racks of nodes, pods of racks.

What joins them is a `spine`, one non-blocking switch `("spine",)`; or `rails`, a switch
`("rail", i)` for the ends of rank i of all copies; or a `clos` network of leaves, spines and, with
three levels, cores.

Whether an accelerator passes on what is not its own is said by `relay`. `none`: as the domain
says. `all`: yes, anything. `pxn`: a sender may hand over to the network card of another chip of
its copy through their switch, as NCCL does, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from topologies.builders.arguments import check_arguments, choice_fault
from topologies.builders.copies import RELAYS, copied, ports_of, relayed
from topologies.builders.interconnects import JOINTS, Trunks, joined, trunk_faults
from topologies.fabric.fabric import Fabric
from topologies.fabric.validation import check

ENDS = ("accelerators", "switches")


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

    Parameters
    ----------
    out, latency : float
        Bandwidth of each end's link outwards [byte/s one way]; latency of all new links [s].
    join : str
        `spine`, `rails` or `clos`.
    at : str
        The ends: all `accelerators` of a copy, or those `switches` farthest from them.
    relay : str, optional
        `none`, `pxn` or `all`; if not given `all` on rails without spines, else `none`.
    leaf, levels, oversubscription, spines, pod, cores, rail_optimised
        As for `clos`; for rails, `oversubscription` puts `spines` above them.

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
    words = {"join": (join, JOINTS), "at": (at, ENDS), "relay": (relay or "none", RELAYS)}
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
    G, ports = copied(domain, count, ports_of(domain, at))
    ports = relayed(G, ports, relay or ("all" if bare else "none"), out)
    joined(G, ports, join, trunks, out, latency)
    return check(G)
