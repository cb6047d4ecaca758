"""Tree networks: domains below uniform levels of switches (leaves, spines, cores, or rails).

In such a network traffic spreads evenly over the switches of a level, so what binds is what
leads out of a chip, out of all that lies below a switch, or out of a pod: every rate is a count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from topologies.fabric.fabric import SCALE_UP, SWITCH, Arc, Fabric, Group, Node
from topologies.groups.closed_form_match import inner_nodes
from topologies.rates.equal_domains import Crossings


@dataclass(frozen=True, eq=False)
class Level:
    """Parts of the fabric that lie below one switch of a level, or below several joined ones."""

    part: Mapping[Node, Node]  # the part that each chip is in
    up: dict[Node, float]  # what leads out of each part [byte/s]
    down: dict[Node, float]  # what leads into it [byte/s]
    latency: float  # of an arc from this level to the one above [s]


@dataclass(frozen=True, eq=False)
class SwitchTree:
    """The network between domains, level by level; the first level is the chips themselves."""

    domain: Mapping[Node, Node]  # the domain of each chip
    levels: tuple[Level, ...]  # the last one has a single part, or parts that nothing joins
    nested: bool  # does every domain lie within one part of each level?
    railed: bool  # does no part hold two chips of a domain, the last level apart?

    @property
    def even(self) -> bool:
        """Does as much lead into every part as out of it? Else cuts of gathers are not reached."""
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
            pairs = self._crossings(level, groups).pairs
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
            across = self._crossings(level, groups)
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
        """From every chip to the one half its group away, where that is in another domain."""
        bounds = [inf]
        for level in self.levels[:-1]:
            across = self._crossings(level, groups)
            bounds += _bounds(level, across.sent, across.taken)
        return min(bounds)

    def _crossings(self, level: Level, groups: Sequence[Group]) -> Crossings:
        return Crossings.of(
            [(self.domain[chip], level.part[chip]) for chip in group] for group in groups
        )

    def farthest(self, groups: Sequence[Group]) -> tuple[int, float]:
        """Arcs and seconds between members of different domains that are farthest apart."""
        top = 1
        for height, level in enumerate(self.levels):
            if any(len({level.part[chip] for chip in group}) > 1 for group in groups):
                top = height + 1
        return 2 * top, 2 * sum(level.latency for level in self.levels[:top])


def tree_of(G: Fabric, domains: Sequence[Sequence[Node]]) -> SwitchTree | None:
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
    units = [_Unit((chip,), (chip,)) for chip in domain]
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


@dataclass(frozen=True)
class _Unit:
    """Nodes of one level that join the chips below them."""

    nodes: Group
    chips: Group


def _raised(G: Fabric, outer: set[Arc], units: Sequence[_Unit]) -> tuple[Level, list[_Unit]] | None:
    """The level of these units, and the units above; takes the arcs between out of `outer`."""
    part = {chip: i for i, unit in enumerate(units) for chip in unit.chips}
    up: dict[Node, float] = {}
    down: dict[Node, float] = {}
    latencies = set()
    above: dict[frozenset[Node], list[Node]] = {}
    used = set()
    for i, unit in enumerate(units):
        tops = {v for node in unit.nodes for v in G.succ[node] if (node, v) in outer}
        there = {(node, top) for node in unit.nodes for top in tops}
        back = {(top, node) for node, top in there}
        if not (there | back <= outer) or not all(_joins(G, top) for top in tops):
            return None
        rates = [{G.edges[arc]["bandwidth"] for arc in arcs} for arcs in (there, back)]
        latencies |= {G.edges[arc]["latency"] for arc in there | back}
        if max(map(len, rates)) > 1 or len(latencies) > 1:
            return None
        if tops:
            up[i], down[i] = (len(there) * rate.pop() for rate in rates)
            above.setdefault(frozenset(tops), []).extend(unit.chips)
        used |= there | back
    shared = Counter(top for tops in above for top in tops)
    if (up and len(up) < len(units)) or any(times > 1 for times in shared.values()):
        return None
    outer -= used
    raised = [_Unit(tuple(tops), tuple(chips)) for tops, chips in above.items()]
    return Level(part, up, down, latencies.pop() if latencies else 0.0), raised or list(units)


def _joins(G: Fabric, node: Node) -> bool:
    return G.nodes[node]["kind"] == SWITCH and bool(G.nodes[node]["forward"])


def _bounds(level: Level, out: Counter[Node], into: Counter[Node]) -> list[float]:
    """Rates that the links of the parts leave to what leaves and enters each."""
    leaving = [level.up[part] / weight for part, weight in out.items() if weight]
    return leaving + [level.down[part] / weight for part, weight in into.items() if weight]
