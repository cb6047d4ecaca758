"""Who of a copy may send through the network card of another."""

from __future__ import annotations

from topologies.builders.copies import Ports, fresh
from topologies.errors import TopologyError
from topologies.fabric import ACCELERATOR, NIC, SCALE_OUT, SWITCH, Fabric
from topologies.fabric import link as add_link

__all__ = ["RELAYS", "relayed"]

RELAYS = ("none", "pxn", "all")


def relayed(G: Fabric, ports: Ports, relay: str, out: float, latency: float) -> Ports:
    """Grant the permission on `G`; the ends that then lead out.

    With `pxn` every chip has a card `(..., "card")`, a node of its own, into which the chip's
    switch can also write; the card's rate is what the chip and its peers share. That the
    hand-over crosses the memory of the card's own chip is not charged to the chip's links.

    Raises
    ------
    TopologyError
        With `pxn`, when a chip that does not forward has no switch through which to reach the
        card of another.
    """
    if relay == "all":
        for node, kind in list(G.nodes(data="kind")):
            if kind == ACCELERATOR:
                G.nodes[node]["forward"] = True
        return ports
    if any(G.nodes[port]["kind"] != ACCELERATOR for copy in ports for port in copy):
        raise TopologyError("hierarchy", "relay is 'pxn', which needs at='accelerators'")
    card, to_card, from_card, by_peers = fresh(G, "card", "to card", "from card", "peers to card")
    cards = []
    for copy in ports:
        cards.append([(*chip, "card") for chip in copy])
        for chip, nic in zip(copy, cards[-1], strict=True):
            own = f" of {G.nodes[chip]['orbit']}" if G.graph["orbits"] else ""
            orbit = {"orbit": card + own} if G.graph["orbits"] else {}
            G.add_node(nic, kind=NIC, forward=True, **orbit)
            _wire(G, chip, nic, out, (to_card + own, from_card + own), one_way=False)
            switches = [v for v in G.succ[chip] if G.nodes[v]["kind"] == SWITCH]
            if not switches:
                raise TopologyError(
                    "hierarchy",
                    f"relay is 'pxn' and {chip!r} has no switch inside its domain; use 'all'",
                )
            for centre in switches:
                lane = f" from {G.edges[centre, chip].get('orbit')}"
                _wire(G, centre, nic, out, (by_peers + own + lane,) * 2, one_way=True)
    return cards


def _wire(
    G: Fabric, a: object, b: object, rate: float, orbit: tuple[str, str], *, one_way: bool
) -> None:
    # The card sits on its chip's board: the latency of the way out is that of the cable.
    label = orbit if G.graph["orbits"] else None
    add_link(G, a, b, bandwidth=rate, tier=SCALE_OUT, one_way=one_way, orbit=label)
