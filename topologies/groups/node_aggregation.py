"""Aggregation of equivalent endpoints: chips of a group behind the same switches by equal links.

Such chips can be exchanged without changing anything, so a rate that is the same for all of them
is found on the smaller fabric. A chip that does not relay is drawn as two nodes, where traffic
starts and where it ends, so that what they send each other has a path.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from topologies.fabric.fabric import ACCELERATOR, Arc, Fabric, Group, Node, fabric


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
    arcs: dict[Arc, list[Arc]]  # the arcs of the whole fabric behind each arc

    @property
    def smaller(self) -> bool:
        """Is any chip drawn together with another?"""
        return any(len(aggregate.chips) > 1 for group in self.groups for aggregate in group)

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
        return tuple(each for arc in arcs for each in self.arcs[arc])


def aggregate_nodes(G: Fabric, groups: Sequence[Group]) -> AggregatedFabric:
    """`G` with the equivalent chips of every group as one node."""
    start: dict[Node, Node] = {}
    end: dict[Node, Node] = {}
    drawn = []
    for group in groups:
        alike: dict[Node, list[Node]] = {}
        for chip in group:
            alike.setdefault(_surroundings(G, chip), []).append(chip)
        drawn.append(tuple(_aggregate(G, tuple(chips)) for chips in alike.values()))
        for aggregate in drawn[-1]:
            start |= dict.fromkeys(aggregate.chips, aggregate.start)
            end |= dict.fromkeys(aggregate.chips, aggregate.end)
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
    return AggregatedFabric(small, tuple(drawn), behind)


def _aggregate(G: Fabric, chips: Group) -> AggregateNode:
    first = chips[0]
    if G.nodes[first]["forward"]:
        return AggregateNode(chips, first, first)
    return AggregateNode(chips, ("from", first), ("to", first))


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
