"""Rates under shortest-path routing with equal splits (ECMP).

This is what equal-cost multipath switches do: each hop divides a flow evenly over the cables that
lie on a shortest permitted path to the destination, blind to load. Shortest is fewest hops, then
least latency, as everywhere in this package: of two ways of two hops the cards of a node lose
against its own switch. Every node between the two ends forwards. The rate is at most the optimal
one, and as high on fabrics as regular as tori, rails and fat trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from topologies.fabric.fabric import Arc, Fabric, Node, cached_per_fabric
from topologies.fabric.limits import TopologyError
from topologies.rates.automorphisms import Orbits
from topologies.rates.flow_network import Floats, FlowNetwork, Ints, NodeDemand, demand, network
from topologies.rates.orbits import orbits
from topologies.rates.traffic import Traffic, traffic_checked

UNREACHED_HOPS = -2  # hops without a permitted path: one more is no distance
# Latencies of two ways that differ by less are equal: they are sums in different orders.
LATENCY_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class DestinationTraffic:
    """Traffic to one destination."""

    target: int  # place of the destination
    sources: Ints  # places of those that send to it
    weights: Floats  # demand weight of each source
    times: float = 1.0  # number of equivalent destinations


class NetworkPaths:
    """A fabric as arrays, and what its arcs carry."""

    def __init__(self, G: Fabric) -> None:
        self.net = network(G)
        self.name = G.graph.get("name")
        self._rows: dict[int, NDArray[np.float32]] = {}  # hops from each node to a target
        data = [arc for *_, arc in G.edges(data=True)]
        self.cables, self.latency = (
            np.fromiter((arc.get(name, usual) for arc in data), float, len(data))
            for name, usual in (("count", 1), ("latency", 0.0))
        )

    @cached_property
    def alike(self) -> FlowNetwork:
        """The network with a number for all that is known of an arc in place of its bandwidth."""
        kind = np.zeros(self.cables.size)
        for figures in (self.net.bandwidth, self.cables, self.latency):
            values, which = np.unique(figures, return_inverse=True)
            kind = kind * values.size + which
        return replace(self.net, bandwidth=1.0 + kind)

    def loads(self, parts: list[DestinationTraffic]) -> Floats:
        """Load of each arc by part of the traffic, at 1 byte/s per unit of weight."""
        targets = np.array([part.target for part in parts])
        away = self._hops(targets)
        mass = np.zeros(away.shape)
        for row, part in enumerate(parts):
            lost = part.sources[~np.isfinite(away[row, part.sources])]
            if lost.size:
                a, b = self.net.nodes[int(lost[0])], self.net.nodes[part.target]
                raise TopologyError(
                    f"fabric {self.name!r}", f"no permitted path from {a!r} to {b!r}"
                )
            mass[row, part.sources] += part.weights * part.times
        # For each target the arcs on shortest paths to it from where anything is sent to it.
        sends = mass > 0
        net, n = self.net, len(self.net.nodes)
        hops = np.where(np.isfinite(away), away, UNREACHED_HOPS).astype(np.int32)
        followed = np.count_nonzero(sends) <= MIN_FOLLOWED_SHARE * sends.size
        rows, arcs = self._followed(hops, sends) if followed else self._nearer(hops, targets)
        shortest = _ShortestArcs(
            arcs, rows * n + net.tail[arcs], rows * n + net.head[arcs], away.ravel()
        )
        shortest = shortest.soonest(self.latency) if np.ptp(self.latency) > 0 else shortest
        carried = shortest.carried(self.cables[shortest.arcs], mass.ravel())
        return np.asarray(np.bincount(shortest.arcs, carried, self.cables.size), dtype=float)

    def _hops(self, targets: Ints) -> Floats:
        """Arcs on the shortest permitted path from every node to each of the targets."""
        new = np.array([t for t in targets.tolist() if t not in self._rows], dtype=np.int64)
        if new.size:
            far = shortest_path(self.net.graph.T, method="D", unweighted=True, indices=new)
            far = far[:, self.net.origin].astype(np.float32)
            far[np.arange(new.size), new] = 0.0
            self._rows |= zip(new.tolist(), far, strict=True)
        away = np.array([self._rows[t] for t in targets.tolist()], dtype=np.float64)
        if len(self._rows) * len(self.net.nodes) > MAX_CACHED_HOPS:
            self._rows = {}
        return away

    def _nearer(self, hops: NDArray[np.int32], targets: Ints) -> tuple[Ints, ...]:
        net = self.net
        # One row per node, so that the entries read for an arc are contiguous.
        hops = np.ascontiguousarray(hops.T)
        nearer = hops[net.tail] == hops[net.head] + 1
        nearer &= net.forwards[net.head, None] | (net.head[:, None] == targets)
        return np.nonzero(np.ascontiguousarray(nearer.T))

    def _followed(self, hops: NDArray[np.int32], sends: NDArray[np.bool_]) -> tuple[Ints, ...]:
        """Arcs on shortest paths, by target, that are reached from nodes that send traffic."""
        net, n = self.net, len(self.net.nodes)
        hops, met = hops.ravel(), sends.ravel().copy()
        front, taken = np.flatnonzero(met), [np.empty(0, dtype=np.int64)]
        while front.size:
            arcs, of = net.by_tail.at(front % n)
            tails = front[of]
            heads = tails - tails % n + net.head[arcs]
            nearer = hops[tails] == hops[heads] + 1
            nearer &= net.forwards[net.head[arcs]] | (hops[heads] == 0)
            taken.append(tails[nearer] // n * net.tail.size + arcs[nearer])
            front = np.unique(heads[nearer][~met[heads[nearer]]])
            met[front] = True
        return np.divmod(np.sort(np.concatenate(taken)), net.tail.size)


network_paths = cached_per_fabric(NetworkPaths)


class _ShortestArcs:
    """Arcs one hop nearer to a target, for many targets, in levels by how far they are.

    A place is a node as seen from one target: row times the number of nodes plus the node.
    """

    def __init__(self, arcs: Ints, tails: Ints, heads: Ints, away: Floats) -> None:
        self.arcs, self.tails, self.heads, self.away = arcs, tails, heads, away
        step = away[tails].astype(np.int64)
        order = np.argsort(step, kind="stable")
        self.levels = np.split(order, np.flatnonzero(np.diff(step[order])) + 1)

    def soonest(self, latency: Floats) -> _ShortestArcs:
        """The shortest arcs on paths of least latency."""
        late = np.where(self.away == 0, 0.0, np.inf)
        taken = latency[self.arcs]
        for level in self.levels:
            np.minimum.at(late, self.tails[level], taken[level] + late[self.heads[level]])
        keep = taken + late[self.heads] <= late[self.tails] * (1 + LATENCY_TOLERANCE)
        return _ShortestArcs(self.arcs[keep], self.tails[keep], self.heads[keep], self.away)

    def carried(self, worth: Floats, mass: Floats) -> Floats:
        """Load of each arc when every place divides its traffic in proportion to `worth`."""
        share = worth / np.bincount(self.tails, worth, mass.size)[self.tails]
        mass, carried = mass.copy(), np.zeros(worth.size)
        for level in reversed(self.levels):
            carried[level] = share[level] * mass[self.tails[level]]
            np.add.at(mass, self.heads[level], carried[level])
        return carried


# Places looked at together, arcs or nodes times destinations: some hundred megabytes.
BATCH = 2_000_000
# Cost of an arc visit in the symmetry search, in arc visits of the shortest paths.
SEARCH_LOOK = 4
# Paths are followed one by one if at most this share of the nodes send to a target.
MIN_FOLLOWED_SHARE = 0.05
BINDING_TOLERANCE = 1e-9  # Arcs whose loads are this near to the fullest are full too.


@dataclass(frozen=True, eq=False)
class EcmpRouting:
    """Traffic on its paths."""

    rate: float  # [byte/s] per unit of weight, if all demands are served at once
    arcs: tuple[Arc, ...]  # the arcs of the fabric, in its order
    load: Floats  # of each arc when demands are served at 1 byte/s per unit of weight [byte/s]
    bandwidth: Floats  # of each arc [byte/s]

    @cached_property
    def binding(self) -> tuple[Arc, ...]:
        """The arcs that are full."""
        full = self.load * self.rate >= self.bandwidth * (1 - BINDING_TOLERANCE)
        return tuple(self.arcs[i] for i in np.flatnonzero(full).tolist())


def ecmp(G: Fabric, traffic: Traffic) -> EcmpRouting:
    """The rate of `traffic` on the shortest permitted paths, even over the cables of each hop.

    Raises TopologyError when the traffic cannot be sent, or no permitted path joins a source and
    its destination.

    >>> from topologies import switch
    >>> from topologies.rates.traffic import all_to_all
    >>> ecmp(switch(4, up=3.0), all_to_all([(0,), (1,), (2,), (3,)])).rate
    1.0
    """
    traffic_checked(G, traffic)
    paths = network_paths(G)
    what = demand(paths.net, traffic)
    # A search for symmetries is worth no more looks at arcs than it takes to send without it.
    symmetry = orbits(paths.alike, what, looks=paths.cables.size // SEARCH_LOOK)
    parts = _parts(what, symmetry)
    load = np.zeros(paths.cables.size)
    size = max(1, BATCH // load.size)
    for start in range(0, len(parts), size):
        load += paths.loads(parts[start : start + size])
    # Equivalent destinations load equivalent arcs: average the load over each arc orbit.
    _, orbit = np.unique(symmetry.arcs, return_inverse=True)
    load = (np.bincount(orbit, load) / np.bincount(orbit))[orbit]
    used = load > 0
    bandwidth = paths.net.bandwidth
    rate = float((bandwidth[used] / load[used]).min())
    return EcmpRouting(rate, paths.net.arcs, load, bandwidth)


def _parts(what: NodeDemand, symmetry: Orbits) -> list[DestinationTraffic]:
    """Traffic to one destination of each orbit."""
    pairs = what.sent.tocsc()
    targets = np.union1d(np.array(list(what.exchanges), dtype=np.int64), pairs.nonzero()[1])
    _, first, times = np.unique(symmetry.nodes[targets], return_index=True, return_counts=True)
    parts = []
    for target, count in zip(targets[first].tolist(), times.tolist(), strict=True):
        sent = slice(pairs.indptr[target], pairs.indptr[target + 1])
        weights = np.zeros(what.size)
        weights[pairs.indices[sent]] = pairs.data[sent]
        for g in what.exchanges.get(target, ()):
            weights[what.groups[g]] += what.weights[g]
        weights[target] = 0.0
        sources = np.flatnonzero(weights)
        parts.append(DestinationTraffic(target, sources, weights[sources], float(count)))
    return parts


CHUNK = 8_000_000  # sources times arcs looked at together: 64 MB of latencies
MAX_CACHED_HOPS = 4_000_000  # hops that are remembered of a fabric: 16 MB


@dataclass(frozen=True)
class Distances:
    """From each source (rows) to each target (columns); hops are -1 without a permitted path."""

    hops: Ints
    latency: Floats  # [s]


class ShortestPaths:
    """Shortest permitted paths of a fabric from many nodes at once."""

    def __init__(self, G: Fabric) -> None:
        self.net = network(G)
        self._rows: dict[int, NDArray[np.int32]] = {}  # hops from a node to each place
        self.latency = np.array([arc["latency"] for *_, arc in G.edges(data=True)], dtype=float)

    def distances(self, sources: Sequence[Node], targets: Sequence[Node]) -> Distances:
        """Hops and latency [s] from every source to every target, shapes (sources, targets)."""
        wanted = self._numbers(targets)
        parts = [(hops[:, wanted], self._late(hops)[:, wanted]) for hops in self._hops(sources)]
        hops, latency = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return Distances(hops, latency)

    def _late(self, hops: Ints) -> Floats:
        """Latency [s] of each place along a path of fewest `hops`; infinite without a path."""
        usual = np.unique(self.latency)
        if usual.size == 1:  # latency depends only on the number of hops
            steps = np.cumsum(np.append(0.0, np.repeat(usual, hops.max(initial=0))))
            return np.asarray(np.where(hops < 0, np.inf, steps[hops]))
        late = np.where(hops == 0, 0.0, np.inf)
        for row, arc in self._levels(hops):
            offered = late[row, self.net.starts[arc]] + self.latency[arc]
            np.minimum.at(late, (row, self.net.head[arc]), offered)
        return late

    def lanes(self, sources: Sequence[Node], targets: Sequence[Node]) -> list[Arc]:
        """Arcs on shortest permitted paths from any source to any target."""
        used = np.zeros(self.latency.size, dtype=bool)
        for hops in self._hops(sources):
            if len(targets) <= MIN_FOLLOWED_SHARE * self.net.places:
                used[self._led(hops, self._numbers(targets))] = True
                continue
            led = np.zeros(hops.shape, dtype=bool)
            led[:, self._numbers(targets)] = True
            for row, arc in reversed(self._levels(hops)):
                on = led[row, self.net.head[arc]]
                used[arc[on]] = True
                led[row[on], self.net.starts[arc[on]]] = True
        return [self.net.arc(i) for i in np.flatnonzero(used).tolist()]

    def _led(self, hops: Ints, targets: Ints) -> Ints:
        """The arcs on shortest paths to the targets, followed back from these."""
        net, size = self.net, self.net.places
        near = np.where(hops < 0, UNREACHED_HOPS, hops).ravel()
        front = (np.arange(len(hops))[:, None] * size + targets).ravel()
        met, taken = np.zeros(near.size, dtype=bool), [np.empty(0, dtype=np.int64)]
        while front.size:
            met[front] = True
            arcs, of = net.by_head.at(front % size)
            tails = front[of] - front[of] % size + net.starts[arcs]
            led = near[front[of]] == near[tails] + 1
            taken.append(np.unique(arcs[led]))
            front = np.unique(tails[led & ~met[tails]])
        return np.concatenate(taken)

    def _numbers(self, nodes: Sequence[Node]) -> Ints:
        return np.array([self.net.index[node] for node in nodes])

    def _hops(self, sources: Sequence[Node]) -> Iterator[Ints]:
        """Hops to each place (-1: no path), for a part of the sources at a time."""
        net, rows = self.net, max(1, CHUNK // max(1, self.latency.size))
        for part in np.split(self._numbers(sources), range(rows, len(sources), rows)):
            new = np.array([i for i in part.tolist() if i not in self._rows], dtype=np.int64)
            if new.size:
                origins = net.origin[new]
                away = shortest_path(net.graph, method="D", unweighted=True, indices=origins)
                # A chip that does not relay starts at an extra place; its own place is 0 hops away.
                away[np.arange(new.size), new] = 0
                hops = np.where(np.isfinite(away), away, -1).astype(np.int32)
                self._rows |= zip(new.tolist(), hops, strict=True)
            yield np.array([self._rows[i] for i in part.tolist()], dtype=np.int64)
            if len(self._rows) * net.places > MAX_CACHED_HOPS:
                self._rows = {}

    def _levels(self, hops: Ints) -> list[tuple[Ints, Ints]]:
        """Rows and arcs that lead one hop farther, by level."""
        net = self.net
        # One row per place, so that the entries read for an arc are contiguous.
        near = np.ascontiguousarray(np.where(hops < 0, UNREACHED_HOPS, hops).T, np.int32)
        onward = near[net.head] == near[net.starts] + 1
        row, arc = np.nonzero(np.ascontiguousarray(onward.T))
        level = hops[row, net.head[arc]]
        order = np.argsort(level, kind="stable")
        cuts = np.flatnonzero(np.diff(level[order])) + 1
        return [(row[i], arc[i]) for i in np.split(order, cuts)]


# The shortest paths of a fabric; those of a frozen one serve all who ask.
shortest_paths = cached_per_fabric(ShortestPaths)
