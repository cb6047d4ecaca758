"""The inside of one scale-up domain: how it is wired, its formula, and how groups lie in it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product
from typing import Any

from topologies.fabric.distances import unreachable
from topologies.fabric.fabric import SCALE_UP, Fabric, Group, Node
from topologies.groups.closed_form_match import inner_nodes, shape_of
from topologies.groups.group_paths import group_rates
from topologies.rates.closed_form.closed_form import best_box
from topologies.rates.closed_form.equal_domains import group_in
from topologies.rates.rate_table import GroupRate


class DomainWiring:
    """How one domain is wired, and what that says of all that are wired alike.

    Attributes
    ----------
    shape
        The formula it has, if it has one.
    box
        Chips, link rate and ring of each side of the torus it is, or is a part of; else empty.
    """

    def __init__(self, part: Fabric, members: Sequence[Node]) -> None:
        self.shape = shape_of(part, members)
        self.box = _bounds(part, members)
        self._members = members
        self._places: list[Any] = [part.nodes[chip].get("coord") for chip in members]
        self._part = part

    @property
    def plain(self) -> bool:
        """Is it one chip, a switch or a mesh, whose chips do not relay?"""
        return len(self._members) == 1 or (self.shape is not None and not self.box)

    def rate(self, n: int) -> GroupRate:
        """Groups of `n` side by side in such a domain."""
        formula = None if self.shape is None else group_in(self.shape, n)
        return formula or group_rates(self._part, self.tiles(self._members, n))

    def tiles(self, members: Sequence[Node], n: int) -> list[Group]:
        """A domain wired so, cut into groups of `n`, the rest idle: boxes of a torus, else rows."""
        boxes = self._boxes(members, n) if self.box else []
        return boxes or [tuple(members[i : i + n]) for i in range(0, len(members) - n + 1, n)]

    def _boxes(self, members: Sequence[Node], n: int) -> list[Group]:
        sides, links, rings = zip(*self.box, strict=True)

        def closed(box: Sequence[int]) -> list[bool]:
            return [r and k == side for k, side, r in zip(box, sides, rings, strict=True)]

        box = best_box(sides, n, links, closed, exact=False) if n > 1 else (1,) * len(sides)
        at: dict[tuple[int, ...], list[Node]] = {}
        for chip, place in zip(members, self._places, strict=True):
            at.setdefault(tuple(x // k for x, k in zip(place, box, strict=True)), []).append(chip)
        whole = product(*(range(side // k) for side, k in zip(sides, box, strict=True)))
        return [tuple(at[tile][:n]) for tile in whole if len(at.get(tile, ())) >= n]


def domain_wirings(G: Fabric, domains: Sequence[Sequence[Node]]) -> list[DomainWiring]:
    """One for every domain; of domains wired alike the first stands for all.

    A domain whose own links do not join its chips is looked at as a part of the whole fabric.
    """
    wirings: dict[Hashable, DomainWiring] = {}
    of_domains = []
    for members in domains:
        nodes = inner_nodes(G, members)
        part = G.subgraph(nodes).copy()
        outside = [e for e in part.edges if part.edges[e]["tier"] != SCALE_UP]
        part.remove_edges_from(outside)
        part.graph["orbits"] = bool(G.graph.get("orbits")) and not outside
        apart = any(True for _ in unreachable(part))
        key = tuple(members) if apart else _wiring(part, nodes)
        if key not in wirings:
            wirings[key] = DomainWiring(G if apart else part, members)
        of_domains.append(wirings[key])
    return of_domains


def _bounds(part: Fabric, members: Sequence[Node]) -> list[tuple[int, float, bool]]:
    places: list[Any] = [part.nodes[chip].get("coord") for chip in members]
    relays = all(part.nodes[chip]["forward"] for chip in members)
    if not relays or any(place is None for place in places) or len({*map(len, places)}) > 1:
        return []
    coords = dict(zip(members, places, strict=True))
    box = []
    for d, line in enumerate(zip(*places, strict=True)):
        side, rate, ring = 1 + max(line), 0.0, False
        for u, v, arc in part.edges(data=True):
            if u in coords and v in coords and coords[u][d] != coords[v][d]:
                rate = max(rate, arc["bandwidth"])
                ring = ring or (side > 2 and abs(coords[u][d] - coords[v][d]) == side - 1)
        box.append((side, rate or 1.0, ring))
    return box


def _wiring(part: Fabric, order: Sequence[Node]) -> Hashable:
    """Nodes by number and all that is said of them, arcs likewise: equal only if wired alike."""
    number = {node: i for i, node in enumerate(order)}
    nodes = [
        (data["kind"], data["forward"], data.get("coord"))
        for data in map(part.nodes.__getitem__, order)
    ]
    arcs = [
        (number[u], number[v], arc["bandwidth"], arc["latency"])
        for u, v, arc in part.edges(data=True)
    ]
    return tuple(nodes), tuple(sorted(arcs))
