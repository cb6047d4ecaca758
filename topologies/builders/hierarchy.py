"""Copies of a fabric joined to a larger one: racks of nodes, pods of racks."""

from __future__ import annotations

from collections.abc import Sequence

from topologies.builders.copies import copied, ports_of
from topologies.builders.given import choice_fault, given
from topologies.builders.joints import Trunks, join_clos, join_rails, join_spine, trunk_faults
from topologies.builders.relays import RELAYS, relayed
from topologies.fabric import Fabric
from topologies.faults import check

__all__ = ["hierarchy"]

JOINTS = ("spine", "rails", "clos")
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
    """`count` copies of `domain`, any fabric, joined by one network.

    Node `v` of copy `r` is `(r, *v)`. The domain may be a hierarchy itself.

    Parameters
    ----------
    out : float
        Bandwidth of each end's link into the joining network. [byte/s one way]
    latency : float
        Of every link of the joining network. [s]
    join : str
        `spine`: one non-blocking switch `("spine",)`. `rails`: a switch `("rail", i)` for the
        ends of rank i of all copies. `clos`: leaves, spines and, with three levels, cores.
    at : str
        Which ends of a copy carry the links: its `accelerators`, or its topmost `switches`
        (those farthest from its accelerators).
    relay : str, optional
        May an accelerator pass on what is not its own? `none`: as the domain says. `all`: yes,
        anything. `pxn`: a sender may hand over to the network card of another chip of its copy
        through their switch, as NCCL does, and nothing else. Rails without a spine above them
        need one or the other: `all` unless said. Elsewhere `none` unless said.
    leaf, levels, oversubscription, spines, pod, cores, rail_optimised
        As for `clos`; for rails, `oversubscription` puts `spines` above them.

    Raises
    ------
    TopologyError
        Listing every argument that is unsound or does not fit the others.

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
    if relay is None:
        relay = "all" if join == "rails" and oversubscription is None else "none"
    given(
        "hierarchy",
        counts={"count": count},
        rates={"out": out},
        latencies={"latency": latency},
        flags={"rail_optimised": rail_optimised},
        others=[
            choice_fault("join", join, JOINTS),
            choice_fault("at", at, ENDS),
            choice_fault("relay", relay, RELAYS),
            *trunk_faults(join, trunks),
        ],
    )
    check(domain)
    G, ports = copied(domain, count, ports_of(domain, at))
    if relay != "none":
        ports = relayed(G, ports, relay, out)
    if join == "spine":
        join_spine(G, ports, out, latency)
    elif join == "rails":
        join_rails(G, ports, out, latency, trunks)
    else:
        join_clos(G, ports, out, latency, trunks)
    return check(G)
