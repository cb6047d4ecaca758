"""Clos networks: leaves, spines and cores, each level as thin as its oversubscription says.

Leaves are `("leaf", l)`, spines `("spine", s)`; with three levels the spines of pod q are
`("spine", q, s)` and the cores `("core", c)`. Rail-optimised leaves are `("leaf", group, rank)`.
Oversubscription o of o:1 is what may enter a switch from below over what may leave it above; a
leaf that is not full has the links above it all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from topologies.builders.arguments import check_arguments
from topologies.builders.copies import End
from topologies.builders.hierarchy import hierarchy
from topologies.builders.interconnects import Trunks, join_clos, trunk_faults
from topologies.fabric.fabric import ACCELERATOR, Fabric, accelerators, fabric
from topologies.fabric.limits import TopologyError, count_fault
from topologies.fabric.validation import check


def clos(
    chips: int,
    *,
    out: float,
    leaf: int,
    latency: float = 0.0,
    levels: int = 2,
    oversubscription: float | Sequence[float] = 1.0,
    spines: int = 1,
    pod: int | None = None,
    cores: int = 1,
    domain: Fabric | None = None,
    rail_optimised: bool = False,
    relay: str = "none",
) -> Fabric:
    """`chips` accelerators `(i,)`, or the domains they come in, below a Clos network.

    Parameters
    ----------
    out, latency : float
        Bandwidth of a chip's network card [byte/s one way], latency of every link [s].
    leaf : int
        Cards on one leaf switch.
    levels : int
        2, leaves and spines, or 3, with cores above `pod` leaves and their spines.
    oversubscription : float or one per level above the leaves
        o of o:1 above the leaves and, with three levels, above the pods.
    spines, cores : int
        Switches above each leaf (in each pod), and above the pods, with equal shares.
    domain : DiGraph, optional
        The scale-up domain that the chips come in; `chips` counts all of them.
    rail_optimised : bool
        Whether chips of equal rank share a leaf, instead of those of a domain.
    relay : str
        As for `hierarchy`.

    >>> G = clos(16, out=50e9, leaf=4, oversubscription=2, spines=2)
    >>> len(G), G.edges[("leaf", 0), ("spine", 1)]["bandwidth"]
    (22, 50000000000.0)
    """
    trunks = Trunks(leaf, levels, oversubscription, spines, pod, cores, rail_optimised)
    if domain is None:
        return _alone(chips, trunks, out, latency, relay)
    return hierarchy(
        domain,
        _copies(chips, domain),
        out=out,
        latency=latency,
        join="clos",
        relay=relay,
        **asdict(trunks),
    )


def _alone(chips: int, trunks: Trunks, out: float, latency: float, relay: str) -> Fabric:
    """Chips that are a domain each."""
    alone = "{} is given without a domain: chips below leaves have no others beside them"
    check_arguments(
        "clos",
        counts={"chips": chips},
        rates={"out": out},
        latencies={"latency": latency},
        others=[
            *trunk_faults("clos", trunks),
            alone.format("rail_optimised") if trunks.rail_optimised else None,
            alone.format("relay") if relay != "none" else None,
        ],
    )
    G = fabric(f"{chips} chips below {trunks.levels} levels of switches", orbits=True)
    for i in range(chips):
        G.add_node((i,), kind=ACCELERATOR, forward=False, domain=i, orbit="chip")
    join_clos(G, [[End((i,), (i,))] for i in range(chips)], out, latency, trunks)
    return check(G)


def _copies(chips: int, domain: Fabric) -> int:
    """Number of copies of the domain that hold `chips` chips."""
    size = len(accelerators(domain))
    fault = count_fault(chips)
    if fault is None and chips % size:
        below = chips - chips % size
        fault = f"is {chips}, not whole domains of {size}; {below} or {below + size} are"
    if fault is not None:
        raise TopologyError("clos", f"chips {fault}")
    return chips // size
