"""Who of a copy may send through the network card of another."""

from __future__ import annotations

from topologies.builders.copies import End, Ports, fresh
from topologies.fabric.errors import TopologyError
from topologies.fabric.fabric import ACCELERATOR, NIC, SCALE_OUT, SWITCH, Fabric, link

__all__ = ["RELAYS", "relayed"]

RELAYS = ("none", "pxn", "all")


def relayed(G: Fabric, ports: Ports, relay: str, out: float) -> Ports:
    """Grant the permission on `G`; the ends that then lead out.

    With `pxn` every chip has a card `(..., "card")` through which it sends, a node of its own
    into which the switches beside the chip write too: its rate is what the chip and its peers
    share. What arrives goes to the chip itself. That the hand-over crosses the memory of the
    card's own chip is not charged to the links of that chip.

    Raises
    ------
    TopologyError
        With `pxn`, when the ends are no accelerators, or one has no switch beside it through
        which its peers reach its card.
    """
    if relay == "none":
        return ports
    if relay == "all":
        for node, kind in list(G.nodes(data="kind")):
            if kind == ACCELERATOR:
                G.nodes[node]["forward"] = True
        return ports
    chips = [end.receiver for copy in ports for end in copy]
    beside = {chip: [v for v in G.succ[chip] if G.nodes[v]["kind"] == SWITCH] for chip in chips}
    if any(G.nodes[chip]["kind"] != ACCELERATOR for chip in chips):
        raise TopologyError("hierarchy", "relay is 'pxn', which needs at='accelerators'")
    for chip, switches in beside.items():
        if not switches:
            told = f"relay is 'pxn' and {chip!r} has no switch inside its domain; use 'all'"
            raise TopologyError("hierarchy", told)
    declared = G.graph["orbits"]
    card, own, peers = fresh(G, "card", "to card", "peers to card")
    for chip, switches in beside.items():
        nic, of = (*chip, "card"), f" of {G.nodes[chip].get('orbit')}"
        G.add_node(nic, kind=NIC, forward=True, **({"orbit": card + of} if declared else {}))
        # The card sits beside its chip: the latency of the way out is that of the cable.
        for source in (chip, *switches):
            lane = own if source == chip else f"{peers} by {G.edges[source, chip].get('orbit')}"
            orbit = lane + of if declared else None
            link(G, source, nic, bandwidth=out, tier=SCALE_OUT, one_way=True, orbit=orbit)
    return [[End((*end.receiver, "card"), end.receiver) for end in copy] for copy in ports]
