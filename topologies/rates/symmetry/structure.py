"""What a symmetry has to keep: arcs and their rates, relay permission, and who sends to whom."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topologies.rates.flow_network import Demand, Network
from topologies.rates.symmetry.color_refinement import Arcs, Colours, mixed

__all__ = ["Structure", "structure"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Structure:
    """A coloured graph: the nodes, then one more node for each group that exchanges.

    A permutation that keeps it, keeps the flow program: it takes arcs to arcs of equal rate,
    what forwards to what forwards, groups to groups of equal weight, and pairs to pairs.

    Attributes
    ----------
    net, demand
        What it was made of.
    keys, order
        Arcs as sorted numbers, and the arc behind each.
    colour
        Of each arc: its rate, its weight, or that it leads to a member.
    node_colour
        Of each node, before any refinement.
    groups
        For sorted members, as bytes, the groups that have them.
    """

    net: Network
    demand: Demand
    size: int
    tail: Ints
    head: Ints
    layer: Ints
    keys: Ints
    order: Ints
    colour: Ints
    node_colour: Colours
    groups: dict[bytes, list[int]]

    def arcs(self) -> Arcs:
        """The arcs, made ready for refinement."""
        return Arcs.of(self.size, self.tail, self.head, self.colour.astype(np.uint64))

    def extended(self, move: Ints) -> Ints | None:
        """A permutation of the nodes with the groups carried along, or None if one is lost."""
        beyond: list[int] = []
        taken: set[int] = set()
        for i, members in enumerate(self.demand.groups):
            image = np.sort(move[members]).tobytes()
            weight = self.demand.weights[i]
            free = [
                j
                for j in self.groups.get(image, [])
                if j not in taken and self.demand.weights[j] == weight
            ]
            if not free:
                return None
            taken.add(free[0])
            beyond.append(self.demand.size + free[0])
        return np.r_[move, np.array(beyond, dtype=np.int64)]

    def images(self, move: Ints) -> Ints | None:
        """Where each arc goes when every node `i` goes to `move[i]`; None if it is no symmetry.

        `move` is a permutation of all nodes, groups among them.
        """
        if not np.array_equal(self.node_colour[move], self.node_colour):
            return None
        keys = _keys(self.size, move[self.tail], move[self.head], self.layer)
        at = np.searchsorted(self.keys, keys)
        at[at == self.keys.size] = 0
        if not np.array_equal(self.keys[at], keys):
            return None
        images = self.order[at]
        return images if np.array_equal(self.colour[images], self.colour) else None


def structure(net: Network, demand: Demand) -> Structure:
    """The structure of a fabric with its traffic. The arcs of the fabric come first."""
    real, groups = demand.size, len(demand.groups)
    sent = demand.sent.tocoo()
    member = [np.concatenate(demand.groups)] if groups else []
    sizes = [members.size for members in demand.groups]
    tail = np.r_[net.tail, sent.coords[0], np.repeat(real + np.arange(groups), sizes)]
    head = np.concatenate([net.head, sent.coords[1], *member]).astype(np.int64)
    tail = tail.astype(np.int64)
    layer = np.zeros(tail.size, dtype=np.int64)
    layer[net.tail.size : net.tail.size + sent.nnz] = 1
    rates, rate = np.unique(net.bandwidth, return_inverse=True)
    weights, weight = np.unique(sent.data, return_inverse=True)
    last = rates.size + weights.size
    colour = np.r_[rate, rates.size + weight, np.full(sum(sizes), last)].astype(np.int64)
    _, kind = np.unique(demand.weights, return_inverse=True)
    node_colour = mixed(np.r_[net.forwards.astype(np.int64), 2 + kind].astype(np.int64))
    keys = _keys(real + groups, tail, head, layer)
    order = np.argsort(keys, kind="stable")
    named: dict[bytes, list[int]] = defaultdict(list)
    for i, members in enumerate(demand.groups):
        named[np.sort(members).tobytes()].append(i)
    return Structure(
        net,
        demand,
        real + groups,
        tail,
        head,
        layer,
        keys[order],
        order,
        colour,
        node_colour,
        dict(named),
    )


def _keys(size: int, tail: Ints, head: Ints, layer: Ints) -> Ints:
    return (layer * size + tail) * size + head
