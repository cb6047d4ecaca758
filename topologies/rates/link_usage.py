"""The linear program of concurrent collectives: the share of each arc that each group uses.

One group stands for all that a symmetry takes to each other. A group that is alone keeps only
one target and one use for each orbit of its own; of several groups each keeps all its targets,
since the symmetries of a group by itself are not known.

Maximum flows in floating point on arcs held in arrays.

SciPy's maximum flow takes 32-bit whole numbers only. Rates whose ratios are simple become whole
numbers; otherwise a first flow with rounded rates is refined in what it leaves, whose rounding
is finer by the same factor again, until it is exact to the noise of the sums.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from topologies.fabric.fabric import Arc
from topologies.rates.automorphisms import Orbits
from topologies.rates.flow_network import Floats, FlowNetwork, Ints, SparseMatrix

# SciPy adds a flow to the capacity of the arc back, so two bits of the 32 stay free.
MAX_FLOW = 2**29
DISTINCT = 1000  # Rates that differ in more ways than this have no simple ratios worth looking for.
# Ratios of rates are taken as simple fractions if that changes none by more than this.
REL_TOL = 1e-13
FULL_TOLERANCE = 1e-10  # A target is full when it lacks less than this part of one member's share.


@dataclass(frozen=True)
class GroupArcs:
    """The part of a network that a group may use."""

    nodes: Ints  # members and what forwards, as numbers of the network's nodes
    is_member: NDArray[np.bool_]  # which of the nodes are members
    tail: Ints  # ends of each arc, as places in `nodes`
    head: Ints
    rate: Floats  # its bandwidth [byte/s one way]
    number: Ints  # of each arc in the network


def group_subnetwork(net: FlowNetwork, members: Ints, *, mirror: bool = False) -> GroupArcs:
    """The subnetwork usable by `members`, with every arc reversed if `mirror`."""
    usable = net.forwards.copy()
    usable[members] = True
    is_member = np.zeros(usable.size, dtype=bool)
    is_member[members] = True
    nodes = np.flatnonzero(usable)
    place = np.cumsum(usable) - 1
    inner = np.flatnonzero(usable[net.tail] & usable[net.head])
    tail, head = place[net.tail[inner]], place[net.head[inner]]
    if mirror:
        tail, head = head, tail
    return GroupArcs(nodes, is_member[nodes], tail, head, net.bandwidth[inner], inner)


class Flows:
    """Flows on `arcs` from a source that feeds every member to a sink behind chosen members."""

    def __init__(self, arcs: GroupArcs) -> None:
        self.arcs = arcs
        n = arcs.nodes.size
        chips = np.flatnonzero(arcs.is_member)
        self.source, self.sink, self.size = n, n + 1, n + 2
        tails = np.concatenate([arcs.tail, np.full(chips.size, n), chips])
        heads = np.concatenate([arcs.head, chips, np.full(chips.size, n + 1)])
        # Each arc with its arc back, in the order of rows that SciPy keeps.
        keys = np.sort(np.concatenate([tails * self.size + heads, heads * self.size + tails]))
        keys = keys[np.concatenate([[True], np.diff(keys) > 0])]
        rows, self.columns = np.divmod(keys, self.size)
        self.starts = np.searchsorted(rows, np.arange(self.size + 1))
        slots = np.searchsorted(keys, tails * self.size + heads)
        self.wires, self.feeds, drains = np.split(
            slots, [arcs.tail.size, arcs.tail.size + chips.size]
        )
        self.feed_of, self.drain_of = np.full((2, n), -1)
        self.feed_of[chips], self.drain_of[chips] = self.feeds, drains
        self.count = chips.size
        self.ratios: dict[float, Fraction] | None = _simple(arcs.rate)

    def at(self, rate: Floats) -> Flows:
        """A copy with other bandwidths."""
        other_rates = copy(self)
        other_rates.arcs = replace(self.arcs, rate=rate)
        other_rates.ratios = _simple(rate)
        return other_rates

    def fill(
        self, share: float, targets: Ints, unlimited: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Send `share` from every member to each target at once.

        Args:
            share: What each member supplies. [byte/s]
            targets: array of int. Members that are each to take in `share` from every member,
                themselves included.
            unlimited: array of bool. Members that supply without limit.

        Two arrays of bool: targets that took in all of it, and nodes that more could still reach,
        the near side of a minimum cut.
        """
        wanted = float(self.count * targets.size)
        left = np.zeros(self.columns.size)  # remaining capacity of each arc, in shares
        np.add.at(left, self.wires, self.arcs.rate / share)
        left[self.feeds] = 1.0
        left[self.feed_of[unlimited]] = wanted
        drains = self.drain_of[targets]
        left[drains] = self.count
        unit, most = self._unit(share), wanted
        exact = wanted <= unit * MAX_FLOW
        while True:
            if not exact:
                unit = most / MAX_FLOW
            # No arc can carry more than is still lacking.
            whole = np.minimum(left, min(most, float(left[drains].sum()))) / unit
            near = np.rint(whole)
            whole = np.where(np.abs(near - whole) <= REL_TOL * near, near, np.floor(whole))
            graph = csr_array(
                (whole.astype(np.int32), self.columns.astype(np.int32), self.starts),
                shape=(self.size, self.size),
            )
            left -= maximum_flow(graph, self.source, self.sink).flow.data * unit
            # Rounding hides less than one unit per arc from this flow.
            most = unit * self.columns.size
            if exact or most <= FULL_TOLERANCE or left[drains].max() <= FULL_TOLERANCE:
                return left[drains] <= FULL_TOLERANCE, self._reached(left > 0.999 * unit)

    def _unit(self, share: float) -> float:
        if self.ratios is None:
            return 0.0
        base = min(self.ratios)
        step = Fraction(base / share).limit_denominator(10**6)
        if step == 0 or abs(float(step) * share / base - 1) > REL_TOL:
            return 0.0
        return 1.0 / lcm(*((ratio * step).denominator for ratio in self.ratios.values()))

    def _reached(self, open_: NDArray[np.bool_]) -> NDArray[np.bool_]:
        rows = np.repeat(np.arange(self.size), np.diff(self.starts))[open_]
        graph = csr_array(
            (np.ones(rows.size, np.int8), (rows, self.columns[open_])), shape=(self.size, self.size)
        )
        reached = breadth_first_order(graph, self.source, return_predecessors=False)
        inside = np.zeros(self.size, dtype=bool)
        inside[reached] = True
        return inside[: self.arcs.nodes.size]


