"""Matching a fabric to a closed form: its domains, and whether their interconnect ever blocks.

Every node and arc is looked at: one link that is missing, slower or more than the shape has, and
the fabric has no formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from topologies.fabric.fabric import ACCELERATOR, SCALE_UP, SWITCH, Arc, Attributes, Fabric, Node
from topologies.fabric.soundness import unreachable
from topologies.rates.equal_domains import Domains


def inner_nodes(G: Fabric, chips: Sequence[Node]) -> list[Node]:
    """A domain's chips and what its scale-up links reach short of other domains' chips."""
    seen = dict.fromkeys(chips)
    queue = list(chips)
    while queue:
        node = queue.pop()
        for neighbour in (*G.succ[node], *G.pred[node]):
            arc = G.succ[node].get(neighbour) or G.pred[node][neighbour]
            inside = arc["tier"] == SCALE_UP and G.nodes[neighbour]["kind"] != ACCELERATOR
            if inside and neighbour not in seen:
                seen[neighbour] = None
                queue.append(neighbour)
    return list(seen)


def own_links(G: Fabric, inner: Sequence[Node]) -> Fabric | None:
    """A domain's nodes by its scale-up links alone; None if these do not join its chips."""
    part = G.subgraph(inner).copy()
    part.remove_edges_from([e for e in part.edges if part.edges[e]["tier"] != SCALE_UP])
    return None if any(True for _ in unreachable(part)) else part


def shape_of(G: Fabric, chips: Sequence[Node]) -> Domains | None:
    """The closed form that describes a one-domain fabric, or None.

    A switch or several planes of switches, a mesh of chips that do not relay, or a box of a
    torus of chips that do; None for anything else.
    """
    if len(chips) < 2 or len({arc["latency"] for _, _, arc in G.edges(data=True)}) != 1:
        return None
    return _star(G, chips) or _mesh(G, chips) or _box(G, chips)


def interconnect_of(
    G: Fabric, domains: Sequence[Sequence[Node]]
) -> tuple[float, float, str] | None:
    """Rate [byte/s] and latency [s] of every chip's own link into a layer that never blocks.

    `G` holds the arcs between the domains alone. The layer is a `spine`, one switch for all
    chips, or `rails`, one for all chips of equal place; None for anything else.
    """
    ends: dict[Node, list[Node]] = {}
    figures: set[tuple[float, float]] = set()
    for members in domains:
        for chip in members:
            if len(G.succ[chip]) != 1 or set(G.succ[chip]) != set(G.pred[chip]):
                return None
            (above,) = G.succ[chip]
            figures |= {_figures(G.edges[chip, above]), _figures(G.edges[above, chip])}
            ends.setdefault(above, []).append(chip)
    arcs = 2 * sum(map(len, domains))
    if len(figures) != 1 or G.number_of_edges() != arcs or not _switches(G, list(ends)):
        return None
    rails = [list(rail) for rail in zip(*domains, strict=False)]
    if len(ends) > 1 and sorted(map(repr, ends.values())) != sorted(map(repr, rails)):
        return None
    return *figures.pop(), "rails" if len(ends) > 1 else "spine"


def _star(G: Fabric, chips: Sequence[Node]) -> Domains | None:
    members = set(chips)
    centres = [node for node in G if node not in members]
    if not centres or not _switches(G, centres):
        return None
    rates = [G.succ[centre].get(chips[0], {}).get("bandwidth", 0.0) for centre in centres]
    both = {
        arc: rate
        for centre, rate in zip(centres, rates, strict=True)
        for chip in chips
        for arc in ((centre, chip), (chip, centre))
    }
    up = float(sum(rates))
    formula = Domains("switch", len(chips), up, (up,), _latency(G))
    return formula if both == _bandwidths(G) else None


def _mesh(G: Fabric, chips: Sequence[Node]) -> Domains | None:
    n = len(chips)
    rates = {arc["bandwidth"] for _, _, arc in G.edges(data=True)}
    relays = any(G.nodes[chip]["forward"] for chip in chips)
    if len(G) != n or G.number_of_edges() != n * (n - 1) or len(rates) != 1 or relays:
        return None
    link = float(rates.pop())
    return Domains("mesh", n, link * (n - 1), (link,), _latency(G))


def _box(G: Fabric, chips: Sequence[Node]) -> Domains | None:
    at: dict[tuple[int, ...], Node] = {G.nodes[chip].get("coord", ()): chip for chip in chips}
    relays = all(G.nodes[chip]["forward"] for chip in chips)
    if len(at) != len(chips) or len(G) != len(chips) or () in at or not relays:
        return None
    sides = tuple(1 + max(places) for places in zip(*at, strict=True))
    if prod(sides) != len(at) or any(place not in at for place in product(*map(range, sides))):
        return None
    first = next(iter(at))
    links, rings = [], []
    expected: dict[Arc, float] = {}
    for d, side in enumerate(sides):
        line = [at[(*first[:d], x, *first[d + 1 :])] for x in range(side)]
        ring = side > 2 and G.has_edge(line[0], line[-1])
        link = G.succ[line[0]].get(line[min(1, side - 1)], {"bandwidth": 1.0})["bandwidth"]
        for place, chip in at.items() if side > 1 else ():
            if ring or place[d] + 1 < side:
                neighbour = at[(*place[:d], (place[d] + 1) % side, *place[d + 1 :])]
                expected |= {(chip, neighbour): link, (neighbour, chip): link}
        links.append(float(link))
        rings.append(ring or side <= 2)
    if expected != _bandwidths(G):
        return None
    up = float(min(G.out_degree(chip, weight="bandwidth") for chip in chips))
    return Domains("torus", len(chips), up, tuple(links), _latency(G), sides, tuple(rings))


def _switches(G: Fabric, nodes: Sequence[Node]) -> bool:
    return all(G.nodes[v]["kind"] == SWITCH and G.nodes[v]["forward"] for v in nodes)


def _bandwidths(G: Fabric) -> dict[Arc, float]:
    return {(u, v): arc["bandwidth"] for u, v, arc in G.edges(data=True)}


def _figures(arc: Attributes) -> tuple[float, float]:
    return float(arc["bandwidth"]), float(arc["latency"])


def _latency(G: Fabric) -> float:
    return float(next(iter(G.edges(data="latency")))[2])
