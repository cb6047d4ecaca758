"""What no routing can beat on any fabric: every byte takes as many links as its way is long.

The rate is an upper bound for an all-to-all, and reached where symmetries take every chip to
every other and every link to every other: there, shortest ways fill all links alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from topologies.fabric.distances import Paths
from topologies.fabric.fabric import Fabric, accelerators
from topologies.rates.members import chosen

__all__ = ["hop_bound"]


def hop_bound(G: Fabric, members: Iterable[Hashable] | None = None) -> float:
    """All-to-all rate per ordered pair of members that the links of `G` allow at most. [byte/s]

    Parameters
    ----------
    members : iterable of nodes, optional
        Who takes part; all accelerators if not given.

    Raises
    ------
    TopologyError
        When a member is no accelerator or named twice, there are fewer than two, or no
        permitted path joins two of them.

    Notes
    -----
    A pair at rate theta over h links uses h theta of their capacity at least, so theta times
    the hops of all pairs is at most the sum of all bandwidths. Arcs that no permitted path of
    these pairs may take are not counted: those out of chips that neither take part nor relay,
    and those into them. Declared orbits spare the distances from all but one chip of each.

    >>> from topologies import torus
    >>> hop_bound(torus((4, 4), link=64e9))
    8000000000.0
    """
    group = chosen("hop_bound", G, members)
    sources: Counter[Any] = Counter()
    if G.graph.get("orbits") and len(group) == len(accelerators(G)):
        first: dict[Any, Any] = {}
        for chip in group:
            sources[first.setdefault(G.nodes[chip]["orbit"], chip)] += 1
    else:
        sources.update(group)
    far = Paths(G).distances(list(sources), group).hops.sum(axis=1)
    hops = sum(int(h) * times for h, times in zip(far, sources.values(), strict=True))
    part = set(group)
    usable = {node for node, forward in G.nodes(data="forward") if forward or node in part}
    rate = sum(arc["bandwidth"] for u, v, arc in G.edges(data=True) if {u, v} <= usable)
    return float(rate / hops)
