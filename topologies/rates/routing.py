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

from topologies.errors import TopologyError, meant
from topologies.fabric import Fabric, accelerators
from topologies.rates.paths import Demand, Paths
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
    weight = _even_weight(G, traffic)
    demands = _demands(paths, traffic) if weight is None else _classes(G, paths, weight)
    load = np.zeros(len(paths.arcs))
    size = max(1, BATCH // len(paths.arcs))
    for start in range(0, len(demands), size):
        load += paths.loads(demands[start : start + size], by_path=split == "path")
    if weight is not None:
        load = _evened(G, load)
    used = load > 0
    rate = float((paths.bandwidth[used] / load[used]).min())
    return Routed(rate, tuple(paths.arcs), load, paths.bandwidth)


def _even_weight(G: Fabric, traffic: Traffic) -> float | None:
    """The weight, if the traffic is as symmetric as the fabric declares itself to be."""
    if not G.graph.get("orbits") or traffic.sent or len(traffic.exchanges) != 1:
        return None
    (what,) = traffic.exchanges
    everyone = len(what.groups) == 1 and len(what.groups[0]) == len(accelerators(G))
    return what.weight if everyone else None


def _classes(G: Fabric, paths: Paths, weight: float) -> list[Demand]:
    """One chip of each orbit as the destination of all others."""
    same: dict[Any, list[int]] = {}
    for chip in accelerators(G):
        same.setdefault(G.nodes[chip]["orbit"], []).append(paths.place[chip])
    chips = np.concatenate([np.array(places) for places in same.values()])
    return [_gathered(alike[0], chips, weight, len(alike)) for alike in same.values()]


def _demands(paths: Paths, traffic: Traffic) -> list[Demand]:
    """What is sent to each destination."""
    demands: list[Demand] = []
    for what in traffic.exchanges:
        for group in what.groups:
            members = np.array([paths.place[chip] for chip in group])
            demands += [_gathered(int(t), members, what.weight) for t in members if len(group) > 1]
    into: dict[int, list[tuple[int, float]]] = {}
    for a, b, weight in traffic.sent:
        into.setdefault(paths.place[b], []).append((paths.place[a], weight))
    for target, sent in into.items():
        sources, weights = zip(*sent, strict=True)
        # One source may send to a destination twice.
        places, which = np.unique(np.array(sources), return_inverse=True)
        total = np.asarray(np.bincount(which, weights), dtype=float)
        demands.append(Demand(target, places, total))
    return demands


def _gathered(target: int, members: NDArray[np.int64], weight: float, times: int = 1) -> Demand:
    sources = members[members != target]
    return Demand(target, sources, np.full(sources.size, float(weight)), float(times))


def _evened(G: Fabric, load: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loads as they are once every chip of an orbit has been the destination."""
    place: dict[Any, int] = {}
    labels: list[Any] = [label for *_, label in G.edges(data="orbit")]
    orbit = np.array([place.setdefault(label, len(place)) for label in labels])
    total = np.bincount(orbit, load)
    return np.asarray((total / np.bincount(orbit))[orbit])
