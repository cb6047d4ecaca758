"""Figures of a fabric: members of a domain, hops and latency between chips, rate of a path.

Paths are those that the fabric permits: every node between the two ends forwards. Among them
the one with fewest hops counts, then the one of least latency, then the widest.

For the bisection bandwidth a torus is halved across each of its sides; anything else between the
first and the last half of its accelerators, domain after domain. The narrowest of all halvings is
hard to find and may be narrower still where a fabric is irregular.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import networkx as nx

from topologies.fabric import fabric
from topologies.fabric.fabric import Arc, Fabric, Node, cached_per_fabric
from topologies.fabric.limits import TopologyError


def domain(G: Fabric, chip: Hashable) -> list[Node]:
    """The accelerators in the scale-up domain of `chip`, itself among them.

    Raises TopologyError when it is no accelerator.
    """
    here = _domain_of(G, chip)
    chips = G.nodes(data=True)
    return [n for n, data in chips if data["kind"] == fabric.ACCELERATOR and data["domain"] == here]


def _domain_of(G: Fabric, chip: Hashable) -> Hashable:
    """The name of an accelerator's domain; TopologyError when it is none."""
    data = G.nodes.get(chip, {})
    if data.get("kind") != fabric.ACCELERATOR:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", f"{chip!r} is not an accelerator")
    return data["domain"]


def domain_size(G: Fabric, chip: Hashable) -> int:
    """Number of accelerators in the scale-up domain of `chip`."""
    return len(domain(G, chip))


def slowdown(G: Fabric, chip: Hashable) -> float:
    """Rate of `chip` inside its domain over its rate out of it.

    Raises TopologyError when it is no accelerator, or has no link of one of the two tiers.

    >>> from topologies import hierarchy, switch
    >>> slowdown(hierarchy(switch(4, up=8.0), 2, out=1.0), (0, 0))
    8.0
    """
    _domain_of(G, chip)
    rates = {fabric.SCALE_UP: 0.0, fabric.SCALE_OUT: 0.0}
    for _, _, data in G.out_edges(chip, data=True):
        if data["tier"] in rates:
            rates[data["tier"]] += data["bandwidth"]
    missing = [tier for tier, rate in rates.items() if rate == 0]
    if missing:
        raise TopologyError("slowdown", f"{chip!r} has no {' and no '.join(missing)} link")
    return rates[fabric.SCALE_UP] / rates[fabric.SCALE_OUT]


def hops(G: Fabric, a: Hashable, b: Hashable) -> int:
    """Arcs on the shortest permitted path from `a` to `b`; a switch in between makes it two."""
    return _route(G, a, b).hops


def latency(G: Fabric, a: Hashable, b: Hashable) -> float:
    """Latency summed along the shortest permitted path from `a` to `b`. [s]"""
    return _route(G, a, b).latency


def path_rate(G: Fabric, a: Hashable, b: Hashable) -> float:
    """Bandwidth of the narrowest arc on the shortest permitted path from `a` to `b`. [byte/s]

    Raises TopologyError when `a` and `b` are the same node: no path, hence no rate.
    """
    if a == b:
        raise TopologyError("path_rate", f"{a!r} to itself crosses no link")
    return _route(G, a, b).rate


class _Route(NamedTuple):
    """Figures of the path from one node to another."""

    hops: int
    latency: float
    rate: float


def _route(G: Fabric, a: Hashable, b: Hashable) -> _Route:
    """The permitted path of fewest hops, then of least latency; raises TopologyError."""
    absent = [f"{node!r} is not a node of the fabric" for node in (a, b) if node not in G]
    if absent:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", absent)
    order = count()  # nodes themselves need not be comparable
    queue: list[tuple[int, float, float, int, Node]] = [(0, 0.0, -math.inf, 0, a)]
    done: set[Node] = set()
    while queue:
        steps, late, narrow, _, node = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        if node == b:
            return _Route(steps, late, -narrow)
        if node != a and not G.nodes[node]["forward"]:
            continue
        for after, arc in G.succ[node].items():
            if after not in done:
                width = max(narrow, -arc["bandwidth"])
                entry = (steps + 1, late + arc["latency"], width, next(order), after)
                heapq.heappush(queue, entry)
    raise TopologyError(f"fabric {G.graph.get('name')!r}", f"no permitted path from {a!r} to {b!r}")


