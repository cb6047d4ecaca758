"""Which sources and which arcs a symmetry makes equal, so that one stands for all.

A fabric may declare its orbits, but a declaration is no proof: a link may have failed since,
and the traffic may tell apart what the fabric does not. So symmetries are always exhibited
as permutations and checked; what names and colours suggest is only where they are looked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topologies.rates.flow_network import Demand, Network
from topologies.rates.symmetry.automorphisms import Orbits, Search
from topologies.rates.symmetry.names import Names, names
from topologies.rates.symmetry.structure import Structure, structure

__all__ = ["orbits"]

Ints = NDArray[np.int64]

# Mirrors join few further arcs, and each is a look at every arc.
MIRRORED = 200_000


def orbits(net: Network, demand: Demand) -> Orbits:
    """Orbits of nodes and arcs under symmetries that keep the fabric and its traffic."""
    what = structure(net, demand)
    found = Orbits(np.arange(demand.size), np.arange(net.tail.size))
    _named(what, found, names(net.nodes))
    if _open(found, demand):
        Search(what, found).run()
    return found


def _open(found: Orbits, demand: Demand) -> bool:
    """Whether the sources are still in several orbits."""
    return np.unique(found.nodes[demand.sources()]).size > 1


def _named(what: Structure, found: Orbits, known: Names) -> None:
    for place in known.places():
        for move in known.turns(place):
            if _taken(what, found, move):
                break
    if what.net.tail.size <= MIRRORED:
        for move in (*known.mirrors(), *known.swaps()):
            _taken(what, found, move)


def _taken(what: Structure, found: Orbits, move: Ints) -> bool:
    whole = what.extended(move)
    images = None if whole is None else what.images(whole)
    if images is None:
        return False
    found.join(move, images[: what.net.tail.size])
    return True
