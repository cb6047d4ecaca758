"""The linear program of concurrent collectives: the share of each arc that each group uses.

One group stands for all that a symmetry takes to each other. A group that is alone keeps only
one target and one use for each orbit of its own; of several groups each keeps all its targets,
since the symmetries of a group by itself are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topologies.fabric.fabric import Arc
from topologies.rates.automorphisms import Orbits
from topologies.rates.flow_network import Floats, FlowNetwork, Ints, SparseMatrix
from topologies.rates.max_flow import Flows, GroupArcs, arcs_of


@dataclass(eq=False)
class UsageRows:
    """A sparse matrix under construction, cell by cell."""

    count: int = 0

    def __post_init__(self) -> None:
        self._cells: list[tuple[Ints, Ints, Floats]] = []

    def copy(self) -> UsageRows:
        """A copy that later rows do not change."""
        copied = UsageRows(self.count)
        copied._cells = list(self._cells)
        return copied

    def more(self, count: int) -> Ints:
        """Append `count` empty rows; their numbers."""
        self.count += count
        return np.arange(self.count - count, self.count)

    def put(self, row: Ints, column: Ints, value: Floats | float) -> None:
        """Add values at (row, column)."""
        self._cells.append((row, column, np.broadcast_to(value, row.shape)))

    def matrix(self, width: int) -> SparseMatrix:
        """The matrix (rows, width) of all cells."""
        if not self._cells:
            return csr_array((self.count, width))
        i, j, x = (np.concatenate(part) for part in zip(*self._cells, strict=True))
        return csr_array((x, (i, j)), shape=(self.count, width))


@dataclass(frozen=True, eq=False)
class UsagePhase:
    """A gather or scatter of a group: arcs it may use, and the column of its use of each."""

    arcs: GroupArcs
    use: Ints
    targets: Ints  # members, as places in the nodes of `arcs`, each of which must be able to gather

    @cached_property
    def flows(self) -> Flows:
        """Maximum flows on the arcs."""
        return Flows(self.arcs)


class LinkUsage:
    """Linear program of arc usage by groups: its columns, and constraints on them.

    Column 0 is the rate, in units.

    Parameters
    ----------
    groups : Members of each group, as numbers of nodes.
    adds : Which nodes add and copy, though they are no members.
    """

    def __init__(
        self, net: FlowNetwork, groups: list[Ints], symmetry: Orbits, adds: NDArray[np.bool_]
    ) -> None:
        self.net, self.symmetry, self.adds = net, symmetry, adds
        self.alone = len(groups) == 1
        first: dict[int, int] = {}
        # A symmetry that takes a member of one group to one of another takes group to group.
        owner = [first.setdefault(int(symmetry.nodes[m].min()), g) for g, m in enumerate(groups)]
        firsts, times = np.unique(owner, return_counts=True)
        self.distinct = [(groups[g], int(n)) for g, n in zip(firsts, times, strict=True)]
        _, self.orbit, size = np.unique(symmetry.arcs, return_inverse=True, return_counts=True)
        self.size = size.astype(float)
        into = np.bincount(net.head, net.bandwidth, len(net.nodes))
        self.unit = float(min(into[m].min() / (m.size - 1) for m, _ in self.distinct))
        self.limits = np.zeros(size.size)
        self.limits[self.orbit] = net.bandwidth / self.unit
        self.width = 1
        self.balances, self.loads = UsageRows(), UsageRows(size.size)
        self.phases: list[UsagePhase] = []

    def add(self, *, mirror: bool) -> None:
        """Every group gathers, or scatters if `mirror`."""
        for members, times in self.distinct:
            arcs = arcs_of(self.net, members, mirror=mirror)
            orbit = self.orbit[arcs.number]
            kinds = orbit if self.alone else np.arange(arcs.number.size)
            used, inverse = np.unique(kinds, return_inverse=True)
            use = self.columns(used.size)[inverse]
            self.loads.put(orbit, use, times / self.size[orbit])
            plain = ~arcs.is_member & ~self.adds[arcs.nodes]
            balanced(self.balances, plain, arcs.tail, arcs.head, use)
            targets = np.flatnonzero(arcs.is_member)
            if self.alone:
                same = self.symmetry.nodes[arcs.nodes[targets]]
                targets = targets[np.unique(same, return_index=True)[1]]
            self.phases.append(UsagePhase(arcs, use, targets))

    def columns(self, count: int) -> Ints:
        """Append `count` columns; their numbers."""
        self.width += count
        return np.arange(self.width - count, self.width)

    def flow_columns(self) -> int:
        """Number of further variables of the formulation with one flow per target."""
        return sum(phase.targets.size * phase.use.size for phase in self.phases)

    def flows(self) -> UsageRows:
        """Columns and balances of a flow to every target, and rows that keep it below the use."""
        below = UsageRows()
        for phase in self.phases:
            arcs = phase.arcs
            for target in phase.targets.tolist():
                carries = arcs.tail != target
                flow = self.columns(int(carries.sum()))
                inner = np.arange(arcs.nodes.size) != target
                row = balanced(self.balances, inner, arcs.tail[carries], arcs.head[carries], flow)
                supplied = row[arcs.is_member & inner]
                self.balances.put(supplied, np.zeros(supplied.size, np.int64), -1.0)
                rows = below.more(flow.size)
                below.put(rows, flow, 1.0)
                below.put(rows, phase.use[carries], -1.0)
        return below

    def binding(self, tight: NDArray[np.bool_]) -> tuple[Arc, ...]:
        """The arcs of the orbits whose load is tight."""
        return tuple(self.net.arc(i) for i in np.flatnonzero(tight[self.orbit]).tolist())


def balanced(
    rows: UsageRows, nodes: NDArray[np.bool_], tail: Ints, head: Ints, column: Ints
) -> Ints:
    """Add flow-balance rows, outflow less inflow, of some nodes; the row of each node, else -1."""
    row = np.full(nodes.size, -1)
    row[nodes] = rows.more(int(nodes.sum()))
    for ends, sign in ((tail, 1.0), (head, -1.0)):
        there = nodes[ends]
        rows.put(row[ends[there]], column[there], sign)
    return row