SOURCE, SINK = ("first half",), ("last half",)


@dataclass(frozen=True)
class Bisection:
    """Narrowest of the halvings that were evaluated.

    Attributes:
        rate: From one half to the other, the slower of the two directions. [byte/s]
        chips: Accelerators of the smaller half.
        across: What is halved: `domains`, `chips`, or a side of a torus, `x`, `y` or `z`.
    """

    rate: float
    chips: int
    across: str


def bisection(G: Fabric) -> Bisection:
    """Bisection bandwidth of the accelerators [byte/s], the narrowest of the cuts tried.

    Raises TopologyError when there are fewer than two accelerators.

    >>> from topologies import torus
    >>> bisection(torus((16, 16), link=50e9)).rate
    1600000000000.0
    """
    chips = fabric.accelerators(G)
    if len(chips) < 2:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", "one accelerator has no halves")
    bisections = [
        Bisection(min(rates), min(len(half), len(chips) - len(half)), across)
        for across, half, rates in halves(G)
    ]
    return min(bisections, key=lambda cut: cut.rate)


@cached_per_fabric
def halves(G: Fabric) -> list[tuple[str, set[Node], tuple[float, float]]]:
    """Each of `bisection_halves`, and the narrowest cuts both ways between the halves [byte/s]."""
    chips = fabric.accelerators(G)
    halved = bisection_halves(G, chips)
    return [
        (across, half, bidirectional_cuts(G, half, set(chips) - half)) for across, half in halved
    ]


def bisection_halves(G: Fabric, chips: list[Node]) -> Iterator[tuple[str, set[Node]]]:
    """Ways to halve the accelerators, and the first half of each."""
    domains = fabric.by_domain(G, chips)
    coords = [tuple(c) for chip in chips if (c := G.nodes[chip].get("coord")) is not None]
    if len(domains) == 1 and len(coords) == len(chips) and set(map(len, coords)) <= {1, 2, 3}:
        for d in range(min(map(len, coords))):
            if len({c[d] for c in coords}) > 1:
                # The middle layer of an odd side is divided, so that halves are halves.
                layers = sorted((c[d], c, i) for i, c in enumerate(coords))
                yield "xyz"[d], {chips[i] for *_, i in layers[: len(layers) // 2]}
        return
    ranked = [chip for members in domains.values() for chip in members]
    yield "domains" if len(domains) > 1 else "chips", set(ranked[: len(ranked) // 2])


def bidirectional_cuts(G: Fabric, half: set[Node], rest: set[Node]) -> tuple[float, float]:
    """The narrowest cuts there and back between two sets that hold every accelerator. [byte/s]

    Each set is drawn to a point. Who forwards does not matter: what a chip of a set relays it may
    as well send itself.
    """
    there = _narrowest(G, half, rest)
    alike = all(
        v in G.pred[u] and G.pred[u][v]["bandwidth"] == arc["bandwidth"]
        for u, v, arc in G.edges(data=True)
    )
    return there, there if alike else _narrowest(G, rest, half)


def _narrowest(G: Fabric, sources: set[Node], sinks: set[Node]) -> float:
    place = dict.fromkeys(sources, SOURCE) | dict.fromkeys(sinks, SINK)
    capacity: dict[Arc, float] = defaultdict(float)
    for u, v, data in G.edges(data=True):
        a, b = place.get(u, ("node", u)), place.get(v, ("node", v))
        if a not in (b, SINK) and b != SOURCE:
            capacity[a, b] += data["bandwidth"]
    straight = capacity.pop((SOURCE, SINK), 0.0)
    return straight + _largest_flow(tuple(capacity.items())) if capacity else straight


@lru_cache(maxsize=4)  # groups of every size are halved where the fabric is
def _largest_flow(capacity: tuple[tuple[Arc, float], ...]) -> float:
    small: nx.DiGraph[Node] = nx.DiGraph()
    small.add_nodes_from((SOURCE, SINK))
    small.add_edges_from((a, b, {"capacity": rate}) for (a, b), rate in capacity)
    return float(nx.maximum_flow_value(small, SOURCE, SINK))
