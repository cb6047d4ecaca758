"""Twisted tori: what optical switches make of a TPU slice whose sides are k and 2k."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from topologies.builders.torus import box_arguments
from topologies.fabric.errors import TopologyError
from topologies.fabric.fabric import ACCELERATOR, Fabric, fabric
from topologies.fabric.fabric import link as add_link
from topologies.fabric.validation import check

__all__ = ["twisted_sides", "twisted_torus"]


def twisted_torus(
    dims: Sequence[int], *, link: float | Sequence[float], latency: float = 0.0
) -> Fabric:
    """A torus of sides k and 2k in which the rings of the short sides are twisted.

    Who leaves a short side at its end comes back half a ring farther along every long side, so
    that no two chips are as far apart as in the plain torus and no dimension is narrow.

    Parameters
    ----------
    dims : sequence of int
        Two or three sides, some k and the others 2k, k at least 2: 4x4x8 and 4x8x8 of TPU v4.
        Nodes are the coordinates.
    link : float or one per dimension
        Bandwidth of the link between two neighbours. [byte/s one way]
    latency : float
        Of such a link. [s]

    Notes
    -----
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
    if (fault := _fault(sides)) is not None:
        raise TopologyError("twisted_torus", fault)
    short = min(sides)
    G = fabric(f"{'x'.join(map(str, sides))} twisted torus", orbits=True)
    for place in product(*map(range, sides)):
        G.add_node(place, kind=ACCELERATOR, forward=True, domain=0, coord=place, orbit="chip")
    for place in list(G):
        for d, rate in enumerate(rates):
            other = _after(place, d, sides, short)
            orbit = f"link at {rate!r} byte/s"
            add_link(G, place, other, bandwidth=rate, latency=latency, orbit=orbit)
    return check(G)


def twisted_sides(dims: Sequence[int]) -> bool:
    """Whether a box of these sides can be twisted."""
    return _fault(tuple(dims)) is None


def _fault(sides: tuple[int, ...]) -> str | None:
    short = min(sides)
    if len(sides) < 2 or short < 2 or set(sides) != {short, 2 * short}:
        return f"dims is {sides!r}; sides k and 2k were expected, k at least 2, such as 4x4x8"
    return None


def _after(place: tuple[int, ...], d: int, sides: tuple[int, ...], short: int) -> tuple[Any, ...]:
    """The neighbour one step up along dimension `d`."""
    beyond = place[d] + 1 == sides[d]
    twist = short if beyond and sides[d] == short else 0
    return tuple(
        (x + 1) % side if i == d else (x + twist) % side if side > short else x
        for i, (x, side) in enumerate(zip(place, sides, strict=True))
    )
