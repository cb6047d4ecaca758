"""A fabric with its ways looked up once, and everything that groups of one size reach on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from topologies.fabric.distances import Distances, ShortestPaths
from topologies.fabric.fabric import Fabric, Group
from topologies.fabric.limits import TopologyError
from topologies.groups.concurrent_groups import (
    EVENLY,
    ConcurrentRate,
    exchange,
    gather,
    send,
    wires,
)
from topologies.groups.node_aggregation import AggregatedFabric, AggregateNode, aggregate_nodes
from topologies.rates.rate_table import GroupRate

LOOKED_AT = 2048  # members of groups whose distances are all looked at
SEARCHED = 8_000_000  # members of a group times arcs up to which all of them are looked from


class GroupPaths:
    """Groups on a fabric, twins drawn as one."""

    def __init__(self, G: Fabric, groups: Sequence[Group]) -> None:
        self.fabric = G
        self.groups = tuple(tuple(group) for group in groups)
        self.small: AggregatedFabric = aggregate_nodes(G, self.groups)

    @cached_property
    def paths(self) -> ShortestPaths:
        """Shortest permitted paths of the small fabric."""
        return ShortestPaths(self.small.fabric)

    def exchange(self, *, routing: str = "optimal") -> ConcurrentRate:
        """All-to-all in every group at once, per ordered pair. [byte/s]"""
        return exchange(self.fabric, self.small, routing=routing)

    def gather(self) -> ConcurrentRate:
        """All-gather in every group at once, per share. [byte/s]"""
        lanes = [
            self.paths.lanes([a.start for a in group], [a.end for a in group])
            if len(self.groups) > 1
            else []
            for group in self.small.groups
        ]
        return gather(self.fabric, self.small, lanes)

    def send(self) -> float:
        """From every chip to one other of its group at once. [byte/s]"""
        return send(self.fabric, self.small)

    @cached_property
    def _within(self) -> list[tuple[tuple[AggregateNode, ...], range, Distances]]:
        apart = max(1, len(self.groups) * len(self.groups[0]) // LOOKED_AT)
        distances = []
        for group in self.small.groups[::apart]:
            searches = len(group) * len(self.paths.arcs)
            rows = range(0, len(group), max(1, searches // SEARCHED))
            starts, ends = [group[i].start for i in rows], [a.end for a in group]
            ways = self.paths.distances(starts, ends)
            # From a chip that has no twin to itself is no way to look at.
            alone = [(row, i) for row, i in enumerate(rows) if len(group[i].chips) == 1]
            for row, i in alone:
                ways.hops[row, i], ways.latency[row, i] = 0, 0.0
            if (ways.hops < 0).any():
                row, j = np.argwhere(ways.hops < 0)[0]
                a, b = group[rows[row]].chips[0], group[j].chips[-1]
                fault = f"no permitted path from {a!r} to {b!r}"
                raise TopologyError(f"fabric {self.fabric.graph.get('name')!r}", fault)
            distances.append((group, rows, ways))
        return distances

    def farthest(self) -> tuple[int, float]:
        """Hops and seconds between the two members of a group that are farthest apart.

        Of groups of more than 2048 chips in all, some are looked at, evenly spread; in a group
        of thousands it is looked from some of them to all.
        """
        return (
            max(int(ways.hops.max()) for *_, ways in self._within),
            max(float(ways.latency.max()) for *_, ways in self._within),
        )

    def step(self) -> float:
        """Seconds between members that follow each other, domain by domain; the longest step."""
        return max(self._step(*each) for each in self._within)

    def _step(self, group: Sequence[AggregateNode], rows: range, ways: Distances) -> float:
        domain = [self.fabric.nodes[aggregate.chips[0]]["domain"] for aggregate in group]
        wired = max((arc["latency"] for _, _, arc in wires(self.fabric, group)), default=np.inf)
        order = [i for i, aggregate in enumerate(group) for _ in aggregate.chips]
        return float(
            max(
                min(ways.latency[rows.index(i), j], wired if domain[i] == domain[j] else np.inf)
                for i, j in {*pairwise(order), (order[-1], order[0])}
                if i in rows
            )
        )


def group_rates(G: Fabric, groups: Sequence[Group]) -> GroupRate:
    """Rates of groups of one size, all at once, and the longest ways within any of them."""
    n = len(groups[0])
    ways = GroupPaths(G, groups)
    hops, latency = ways.farthest()
    theta, gathered = ways.exchange().rate, ways.gather()
    evenly = gathered.engine == EVENLY
    # To send a share to each of the others is a way to gather, too.
    alpha = max(gathered.rate, theta) if evenly else gathered.rate
    return GroupRate(
        n,
        all_to_all=theta * (n - 1),
        all_gather=alpha * (n - 1),
        send=ways.send(),
        latency_hops=hops,
        latency=latency,
        domains=max(len({G.nodes[chip]["domain"] for chip in group}) for group in groups),
        step_latency=ways.step(),
        shared_evenly=evenly,
    )
