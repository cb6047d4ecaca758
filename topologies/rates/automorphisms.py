"""Symmetries of a fabric with its traffic: permutations, each checked on every arc.

Two sources of guesses: the names of the nodes (turn a number of all names round by one), and
colour refinement after two nodes have been singled out. A guess that is no symmetry is
dropped, so a symmetry may be overlooked but none is invented.

What a symmetry has to keep: arcs and their rates, relay permission, and who sends to whom.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from topologies.rates.color_refinement import (
    ColoredArcs,
    Colours,
    mix_hashes,
    neighborhood_hash,
    refine_colors,
)
from topologies.rates.flow_network import FlowNetwork, Ints, NodeDemand, SparseMatrix


class ColoredStructure:
    """A coloured graph: the nodes, then one more node for each group that exchanges.

    A permutation that keeps it, keeps the flow program: it takes arcs to arcs of equal rate,
    what forwards to what forwards, groups to groups of equal weight, and pairs to pairs. The arcs
    of the fabric come first.
    """

    def __init__(self, net: FlowNetwork, demand: NodeDemand) -> None:
        self.net, self.demand = net, demand
        real, groups = demand.size, len(demand.groups)
        self.size = real + groups
        sent = demand.sent.tocoo()
        sizes = [members.size for members in demand.groups]
        tails = (net.tail, sent.coords[0], np.repeat(real + np.arange(groups), sizes))
        self.tail = np.concatenate(tails).astype(np.int64)
        self.head = np.concatenate([net.head, sent.coords[1], *demand.groups]).astype(np.int64)
        self.layer = np.zeros(self.tail.size, dtype=np.int64)
        self.layer[net.tail.size : net.tail.size + sent.nnz] = 1
        rates, rate = np.unique(net.bandwidth, return_inverse=True)
        weights, weight = np.unique(sent.data, return_inverse=True)
        member = np.full(sum(sizes), rates.size + weights.size)
        # Colour of an arc: index of its rate or of its weight, or the mark of an arc to a member.
        self.colour = np.r_[rate, rates.size + weight, member].astype(np.int64)
        _, kind = np.unique(demand.weights, return_inverse=True)
        # Initial node colours, before refinement.
        self.node_colour = mix_hashes(
            np.r_[net.forwards.astype(np.int64), 2 + kind].astype(np.int64)
        )
        keys = _keys(self.size, self.tail, self.head, self.layer)
        self.order = np.argsort(keys, kind="stable")  # the arc behind each key
        self.keys = keys[self.order]  # arcs as sorted numbers
        # For sorted members, as bytes, the groups that have them.
        self.groups: dict[bytes, list[int]] = defaultdict(list)
        for i, members in enumerate(demand.groups):
            self.groups[np.sort(members).tobytes()].append(i)

    @property
    def content(self) -> str:
        """Equal for two structures only if all that a symmetry keeps, and the names, are equal."""
        groups = [members.tobytes() for members in self.demand.groups]
        arrays = (self.tail, self.head, self.layer, self.colour, self.node_colour)
        parts = [*(array.tobytes() for array in arrays), *groups, repr(self.net.nodes).encode()]
        return sha256(b"".join(parts)).hexdigest()

    def extended(self, move: Ints) -> Ints | None:
        """Extend a permutation of the nodes to the groups; None if a group has no image."""
        taken: dict[int, None] = {}
        weights = self.demand.weights
        for members, weight in zip(self.demand.groups, weights, strict=True):
            alike = self.groups.get(np.sort(move[members]).tobytes(), [])
            free = (j for j in alike if j not in taken and weights[j] == weight)
            if (image := next(free, None)) is None:
                return None
            taken[image] = None
        return np.r_[move, self.demand.size + np.array([*taken], dtype=np.int64)]

    def images(self, move: Ints) -> Ints | None:
        """Image of each arc under the node permutation `move`; None if it is no automorphism.

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


def _keys(size: int, tail: Ints, head: Ints, layer: Ints) -> Ints:
    return (layer * size + tail) * size + head


# Looks at an arc before the search is content with the symmetries it has.
BUDGET = 80_000_000
ATTEMPT = 10_000_000
CALL = 4000  # fixed cost of a refinement round or of a check [arc visits]
BRANCHES = 3
DEPTH = 200


@dataclass(eq=False)
class Orbits:
    """Orbits of nodes and of arcs under the symmetries already found."""

    nodes: Ints
    arcs: Ints

    def join(self, move: Ints, images: Ints) -> None:
        """Merge the orbits that a symmetry joins."""
        self.nodes, self.arcs = _joined(self.nodes, move), _joined(self.arcs, images)


def _joined(classes: Ints, move: Ints) -> Ints:
    count = int(classes.max()) + 1
    joined = coo_array((np.ones(classes.size), (classes, classes[move])), shape=(count, count))
    _, labels = connected_components(joined, directed=False)
    return labels.astype(np.int64)[classes]


