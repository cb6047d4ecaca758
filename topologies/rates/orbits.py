"""Orbits of sources and arcs under the symmetries of a fabric: a member represents its orbit.

A fabric may declare its orbits, but a declaration is no proof: a link may have failed since,
and the traffic may tell apart what the fabric does not. So symmetries are always exhibited
as permutations and checked; what names and colours suggest is only where they are looked for.

Names suggest numbers turned round, mirrored, exchanged: node `(r, i)` is chip i of rack r, and
whatever else bears r or i in the same place of its name goes along.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from topologies.fabric.fabric import Group, Node
from topologies.rates.automorphisms import BUDGET, AutomorphismSearch, ColoredStructure, Orbits
from topologies.rates.flow_network import FlowNetwork, Ints, NodeDemand


@dataclass(frozen=True, eq=False)
class _SymmetryBox:
    """Nodes whose names differ in numbers only, and fill a box of them."""

    nodes: Ints
    places: tuple[int, ...]
    numbers: Ints
    sides: tuple[int, ...]
    at: Ints


class NamedBoxes:
    """Boxes of the names that are tuples with numbers in them; other nodes stay where they are."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.size = len(nodes)
        shapes: dict[Group, list[tuple[int, Group]]] = defaultdict(list)
        for i, name in enumerate(nodes):
            if type(name) is tuple:
                shapes[tuple([None if type(x) is int else x for x in name])].append((i, name))
        self.boxes: list[_SymmetryBox] = []
        for shape, members in shapes.items():
            places = tuple(place for place, word in enumerate(shape) if word is None)
            if places and len(members) > 1:
                numbers = np.array([[name[place] for place in places] for _, name in members])
                box = _box(np.array([i for i, _ in members]), places, numbers)
                self.boxes += [] if box is None else [box]

    def places(self) -> list[int]:
        """Positions of numbers in the names."""
        return sorted({place for box in self.boxes for place in box.places})

    def turns(self, place: int) -> Iterator[Ints]:
        """The numbers in one place turned round: by one, else by more, and box by box."""
        holders = [box for box in self.boxes if place in box.places]
        sides = {box.sides[box.places.index(place)] for box in holders}
        most = max(sides)
        for step in (step for step in range(1, most // 2 + 1) if most % step == 0):
            yield self._turned(holders, place, step)
            if step == 1 and len(holders) > 1:
                for box in holders:
                    yield self._turned([box], place, 1)

    def blocks(self) -> Iterator[Ints]:
        """Neighbours turned round within blocks: cards of a leaf, leaves of a pod, pods.

        A thing counts as many cards as its box has fewer numbers than that of the cards.
        """
        if not self.boxes:
            return
        most = max(box.sides[0] for box in self.boxes if box.sides)
        boxes = [(most // box.sides[0], box) for box in self.boxes if box.sides]
        if any(most % box.sides[0] for _, box in boxes):
            return
        chain = sorted({many for many, _ in boxes} | {most})
        for step, block in pairwise(chain):
            if block % step == 0:
                moved = []
                for many, box in boxes:
                    numbers, size = box.numbers.copy(), block // many
                    if size > 1 and step % many == 0:
                        at = numbers[:, 0] % size
                        numbers[:, 0] += (at + step // many) % size - at
                        moved.append((box, numbers))
                yield self._all(moved)

    def mirrors(self) -> Iterator[Ints]:
        """The numbers in one place counted backwards."""
        for place in self.places():
            yield self._turned([box for box in self.boxes if place in box.places], place, -1, -1)

    def swaps(self) -> Iterator[Ints]:
        """The numbers in two places exchanged."""
        for box in self.boxes:
            for p in range(len(box.sides)):
                for q in range(p):
                    if box.sides[p] == box.sides[q]:
                        numbers = box.numbers.copy()
                        numbers[:, [p, q]] = box.numbers[:, [q, p]]
                        yield self._all([(box, numbers)])

    def _turned(
        self, boxes: Sequence[_SymmetryBox], place: int, step: int, factor: int = 1
    ) -> Ints:
        moved = []
        for box in boxes:
            column = box.places.index(place)
            numbers = box.numbers.copy()
            numbers[:, column] = (factor * numbers[:, column] + step) % box.sides[column]
            moved.append((box, numbers))
        return self._all(moved)

    def _all(self, moved: Sequence[tuple[_SymmetryBox, Ints]]) -> Ints:
        move = np.arange(self.size)
        for box, numbers in moved:
            move[box.nodes] = box.at[np.ravel_multi_index(tuple(numbers.T), box.sides)]
        return move


def _box(members: Ints, places: tuple[int, ...], numbers: Ints) -> _SymmetryBox | None:
    """The box that the numbers fill, if they do."""
    sides = numbers.max(axis=0) + 1
    if numbers.min() < 0 or np.prod(sides.astype(float)) != members.size:
        return None
    flat = np.ravel_multi_index(tuple(numbers.T), tuple(sides))
    at = np.full(members.size, -1)
    at[flat] = members
    if np.any(at < 0):
        return None
    # Numbers that never change are no numbers to turn.
    wide = np.flatnonzero(sides > 1)
    wide_sides = tuple(int(side) for side in sides[wide])
    return _SymmetryBox(
        members, tuple(places[int(i)] for i in wide), numbers[:, wide], wide_sides, at
    )


MAX_MIRROR_ARCS = 200_000  # Mirrors join few further arcs, and each is a look at every arc.


def orbits(net: FlowNetwork, demand: NodeDemand, *, looks: int = BUDGET) -> Orbits:
    """Orbits of nodes and arcs under symmetries that keep the fabric and its traffic.

    What names do not tell is searched with at most so many `looks` at an arc for each source that
    is left, and remembered where they are as many as ever.
    """
    what = ColoredStructure(net, demand)
    key = what.content
    if key not in _remembered:
        symmetry = Orbits(np.arange(demand.size), np.arange(net.tail.size))
        labels = NamedBoxes(net.nodes)
        for place in labels.places():
            for move in labels.turns(place):
                if _taken(what, symmetry, move):
                    break
        if np.unique(symmetry.nodes[what.demand.sources()]).size > 1:
            for move in labels.blocks():
                _taken(what, symmetry, move)
        if what.net.tail.size <= MAX_MIRROR_ARCS:
            for move in (*labels.mirrors(), *labels.swaps()):
                _taken(what, symmetry, move)
        left = np.unique(symmetry.nodes[demand.sources()]).size
        if left > 1:  # sources still in several orbits
            budget = min(left * looks, BUDGET)
            AutomorphismSearch(what, symmetry, budget=budget).run()
            if budget < BUDGET:
                return symmetry
        _remembered[key] = symmetry
        if len(_remembered) > MAX_CACHED_STRUCTURES:
            _remembered.popitem(last=False)
    return _remembered[key]


# Structures whose orbits are remembered: shortest paths and flows ask for the same.
MAX_CACHED_STRUCTURES = 16
_remembered: OrderedDict[str, Orbits] = OrderedDict()


def _taken(what: ColoredStructure, symmetry: Orbits, move: Ints) -> bool:
    whole = what.extended(move)
    images = None if whole is None else what.images(whole)
    if images is None:
        return False
    symmetry.join(move, images[: what.net.tail.size])
    return True
