"""Rings, tori and open grids, also twisted, of one to three sides: TPU pods, Trainium servers."""

from __future__ import annotations  # signatures are read by their words (files.description)

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, TypeVar, cast

from topologies.fabric.fabric import ACCELERATOR, SCALE_UP, Fabric, fabric
from topologies.fabric.fabric import link as add_link
from topologies.fabric.limits import TopologyError, check_arguments, count_fault, flag_fault
from topologies.fabric.soundness import check

T = TypeVar("T")
DIMENSIONS = 3


class TorusSide(NamedTuple):
    """One side of a box: chips, bandwidth of a link [byte/s], and whether it is a ring."""

    side: int
    rate: float
    ring: bool

    @property
    def even(self) -> bool:
        """True if all positions along the side are equivalent: a ring, or at most two chips."""
        return self.ring or self.side <= 2


def torus(
    dims: Sequence[int],
    *,
    link: float | Sequence[float],
    latency: float = 0.0,
    wrap: bool | Sequence[bool] = True,
) -> Fabric:
    """Accelerators at the points of a box, each linked to its neighbours and relaying for all.

    Args:
        dims: Sides of the box, one to three of them. Nodes are the coordinates, `(x, y, z)`.
        link: float or one per dimension. Bandwidth of the link between two neighbours. [byte/s one
            way]
        latency: Of such a link. [s]
        wrap: bool or one per dimension. Whether the ends of a dimension are joined. A side of two
            chips has one link between them either way: the neighbour up and the neighbour down are
            the same chip.

    The declared orbits are those of shifts and mirrors of every ring, mirrors of every open
    side and exchanges of equal sides.

    >>> G = torus((4, 4, 4), link=45e9, latency=1e-6)
    >>> len(G), G.number_of_edges(), G.out_degree((0, 0, 0))
    (64, 384, 6)
    >>> torus((2,), link=1e9).number_of_edges()
    2
    """
    sides, rates, rings = box_arguments("torus", dims, link, latency, wrap)
    box = [TorusSide(*each) for each in zip(sides, rates, rings, strict=True)]
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
            neighbour = (*place[:d], after % side, *place[d + 1 :])
            orbit = (lane, lane) if symmetric else _lane(box, d, place, neighbour)
            G.add_edge(place, neighbour, **arc, orbit=orbit[0])
            G.add_edge(neighbour, place, **arc, orbit=orbit[1])
    return check(G)


def box_arguments(
    builder: str,
    dims: Sequence[int],
    link: float | Sequence[float],
    latency: float,
    wrap: bool | Sequence[bool],
) -> tuple[tuple[int, ...], list[float], list[bool]]:
    """Sides, link rates and rings of a box, one of each for every dimension, all checked.

    Raises TopologyError, listing every fault of all arguments.
    """
    sides = tuple(dims) if isinstance(dims, Sequence) and not isinstance(dims, str) else ()
    if not 1 <= len(sides) <= DIMENSIONS:
        raise TopologyError(builder, f"dims is {dims!r}; one to three sides were expected")
    rates, rings = _per_dimension(link, len(sides)), _per_dimension(wrap, len(sides))
    several = isinstance(link, Sequence) and not isinstance(link, str)
    lengths = [
        f"{name} has {len(each)} entries for {len(sides)} dimensions"
        for name, each in (("link", rates), ("wrap", rings))
        if len(each) != len(sides)
    ]
    whole = [f"dims[{d}] {fault}" for d, side in enumerate(sides) if (fault := count_fault(side))]
    closed = [f"wrap[{d}] {fault}" for d, ring in enumerate(rings) if (fault := flag_fault(ring))]
    check_arguments(
        builder,
        rates={f"link[{d}]": B for d, B in enumerate(rates)} if several else {"link": link},
        latencies={"latency": latency},
        others=[*lengths, *whole, *closed],
    )
    return sides, rates, rings


