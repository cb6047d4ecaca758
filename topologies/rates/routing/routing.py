"""What a fabric carries when traffic takes shortest paths only and splits evenly where they part.

This is what equal-cost multipath switches do: each hop divides a flow evenly over the cables that
lie on a shortest permitted path to the destination, blind to load. Shortest is fewest hops, then
least latency, as everywhere in this package: of two ways of two hops the cards of a node lose
against its own switch. The rate is at most the optimal one, and as high on fabrics as regular as
tori, rails and fat trees.

Alternatively every shortest path carries the same (`split="path"`): edge betweenness. The two
differ where branches have unequal numbers of paths behind them, which no switch can know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topologies.fabric.errors import TopologyError, meant
from topologies.fabric.fabric import Fabric
from topologies.rates.flow_network import Demand, demand
from topologies.rates.routing.paths import Paths, Sent
from topologies.rates.symmetry.automorphisms import Orbits
from topologies.rates.symmetry.orbits import orbits
from topologies.rates.traffic import Traffic, traffic_checked

__all__ = ["SPLITS", "Routed", "ecmp"]

SPLITS = ("hop", "path")
# Places looked at together, arcs or nodes times destinations: some hundred megabytes.
BATCH = 2_000_000
# Arcs whose loads are this near to the fullest are full too.
NEAR = 1e-9


@dataclass(frozen=True, eq=False)
class Routed:
    """Traffic on its paths.

    Attributes
    ----------
    rate
        How fast every demand can be served at once, per unit of weight: for an all-to-all of
        weight 1, of each ordered pair. [byte/s]
    arcs
        The arcs of the fabric, in its order.
    load
        What each of them carries when every demand is served at 1 byte/s per unit of weight.
        [byte/s]
    bandwidth
        Of each arc. [byte/s]
    """

    rate: float
    arcs: tuple[tuple[Any, Any], ...]
    load: NDArray[np.float64]
    bandwidth: NDArray[np.float64]

    @cached_property
    def binding(self) -> tuple[tuple[Any, Any], ...]:
        """The arcs that are full."""
        full = self.load * self.rate >= self.bandwidth * (1 - NEAR)
        return tuple(self.arcs[i] for i in np.flatnonzero(full).tolist())


def ecmp(G: Fabric, traffic: Traffic, *, split: str = "hop") -> Routed:
    """The rate of `traffic` on the shortest permitted paths, evenly split.

    Parameters
    ----------
    split : {"hop", "path"}
        Even over the cables of each hop, as switches do, or over whole paths.

    Raises
    ------
    TopologyError
        When the traffic cannot be sent, or no permitted path joins a source and its destination.

    >>> from topologies import switch
    >>> from topologies.rates.traffic import all_to_all
    >>> ecmp(switch(4, up=3.0), all_to_all([(0,), (1,), (2,), (3,)])).rate
    1.0
    """
    if split not in SPLITS:
        raise TopologyError("ecmp", f"unknown split {split!r}; {meant(split, SPLITS)}")
    traffic_checked(G, traffic)
    paths = Paths(G)
    what = demand(paths.net, traffic)
    found = orbits(paths.alike(), what)
    parts = _parts(what, found)
    load = np.zeros(paths.cables.size)
    size = max(1, BATCH // load.size)
    for start in range(0, len(parts), size):
        load += paths.loads(parts[start : start + size], by_path=split == "path")
    # What one destination of an orbit draws over one arc, another draws over another.
    _, orbit = np.unique(found.arcs, return_inverse=True)
    load = (np.bincount(orbit, load) / np.bincount(orbit))[orbit]
    used = load > 0
    bandwidth = paths.net.bandwidth
    rate = float((bandwidth[used] / load[used]).min())
    return Routed(rate, tuple(map(paths.net.arc, range(load.size))), load, bandwidth)


def _parts(what: Demand, found: Orbits) -> list[Sent]:
    """What is sent to one destination of each orbit."""
    of: dict[int, list[int]] = {}
    for g, members in enumerate(what.groups):
        for member in members.tolist():
            of.setdefault(member, []).append(g)
    pairs = what.sent.tocsc()
    targets = np.union1d(np.array(list(of), dtype=np.int64), pairs.nonzero()[1])
    _, first, times = np.unique(found.nodes[targets], return_index=True, return_counts=True)
    parts = []
    for target, count in zip(targets[first].tolist(), times.tolist(), strict=True):
        weights = pairs[:, [target]].toarray()[:, 0]
        for g in of.get(target, []):
            weights[what.groups[g]] += what.weights[g]
        weights[target] = 0.0
        sources = np.flatnonzero(weights)
        parts.append(Sent(target, sources, weights[sources], float(count)))
    return parts
