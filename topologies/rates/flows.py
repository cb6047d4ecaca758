"""Maximum flows in floating point on arcs held in arrays.

SciPy's maximum flow takes 32-bit whole numbers only. Rates whose ratios are simple become whole
numbers; otherwise a first flow with rounded rates is refined in what it leaves, whose rounding
is finer by the same factor again, until it is exact to the noise of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from topologies.fabric import Fabric

__all__ = ["Arcs", "Flows", "NDArray", "arcs_of"]

# SciPy adds a flow to the capacity of the arc back, so two bits of the 32 stay free.
LARGEST = 2**29
# Ratios of rates are taken as simple fractions if that changes none by more than this.
SAME = 1e-13
# A target is full when it lacks less than this part of one member's share.
ENOUGH = 1e-10


@dataclass(frozen=True)
class Arcs:
    """The part of a fabric that a group may use, as arrays.

    Attributes
    ----------
    nodes
        Members and what forwards, in the order of the fabric.
    is_member
        Which of the nodes are members.
    tail, head, rate
        Ends of each arc, as places in `nodes`, and its bandwidth. [byte/s one way]
    """

    nodes: list[Any]
    is_member: NDArray[np.bool_]
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    rate: NDArray[np.float64]


def arcs_of(G: Fabric, members: list[Any], *, mirror: bool = False) -> Arcs:
    """What `members` may use of `G`, every arc turned round if `mirror`."""
    group = set(members)
    nodes = [node for node, relays in G.nodes(data="forward") if relays or node in group]
    place = {node: i for i, node in enumerate(nodes)}
    edges: list[tuple[Any, Any, float]] = list(G.edges(data="bandwidth"))
    if len(nodes) < len(G):
        edges = [edge for edge in edges if edge[0] in place and edge[1] in place]
    tail, head = (
        np.fromiter(map(place.__getitem__, map(itemgetter(end), edges)), np.int64, len(edges))
        for end in ((1, 0) if mirror else (0, 1))
    )
    rate = np.fromiter(map(itemgetter(2), edges), float, len(edges))
    is_member = np.fromiter((node in group for node in nodes), bool, len(nodes))
    return Arcs(nodes, is_member, tail, head, rate)


class Flows:
    """Flows on `arcs` from a source that feeds every member to a sink behind chosen members."""

    def __init__(self, arcs: Arcs) -> None:
        self.arcs = arcs
        n = len(arcs.nodes)
        chips = np.flatnonzero(arcs.is_member)
        self.source, self.sink, self.size = n, n + 1, n + 2
        tails = np.concatenate([arcs.tail, np.full(chips.size, n), chips])
        heads = np.concatenate([arcs.head, chips, np.full(chips.size, n + 1)])
        # Each arc with its arc back, in the order of rows that SciPy keeps.
        keys = np.unique(np.concatenate([tails * self.size + heads, heads * self.size + tails]))
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

    def fill(
        self, share: float, targets: NDArray[np.int64], unlimited: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Send `share` from every member to each target at once.

        Parameters
        ----------
        share : float
            What each member supplies. [byte/s]
        targets : array of int
            Members that are each to take in `share` from every member, themselves included.
        unlimited : array of bool
            Members that supply without limit.

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
        """What a divisor of all rates is, in shares; 0 if none is known."""
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
            (np.ones(rows.size, np.int8), (rows, self.columns[open_])),
            shape=(self.size, self.size),
        )
        reached = breadth_first_order(graph, self.source, return_predecessors=False)
        inside = np.zeros(self.size, dtype=bool)
        inside[reached] = True
        return inside[: len(self.arcs.nodes)]


def _simple(rates: NDArray[np.float64]) -> dict[float, Fraction] | None:
    """Each distinct rate as a simple fraction of the least, unless one is none."""
    distinct = np.unique(rates).tolist()
    if len(distinct) > 1000:
        return None
    ratios = {rate: Fraction(rate / distinct[0]).limit_denominator(10**4) for rate in distinct}
    simple = all(
        abs(float(ratio) * distinct[0] / rate - 1) <= SAME for rate, ratio in ratios.items()
    )
    return ratios if simple else None
