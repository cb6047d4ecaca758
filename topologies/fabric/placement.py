"""Placement of ranks on accelerators, and the groups of each parallel axis.

Ranks are mixed-radix numbers: each axis is one digit, the first of the order the one that varies
fastest. A group of an axis holds the ranks that differ in that digit alone; several axes together
span a group of groups, as the experts of a stage span its tensor-parallel and data-parallel ranks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from topologies.fabric.fabric import ACCELERATOR, Fabric, Group, Node, accelerators, by_domain
from topologies.fabric.limits import TopologyError, count_fault, suggest

# Fastest first: what talks most sits closest together.
AXES = ("tp", "ep", "cp", "dp", "pp")
ORDERS = ("domains", "coordinates", "snake")


@dataclass(frozen=True)
class Placement:
    """Accelerators by rank, and the axes whose digits make up the rank.

    Attributes:
        chips: The accelerator of each rank.
        axes: Name and size of every axis, the fastest-varying first; the product of the sizes is
            the number of ranks.
    """

    chips: Group
    axes: tuple[tuple[str, int], ...]

    def size(self, *axes: str) -> int:
        """Ranks in one group of these axes together."""
        return prod(self.axes[i][1] for i in self._places(axes))

    def groups(self, *axes: str) -> tuple[Group, ...]:
        """All groups of one axis, or of several axes together.

        Members of a group and the groups themselves stand in the order of their ranks. Raises
        TopologyError when an axis is unknown or named twice.

        >>> ranks = Placement(tuple("abcdefgh"), (("tp", 2), ("dp", 2), ("pp", 2)))
        >>> ranks.groups("dp")
        (('a', 'c'), ('b', 'd'), ('e', 'g'), ('f', 'h'))
        >>> ranks.groups("tp", "dp")
        (('a', 'b', 'c', 'd'), ('e', 'f', 'g', 'h'))
        """
        inside = set(self._places(axes))
        others = [i for i in range(len(self.axes)) if i not in inside]
        members = _ranks(self.axes, sorted(inside))
        return tuple(
            tuple(self.chips[start + rank] for rank in members)
            for start in _ranks(self.axes, others)
        )

    def divided(self, axes: Sequence[str], into: Mapping[str, int]) -> Placement:
        """A placement of the same chips with some neighbouring axes divided in another way.

        Experts are spread over the chips of a stage without regard to its tensor-parallel and
        data-parallel ranks: `divided(("tp", "dp"), {"tp_expert": 2, "ep": 16})`. Raises
        TopologyError when the axes are not neighbours in the order, or the new sizes do not
        multiply to the old ones.

        >>> stage = Placement(tuple("abcdefgh"), (("tp", 2), ("dp", 4)))
        >>> stage.divided(("tp", "dp"), {"ep": 8}).groups("ep")
        (('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),)
        """
        places = sorted(self._places(axes))
        first, end = places[0], places[-1] + 1
        problems = [
            f"{name}: size {fault}"
            for name, size in into.items()
            if (fault := count_fault(size)) is not None
        ]
        if places != list(range(first, end)):
            problems.append(f"axes {', '.join(axes)} do not follow each other in the order")
        if not problems and prod(into.values()) != self.size(*axes):
            product = " * ".join(f"{name} {size}" for name, size in into.items())
            problems.append(f"{product} does not make up the {self.size(*axes)} ranks of the axes")
        others = {name for name, _ in (*self.axes[:first], *self.axes[end:])}
        problems += [f"axis {name!r} is there already" for name in into if name in others]
        if problems:
            raise TopologyError("placement", problems)
        return Placement(self.chips, (*self.axes[:first], *into.items(), *self.axes[end:]))

    def _places(self, axes: Sequence[str]) -> list[int]:
        """Positions of the axes in the order."""
        names = [name for name, _ in self.axes]
        problems = [f"unknown axis {axis!r}; {suggest(axis, names)}" for axis in axes]
        problems = [p for p, axis in zip(problems, axes, strict=True) if axis not in names]
        if len(set(axes)) < len(axes):
            problems.append(f"an axis is named twice in {', '.join(axes)}")
        if not axes:
            problems.append(f"no axis named; known: {', '.join(names)}")
        if problems:
            raise TopologyError("placement", problems)
        return [names.index(axis) for axis in axes]


def place(
    G: Fabric,
    layout: Mapping[str, int],
    *,
    order: Sequence[str] = AXES,
    chips: Sequence[Hashable] | str = "domains",
) -> Placement:
    """Give every rank of a layout an accelerator of the fabric.

    Raises TopologyError, listing everything that is wrong: an axis unknown, without a place in the
    order, or of a size that is no count; more ranks than accelerators; a chip that the fabric
    lacks.

    Args:
        layout: Size of each axis; an axis that is left out has size 1.
        order: The axes, the fastest-varying first.
        chips: sequence of nodes, or one of `domains`, `coordinates`, `snake`. The accelerators that
            take the ranks, in their order; more than there are ranks may be given. See `filling`
            for the words.

    >>> from topologies import switch
    >>> place(switch(8, up=1.0), {"tp": 2, "pp": 3}).groups("pp")[0]
    ((0,), (2,), (4,))
    """
    problems = [
        f"unknown axis {axis!r}; {suggest(axis, order)}" for axis in layout if axis not in order
    ]
    problems += [
        f"{axis}: size {fault}"
        for axis, size in layout.items()
        if (fault := count_fault(size)) is not None
    ]
    problems += [
        f"order: axis {axis!r} stands in it twice" for axis in {*order} if order.count(axis) > 1
    ]
    listed = list(filling(G, chips)) if isinstance(chips, str) else list(chips)
    seen: dict[Node, int] = {}
    for rank, chip in enumerate(listed):
        if chip not in G:
            problems.append(f"rank {rank}: {chip!r} is not in the fabric")
        elif G.nodes[chip].get("kind") != ACCELERATOR:
            problems.append(f"rank {rank}: {chip!r} is no accelerator")
        elif chip in seen:
            problems.append(f"rank {rank}: {chip!r} has rank {seen[chip]} already")
        seen.setdefault(chip, rank)
    sizes = {axis: layout[axis] for axis in order if axis in layout}
    if all(count_fault(size) is None for size in layout.values()):
        ranks = prod(layout.values())
        if ranks > len(listed):
            product = " * ".join(f"{axis} {size}" for axis, size in layout.items())
            problems.append(f"{product} = {ranks} ranks, on {len(listed)} accelerators")
    if problems:
        raise TopologyError(f"placement on fabric {G.graph.get('name')!r}", problems)
    return Placement(tuple(listed[: prod(sizes.values())]), tuple(sizes.items()))


def filling(G: Fabric, order: str = "domains") -> list[Node]:
    """Return the accelerators of a fabric in the order of ranks.

    Raises TopologyError when the word is unknown, or an accelerator without coordinates is asked
    for its own.

    Args:
        order: `domains`: domain after domain, each in the order in which it was built;
            `coordinates`: within a domain by coordinates, the last one fastest; `snake`: by
            coordinates there and back, so that neighbours in rank are neighbours in the torus.
    """
    if order not in ORDERS:
        raise TopologyError("placement", f"unknown order {order!r}; {suggest(order, ORDERS)}")
    domains = by_domain(G)
    if order == "domains":
        return [chip for members in domains.values() for chip in members]
    without = [chip for chip in accelerators(G) if G.nodes[chip].get("coord") is None]
    if without:
        examples = ", ".join(map(repr, without[:4]))
        raise TopologyError(
            f"fabric {G.graph.get('name')!r}",
            f"order {order!r} needs coordinates and {len(without)} accelerators have none: "
            f"{examples}",
        )
    key = _folded if order == "snake" else tuple
    return [
        chip
        for members in domains.values()
        for chip in sorted(members, key=lambda chip: key(G.nodes[chip]["coord"]))
    ]


def _ranks(axes: Sequence[tuple[str, int]], varied: Sequence[int]) -> list[int]:
    strides = [prod(size for _, size in axes[:i]) for i in range(len(axes))]
    digits = product(*(range(axes[i][1]) for i in reversed(varied)))
    steps = [strides[i] for i in reversed(varied)]
    return [sum(d * step for d, step in zip(each, steps, strict=True)) for each in digits]


def _folded(coord: Sequence[int]) -> tuple[int, ...]:
    key: list[int] = []
    for place in coord:
        # A row is run backwards if an odd number of steps was made along the sides before it.
        key.append(-place if sum(map(abs, key)) % 2 else place)
    return tuple(key)