def _simple(rates: Floats) -> dict[float, Fraction] | None:
    positive = np.sort(rates[rates > 0])
    distinct = positive[np.diff(positive, prepend=0.0) > 0].tolist()
    if not 0 < len(distinct) <= DISTINCT:
        return None
    ratios = {rate: Fraction(rate / distinct[0]).limit_denominator(10**4) for rate in distinct}
    off = (abs(float(ratio) * distinct[0] / rate - 1) for rate, ratio in ratios.items())
    return ratios if max(off) <= REL_TOL else None


@dataclass(eq=False)
class UsageRows:
    """A sparse matrix under construction, cell by cell."""

    count: int = 0
    cells: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)

    def more(self, count: int) -> Ints:
        """Append `count` empty rows; their numbers."""
        self.count += count
        return np.arange(self.count - count, self.count)

    def put(self, row: Ints, column: Ints, value: Floats | float) -> None:
        """Add values at (row, column)."""
        self.cells.append((row, column, np.broadcast_to(value, row.shape)))

    def matrix(self, width: int) -> SparseMatrix:
        """The matrix (rows, width) of all cells."""
        if not self.cells:
            return csr_array((self.count, width))
        i, j, x = (np.concatenate(part) for part in zip(*self.cells, strict=True))
        return csr_array((x, (i, j)), shape=(self.count, width))


@dataclass(frozen=True, eq=False)
class UsagePhase:
    """A gather or scatter of a group: arcs it may use, and the column of its use of each."""

    arcs: GroupArcs
    use: Ints
    targets: Ints  # members that must each be able to gather, as indices into the nodes of `arcs`

    @cached_property
    def flows(self) -> Flows:
        """Maximum flows on the arcs."""
        return Flows(self.arcs)


class LinkUsage:
    """Linear program of arc usage by groups: its columns, and constraints on them.

    Column 0 is the rate, in units.

    Args:
        groups: Members of each group, as numbers of nodes.
        adds: Which nodes add and copy, though they are no members.
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
            arcs = group_subnetwork(self.net, members, mirror=mirror)
            orbit = self.orbit[arcs.number]
            kinds = orbit if self.alone else np.arange(arcs.number.size)
            used, inverse = np.unique(kinds, return_inverse=True)
            use = self.columns(used.size)[inverse]
            self.loads.put(orbit, use, times / self.size[orbit])
            plain = ~arcs.is_member & ~self.adds[arcs.nodes]
            add_flow_balance(self.balances, plain, arcs.tail, arcs.head, use)
            targets = np.flatnonzero(arcs.is_member)
            if self.alone:
                same = self.symmetry.nodes[arcs.nodes[targets]]
                targets = targets[np.unique(same, return_index=True)[1]]
            self.phases.append(UsagePhase(arcs, use, targets))

    def columns(self, count: int) -> Ints:
        """Append `count` columns; their numbers."""
        self.width += count
        return np.arange(self.width - count, self.width)

    def flows(self) -> UsageRows:
        """Columns and balances of a flow to every target, and rows that keep it below the use."""
        below = UsageRows()
        for phase in self.phases:
            arcs = phase.arcs
            for target in phase.targets.tolist():
                carries = arcs.tail != target
                flow = self.columns(int(carries.sum()))
                inner = np.arange(arcs.nodes.size) != target
                row = add_flow_balance(
                    self.balances, inner, arcs.tail[carries], arcs.head[carries], flow
                )
                supplied = row[arcs.is_member & inner]
                self.balances.put(supplied, np.zeros(supplied.size, np.int64), -1.0)
                rows = below.more(flow.size)
                below.put(rows, flow, 1.0)
                below.put(rows, phase.use[carries], -1.0)
        return below

    def binding(self, tight: NDArray[np.bool_]) -> tuple[Arc, ...]:
        """The arcs of the orbits whose load is tight."""
        return tuple(self.net.arc(i) for i in np.flatnonzero(tight[self.orbit]).tolist())


def add_flow_balance(
    rows: UsageRows, nodes: NDArray[np.bool_], tail: Ints, head: Ints, column: Ints
) -> Ints:
    """Add flow-balance rows, outflow less inflow, of some nodes; the row of each node, else -1."""
    row = np.full(nodes.size, -1)
    row[nodes] = rows.more(int(nodes.sum()))
    for ends, sign in ((tail, 1.0), (head, -1.0)):
        there = nodes[ends]
        rows.put(row[ends[there]], column[there], sign)
    return row
