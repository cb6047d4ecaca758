"""Concurrent groups on one fabric: the rate that all of them reach at once.

A rate on shortest paths that a cut shows to be the best of all is taken as it is; only where no
cut does is a linear program solved. Equivalent endpoints (chips of a group behind the same switches
by equal links) can be exchanged without changing anything, so a rate that is the same for all of
them is computed on the smaller fabric. A chip that does not relay is drawn as two nodes, where
traffic starts and where it ends, so that what they send each other has a path.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from topologies.fabric.fabric import ACCELERATOR, Arc, Attributes, Fabric, Group, Node, fabric
from topologies.fabric.limits import TopologyError, suggest
from topologies.rates.concurrent_collectives import ConcurrentRate, joint_rate_or_none
from topologies.rates.cut import all_gather_rate
from topologies.rates.equal_domains import GroupRate
from topologies.rates.flow import MAX_ROUTED_PATHS, ROUTINGS, concurrent_flow, program_size
from topologies.rates.flow_network import network, usable_subfabric
from topologies.rates.link_usage import GroupArcs, group_subnetwork
from topologies.rates.shortest_paths import Distances, ShortestPaths, ecmp, shortest_paths
from topologies.rates.traffic import RATE_TOL, Traffic, all_to_all, components, is_optimal, pairs

EVENLY = "divided evenly"  # the engine of a gather that may go faster
MAX_PROGRAM_SIZE = 40_000  # max chips times arcs of one program for all gathers
CUTS = 100_000  # max cuts times variables of that program: about 1 s


def max_concurrent_rate(G: Fabric, traffic: Traffic, *, routing: str = "optimal") -> ConcurrentRate:
    """Maximum concurrent flow of a traffic: largest rate per unit of weight [byte/s]."""
    if routing not in ROUTINGS:
        raise TopologyError("traffic", f"unknown routing {routing!r}; {suggest(routing, ROUTINGS)}")
    if routing != "optimal" or program_size(G, traffic) <= MAX_ROUTED_PATHS:
        routed = ecmp(G, traffic)
        if routing != "optimal" or is_optimal(G, traffic, routed.rate, routed.binding):
            return ConcurrentRate(routed.rate, routed.binding, "paths and cut")
    flow = concurrent_flow(G, traffic, routing=routing, shortest=False)
    arcs = tuple(arc for cause in flow.binding for arc in cause.arcs)
    return ConcurrentRate(flow.rate, arcs, "flow")


@dataclass(frozen=True)
class AggregateNode:
    """Members of one group that are drawn as one: where their traffic starts and where it ends."""

    chips: Group
    start: Node
    end: Node


@dataclass(frozen=True, eq=False)
class AggregatedFabric:
    """A fabric with equivalent chips as one node."""

    # Arcs of equivalent chips are summed; chips in no group are gone unless they relay.
    fabric: Fabric
    groups: tuple[tuple[AggregateNode, ...], ...]  # the nodes that make up each group
    arcs: dict[Arc, list[Arc]]  # arcs of the whole fabric behind each aggregated arc

    def demands(self) -> dict[Arc, float]:
        """All-to-all in every group, as weights of pairs of nodes."""
        return {
            (a.start, b.end): float(len(a.chips) * (len(b.chips) - (a is b)))
            for group in self.groups
            for a in group
            for b in group
            if a is not b or len(a.chips) > 1
        }

    def whole(self, arcs: Sequence[Arc]) -> tuple[Arc, ...]:
        """The arcs of the whole fabric behind these."""
        return tuple(each for arc in arcs for each in self.arcs.get(arc, [arc]))


def aggregate_nodes(G: Fabric, groups: Sequence[Group]) -> AggregatedFabric:
    """Merge the equivalent chips of every group into one node; `G` itself if all are distinct."""
    drawn: list[list[Group]] = []
    for group in groups:
        alike: dict[Node, list[Node]] = {}
        for chip in group:
            alike.setdefault(_surroundings(G, chip), []).append(chip)
        drawn.append([tuple(chips) for chips in alike.values()])
    if all(len(chips) == 1 for group in drawn for chips in group):
        alone = (tuple(AggregateNode(chips, *chips, *chips) for chips in group) for group in drawn)
        return AggregatedFabric(G, tuple(alone), {})
    aggregates = tuple(tuple(_aggregate(G, chips) for chips in group) for group in drawn)
    start = {chip: node.start for group in aggregates for node in group for chip in node.chips}
    end = {chip: node.end for group in aggregates for node in group for chip in node.chips}
    small = fabric(str(G.graph.get("name")))
    for node, data in G.nodes(data=True):
        if node in start:
            for place in {start[node]: None, end[node]: None}:
                small.add_node(place, **data)
        elif data["forward"]:
            small.add_node(node, **data)
            start[node] = end[node] = node
    behind: dict[Arc, list[Arc]] = {}
    for u, v in G.edges:
        if u in start and v in end:
            behind.setdefault((start[u], end[v]), []).append((u, v))
    for (a, b), arcs in behind.items():
        data = dict(G.edges[arcs[0]])
        data["bandwidth"] = sum(G.edges[arc]["bandwidth"] for arc in arcs)
        small.add_edge(a, b, **data)
    return AggregatedFabric(small, aggregates, behind)


def _aggregate(G: Fabric, chips: Group) -> AggregateNode:
    first = chips[0]
    if G.nodes[first]["forward"]:
        return AggregateNode(chips, first, first)
    # Numbers stay where they are in its name, which tells of symmetries.
    name = first if type(first) is tuple else (first,)
    return AggregateNode(chips, (*name, ("from",)), (*name, ("to",)))


def _surroundings(G: Fabric, chip: Node) -> Node:
    """Equal for two chips only if they may be exchanged."""
    data = G.nodes[chip]
    beside = {*G.succ[chip], *G.pred[chip]}
    if data["forward"] or any(G.nodes[node]["kind"] == ACCELERATOR for node in beside):
        return chip
    out, into = (
        frozenset((node, arc["bandwidth"], arc["latency"]) for node, arc in arcs[chip].items())
        for arcs in (G.succ, G.pred)
    )
    return data["domain"], out, into


def _wires(G: Fabric, group: Sequence[AggregateNode]) -> list[tuple[Node, Node, Attributes]]:
    members = {chip for node in group for chip in node.chips}
    return [
        (u, v, arc)
        for u in members
        for v, arc in G.succ[u].items()
        if v in members and G.nodes[u]["domain"] == G.nodes[v]["domain"]
    ]


def _share_of(
    G: Fabric, small: AggregatedFabric, lanes: Sequence[Arc], users: Mapping[Arc, int]
) -> Fabric:
    """The subgraph of a group's shortest paths, each arc at the group's share of its bandwidth."""
    part, beside = fabric(str(G.graph.get("name"))), dict(G.adjacency())
    behind = ((u, v, users[lane]) for lane in lanes for u, v in small.arcs.get(lane, [lane]))
    part.add_edges_from(
        (u, v, {**beside[u][v], "bandwidth": beside[u][v]["bandwidth"] / times})
        for u, v, times in behind
    )
    for node, data in part.nodes.items():
        data.update(G.nodes[node])
    return part


def _numbered(part: Fabric, group: Group) -> Node:
    """Arcs between numbered nodes, members first: equal for two groups only if wired equally."""
    number = {chip: i for i, chip in enumerate(group)}
    left = [node for node in part if node not in number]
    while left:  # nearest first, each by those before it: the order of the fabric seldom decides
        beside = {node: sorted(number[v] for v in part.succ[node] if v in number) for node in left}
        near = [node for node in left if beside[node]] or left
        number |= zip(sorted(near, key=beside.__getitem__), count(len(number)))
        left = [node for node in left if node not in number]
    relays = tuple(bool(part.nodes[node]["forward"]) for node in number)
    arcs = sorted((number[u], number[v], arc["bandwidth"]) for u, v, arc in part.edges(data=True))
    return relays, tuple(arcs)


MAX_EXHAUSTIVE_MEMBERS = 2048  # members of groups whose distances are all looked at
MAX_SEARCH_WORK = 8_000_000  # max members times arcs of a search from every member


class GroupPaths:
    """Groups on a fabric, equivalent chips drawn as one node."""

    def __init__(self, G: Fabric, groups: Sequence[Group]) -> None:
        self.fabric = G
        self.groups = tuple(tuple(group) for group in groups)
        self.small: AggregatedFabric = aggregate_nodes(G, self.groups)

    @cached_property
    def paths(self) -> ShortestPaths:
        """Shortest permitted paths of the small fabric."""
        return shortest_paths(self.small.fabric)

    def exchange(self, *, routing: str = "optimal") -> ConcurrentRate:
        """All-to-all in every group at once, per ordered pair. [byte/s]"""
        small = self.small
        if any(len(node.chips) > 1 for group in small.groups for node in group):
            answer = max_concurrent_rate(small.fabric, pairs(small.demands()), routing=routing)
            return replace(answer, binding=small.whole(answer.binding))
        groups = [tuple(node.chips[0] for node in group) for group in small.groups]
        return max_concurrent_rate(self.fabric, all_to_all(*groups), routing=routing)

    def send(self) -> float:
        """From every chip to one other of its group at once, along shortest paths. [byte/s]

        Chips of one domain that are wired to each other send to a neighbour; others to the chip
        half their group away, which of all partners is the farthest.
        """
        G = self.fabric
        weights: Counter[Arc] = Counter()
        for group in self.small.groups:
            members = [node for node in group for _ in node.chips]
            local = len({G.nodes[chip]["domain"] for node in group for chip in node.chips}) == 1
            wired = [arc["bandwidth"] for _, _, arc in _wires(G, group)] if local else []
            if wired:
                return float(min(wired))
            for i, node in enumerate(members):
                partner = members[(i + len(members) // 2) % len(members)]
                weights[node.start, partner.end] += 1
        return ecmp(self.small.fabric, pairs({arc: float(w) for arc, w in weights.items()})).rate

    @property
    def _whole(self) -> list[Group]:
        return [tuple(x for node in group for x in node.chips) for group in self.small.groups]

    def parts(self) -> list[tuple[Fabric, Group]]:
        """Part of the fabric of each distinct group, shared arcs divided, and its members."""
        G, small, groups = self.fabric, self.small, self._whole
        if len(groups) == 1:
            return [(G, groups[0])]
        lanes = [
            self.paths.lanes([node.start for node in group], [node.end for node in group])
            for group in small.groups
        ]
        users = Counter(arc for group_lanes in lanes for arc in group_lanes)
        unlike: dict[Node, tuple[Fabric, Group]] = {}
        for group, group_lanes in zip(groups, lanes, strict=True):
            part = _share_of(G, small, group_lanes, users)
            unlike.setdefault(_numbered(part, group), (part, group))
        return list(unlike.values())

    def gather(self) -> ConcurrentRate:
        """All-gather in every group at once, per share. [byte/s]

        An arc on shortest paths of several groups is divided evenly among them; if what each then
        reaches is what they could not exceed together, that is the rate. On large fabrics without
        symmetry it is taken in any case, on the safe side of what they might reach together.
        """
        G, groups = self.fabric, self._whole
        cut = min((all_gather_rate(*each) for each in self.parts()), key=lambda cut: cut.rate)
        if len(groups) == 1:
            return ConcurrentRate(cut.rate, cut.arcs, "cuts")
        # A bound for all groups: what enters the part of the fabric beyond the arcs of a cut.
        part = components(G, set(cut.arcs))
        members = {chip for group in groups for chip in group}
        beyond = {part[node] for node in cut.starved if node in members}
        enters = sum(
            arc["bandwidth"]
            for u, v, arc in G.edges(data=True)
            if part[v] in beyond and part[u] not in beyond
        )
        there = [sum(part[chip] in beyond for chip in group) for group in groups]
        wanted = sum(len(group) - k for group, k in zip(groups, there, strict=True) if k)
        best = (enters / wanted if wanted else float("inf")) <= cut.rate * (1 + RATE_TOL)
        joint = None
        if not best and sum(map(len, groups)) * G.number_of_edges() <= MAX_PROGRAM_SIZE:
            joint = joint_rate_or_none(G, groups, most=CUTS)
        return joint or ConcurrentRate(cut.rate, cut.arcs, "cuts" if best else EVENLY)

    def ring(self) -> float:
        """Bus bandwidth of rings in every group at once. [byte/s]

        All of the bytes but a member's own leave any set of some members and not all, wherever
        rings turn; of a gather in general only those that begin in the set.
        """
        return min(_ring(part, group) for part, group in self.parts())

    @cached_property
    def _group_distances(self) -> list[tuple[tuple[AggregateNode, ...], range, Distances]]:
        apart = max(1, len(self.groups) * len(self.groups[0]) // MAX_EXHAUSTIVE_MEMBERS)
        distances = []
        for group in self.small.groups[::apart]:
            searches = len(group) * self.paths.latency.size
            rows = range(0, len(group), max(1, searches // MAX_SEARCH_WORK))
            starts, ends = [group[i].start for i in rows], [a.end for a in group]
            paths = self.paths.distances(starts, ends)
            # A node of a single chip sends no bytes to itself.
            alone = [(row, i) for row, i in enumerate(rows) if len(group[i].chips) == 1]
            for row, i in alone:
                paths.hops[row, i], paths.latency[row, i] = 0, 0.0
            if (paths.hops < 0).any():
                row, j = np.argwhere(paths.hops < 0)[0]
                a, b = group[rows[row]].chips[0], group[j].chips[-1]
                fault = f"no permitted path from {a!r} to {b!r}"
                raise TopologyError(f"fabric {self.fabric.graph.get('name')!r}", fault)
            distances.append((group, rows, paths))
        return distances

    def farthest(self) -> tuple[int, float]:
        """Maximum hops and latency [s] between two members of a group.

        Of groups of more than 2048 chips in all, some are looked at, evenly spread; in a group
        of thousands it is looked from some of them to all.
        """
        return (
            max(int(paths.hops.max()) for *_, paths in self._group_distances),
            max(float(paths.latency.max()) for *_, paths in self._group_distances),
        )

    def step(self) -> float:
        """Seconds between members that follow each other, domain by domain; the longest step."""
        G, steps = self.fabric, list[float]()
        for group, rows, paths in self._group_distances:
            domain = [G.nodes[aggregate.chips[0]]["domain"] for aggregate in group]
            wired = max((arc["latency"] for _, _, arc in _wires(G, group)), default=np.inf)
            order = [i for i, aggregate in enumerate(group) for _ in aggregate.chips]
            steps += [
                min(paths.latency[rows.index(i), j], wired if domain[i] == domain[j] else np.inf)
                for i, j in {*pairwise(order), (order[-1], order[0])}
                if i in rows
            ]
        return float(max(steps))


FLOW_PARTS = 2**20  # parts of the widest arc that flows are counted in
MAX_MEMBERS = 256  # max members of a group in the search of cuts


def _ring(G: Fabric, group: Group) -> float:
    """The narrowest cut between two members, either way: all rings cross it whole. [byte/s]"""
    net = network(usable_subfabric(G, group))
    chips = np.array([net.index[chip] for chip in group])
    domains = [G.nodes[chip]["domain"] for chip in group]
    # In large groups: members of the first domain and one of every other domain, thinned out.
    others = [
        i for i in range(1, len(group)) if domains[i] == domains[0] or domains[i] != domains[i - 1]
    ] if len(group) > MAX_MEMBERS else range(1, len(group))  # fmt: skip
    others = others[:: -(-len(others) // MAX_MEMBERS)]
    ways = (group_subnetwork(net, chips, mirror=mirror) for mirror in (False, True))
    return min(_passes(arcs, int(chips[0]), chips[list(others)].tolist()) for arcs in ways)


def _passes(arcs: GroupArcs, start: int, ends: Sequence[int]) -> float:
    """Minimum over `ends` of the maximum flow from a member [byte/s]."""
    size, unit = arcs.nodes.size, float(arcs.rate.max()) / FLOW_PARTS
    whole = np.rint(arcs.rate / unit).astype(np.int32)
    graph = csr_array((whole, (arcs.tail, arcs.head)), shape=(size, size))
    at = {node: place for place, node in enumerate(arcs.nodes.tolist())}
    flows = [maximum_flow(graph, at[start], at[end]) for end in ends]
    left = csr_array(graph - min(flows, key=lambda flow: flow.flow_value).flow)
    left.eliminate_zeros()
    near = np.zeros(size, dtype=bool)
    near[breadth_first_order(left, at[start], return_predecessors=False)] = True
    return float(arcs.rate[near[arcs.tail] & ~near[arcs.head]].sum())


def group_rates(G: Fabric, groups: Sequence[Group]) -> GroupRate:
    """Rates of groups of one size, all at once, and the longest ways within any of them."""
    n = len(groups[0])
    paths = GroupPaths(G, groups)
    hops, latency = paths.farthest()
    theta, gathered = paths.exchange().rate, paths.gather()
    evenly = gathered.engine == EVENLY
    # To send a share to each of the others is a way to gather, too: no rate of it is above a cut.
    alpha = max(gathered.rate, theta) if evenly else gathered.rate
    theta = min(theta, alpha)
    return GroupRate(
        n,
        all_to_all=theta * (n - 1),
        all_gather=alpha * (n - 1),
        send=paths.send(),
        latency_hops=hops,
        latency=latency,
        domains=max(len({G.nodes[chip]["domain"] for chip in group}) for group in groups),
        step_latency=paths.step(),
        shared_evenly=evenly,
    )
