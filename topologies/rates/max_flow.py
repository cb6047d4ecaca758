"""Maximum flows in floating point on arcs held in arrays.

SciPy's maximum flow takes 32-bit whole numbers only. Rates whose ratios are simple become whole
numbers; otherwise a first flow with rounded rates is refined in what it leaves, whose rounding
is finer by the same factor again, until it is exact to the noise of the sums.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from topologies.rates.flow_network import Floats, FlowNetwork, Ints

# SciPy adds a flow to the capacity of the arc back, so two bits of the 32 stay free.
LARGEST = 2**29
# Rates that differ in more ways than this have no simple ratios worth looking for.
DISTINCT = 1000
# Ratios of rates are taken as simple fractions if that changes none by more than this.
SAME = 1e-13
# A target is full when it lacks less than this part of one member's share.
ENOUGH = 1e-10


@dataclass(frozen=True)
class GroupArcs:
    """The part of a network that a group may use."""

    nodes: Ints  # members and what forwards, as numbers of the network's nodes
    is_member: NDArray[np.bool_]  # which of the nodes are members
    tail: Ints  # ends of each arc, as places in `nodes`
    head: Ints
    rate: Floats  # its bandwidth [byte/s one way]
    number: Ints  # of each arc in the network


def arcs_of(net: FlowNetwork, members: Ints, *, mirror: bool = False) -> GroupArcs:
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
        self.wires, self.feeds, self.drains = np.split(
            slots, [arcs.tail.size, arcs.tail.size + chips.size]
        )
        self.feed_of = np.full(n, -1)
        self.feed_of[chips] = self.feeds
        self.drain_of = np.full(n, -1)
        self.drain_of[chips] = self.drains
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

        Parameters
        ----------
        share : What each member supplies. [byte/s]
        targets : array of int. Members that are each to take in `share` from every member,
            themselves included.
        unlimited : array of bool. Members that supply without limit.

        Returns
        -------
        filled : array of bool
            Which targets took in all of it.
        inside : array of bool
            The nodes that more could still reach: the near side of a minimum cut.
        """
        wanted = float(self.count * targets.size)
        left = np.zeros(self.columns.size)  # what is left of each arc, in shares
        np.add.at(left, self.wires, self.arcs.rate / share)
        left[self.feeds] = 1.0
        left[self.feed_of[unlimited]] = wanted
        drains = self.drain_of[targets]
        left[drains] = self.count
        unit, most = self._unit(share), wanted
        exact = wanted <= unit * LARGEST
        while True:
            if not exact:
                unit = most / LARGEST
            # No arc can carry more than is still lacking.
            whole = np.minimum(left, min(most, float(left[drains].sum()))) / unit
            near = np.rint(whole)
            whole = np.where(np.abs(near - whole) <= SAME * near, near, np.floor(whole))
            graph = csr_array(
                (whole.astype(np.int32), self.columns.astype(np.int32), self.starts),
                shape=(self.size, self.size),
            )
            left -= maximum_flow(graph, self.source, self.sink).flow.data * unit
            # What rounding has hidden from this flow is less than one unit an arc.
            most = unit * self.columns.size
            if exact or most <= ENOUGH or left[drains].max() <= ENOUGH:
                return left[drains] <= ENOUGH, self._reached(left > 0.999 * unit)

    def _unit(self, share: float) -> float:
        """A common divisor of all rates, in shares; 0 if none is known."""
        if self.ratios is None:
            return 0.0
        base = min(self.ratios)
        step = Fraction(base / share).limit_denominator(10**6)
        if step == 0 or abs(float(step) * share / base - 1) > SAME:
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
    """Each distinct rate as a simple fraction of the least, unless one is none."""
    positive = np.sort(rates[rates > 0])
    distinct = positive[np.diff(positive, prepend=0.0) > 0].tolist()
    if not 0 < len(distinct) <= DISTINCT:
        return None
    ratios = {rate: Fraction(rate / distinct[0]).limit_denominator(10**4) for rate in distinct}
    simple = all(
        abs(float(ratio) * distinct[0] / rate - 1) <= SAME for rate, ratio in ratios.items()
    )
    return ratios if simple else None
