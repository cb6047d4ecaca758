"""Rings, tori and open grids of one to three dimensions: TPU pods, Trainium servers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from topologies.builders.arguments import flag_fault, given
from topologies.fabric.errors import TopologyError
from topologies.fabric.fabric import ACCELERATOR, SCALE_UP, Fabric, fabric
from topologies.fabric.limits import count_fault
from topologies.fabric.validation import check

__all__ = ["box_arguments", "torus"]

DIMENSIONS = 3


class Dimension(NamedTuple):
    """One side of a box: chips, bandwidth of a link [byte/s], and whether it is a ring."""

    side: int
    rate: float
    ring: bool

    @property
    def even(self) -> bool:
        """Are all places along it alike? Two chips are, joined at the ends or not."""
        return self.ring or self.side <= 2


def torus(
    dims: Sequence[int],
    *,
    link: float | Sequence[float],
    latency: float = 0.0,
    wrap: bool | Sequence[bool] = True,
) -> Fabric:
    """Accelerators at the points of a box, each linked to its neighbours and relaying for all.

    Parameters
    ----------
    dims : sequence of int
        Sides of the box, one to three of them. Nodes are the coordinates, `(x, y, z)`.
    link : float or one per dimension
        Bandwidth of the link between two neighbours. [byte/s one way]
    latency : float
        Of such a link. [s]
    wrap : bool or one per dimension
        Whether the ends of a dimension are joined. A side of two chips has one link between
        them either way: the neighbour up and the neighbour down are the same chip.

    Notes
    -----
    The declared orbits are those of shifts and mirrors of every ring, mirrors of every open
    side and exchanges of equal sides.

    >>> G = torus((4, 4, 4), link=45e9, latency=1e-6)
    >>> len(G), G.number_of_edges(), G.out_degree((0, 0, 0))
    (64, 384, 6)
    >>> torus((2,), link=1e9).number_of_edges()
    2
    """
    sides, rates, rings = box_arguments("torus", dims, link, latency, wrap)
    box = [Dimension(*each) for each in zip(sides, rates, rings, strict=True)]
    symmetric = all(dimension.even for dimension in box)
    G = fabric(f"{'x'.join(map(str, sides))} {'torus' if symmetric else 'grid'}", orbits=True)
    for place in product(*map(range, sides)):
        seat = "chip" if symmetric else f"chip {_seat(box, place)}"
        G.add_node(place, kind=ACCELERATOR, forward=True, domain=0, coord=place, orbit=seat)
    places = list(G)
    for d, (side, rate, ring) in enumerate(box):
        lane = f"side {side} at {rate!r} byte/s"
        # The figures are checked already, and no two links have the same ends.
        arc = {"bandwidth": rate, "latency": latency, "tier": SCALE_UP, "count": 1}
        for place in places:
            after = place[d] + 1
            if after == side and not (ring and side > 2):
                continue
            other = (*place[:d], after % side, *place[d + 1 :])
            orbit = (lane, lane) if symmetric else _lane(box, d, place, other)
            G.add_edge(place, other, **arc, orbit=orbit[0])
            G.add_edge(other, place, **arc, orbit=orbit[1])
    return check(G)


def box_arguments(
    builder: str, dims: Any, link: Any, latency: Any, wrap: Any
) -> tuple[tuple[int, ...], list[float], list[bool]]:
    """Sides, link rates and rings of a box, one of each for every dimension, all checked.

    Raises
    ------
    TopologyError
        Listing every fault of all arguments.
    """
    sides = tuple(dims) if isinstance(dims, Sequence) and not isinstance(dims, str) else ()
    if not 1 <= len(sides) <= DIMENSIONS:
        raise TopologyError(builder, f"dims is {dims!r}; one to three sides were expected")
    rates, rings = _each(link, len(sides)), _each(wrap, len(sides))
    lengths = [
        f"{name} has {len(each)} entries for {len(sides)} dimensions"
        for name, each in (("link", rates), ("wrap", rings))
        if len(each) != len(sides)
    ]
    whole = [f"dims[{d}] {fault}" for d, side in enumerate(sides) if (fault := count_fault(side))]
    closed = [f"wrap[{d}] {fault}" for d, ring in enumerate(rings) if (fault := flag_fault(ring))]
    given(
        builder,
        rates={"link": link} if _one(link) else {f"link[{d}]": B for d, B in enumerate(rates)},
        latencies={"latency": latency},
        others=[*lengths, *whole, *closed],
    )
    return sides, rates, rings


def _each(value: Any, dimensions: int) -> list[Any]:
    return [value] * dimensions if _one(value) else list(value)


def _one(value: Any) -> bool:
    # A text is a sequence too: it stays whole, to be reported as the text it is.
    return isinstance(value, str) or not isinstance(value, Sequence)


def _seat(box: Sequence[Dimension], place: tuple[int, ...]) -> str:
    """What all symmetries of a box leave of a place: distances from open ends, by kind of side."""
    return _said(
        (dimension, 0 if dimension.even else min(x, dimension.side - 1 - x))
        for dimension, x in zip(box, place, strict=True)
    )


def _lane(
    box: Sequence[Dimension], d: int, place: tuple[int, ...], other: tuple[int, ...]
) -> tuple[str, str]:
    """Orbits of the arcs from `place` to its neighbour along dimension `d`, and back."""
    dimension = box[d]
    rest = _seat([*box[:d], *box[d + 1 :]], (*place[:d], *place[d + 1 :]))
    begin = f"side {dimension.side} at {dimension.rate!r} byte/s"
    if dimension.even:
        return f"{begin} of {rest}", f"{begin} of {rest}"
    x, y, last = place[d], other[d], dimension.side - 1
    there, back = min((x, y), (last - x, last - y)), min((y, x), (last - y, last - x))
    return (
        f"{begin} from {there[0]} to {there[1]} of {rest}",
        f"{begin} from {back[0]} to {back[1]} of {rest}",
    )


def _said(seats: Any) -> str:
    """Seats in an order of their own, so that equal sides may change places."""
    return ", ".join(
        f"{fold} of {side}{'o' if even else '-'}{rate!r}"
        for (side, even, rate), fold in sorted(
            ((d.side, d.even, d.rate), fold) for d, fold in seats
        )
    )
