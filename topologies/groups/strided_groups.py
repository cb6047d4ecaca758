"""Rates of groups with members at a fixed stride in the order that fills the chips.

Ranks of a layout are mixed-radix numbers, so the groups of an axis are `size` chips at a `stride`:
the product of the axes that vary faster. All of them talk at once. Inside a domain they have its
links; across domains a chip talks to that of equal place in the other one, and what reaches a
domain is spread inside, so that members of a group in one domain pool their network cards.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topologies.fabric.fabric import Fabric, Node
from topologies.fabric.limits import TopologyError
from topologies.groups.concurrent_groups import GroupPaths, max_concurrent_rate
from topologies.groups.fabric_groups import FabricGroups, fabric_groups
from topologies.groups.parallel_axes import EXCHANGE, GATHER, STAGES
from topologies.groups.tree_networks import inner_nodes, own_links
from topologies.rates.shortest_paths import ecmp
from topologies.rates.traffic import pairs

Ranks = NDArray[np.int64]


class RankTraffic(NamedTuple):
    """From one rank to another, with the share of a chip's rate that goes there, arrays (n,)."""

    source: Ranks
    target: Ranks
    weight: NDArray[np.float64]


def strided_groups(G: Fabric) -> StridedGroups:
    """The strided groups of a fabric, cached until its nodes or arcs change.

    Raises TopologyError when the fabric is unsound.
    """
    return _strided(fabric_groups(G))


class _RankLevel(NamedTuple):
    """A level of a tree network: the part of each rank, and what leads out of and into a part."""

    part: Ranks
    up: NDArray[np.float64]
    down: NDArray[np.float64]