def _per_dimension(value: T | Sequence[T], dimensions: int) -> list[T]:
    # A text is a sequence too: it stays whole, to be reported as the text it is.
    single = isinstance(value, str) or not isinstance(value, Sequence)
    return [cast(T, value)] * dimensions if single else list(cast("Sequence[T]", value))


def _seat(box: Sequence[TorusSide], place: tuple[int, ...]) -> str:
    """Orbit label of a position in a box: distances from open ends, in an order of their own."""
    seats = sorted(
        ((d.side, d.even, d.rate), 0 if d.even else min(x, d.side - 1 - x))
        for d, x in zip(box, place, strict=True)
    )
    return ", ".join(
        f"{fold} of {side}{'o' if even else '-'}{rate!r}" for (side, even, rate), fold in seats
    )


def _lane(
    box: Sequence[TorusSide], d: int, place: tuple[int, ...], neighbour: tuple[int, ...]
) -> tuple[str, str]:
    """Orbits of the arcs from `place` to its neighbour along dimension `d`, and back."""
    dimension = box[d]
    rest = _seat([*box[:d], *box[d + 1 :]], (*place[:d], *place[d + 1 :]))
    begin = f"side {dimension.side} at {dimension.rate!r} byte/s"
    if dimension.even:
        return f"{begin} of {rest}", f"{begin} of {rest}"
    x, y, last = place[d], neighbour[d], dimension.side - 1
    there, back = min((x, y), (last - x, last - y)), min((y, x), (last - y, last - x))
    return (
        f"{begin} from {there[0]} to {there[1]} of {rest}",
        f"{begin} from {back[0]} to {back[1]} of {rest}",
    )


def twisted_torus(
    dims: Sequence[int], *, link: float | Sequence[float], latency: float = 0.0
) -> Fabric:
    """A torus of sides k and 2k with twisted rings along the short sides.

    Who leaves a short side at its end comes back half a ring farther along every long side, so
    that no two chips are as far apart as in the plain torus and no dimension is narrow.

    Args:
        dims: Two or three sides, some k and the others 2k, k at least 2: 4x4x8 and 4x8x8 of TPU v4.
            Nodes are the coordinates.
        link: float or one per dimension. Bandwidth of the link between two neighbours. [byte/s one
            way]
        latency: Of such a link. [s]

    The shifts that return to the same chip form, in units of k, the lattice of the points with
    an even sum of coordinates (k x k x 2k) or of the points with coordinates all even or all
    odd (k x 2k x 2k). Both look the same along every axis, therefore all links of equal rate
    are one orbit. Jouppi et al., TPU v4, arXiv 2304.01433, section 2.8; Camarero et al.,
    Lattice graphs for high-scale interconnection topologies, 2015.

    >>> G = twisted_torus((4, 4, 8), link=50e9)
    >>> G.has_edge((3, 0, 0), (0, 0, 4)), G.has_edge((3, 0, 0), (0, 0, 0))
    (True, False)
    """
    sides, rates, _ = box_arguments("twisted_torus", dims, link, latency, True)
    short = min(sides)
    if len(sides) < 2 or short < 2 or set(sides) != {short, 2 * short}:
        wanted = "sides k and 2k were expected, k at least 2, such as 4x4x8"
        raise TopologyError("twisted_torus", f"dims is {sides!r}; {wanted}")
    G = fabric(f"{'x'.join(map(str, sides))} twisted torus", orbits=True)
    for place in product(*map(range, sides)):
        G.add_node(place, kind=ACCELERATOR, forward=True, domain=0, coord=place, orbit="chip")
    for place in list(G):
        for d, rate in enumerate(rates):
            # The neighbour one step up along dimension `d`.
            beyond = place[d] + 1 == sides[d]
            twist = short if beyond and sides[d] == short else 0
            neighbour = tuple(
                (x + 1) % side if i == d else (x + twist) % side if side > short else x
                for i, (x, side) in enumerate(zip(place, sides, strict=True))
            )
            orbit = f"link at {rate!r} byte/s"
            add_link(G, place, neighbour, bandwidth=rate, latency=latency, orbit=orbit)
    return check(G)
