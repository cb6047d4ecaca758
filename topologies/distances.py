"""Hops and latencies between many chips at once, on the paths that a fabric permits.

As in `topologies.measure`, the path with fewest hops counts and of those the one of least
latency; here all chips are looked at together, level by level, as arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topologies.errors import TopologyError
from topologies.fabric import Fabric

__all__ = ["Distances", "distances"]

CHUNK = 8_000_000  # sources times arcs looked at together: 64 MB of latencies


@dataclass(frozen=True)
class Distances:
    """From each source (rows) to each target (columns)."""

    hops: np.ndarray
    latency: np.ndarray  # [s]


def distances(G: Fabric, sources: Sequence[Hashable], targets: Sequence[Hashable]) -> Distances:
    """Hops and latency [s] from every source to every target, shapes (sources, targets).

    Raises
    ------
    TopologyError
        When a target cannot be reached from a source.
    """
    paths = _Paths(G)
    rows = max(1, CHUNK // max(1, len(paths.tail)))
    parts = [paths.search(sources[i : i + rows], targets) for i in range(0, len(sources), rows)]
    hops = np.concatenate([hops for hops, _ in parts])
    if (hops < 0).any():
        i, j = np.argwhere(hops < 0)[0]
        told = f"no permitted path from {sources[i]!r} to {targets[j]!r}"
        raise TopologyError(f"fabric {G.graph.get('name')!r}", told)
    return Distances(hops, np.concatenate([late for _, late in parts]))


class _Paths:
    """Arcs of a fabric as arrays, sorted by head; a node that does not relay is two.

    What arrives at such a node ends there: its arcs leave from a copy that no arc enters.
    """

    def __init__(self, G: Fabric) -> None:
        self.end = {node: i for i, node in enumerate(G)}
        relays = [bool(forward) for _, forward in G.nodes(data="forward")]
        size = len(self.end)
        self.start: dict[Any, int] = {
            node: i if relays[i] else size + i for node, i in self.end.items()
        }
        self.nodes = 2 * size
        arcs = [(self.end[v], self.start[u], a["latency"]) for u, v, a in G.edges(data=True)]
        arcs.sort()
        self.head = np.array([head for head, _, _ in arcs], dtype=np.int64)
        self.tail = np.array([tail for _, tail, _ in arcs], dtype=np.int64)
        self.late = np.array([late for _, _, late in arcs], dtype=np.float64)
        self.heads, self.firsts = np.unique(self.head, return_index=True)

    def search(
        self, sources: Iterable[Hashable], targets: Sequence[Hashable]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hops (-1 where there is no path) and latency from a few sources."""
        start = np.array([self.start[node] for node in sources])
        hops = np.full((len(start), self.nodes), -1, dtype=np.int64)
        late = np.full((len(start), self.nodes), np.inf)
        rows = np.arange(len(start))
        hops[rows, start], late[rows, start] = 0, 0.0
        # Where a chip does not relay, the copy that others reach is the chip all the same.
        own = np.array([self.end[node] for node in sources])
        hops[rows, own], late[rows, own] = 0, 0.0
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
        return hops[:, wanted], late[:, wanted]
