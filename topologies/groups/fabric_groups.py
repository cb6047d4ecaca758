"""Rates of groups on any fabric: the groups of each size, and the engine that rates them.

Groups of a size that a domain holds lie side by side within domains, in a torus as boxes; a
larger group takes as few whole domains as hold it, evenly filled. All groups of a size talk at
once and the slowest counts. Formulas answer where every link is as its shape says; the flow and
cut engines answer elsewhere, for one of several equal domains.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, compress
from operator import lt
from typing import Any
from weakref import ref

import networkx as nx

from topologies.fabric.fabric import ACCELERATOR, SCALE_UP, Fabric, Group, Node, by_domain
from topologies.fabric.limits import TopologyError
from topologies.fabric.placement import filling
from topologies.fabric.soundness import check
from topologies.groups import tree_networks
from topologies.groups.concurrent_groups import GroupPaths, group_rates
from topologies.rates.closed_forms import best_box
from topologies.rates.equal_domains import Domains, GroupRate, cards_bind, domain_group_rate


class DomainWiring:
    """The wiring of one scale-up domain, shared by all domains with equal wiring.

    Attributes:
        shape: The formula it has, if it has one.
        box: Chips, link rate and ring of each side of the torus it is, or is a part of; else empty.
    """

    def __init__(self, part: Fabric, members: Sequence[Node]) -> None:
        self.shape = tree_networks.closed_form_domain(part, members)
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
        formula = None if self.shape is None else domain_group_rate(self.shape, n)
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
        # Only boxes that hold chips are looked at: sides are as long as the largest coordinate.
        whole = [side // k for side, k in zip(sides, box, strict=True)]
        tiles = sorted(tile for tile in at if all(map(lt, tile, whole)))
        return [tuple(at[tile][:n]) for tile in tiles if len(at[tile]) >= n]


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
    number = {node: i for i, node in enumerate(order)}
    nodes = [tuple(map(part.nodes[node].get, ("kind", "forward", "coord"))) for node in order]
    edges = part.edges(data=True)
    arcs = [(number[u], number[v], arc["bandwidth"], arc["latency"]) for u, v, arc in edges]
    return tuple(nodes), tuple(sorted(arcs))


MAX_CACHED_FABRICS = 16  # fabrics whose groups are remembered


def fabric_groups(G: Fabric, order: Sequence[Hashable] | None = None) -> FabricGroups:
    """The groups of a fabric, cached until its nodes, arcs or order change.

    Of a frozen fabric (`networkx.freeze`) that is taken for granted. Raises TopologyError when the
    fabric is unsound, or the order names what is no accelerator or one twice.
    """
    if not isinstance(G, nx.DiGraph):
        check(G)
    key = _content(G, order)
    if key not in _remembered:
        _remembered[key] = FabricGroups(check(G), order)
    _remembered.move_to_end(key)
    while len(_remembered) > MAX_CACHED_FABRICS:
        _remembered.popitem(last=False)
    return _remembered[key]


_remembered: OrderedDict[Hashable, FabricGroups] = OrderedDict()


class FabricGroups:
    """Domains of a fabric, their formulas if they have any, and cached rates.

    Attributes:
        domains: The accelerators by domain, in the order in which they are filled.
        size: Accelerators of the largest domain.
        inner: Wiring of each domain.
        tree: The levels of switches above the domains, None where they are anything else.
    """

    def __init__(self, G: Fabric, order: Sequence[Hashable] | None = None) -> None:
        # Frozen, so that its arrays and paths serve groups of every size.
        self.fabric: Fabric = G if nx.is_frozen(G) else nx.freeze(G.copy())
        chips = filling(G) if order is None else list(order)
        self.name = f"fabric {G.graph.get('name')!r}"
        problems = [
            f"order: {chip!r} is no accelerator of it"
            for chip in chips
            if chip not in G or G.nodes[chip].get("kind") != ACCELERATOR
        ]
        problems += [
            f"order: {chip!r} stands in it {times} times"
            for chip, times in Counter(chips).items()
            if times > 1
        ]
        if problems or not chips:
            raise TopologyError(self.name, problems or "order: it names no accelerator")
        self.domains = list(by_domain(G, chips).values())
        self.chips = sum(map(len, self.domains))
        self.size = max(map(len, self.domains))
        # Wiring of every domain; domains of equal wiring share one object. A domain whose own
        # links do not join its chips is evaluated on the whole fabric.
        wirings: dict[Hashable, DomainWiring] = {}
        of_domains = []
        for members in self.domains:
            nodes = tree_networks.inner_nodes(self.fabric, members)
            part = tree_networks.own_links(self.fabric, nodes)
            key = tuple(members) if part is None else _wiring(part, nodes)
            if key not in wirings:
                wirings[key] = DomainWiring(self.fabric if part is None else part, members)
            of_domains.append(wirings[key])
        self.inner = of_domains
        self._formula = _formula(self.fabric, self.domains, self.inner)
        plain = all(inner.plain for inner in self.inner)
        self.tree = tree_networks.switch_tree(self.fabric, self.domains) if plain else None
        self._rates: dict[int, GroupRate] = {}

    @property
    def joined(self) -> bool:
        """True if the fabric has more than one domain."""
        return len(self.domains) > 1

    @property
    def tiled(self) -> bool:
        """Do groups inside a domain take boxes of a torus?"""
        return any(inner.box for inner in self.inner)

    def rate(self, n: int) -> GroupRate:
        """Rates of a group of `n`, all groups of that size at once.

        Raises TopologyError when the fabric has fewer accelerators.
        """
        if n not in self._rates:
            if n > self.chips:
                fault = f"a group of {n} exceeds its {self.chips} accelerators"
                raise TopologyError(self.name, fault)
            if n == 1:
                up = min(_entrance(self.fabric, chip) for part in self.domains for chip in part)
                self._rates[n] = GroupRate(1, up, up, up, 0, 0.0, 1, 0.0)
            else:
                self._rates[n] = self._inside(n) if n <= self.size else self._across(n)
        return self._rates[n]

    def ring(self, n: int) -> float:
        """Bus bandwidth of rings through groups of `n`, which no optimal gather is below. [byte/s]

        Raises TopologyError when the fabric has fewer accelerators.
        """
        gather = self.rate(n).all_gather
        regular = n <= self.size and all(inner.shape is not None for inner in self.inner)
        if n == 1 or regular:  # of one chip, or of a switch, a mesh or a torus
            return gather
        return min(gather, GroupPaths(self.fabric, self.groups(n)).ring())

    def groups(self, n: int) -> list[Group]:
        """The groups of `n` chips, side by side on the fabric."""
        if n <= self.size:
            domains = zip(self.domains, self.inner, strict=True)
            return [group for members, inner in domains for group in inner.tiles(members, n)]
        return _spread(self.domains, self.inner, n)

    def _inside(self, n: int) -> GroupRate:
        large = compress(self.inner, (len(members) >= n for members in self.domains))
        # The slowest rate and the longest way of any of them.
        rates = [inner.rate(n) for inner in dict.fromkeys(large)]
        gather = min(rates, key=lambda rate: (rate.all_gather, rate.shared_evenly))
        return replace(
            gather,
            box=rates[0].box,
            all_to_all=min(rate.all_to_all for rate in rates),
            send=min(rate.send for rate in rates),
            latency_hops=max(rate.latency_hops for rate in rates),
            latency=max(rate.latency for rate in rates),
            step_latency=max(rate.step_latency for rate in rates),
        )

    def _across(self, n: int) -> GroupRate:
        whole = self.rate(self.size)
        if self._formula is not None:
            formula = domain_group_rate(self._formula, n)
            if formula is not None and cards_bind(self._formula, n):
                return formula
        groups = _spread(self.domains, self.inner, n)
        rate = self._in_tree(groups) or group_rates(self.fabric, groups)
        rate = replace(
            rate, send=min(rate.send, whole.send), latency=max(rate.latency, whole.latency)
        )
        if not self.tiled:
            return rate
        # Boxes of several tori are not credited with more than a whole torus, as on machines.
        return replace(
            rate,
            all_to_all=min(rate.all_to_all, whole.all_to_all),
            all_gather=min(rate.all_gather, whole.all_gather),
        )

    def _in_tree(self, groups: Sequence[Group]) -> GroupRate | None:
        """By counting, where the levels above the domains allow it."""
        tree, n = self.tree, len(groups[0])
        if tree is None or not ((tree.nested or tree.railed) and tree.even):
            return None
        cards = tree.cards(groups)
        inside = {k: self.rate(k) for k in cards if k > 1}
        shares = [rate.all_to_all / (k - 1) for k, rate in inside.items()]
        theta = min([tree.exchange(groups), *shares])
        # Around one chip: its links inside, narrower in a part of a mesh, and its own card.
        links = {k: rate.all_gather for k, rate in inside.items()}
        around = [(link + cards[k]) / (n - 1) for k, link in links.items()]
        alpha = min([tree.gather(groups, links), *around])
        hops, latency = tree.farthest(groups)
        return GroupRate(
            n,
            all_to_all=theta * (n - 1),
            all_gather=alpha * (n - 1),
            send=tree.send(groups),
            latency_hops=hops,
            latency=latency,
            domains=max(len({tree.domain[chip] for chip in group}) for group in groups),
            step_latency=latency,
        )


def _formula(
    G: Fabric, domains: Sequence[Sequence[Node]], inside: Sequence[DomainWiring]
) -> Domains | None:
    """The formula of the whole fabric: equal domains behind a layer that never blocks."""
    first = inside[0]
    if first.shape is None or any(inner is not first for inner in inside) or len(domains) == 1:
        return None
    outer = G.copy()
    outer.remove_edges_from([e for e in G.edges if G.edges[e]["tier"] == SCALE_UP])
    joint = tree_networks.nonblocking_interconnect(outer, domains)
    if joint is None:
        return None
    out, latency, join = joint
    return replace(first.shape, scale_out=out, scale_out_latency=latency, join=join)


def _spread(
    domains: Sequence[Sequence[Node]], inside: Sequence[DomainWiring], n: int
) -> list[Group]:
    """Groups over the fewest neighbouring domains that hold each, evenly filled."""
    groups: list[Group] = []
    taken: list[tuple[Sequence[Node], DomainWiring]] = []
    for members, inner in zip(domains, inside, strict=True):
        taken.append((members, inner))
        room = [len(chips) for chips, _ in taken]
        if sum(room) >= n:
            filled = zip(taken, _even(n, room), strict=True)
            parts = [of.tiles(chips, count)[0] for (chips, of), count in filled]
            groups.append(tuple(chain.from_iterable(parts)))
            taken = []
    return groups


def _even(n: int, room: Sequence[int]) -> list[int]:
    """`n` members spread as evenly as the room of the places allows."""
    counts = [0] * len(room)
    left, open_ = n, [i for i, most in enumerate(room) if most]
    while left:
        for share, i in enumerate(open_):
            more = -(-left // (len(open_) - share))
            added = min(more, room[i] - counts[i])
            counts[i], left = counts[i] + added, left - added
        open_ = [i for i in open_ if counts[i] < room[i]]
    return counts


def _entrance(G: Fabric, chip: Node) -> float:
    """Injection bandwidth of a chip into its scale-up network, else into all links. [byte/s]"""
    arcs = list(G.succ[chip].values())
    inside = [arc["bandwidth"] for arc in arcs if arc["tier"] == SCALE_UP]
    return float(sum(inside or [arc["bandwidth"] for arc in arcs]))


def _content(G: Fabric, order: Sequence[Hashable] | None) -> Hashable:
    if nx.is_frozen(G):
        return ref(G), None if order is None else tuple(order)
    content = repr((G.graph, list(G.nodes(data=True)), list(G.edges(data=True)), order))
    return sha256(content.encode()).hexdigest()