@dataclass(eq=False)
class AutomorphismSearch:
    """The search for symmetries that bring together nodes of equal refined colour."""

    what: ColoredStructure
    orbits: Orbits
    spent: int = 0
    budget: int = BUDGET
    _limit: int = 0
    _finer: dict[bytes, tuple[int, Colours]] = field(default_factory=dict)

    def run(self) -> None:
        """Search all classes of nodes, sources of traffic first, and merge their orbits."""
        what = self.what
        self.arcs = ColoredArcs.of(what.size, what.tail, what.head, what.colour.astype(np.uint64))
        self.degrees = np.diff(self.arcs.out_at) + np.diff(self.arcs.in_at)
        # Nodes with the same neighbours, as chips behind one switch, turned round.
        colours, places = self.what.node_colour, np.arange(self.what.size)
        views = mix_hashes(neighborhood_hash(self.arcs, mix_hashes(places)) ^ colours)
        order = np.argsort(views, kind="stable")
        first = np.r_[True, np.diff(views[order]) > 0]
        after, begins = np.roll(order, -1), np.flatnonzero(first)
        after[np.r_[begins[1:], order.size] - 1] = order[begins]
        move = places.copy()
        move[order] = after
        self._take(move)
        self.base = self._refined(self.what.node_colour)
        for members in self._classes():
            self._class(members)
            if self.spent > self.budget:
                return

    def _refined(self, colours: Colours) -> Colours:
        colours, rounds = refine_colors(self.arcs, colours)
        self.spent += (rounds + 1) * (self.what.tail.size + self.what.size + CALL)
        return colours

    def _classes(self) -> list[Ints]:
        """Classes of nodes of equal colour that still span several orbits."""
        real = self.what.demand.size
        order = np.argsort(self.base[:real], kind="stable")
        cuts = np.flatnonzero(np.diff(self.base[:real][order])) + 1
        several = [c for c in np.split(order, cuts) if c.size > 1]
        classes = [c for c in several if np.ptp(self.orbits.nodes[c])]
        sends = np.zeros(real, dtype=bool)
        sends[self.what.demand.sources()] = True
        return sorted(classes, key=lambda c: (not sends[c[0]], c.size, c[0]))

    def _class(self, members: Ints) -> None:
        """Search a symmetry between the orbits of one class of nodes."""
        firsts: dict[bytes, list[tuple[int, Colours]]] = defaultdict(list)
        nodes: list[int] = []
        # The members by their distance from the first: near images join most nodes.
        hops = dijkstra(self._links, directed=False, unweighted=True, indices=members[:1])[0]
        for node in [int(node) for node in members[np.argsort(hops[members], kind="stable")]]:
            here = self.orbits.nodes
            if here[node] in here[nodes]:
                continue
            if self.spent > self.budget:
                return
            view = self._single(self.base, node)
            # Colours refined from one node: equal as multisets if a symmetry maps node to node.
            alike = firsts[np.sort(view).tobytes()]
            if not any(self._alike(a, left, node, view) for a, left in alike):
                alike.append((node, view))
                nodes.append(node)

    @cached_property
    def _links(self) -> SparseMatrix:
        net, size = self.what.net, self.what.demand.size
        return csr_array((np.ones(net.tail.size), (net.tail, net.head)), shape=(size, size))

    def _single(self, colours: Colours, node: int) -> Colours:
        marked = colours.copy()
        marked[node] = mix_hashes(marked[[node]], 7)[0]
        return self._refined(marked)

    def _alike(self, a: int, left: Colours, b: int, right: Colours) -> bool:
        """Search an automorphism that maps `a` to `b`, merge its orbits; True if found."""
        stays = np.flatnonzero(left == right)
        if stays.size:
            # Most symmetries of switched networks leave all where it is that can stay.
            pair = []
            for colours in (left, right):
                marked = colours.copy()
                marked[stays] = mix_hashes(stays, 5)
                pair.append(self._refined(marked))
            self._limit = self.spent + ATTEMPT
            if self._extend(pair[0], pair[1], b - a, 0):
                return True
        self._limit = self.spent + ATTEMPT
        return self._extend(left, right, b - a, 0)

    def _extend(self, left: Colours, right: Colours, shift: int, depth: int) -> bool:
        """Single out pairs of nodes, one on each side, until a guess is a symmetry."""
        if not np.array_equal(np.sort(left), np.sort(right)):
            return False
        # A permutation that takes colours to equal colours, and moves no node that can stay.
        move = np.arange(left.size)
        moved = np.flatnonzero(left != right)
        by_left = moved[np.argsort(left[moved], kind="stable")]
        by_right = moved[np.argsort(right[moved], kind="stable")]
        move[by_left] = by_right
        if self._take(move):
            return True
        pick, finer = self._picked(left)
        if pick < 0 or depth == DEPTH:
            return False
        options = np.flatnonzero(right == left[pick])
        # A shift of all nodes joins more than a mirror does.
        rank = np.where(options - pick == shift, 0, 1)
        for option in options[np.argsort(rank, kind="stable")][:BRANCHES].tolist():
            if self.spent > min(self._limit, self.budget):
                return False
            if self._extend(finer, self._single(right, option), option - pick, depth + 1):
                return True
        return False

    def _picked(self, left: Colours) -> tuple[int, Colours]:
        key = left.tobytes()
        if key not in self._finer:
            pick = _next(left, self.degrees)
            self._finer[key] = pick, left if pick < 0 else self._single(left, pick)
        return self._finer[key]

    def _take(self, move: Ints) -> bool:
        self.spent += self.what.tail.size + CALL
        images = self.what.images(move)
        if images is None:
            return False
        self.orbits.join(move[: self.what.demand.size], images[: self.what.net.tail.size])
        return True


def _next(colours: Colours, degrees: Ints) -> int:
    """A node of a colour that several nodes share; -1 if all colours differ.

    Of the classes whose nodes have most links, as those decide most, the smallest.
    """
    _, first, counts = np.unique(colours, return_index=True, return_counts=True)
    several = np.flatnonzero(counts > 1)
    if not several.size:
        return -1
    return int(first[several[np.lexsort((counts[several], -degrees[first[several]]))[0]]])
