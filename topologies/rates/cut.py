"""The cut that bounds an all-gather, a reduce-scatter or an all-reduce on any fabric.

What the members in a set S hold must leave S, as long as one member is outside: the rate of a
member's share is at most exit(S) / |S with members| (ForestColl, arXiv:2402.06787). The least of
these over all S is found by maximum flows. It is a bound for every schedule that neither adds
nor copies inside the network; trees reach it where as much can enter each switch as can leave
it, whatever the members' own links.

Chips of the group relay for it even where `forward` is False: whatever passes through a member
is data that it was to receive anyway. Chips outside the group relay only if they forward.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from topologies.fabric.fabric import Arc, Fabric, Node
from topologies.fabric.limits import TopologyError
from topologies.rates.flow_network import Ints, demand, network, usable_subfabric
from topologies.rates.link_usage import Flows, group_subnetwork
from topologies.rates.orbits import orbits
from topologies.rates.traffic import all_to_all, checked_members

# Relative difference below which two cut ratios are equal: rounding error of float sums.
NOISE = 1e-12


class CutSearch:
    """Lower the rate until no cut is narrower.

    At a trial rate x every member is a source of x, and each target must be able to take in x
    times the number of members. If it cannot, the minimum cut has a ratio below x, which is the
    next trial. Every set that is still suspected holds all targets found satisfied so far, so
    these may then supply without limit, and many targets can be satisfied in one flow.

    Attributes:
        rate, inside: The least ratio found, and the nodes on the near side of that cut.
        passed: Near sides of all cuts that were the narrowest for a while.
    """

    def __init__(self, flows: Flows) -> None:
        self.flows, self.arcs = flows, flows.arcs
        arcs = self.arcs
        self.count = int(arcs.is_member.sum())
        n = arcs.nodes.size
        into = np.bincount(arcs.head, arcs.rate, n).astype(float)
        into[~arcs.is_member] = np.inf
        worst = int(np.argmin(into))
        self.inside = np.ones(n, dtype=bool)
        self.inside[worst] = False
        self.rate = self._ratio(self.inside)
        self.passed = [self.inside]

    def run(self, classes: list[Ints]) -> None:
        """Find the narrowest cut, from classes of members, each represented by its first member."""
        pending, size = classes, 1
        satisfied = np.zeros(self.arcs.nodes.size, dtype=bool)
        while pending and self.rate > 0:
            batch, later = pending[:size], pending[size:]
            targets = np.array([same[0] for same in batch])
            filled, inside = self.flows.fill(self.rate, targets, satisfied)
            if self._lower(inside):
                continue
            # A single target that is short by less than the noise counts as satisfied.
            if len(batch) == 1:
                filled[:] = True
            for same in compress(batch, filled):
                satisfied[same] = True
            short = list(compress(batch, ~filled))
            pending = later + short
            size = max(1, size // 2) if short else 2 * size

    def _lower(self, inside: NDArray[np.bool_]) -> bool:
        """Take the cut if it is narrower than the current narrowest; True if taken."""
        if not (self.arcs.is_member & inside).any() or not (self.arcs.is_member & ~inside).any():
            return False
        ratio = self._ratio(inside)
        if ratio >= self.rate * (1 - NOISE):
            return False
        self.inside, self.rate = inside, ratio
        self.passed.append(inside)
        return True

    def _ratio(self, inside: NDArray[np.bool_]) -> float:
        leaving = inside[self.arcs.tail] & ~inside[self.arcs.head]
        members = int((self.arcs.is_member & inside).sum())
        return float(self.arcs.rate[leaving].sum()) / members


GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class NarrowestCut:
    """The narrowest cut and the rate it leaves.

    Attributes:
        rate: What each member receives of each other member's share. With n members and S bytes in
            all (S/n from each), an all-gather takes S/(n rate); its bus bandwidth is (n - 1) rate.
            [byte/s]
        members: How many take part.
        starved: Nodes beyond the cut, among them at least one member: an all-gather cannot bring
            them faster what the others hold, a reduce-scatter cannot take faster what they give.
        arcs: Arcs that cross the cut; all of them are full.
    """

    rate: float
    members: int
    starved: frozenset[Node]
    arcs: tuple[Arc, ...]

    @property
    def bus_bandwidth(self) -> float:
        """Bus bandwidth: bytes entering (or leaving) one member per second. [byte/s]"""
        return self.rate * (self.members - 1)


def all_gather_rate(G: Fabric, members: Iterable[Hashable] | None = None) -> NarrowestCut:
    """Optimal all-gather rate of a group: the narrowest cut per member beyond it. [byte/s]

    Raises TopologyError when a member is no accelerator or named twice, there are fewer than two,
    or no permitted path joins two of them.

    Args:
        members: iterable of nodes. Who takes part; all accelerators if not given.

    >>> from topologies import switch
    >>> all_gather_rate(switch(8, up=450e9)).bus_bandwidth
    450000000000.0
    """
    return _narrowest(G, checked_members("all_gather_rate", G, members), mirror=False)


def reduce_scatter_rate(G: Fabric, members: Iterable[Hashable] | None = None) -> NarrowestCut:
    """The mirror of an all-gather: every member takes in the sum of its share from all others."""
    return _narrowest(G, checked_members("reduce_scatter_rate", G, members), mirror=True)


def all_reduce_rate(G: Fabric, members: Iterable[Hashable] | None = None) -> float:
    """Rate per share of a reduce-scatter and an all-gather in turn. [byte/s]

    Counted as the bus bandwidth of nccl-tests is: n members that reduce S bytes each take
    2 S/(n rate). Where links are alike in both directions it is the all-gather's own rate. To
    run the two at once is faster only where a cut is full in one direction alone, as in the
    middle of an open line.
    """
    group = checked_members("all_reduce_rate", G, members)
    there, back = (_narrowest(G, group, mirror=way).rate for way in (True, False))
    return 2 / (1 / there + 1 / back)


def _narrowest(G: Fabric, group: list[Node], *, mirror: bool) -> NarrowestCut:
    net = network(usable_subfabric(G, group))
    what = demand(net, all_to_all(group))
    arcs = group_subnetwork(net, what.groups[0], mirror=mirror)
    search = CutSearch(Flows(arcs))
    # Without symmetries one flow per member suffices, each over all arcs: limit of `looks`.
    # Classes of symmetric members, each with a representative, by multiples of the golden section:
    # an early batch holds no two neighbours.
    chips = np.flatnonzero(arcs.is_member)
    orbit = orbits(net, what, looks=arcs.tail.size).nodes[arcs.nodes[chips]]
    order = np.argsort(orbit, kind="stable")
    classes = np.split(chips[order], np.flatnonzero(np.diff(orbit[order])) + 1)
    spread = np.argsort((np.arange(len(classes)) * GOLDEN) % 1.0)
    search.run([classes[i] for i in spread.tolist()])
    near, far = (arcs.nodes[search.inside == side].tolist() for side in (True, False))
    crossing = search.inside[arcs.tail] & ~search.inside[arcs.head]
    if not crossing.any():
        here, there = (
            next(net.nodes[i] for i in side if net.nodes[i] in group) for side in (near, far)
        )
        a, b = (there, here) if mirror else (here, there)
        raise TopologyError(
            f"fabric {G.graph.get('name')!r}", f"no permitted path from {a!r} to {b!r}"
        )
    ends = (arcs.nodes[side[crossing]].tolist() for side in (arcs.tail, arcs.head))
    inward = tuple((net.nodes[u], net.nodes[v]) for u, v in zip(*ends, strict=True))
    return NarrowestCut(
        search.rate,
        len(group),
        frozenset(net.nodes[i] for i in far),
        tuple((v, u) for u, v in inward) if mirror else inward,
    )