class StridedGroups:
    """A fabric with its chips in rank order, domain after domain, and cached rates."""

    def __init__(self, groups: FabricGroups) -> None:
        self.groups, self.fabric = groups, groups.fabric
        self.chips: list[Node] = [chip for part in groups.domains for chip in part]
        sizes = [len(part) for part in groups.domains]
        self.domain = np.repeat(np.arange(len(sizes)), sizes)
        self._levels = self._of_tree()
        self._rates: dict[tuple[object, ...], float] = {}

    def rate(
        self, pattern: str, size: int, stride: int, ranks: int, *, pooled: bool = True
    ) -> float:
        """Rate of every chip, one way, with all groups of an axis at work [byte/s].

        A group of one sends nothing; its rate is infinite. Raises TopologyError when the ranks are
        no multiple of the groups, or more than the chips.

        Args:
            pattern: `gather` for all-gather, reduce-scatter and rings, `exchange` for all-to-all,
                `stages` for a pipeline, in which each hands on to the next.
            ranks: chips in use, the first ones.
            pooled: whether the members of a group in one domain share their network cards; else one
                of them talks for all.

        >>> from topologies import hierarchy, switch
        >>> wired = strided_groups(hierarchy(switch(8, up=450e9), 2, out=50e9))
        >>> [wired.rate("gather", 4, s, 16) / 1e9 for s in (1, 4)]
        [450.0, 100.0]
        """
        if ranks > len(self.chips) or ranks % (size * stride):
            raise TopologyError(
                self.groups.name, f"groups of {size} at stride {stride} on {ranks} ranks"
            )
        key = (pattern, size, stride, ranks, pooled)
        if key not in self._rates:
            if size == 1:
                self._rates[key] = inf
            elif pattern == STAGES:
                self._rates[key] = self._stages(stride, size, ranks)
            else:
                self._rates[key] = self._collective(pattern, size, stride, ranks, pooled=pooled)
        return self._rates[key]

    def _collective(
        self, pattern: str, size: int, stride: int, ranks: int, *, pooled: bool
    ) -> float:
        """Minimum of the rates inside domains and across domains [byte/s]."""
        groups = np.arange(ranks).reshape(-1, size, stride).swapaxes(1, 2).reshape(-1, size)
        starts = np.ones(groups.shape, dtype=bool)
        starts[:, 1:] = np.diff(self.domain[groups], axis=1) != 0
        first = np.flatnonzero(starts)  # of each group's part in a domain
        lengths = np.diff([*first, groups.size])
        inside = self._inside(pattern, groups.ravel(), first, lengths)
        parts = np.add.reduceat(starts.ravel(), np.arange(0, groups.size, size))
        if parts.max() == 1:
            return inside
        begins = np.cumsum(parts) - parts  # the first part of each group
        shared = np.minimum.reduceat(lengths, begins) if pooled else np.ones_like(parts)
        sent = [
            _across(pattern, groups[i], first[b : b + k] - i * size, int(n))
            for i, (b, k, n) in enumerate(zip(begins, parts, shared, strict=True))
            if k > 1
        ]
        whole = RankTraffic(*map(np.concatenate, zip(*sent, strict=True)))
        return min(inside, self._served(whole))

    def _inside(self, pattern: str, flat: Ranks, first: Ranks, lengths: Ranks) -> float:
        """Rate of the parts of groups inside their domains, minimum over domains [byte/s]."""
        slowest, domains = inf, np.where(lengths > 1, self.domain[flat[first]], -1)
        for d in self._unlike(domains[domains >= 0]):
            here, wiring = np.flatnonzero(domains == d), self.groups.inner[d]
            k = int(lengths[here].min())
            if wiring.plain:
                rate = wiring.rate(k)
                slowest = min(slowest, rate.all_to_all if pattern == EXCHANGE else rate.all_gather)
                continue
            members = [tuple(self.chips[r] for r in flat[first[i] : first[i] + k]) for i in here]
            paths = GroupPaths(self._domain_fabric(d), members)
            joint = paths.exchange() if pattern == EXCHANGE else paths.gather()
            slowest = min(slowest, joint.rate * (k - 1))
        return slowest

    def _stages(self, stride: int, size: int, ranks: int) -> float:
        """Rate from every rank to the rank a stride later, except the last stage [byte/s]."""
        source = np.flatnonzero(np.arange(ranks) // stride % size < size - 1)
        target = source + stride
        near = self.domain[source] == self.domain[target]
        far = RankTraffic(source[~near], target[~near], np.ones(int((~near).sum())))
        slowest = self._served(far) if far.source.size else inf
        for d in self._unlike(self.domain[source[near]]):
            if self.groups.inner[d].plain:
                slowest = min(slowest, self.groups.inner[d].rate(2).send)
                continue
            here = near & (self.domain[source] == d)
            ends = zip(source[here].tolist(), target[here].tolist(), strict=True)
            weights = {(self.chips[a], self.chips[b]): 1.0 for a, b in ends}
            slowest = min(slowest, max_concurrent_rate(self._domain_fabric(d), pairs(weights)).rate)
        return slowest

    def _unlike(self, domains: Ranks) -> list[int]:
        return list({self.groups.inner[d]: d for d in np.unique(domains)[::-1].tolist()}.values())

    def _domain_fabric(self, domain: int) -> Fabric:
        part = own_links(self.fabric, inner_nodes(self.fabric, self.groups.domains[domain]))
        return self.fabric if part is None else part

    def _served(self, sent: RankTraffic) -> float:
        """Concurrent rate of traffic across domains: tree cuts, else shortest paths [byte/s]."""
        if self._levels is None:
            weights = zip(*(column.tolist() for column in sent), strict=True)
            G, chips = self.fabric, self.chips
            return ecmp(G, pairs({(chips[a], chips[b]): w for a, b, w in weights})).rate
        slowest = inf
        for level in self._levels:
            here, there = level.part[sent.source], level.part[sent.target]
            apart = here != there
            for part, room in ((here, level.up), (there, level.down)):
                load = np.bincount(part[apart], sent.weight[apart], room.size)
                used = load > 0
                slowest = min(slowest, float((room[used] / load[used]).min(initial=inf)))
        return slowest

    def _of_tree(self) -> list[_RankLevel] | None:
        """Levels of switches above the domains by rank; None if the fabric has no such tree."""
        tree = self.groups.tree
        if tree is None:
            return None
        levels = []
        for level in tree.levels[:-1]:
            names = {part: i for i, part in enumerate(dict.fromkeys(level.part.values()))}
            part = np.array([names[level.part[chip]] for chip in self.chips])
            rooms = (np.array([room[name] for name in names]) for room in (level.up, level.down))
            levels.append(_RankLevel(part, *rooms))
        return levels


_strided = lru_cache(maxsize=16)(StridedGroups)


def _across(pattern: str, group: Ranks, first: Ranks, n: int) -> RankTraffic:
    """Traffic of `n` members of each part to those of equal place: round the parts, or to each."""
    sources, k = group[first[:, None] + np.arange(n)], first.size
    turns = range(1, 2 if pattern == GATHER else k)
    target = np.concatenate([np.roll(sources, -turn, axis=0).ravel() for turn in turns])
    source = np.tile(sources.ravel(), len(turns))
    return RankTraffic(source, target, np.full(source.size, 1 / (n * len(turns))))
