"""One flow program, cut down to one source and one arc of each orbit."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from topologies.fabric.limits import TopologyError
from topologies.rates.arrays import Floats, Ints
from topologies.rates.flow_network import FlowNetwork, NodeDemand
from topologies.rates.symmetry.automorphisms import Orbits

NAMED = 3  # pairs without a path that an error names


@dataclass(frozen=True, eq=False)
class ReducedProgram:
    """Most theta such that every source sends theta times its row.

    Attributes
    ----------
    sources, share
        A source of each orbit, and how many it stands for.
    rows
        What each of them sends to every node.
    orbit, members
        Orbit of each arc, and arcs in each orbit.
    capacity
        Of an arc of each orbit, in units. Near the answer rates are near one unit.
    unit
        Bandwidth summed over all arcs over demand times hops: theta is at most one. [byte/s]
    """

    net: FlowNetwork
    sources: Ints
    share: Floats
    rows: Floats
    orbit: Ints
    members: Floats
    capacity: Floats
    unit: float


@dataclass(frozen=True, eq=False)
class FlowSolution:
    """Optimum of a task in its units, how it was found, and what binds.

    Attributes
    ----------
    classes
        Class of each arc orbit.
    elasticity
        Of theta to the bandwidth of all arcs of a class together.
    """

    theta: float
    engine: str
    classes: Ints
    elasticity: Floats


def task(net: FlowNetwork, demand: NodeDemand, symmetry: Orbits, name: object) -> ReducedProgram:
    """The program of one representative per orbit.

    Raises
    ------
    TopologyError
        When a source has no permitted path to a node to which it sends.
    """
    senders = demand.sources()
    _, first, share = np.unique(symmetry.nodes[senders], return_index=True, return_counts=True)
    sources = senders[first]
    rows = np.array([demand.row(int(source)) for source in sources])
    _, arc, members = np.unique(symmetry.arcs, return_index=True, return_counts=True)
    graph = csr_array((np.ones(net.tail.size), (net.starts, net.head)), shape=(net.places,) * 2)
    hops = np.atleast_2d(dijkstra(graph, unweighted=True, indices=net.origin[sources]))
    hops = hops[:, : demand.size]
    _reached(net, sources, rows, hops, name)
    travelled = np.where(rows > 0, hops, 0.0)
    unit = float(net.bandwidth.sum() / (share @ (rows * travelled).sum(axis=1)))
    capacity = net.bandwidth[arc] / unit
    kinds = np.unique(symmetry.arcs, return_inverse=True)[1].astype(np.int64)
    return ReducedProgram(
        net, sources, share.astype(float), rows, kinds, members.astype(float), capacity, unit
    )


def _reached(net: FlowNetwork, sources: Ints, rows: Floats, hops: Floats, name: object) -> None:
    lost = np.argwhere((rows > 0) & np.isinf(hops))
    if lost.size:
        examples = [
            f"no permitted path from {net.nodes[sources[i]]!r} to {net.nodes[v]!r}: "
            "the nodes in between do not forward, or no arcs lead there"
            for i, v in islice(lost, NAMED)
        ]
        raise TopologyError(f"fabric {name!r}", examples)
