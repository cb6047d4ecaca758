"""Bisection bandwidth: the narrowest of the halvings that one would try first.

A torus is halved across each of its sides; anything else between the first and the last half of
its accelerators, domain after domain. The narrowest of all halvings is hard to find and may be
narrower still where a fabric is irregular.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from topologies.fabric.fabric import Arc, Fabric, Node, accelerators
from topologies.fabric.limits import TopologyError

SOURCE, SINK = ("first half",), ("last half",)


@dataclass(frozen=True)
class Bisection:
    """The narrowest of the halvings that were looked at.

    Attributes
    ----------
    rate
        From one half to the other, the slower of the two directions. [byte/s]
    chips
        Accelerators of the smaller half.
    across
        What is halved: `domains`, `chips`, or a side of a torus, `x`, `y` or `z`.
    """

    rate: float
    chips: int
    across: str


def bisection(G: Fabric) -> Bisection:
    """Bisection bandwidth of the accelerators [byte/s], the narrowest of the cuts tried.

    Raises
    ------
    TopologyError
        When there are fewer than two accelerators.

    >>> from topologies import torus
    >>> bisection(torus((16, 16), link=50e9)).rate
    1600000000000.0
    """
    chips = accelerators(G)
    if len(chips) < 2:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", "one accelerator has no halves")
    bisections = []
    for across, half in _partitions(G, chips):
        rest = set(chips) - half
        rate = min(_between(G, half, rest), _between(G, rest, half))
        bisections.append(Bisection(rate, min(len(half), len(rest)), across))
    return min(bisections, key=lambda cut: cut.rate)


def _partitions(G: Fabric, chips: list[Node]) -> Iterator[tuple[str, set[Node]]]:
    """Ways to halve the accelerators, and the first half of each."""
    domains = dict.fromkeys(G.nodes[chip]["domain"] for chip in chips)
    coords = [tuple(c) for chip in chips if (c := G.nodes[chip].get("coord")) is not None]
    if len(domains) == 1 and len(coords) == len(chips) and set(map(len, coords)) <= {1, 2, 3}:
        for d in range(min(map(len, coords))):
            if len({c[d] for c in coords}) > 1:
                # The middle layer of an odd side is divided, so that halves are halves.
                layers = sorted((c[d], c, i) for i, c in enumerate(coords))
                yield "xyz"[d], {chips[i] for *_, i in layers[: len(layers) // 2]}
        return
    order = {name: i for i, name in enumerate(domains)}
    ranked = sorted(chips, key=lambda chip: order[G.nodes[chip]["domain"]])
    yield "domains" if len(domains) > 1 else "chips", set(ranked[: len(ranked) // 2])


def _between(G: Fabric, sources: set[Node], sinks: set[Node]) -> float:
    """The narrowest cut between two sets that hold every accelerator, each drawn to a point.

    Who forwards does not matter: what a chip of a set relays it may as well send itself.
    """
    place = dict.fromkeys(sources, SOURCE) | dict.fromkeys(sinks, SINK)
    capacity: dict[Arc, float] = defaultdict(float)
    for u, v, data in G.edges(data=True):
        a, b = place.get(u, ("node", u)), place.get(v, ("node", v))
        if a not in (b, SINK) and b != SOURCE:
            capacity[a, b] += data["bandwidth"]
    straight = capacity.pop((SOURCE, SINK), 0.0)
    if not capacity:
        return straight
    small: nx.DiGraph[Node] = nx.DiGraph()
    small.add_nodes_from((SOURCE, SINK))
    small.add_edges_from((a, b, {"capacity": rate}) for (a, b), rate in capacity.items())
    return straight + float(nx.maximum_flow_value(small, SOURCE, SINK))
