"""Tree networks: domains below uniform levels of switches (leaves, spines, cores, or rails).

In such a network traffic spreads evenly over the switches of a level, so what binds is what
leads out of a chip, out of all that lies below a switch, or out of a pod: every rate is a count.
A fabric is matched to a closed form by looking at every node and arc: one link that is missing,
slower or more than the shape has, and the fabric has no formula.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf, prod

from topologies.fabric.fabric import ACCELERATOR, SCALE_UP, SWITCH, Arc, Fabric, Group, Node
from topologies.fabric.soundness import unreachable
from topologies.rates.equal_domains import Crossings, Domains


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """Parts of the fabric below one switch of a level, or below several joined switches."""

    part: Mapping[Node, Node]  # the part that each chip is in
    up: dict[Node, float]  # what leads out of each part [byte/s]
    down: dict[Node, float]  # what leads into it [byte/s]
    latency: float  # of an arc from this level to the next higher level [s]


@dataclass(frozen=True, eq=False)
class SwitchTree:
    """The network between domains, level by level; the first level is the chips themselves."""

    domain: Mapping[Node, Node]  # the domain of each chip
    levels: tuple[TreeLevel, ...]  # the last one has a single part, or parts that nothing joins
    nested: bool  # True if every domain is within one part of each level
    railed: bool  # True if no part below the last level has two chips of a domain

    @property
    def even(self) -> bool:
        """True if every part has equal bandwidth in and out; else gather cuts are not reached."""
        return all(level.up == level.down for level in self.levels)

    def cards(self, groups: Sequence[Group]) -> dict[int, float]:
        """Slowest link into a chip, by how many of its group its domain holds. [byte/s]"""
        cards, slowest = self.levels[0], dict[int, float]()
        for group in groups:
            members = Counter(self.domain[chip] for chip in group)
            for chip in group:
                k, rate = members[self.domain[chip]], cards.down[cards.part[chip]]
                slowest[k] = min(rate, slowest.get(k, inf))
        return slowest

    def exchange(self, groups: Sequence[Group]) -> float:
        """Per ordered pair of members in different domains. [byte/s]"""
        bounds = [inf]
        for level in self.levels[:-1]:
            pairs = _crossings(self, level, tuple(groups)).pairs
            bounds += _bounds(level, pairs, pairs)
        return min(bounds)

    def gather(self, groups: Sequence[Group], links: Mapping[int, float]) -> float:
        """Per share, where what enters a domain once is enough for all of it. [byte/s]

        `links` lead into a chip inside its domain, by how many of its group are in it. [byte/s]
        """
        bounds = [inf]
        cards = self.levels[0]
        for group in groups:
            members: dict[Node, list[Node]] = {}
            for chip in group:
                members.setdefault(self.domain[chip], []).append(cards.part[chip])
            for chips in members.values():
                others = len(group) - len(chips)
                if others:
                    bounds.append(sum(map(cards.up.__getitem__, chips)) / len(chips))
                    bounds.append(sum(map(cards.down.__getitem__, chips)) / others)
        for level in self.levels[1:-1]:
            across = _crossings(self, level, tuple(groups))
            if self.nested:
                bounds += _bounds(level, across.leave, across.enter)
                continue
            room = dict(level.down)  # into a rail and all members on it
            for group in groups:
                beside = Counter(self.domain[chip] for chip in group)
                for chip in group:
                    room[level.part[chip]] += links.get(beside[self.domain[chip]], 0.0)
            bounds += [room[part] / shares for part, shares in across.enter.items() if shares]
        return min(bounds)

    def send(self, groups: Sequence[Group]) -> float:
        """Rate from every chip to the chip half its group away, if in another domain [byte/s]."""
        bounds = [inf]
        for level in self.levels[:-1]:
            across = _crossings(self, level, tuple(groups))
            bounds += _bounds(level, across.sent, across.taken)
        return min(bounds)

    def farthest(self, groups: Sequence[Group]) -> tuple[int, float]:
        """Maximum arcs and latency [s] between members of a group in different domains."""
        top = 1
        for height, level in enumerate(self.levels):
            if any(len({level.part[chip] for chip in group}) > 1 for group in groups):
                top = height + 1
        return 2 * top, 2 * sum(level.latency for level in self.levels[:top])


@lru_cache(maxsize=8)  # levels: exchange, gather and send of the same groups
def _crossings(tree: SwitchTree, level: TreeLevel, groups: tuple[Group, ...]) -> Crossings:
    return Crossings.of([(tree.domain[c], level.part[c]) for c in group] for group in groups)


def switch_tree(G: Fabric, domains: Sequence[Sequence[Node]]) -> SwitchTree | None:
    """The levels above the domains of a fabric; None if they are anything else.

    Chips do not relay. All that joins a part is linked to all that is below it by equal links,
    which take equally long on a level.
    """
    domain = {chip: d for d, members in enumerate(domains) for chip in members}
    if len(domains) < 2 or any(G.nodes[chip]["forward"] for chip in domain):
        return None
    home = {node: d for d, own in enumerate(domains) for node in inner_nodes(G, own)}
    outer = {
        (u, v)
        for u, v, arc in G.edges(data=True)
        if arc["tier"] != SCALE_UP or home.get(u) != home.get(v) or u not in home
    }
    units: list[Unit] = [((chip,), (chip,)) for chip in domain]
    levels = []
    while True:
        raised = _raised(G, outer, units)
        if raised is None:
            return None
        level, units = raised
        levels.append(level)
        if not level.up:
            break
    if outer or len(units) > 1:
        return None
    inner = [level.part for level in levels[1:-1]]
    places = [[Counter(part[chip] for chip in own) for own in domains] for part in inner]
    return SwitchTree(
        domain,
        tuple(levels),
        nested=all(len(held) == 1 for part in places for held in part),
        railed=all(max(held.values()) == 1 for part in places for held in part),
    )


Unit = tuple[Group, Group]  # nodes of one level, and the chips below that they join


def _raised(
    G: Fabric, outer: set[Arc], units: Sequence[Unit]
) -> tuple[TreeLevel, list[Unit]] | None:
    """The level of these units, and the units above; takes the arcs between out of `outer`."""
    part = {chip: i for i, (_, chips) in enumerate(units) for chip in chips}
    up: dict[Node, float] = {}
    down: dict[Node, float] = {}
    latencies = set()
    above: dict[frozenset[Node], list[Node]] = {}
    used = set()
    for i, (nodes, chips) in enumerate(units):
        tops = {v for node in nodes for v in G.succ[node] if (node, v) in outer}
        there = {(node, top) for node in nodes for top in tops}
        back = {(top, node) for node, top in there}
        if not (there | back <= outer and _switches(G, tops)):
            return None
        rates = [{G.edges[arc]["bandwidth"] for arc in arcs} for arcs in (there, back)]
        latencies |= {G.edges[arc]["latency"] for arc in there | back}
        if max(map(len, rates)) > 1 or len(latencies) > 1:
            return None
        if tops:
            up[i], down[i] = (len(there) * rate.pop() for rate in rates)
            above.setdefault(frozenset(tops), []).extend(chips)
        used |= there | back
    shared = Counter(top for tops in above for top in tops)
    if (up and len(up) < len(units)) or any(times > 1 for times in shared.values()):
        return None
    outer -= used
    raised = [(tuple(tops), tuple(chips)) for tops, chips in above.items()]
    return TreeLevel(part, up, down, latencies.pop() if latencies else 0.0), raised or list(units)


def _bounds(level: TreeLevel, out: Counter[Node], into: Counter[Node]) -> list[float]:
    leaving = [level.up[part] / weight for part, weight in out.items() if weight]
    return leaving + [level.down[part] / weight for part, weight in into.items() if weight]


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


def closed_form_domain(G: Fabric, chips: Sequence[Node]) -> Domains | None:
    """The closed form that describes a one-domain fabric, or None.

    A switch or several planes of switches, a mesh of chips that do not relay, or a box of a
    torus of chips that do; None for anything else.
    """
    if len(chips) < 2 or len({arc["latency"] for _, _, arc in G.edges(data=True)}) != 1:
        return None
    return _star(G, chips) or _mesh(G, chips) or _box(G, chips)


def nonblocking_interconnect(
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
            ways = (G.edges[chip, above], G.edges[above, chip])
            figures |= {(float(arc["bandwidth"]), float(arc["latency"])) for arc in ways}
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
    both: dict[Arc, float] = {}
    for (centre, rate), chip in product(zip(centres, rates, strict=True), chips):
        both |= {(centre, chip): rate, (chip, centre): rate}
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


def _switches(G: Fabric, nodes: Iterable[Node]) -> bool:
    return all(G.nodes[v]["kind"] == SWITCH and G.nodes[v]["forward"] for v in nodes)


def _bandwidths(G: Fabric) -> dict[Arc, float]:
    return {(u, v): arc["bandwidth"] for u, v, arc in G.edges(data=True)}


def _latency(G: Fabric) -> float:
    return float(next(iter(G.edges(data="latency")))[2])
