"""Rings, tori and open grids of one to three dimensions: TPU pods, Trainium servers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from topologies.builders.given import counted
from topologies.errors import TopologyError
from topologies.fabric import ACCELERATOR, Fabric, fabric
from topologies.fabric import link as add_link
from topologies.faults import check

__all__ = ["torus"]

DIMENSIONS = 3


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

    >>> G = torus((4, 4, 4), link=45e9, latency=1e-6)
    >>> len(G), G.number_of_edges(), G.out_degree((0, 0, 0))
    (64, 384, 6)
    >>> torus((2,), link=1e9).number_of_edges()
    2
    """
    sides, rates, rings = _given(dims, link, wrap)
    name = "x".join(map(str, sides))
    symmetric = all(ring or side <= 2 for side, ring in zip(sides, rings, strict=True))
    G = fabric(f"{name} {'torus' if symmetric else 'grid'}", orbits=symmetric)
    for place in product(*map(range, sides)):
        G.add_node(place, kind=ACCELERATOR, forward=True, domain=0, coord=place)
        if symmetric:
            G.nodes[place]["orbit"] = "chip"
    for d, (side, rate, ring) in enumerate(zip(sides, rates, rings, strict=True)):
        orbit = f"side {side} at {rate!r} byte/s" if symmetric else None
        for place in list(G):
            after = place[d] + 1
            if after == side and not (ring and side > 2):
                continue
            other = (*place[:d], after % side, *place[d + 1 :])
            add_link(G, place, other, bandwidth=rate, latency=latency, orbit=orbit)
    return check(G)


def _given(
    dims: Sequence[int], link: float | Sequence[float], wrap: bool | Sequence[bool]
) -> tuple[tuple[int, ...], list[float], list[bool]]:
    """Sides, link rates and rings, one of each for every dimension."""
    sides = tuple(dims) if isinstance(dims, Sequence) and not isinstance(dims, str) else ()
    if not 1 <= len(sides) <= DIMENSIONS:
        raise TopologyError("torus", f"dims is {dims!r}; one to three sides were expected")
    counted("torus", **{f"dims[{d}]": side for d, side in enumerate(sides)})
    # A text is a sequence too: it stays whole, to be reported as the text it is.
    each: Any = link if isinstance(link, Sequence) and not isinstance(link, str) else None
    rates: list[Any] = [link] * len(sides) if each is None else list(each)
    rings = [wrap] * len(sides) if isinstance(wrap, bool) else list(wrap)
    faults = [
        f"{name} has {len(given)} entries for {len(sides)} dimensions"
        for name, given in (("link", rates), ("wrap", rings))
        if len(given) != len(sides)
    ]
    if faults:
        raise TopologyError("torus", faults)
    return sides, rates, rings
