"""A fabric and its traffic as arrays, for the rate engines.

A node that does not forward is two places: where its own traffic starts and where traffic for
it ends. No path leads from the second to the first, which is the whole relay rule.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topologies.fabric.fabric import Arc, Fabric, Node, cached_per_fabric
from topologies.fabric.limits import TopologyError, rate_fault
from topologies.fabric.soundness import check
from topologies.rates.traffic import Traffic

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
SparseMatrix: TypeAlias = "csr_array[np.float64, tuple[int, int]]"


@dataclass(frozen=True, eq=False)
class IncidentArcs:
    """Arcs sorted by the node at one end, and where those of each node begin."""

    arcs: Ints
    first: Ints

    @classmethod
    def of(cls, ends: Ints, nodes: int) -> IncidentArcs:
        """Sort arcs by `ends`, their end nodes among `nodes` nodes."""
        order = np.argsort(ends, kind="stable")
        return cls(order, np.searchsorted(ends[order], np.arange(nodes + 1)))

    def at(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The arcs of each of some nodes, and the place in `nodes` that each is of."""
        count = self.first[nodes + 1] - self.first[nodes]
        skip = np.repeat(self.first[nodes] - np.cumsum(count) + count, count)
        return self.arcs[skip + np.arange(skip.size)], np.repeat(np.arange(nodes.size), count)


@dataclass(frozen=True, eq=False)
class FlowNetwork:
    """Nodes are numbers in the order of the fabric; arcs are in order of their tails."""

    nodes: list[Node]
    index: dict[Node, int]
    tail: Ints  # where each arc begins
    head: Ints  # and where it ends
    bandwidth: Floats  # of each arc [byte/s]
    forwards: NDArray[np.bool_]  # may a node relay the traffic of others?
    # Start of the traffic of each node: itself if it forwards, else an extra place after the nodes.
    origin: Ints
    places: int

    @property
    def starts(self) -> Ints:
        """The place that each arc leaves."""
        return self.origin[self.tail]

    @cached_property
    def graph(self) -> SparseMatrix:
        """Adjacency matrix (places, places); its paths are the permitted ones."""
        ends = (self.starts, self.head)
        return csr_array((np.ones(self.tail.size), ends), shape=(self.places,) * 2)

    @cached_property
    def by_tail(self) -> IncidentArcs:
        """The arcs that leave each node."""
        return IncidentArcs.of(self.tail, len(self.nodes))

    @cached_property
    def by_head(self) -> IncidentArcs:
        """The arcs that enter each place."""
        return IncidentArcs.of(self.head, self.places)

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        """The ends of every arc by name."""
        return tuple(map(self.arc, range(self.tail.size)))

    def arc(self, number: int) -> Arc:
        """The ends of an arc by name."""
        return self.nodes[self.tail[number]], self.nodes[self.head[number]]


def usable_subfabric(G: Fabric, members: Collection[Node]) -> Fabric:
    """The part of a fabric that the traffic of `members` may use.

    Other chips that relay for nobody carry nothing, nor do switches that lead to such alone.
    """
    keep = {*members, *(node for node, forwards in G.nodes(data="forward") if forwards)}
    if len(keep) == len(G):
        return G
    needed = set(members)
    queue = [node for node in keep if node not in needed]
    while queue:
        node = queue.pop()
        beside = {v for v in (*G.succ[node], *G.pred[node]) if v in keep}
        if node in keep and len(beside) < 2:
            keep.discard(node)
            queue += [v for v in beside if v not in needed]
    part: Fabric = nx.DiGraph(**G.graph)  # in the order of G, which a view of a set has not
    part.add_nodes_from((node, data) for node, data in G.nodes(data=True) if node in keep)
    part.add_edges_from((u, v, data) for u in part for v, data in G.succ[u].items() if v in keep)
    return part if part.number_of_edges() else G  # no arcs left: a later error names the members


@cached_per_fabric
def network(G: Fabric) -> FlowNetwork:
    """The arrays of a fabric; those of a frozen one (`networkx.freeze`) are made once.

    Raises TopologyError when a bandwidth or a relay permission is unsound; everything else that is
    wrong with the fabric is then listed too.
    """
    if not isinstance(G, nx.DiGraph) or G.is_multigraph():
        check(G)
    nodes = list(G)
    index = dict(zip(nodes, range(len(nodes)), strict=True))
    heads: list[Node] = []
    rates: list[object] = []
    degrees: list[int] = []
    for _, beside in G.adjacency():
        heads.extend(beside)
        degrees.append(len(beside))
        rates.extend([data.get("bandwidth") for data in beside.values()])
    forwards = [forward for _, forward in G.nodes(data="forward")]
    bandwidth = _numbers(rates)
    if bandwidth is None or not {*map(type, forwards)} <= {bool}:
        check(G)
        raise TopologyError(f"fabric {G.graph.get('name')!r}", "its attributes are unsound")
    relays = np.array(forwards, dtype=bool)
    origin = np.arange(len(nodes))
    origin[~relays] = len(nodes) + np.arange(np.count_nonzero(~relays))
    return FlowNetwork(
        nodes,
        index,
        np.repeat(np.arange(len(nodes)), degrees),
        np.fromiter(map(index.__getitem__, heads), np.int64, len(heads)),
        bandwidth,
        relays,
        origin,
        len(nodes) + int(np.count_nonzero(~relays)),
    )


def _numbers(rates: list[object]) -> Floats | None:
    if {*map(type, rates)} <= {float}:
        values = np.array(rates, dtype=np.float64)
        return values if bool(np.all(np.isfinite(values) & (values > 0))) else None
    if any(rate_fault(rate) is not None for rate in rates):
        return None
    return np.array(rates, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class NodeDemand:
    """Traffic matrix of a demand, held as exchanges and explicit pairs."""

    size: int
    weights: Floats  # of each group that exchanges
    groups: list[Ints]  # members of each
    sent: SparseMatrix  # weight of explicit pairs, from row to column

    def row(self, source: int) -> Floats:
        """Demand of `source` to each node, shape (nodes,)."""
        row = self.sent[[source]].toarray()[0]
        for number in self.exchanges.get(source, ()):
            row[self.groups[number]] += self.weights[number]
        row[source] = 0.0
        return row

    def sources(self) -> Ints:
        """The nodes that send anything."""
        sends = np.diff(self.sent.indptr) > 0
        for members in self.groups:
            sends[members] = True
        return np.flatnonzero(sends)

    @cached_property
    def exchanges(self) -> dict[int, list[int]]:
        """Map each node to the indices of the groups where it exchanges."""
        of: dict[int, list[int]] = {}
        for number, members in enumerate(self.groups):
            for member in members.tolist():
                of.setdefault(member, []).append(number)
        return of


def demand(net: FlowNetwork, traffic: Traffic) -> NodeDemand:
    """Arrays of a checked traffic, without groups of one."""
    of, size = net.index, len(net.nodes)
    exchanges = [
        (what.weight, np.array([of[node] for node in group], dtype=np.int64))
        for what in traffic.exchanges
        for group in what.groups
        if len(group) > 1
    ]
    ends = ([of[a] for a, _, _ in traffic.sent], [of[b] for _, b, _ in traffic.sent])
    weights = np.array([weight for *_, weight in traffic.sent], dtype=np.float64)
    sent = csr_array((weights, ends), shape=(size, size))
    sent.sum_duplicates()
    return NodeDemand(
        size,
        np.array([weight for weight, _ in exchanges], dtype=np.float64),
        [members for _, members in exchanges],
        sent,
    )
