"""Hops and latencies between many chips at once, on the paths that a fabric permits.

As in `topologies.fabric.measure`, the path with fewest hops counts and of those the one of least
latency; here all chips are looked at together, level by level, as arrays.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from topologies.fabric.fabric import Arc, Fabric, Node

CHUNK = 8_000_000  # sources times arcs looked at together: 64 MB of latencies


@dataclass(frozen=True)
class Distances:
    """From each source (rows) to each target (columns)."""

    hops: np.ndarray
    latency: np.ndarray  # [s]


class ShortestPaths:
    """Arcs of a fabric as arrays, sorted by head; a node that does not relay is two.

    What arrives at such a node ends there: its arcs leave from a copy that no arc enters.
    """

    def __init__(self, G: Fabric) -> None:
        self.end = {node: i for i, node in enumerate(G)}
        relays = [bool(forward) for _, forward in G.nodes(data="forward")]
        size = len(self.end)
        self.start: dict[Node, int] = {
            node: i if relays[i] else size + i for node, i in self.end.items()
        }
        self.nodes = 2 * size
        self.arcs = sorted(G.edges, key=lambda arc: self.end[arc[1]])
        arcs = [(self.end[v], self.start[u], G.edges[u, v]["latency"]) for u, v in self.arcs]
        self.head = np.array([head for head, _, _ in arcs], dtype=np.int64)
        self.tail = np.array([tail for _, tail, _ in arcs], dtype=np.int64)
        self.late = np.array([late for _, _, late in arcs], dtype=np.float64)
        self.heads, self.firsts = np.unique(self.head, return_index=True)

    def distances(self, sources: Sequence[Hashable], targets: Sequence[Hashable]) -> Distances:
        """Hops and latency [s] from every source to every target, shapes (sources, targets).

        Where there is no permitted path, hops is -1.
        """
        parts = [self._search(some, targets) for some in self._chunks(sources)]
        wanted = [self.end[node] for node in targets]
        hops = np.concatenate([hops[:, wanted] for hops, _ in parts])
        return Distances(hops, np.concatenate([late[:, wanted] for _, late in parts]))

    def lanes(self, sources: Sequence[Hashable], targets: Sequence[Hashable]) -> list[Arc]:
        """The arcs that lie on shortest permitted paths from any source to any target."""
        used = np.zeros(len(self.head), dtype=bool)
        wanted = np.array([self.end[node] for node in targets])
        for chunk in self._chunks(sources):
            hops, _ = self._search(chunk, targets)
            led = np.zeros_like(hops, dtype=bool)
            led[:, wanted] = True
            for level in range(int(hops.max()), 0, -1):
                on = (hops[:, self.head] == level) & (hops[:, self.tail] == level - 1)
                on &= led[:, self.head]
                used |= on.any(axis=0)
                row, column = np.nonzero(on)
                led[row, self.tail[column]] = True
        return [self.arcs[i] for i in np.flatnonzero(used).tolist()]

    def _chunks(self, sources: Sequence[Hashable]) -> list[Sequence[Hashable]]:
        rows = max(1, CHUNK // max(1, len(self.tail)))
        return [sources[i : i + rows] for i in range(0, len(sources), rows)]

    def _search(
        self, sources: Iterable[Hashable], targets: Sequence[Hashable]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hops (-1 where there is no path) and latency from a few sources."""
        start = np.array([self.start[node] for node in sources])
        hops = np.full((len(start), self.nodes), -1, dtype=np.int64)
        late = np.full((len(start), self.nodes), np.inf)
        rows = np.arange(len(start))
        hops[rows, start], late[rows, start] = 0, 0.0
        # Where a chip does not relay, the copy that others reach is the chip all the same.
        ends = np.array([self.end[node] for node in sources])
        hops[rows, ends], late[rows, ends] = 0, 0.0
        frontier, level = np.zeros_like(hops, dtype=bool), 0
        frontier[rows, start] = True
        wanted = np.array([self.end[node] for node in targets])
        while frontier.any() and (hops[:, wanted] < 0).any():
            level += 1
            offered = np.where(frontier[:, self.tail], late[:, self.tail] + self.late, np.inf)
            best = np.minimum.reduceat(offered, self.firsts, axis=1)
            fresh = np.isfinite(best) & (hops[:, self.heads] < 0)
            frontier[:] = False
            row, column = np.nonzero(fresh)
            node = self.heads[column]
            frontier[row, node] = True
            hops[row, node], late[row, node] = level, best[row, column]
        return hops, late
