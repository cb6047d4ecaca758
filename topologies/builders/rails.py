"""Nodes of chips on a switch, and a network in which every card hangs on the rail of its rank."""

from __future__ import annotations

from topologies.builders.arguments import check_arguments, choice_fault
from topologies.builders.copies import RELAYS
from topologies.builders.hierarchy import hierarchy
from topologies.builders.interconnects import Trunks, trunk_faults
from topologies.builders.switches import switch
from topologies.fabric.fabric import Fabric


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

    Parameters
    ----------
    up, out : float
        Of a chip into the switch of its node, and of its network card. [byte/s one way]
    latency, out_latency : float
        Of a link inside a node, and of one to a rail or above. [s]
    relay : str
        `all`: chips pass on what is not theirs, so that ranks of different nodes meet. `pxn`:
        a sender writes into the card of the receiver's rank through the switch of its node.
        `none`: neither, which needs a spine.
    oversubscription : float, optional
        o of o:1 between a rail's cards and its links to `spines`; without it there are none.
    in_network_reduce : bool
        Whether the switches inside the nodes can add what passes through them.

    >>> G = rails(2, 8, up=450e9, out=50e9)
    >>> len(G), G.number_of_edges()
    (26, 64)
    """
    _check(nodes, chips, up, out, latency, out_latency, relay, oversubscription, spines)
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


def _check(
    nodes: int,
    chips: int,
    up: float,
    out: float,
    latency: float,
    out_latency: float,
    relay: str,
    oversubscription: float | None,
    spines: int,
) -> None:
    """Raise if any argument is unsound."""
    trunks = Trunks(oversubscription=oversubscription, spines=spines)
    check_arguments(
        "rails",
        counts={"nodes": nodes, "chips": chips},
        rates={"up": up, "out": out},
        latencies={"latency": latency, "out_latency": out_latency},
        others=[choice_fault("relay", relay, RELAYS), *trunk_faults("rails", trunks)],
    )
