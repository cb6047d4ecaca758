"""The linear program of collectives side by side: who uses how much of each arc.

One group stands for all that a symmetry takes to each other. A group that is alone keeps only
one target and one use for each orbit of its own; of several groups each keeps all its targets,
since the symmetries of a group by itself are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topologies.errors import TopologyError
from topologies.rates.automorphisms import Orbits
from topologies.rates.network import Network

__all__ = ["Program"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Cells = list[tuple[Ints, Ints, Floats]]

# Variables above which a program is refused: gigabytes, and hours.
LARGEST = 4_000_000


@dataclass(eq=False)
class Program:
    """Rows and columns as they come in. The first column is the rate, in units.

    Attributes
    ----------
    groups
        Members of each group, as numbers of nodes.
    adds
        Which nodes add and copy, though they are no members.
    """

    net: Network
    groups: list[Ints]
    found: Orbits
    adds: NDArray[np.bool_]

    def __post_init__(self) -> None:
        net, node = self.net, self.found.nodes
        first: dict[int, int] = {}
        # A symmetry that takes a member of one group to one of another takes group to group.
        owner = [first.setdefault(int(node[m].min()), g) for g, m in enumerate(self.groups)]
        kept, times = np.unique(owner, return_counts=True)
        self.kept = [(self.groups[g], int(n)) for g, n in zip(kept, times, strict=True)]
        _, self.orbit, size = np.unique(self.found.arcs, return_inverse=True, return_counts=True)
        self.size = size.astype(float)
        self.bandwidth = np.zeros(size.size)
        self.bandwidth[self.orbit] = net.bandwidth
        into = np.bincount(net.head, net.bandwidth, len(net.nodes))
        self.unit = float(min(into[m].min() / (m.size - 1) for m, _ in self.kept))
        self.width, self.balances, self.bounds = 1, 0, 0
        self.equal: Cells = []
        self.less: Cells = []
        self.loads: Cells = []

    def add(self, *, mirror: bool) -> None:
        """Every group gathers, or scatters if `mirror`."""
        for members, times in self.kept:
            self._phase(members, times, mirror)

    def _phase(self, members: Ints, times: int, mirror: bool) -> None:
        net, alone = self.net, len(self.groups) == 1
        usable = net.forwards.copy()
        usable[members] = True
        arcs = np.flatnonzero(usable[net.tail] & usable[net.head])
        tail, head = net.tail[arcs], net.head[arcs]
        if mirror:
            tail, head = head, tail
        kinds = self.orbit[arcs] if alone else np.arange(arcs.size)
        used, inverse = np.unique(kinds, return_inverse=True)
        use = self._columns(used.size)[inverse]
        part = np.full(arcs.size, float(times))
        self.loads.append((self.orbit[arcs], use, part / self.size[self.orbit[arcs]]))
        plain = usable & ~self.adds
        plain[members] = False
        self._balance(plain, tail, head, use)
        targets = members
        if alone:
            targets = members[np.unique(self.found.nodes[members], return_index=True)[1]]
        is_member = np.zeros(usable.size, dtype=bool)
        is_member[members] = True
        for target in targets.tolist():
            carries = tail != target
            flow = self._columns(int(carries.sum()))
            inner = usable.copy()
            inner[target] = False
            row = self._balance(inner, tail[carries], head[carries], flow)
            supplied = row[is_member & inner]
            rate = np.zeros(supplied.size, np.int64)
            self.equal.append((supplied, rate, -np.ones(supplied.size)))
            below = self.bounds + np.arange(flow.size)
            self.bounds += flow.size
            self.less.append((below, flow, np.ones(flow.size)))
            self.less.append((below, use[carries], -np.ones(flow.size)))

    def _columns(self, count: int) -> Ints:
        if self.width + count > LARGEST:
            raise TopologyError(
                "joint_rate",
                f"the groups differ too much to be judged together: over {LARGEST} variables",
            )
        self.width += count
        return np.arange(self.width - count, self.width)

    def _balance(self, nodes: NDArray[np.bool_], tail: Ints, head: Ints, column: Ints) -> Ints:
        """Rows that say what leaves a node less what enters it; the row of each node."""
        row = np.full(nodes.size, -1)
        count = int(nodes.sum())
        row[nodes] = self.balances + np.arange(count)
        self.balances += count
        for ends, sign in ((tail, 1.0), (head, -1.0)):
            there = nodes[ends]
            self.equal.append((row[ends[there]], column[there], np.full(int(there.sum()), sign)))
        return row

    def rows(self) -> tuple[csr_array[Any, Any], int, Floats]:
        """The matrix, how many rows of it, the first, are equalities to zero, and the limits."""
        below = self.balances + self.bounds
        cells = [
            *self.equal,
            *((row + self.balances, column, value) for row, column, value in self.less),
            *((row + below, column, value) for row, column, value in self.loads),
        ]
        i, j, x = (np.concatenate(part) for part in zip(*cells, strict=True))
        shape = (below + self.size.size, self.width)
        limits = np.concatenate([np.zeros(below), self.bandwidth / self.unit])
        return csr_array((x, (i, j)), shape=shape), self.balances, limits

    def binding(self, tight: NDArray[np.bool_]) -> tuple[tuple[Any, Any], ...]:
        """The arcs whose loads are among the tight rows."""
        full = tight[self.balances + self.bounds :][self.orbit]
        return tuple(self.net.arc(i) for i in np.flatnonzero(full).tolist())
