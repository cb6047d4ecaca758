"""One flow program, cut down to one source and one arc of each orbit.

The flow program as one linear program, folded by colour refinement and given to HiGHS.

The one place where a linear program of the flow engine is handed to HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from topologies.fabric.limits import TopologyError
from topologies.rates.automorphisms import Orbits
from topologies.rates.color_refinement import Shrunk, shrunk
from topologies.rates.flow_network import Floats, FlowNetwork, Ints, NodeDemand, SparseMatrix

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


# Variables beyond which an interior point, ended by a crossover, is quicker than the simplex.
INNER = 5000


def maximum(
    at_most: SparseMatrix | csc_array, limits: Floats, balanced: SparseMatrix | csc_array
) -> tuple[float, Floats, Floats]:
    """The largest last variable, all variables, and what one unit of each limit adds to it.

    Parameters
    ----------
    at_most, limits
        `at_most @ x <= limits`.
    balanced
        `balanced @ x == 0`; and x is not negative.

    Raises
    ------
    TopologyError
        When the solver does not report an optimum, with what it reports.
    """
    cost = np.zeros(at_most.shape[1])
    cost[-1] = -1.0
    method = "highs-ipm" if cost.size > INNER else "highs-ds"
    # Its type stubs know no sparse matrices.
    solve: Any = linprog
    answer = solve(
        cost,
        A_ub=at_most,
        b_ub=limits,
        A_eq=balanced,
        b_eq=np.zeros(balanced.shape[0]),
        method=method,
    )
    if answer.status != 0:
        raise TopologyError(
            "concurrent flow", f"no optimum, solver status {answer.status}: {answer.message}"
        )
    return float(-answer.fun), answer.x, np.maximum(-answer.ineqlin.marginals, 0.0)


def columns_of(task: ReducedProgram) -> int:
    """Upper bound on the number of variables of the program."""
    return int(task.sources.size * task.net.tail.size + 1)


def by_program(task: ReducedProgram, *, fold: bool = True) -> FlowSolution:
    """The optimum.

    Variables are the flow of each source on each arc that may carry it, and theta. Rows are,
    for each source, what stays at each place, then the load of one arc of each orbit.

    Raises
    ------
    TopologyError
        When the solver does not report an optimum.
    """
    matrix, balances = _matrix(task)
    limits = task.members * task.capacity
    rows, columns = _kinds(limits, matrix, balances)
    small = shrunk(matrix, rows, columns) if fold else _whole(matrix)
    # Theta is the last column and alone of its kind: put it last again.
    order = np.argsort(np.arange(small.matrix.shape[1]) == small.columns[-1], kind="stable")
    lines = csr_array(small.matrix[:, order])
    keeps = small.first < balances
    limit = limits[small.first[~keeps] - balances]
    theta, _, dual = maximum(lines[~keeps], limit, lines[keeps])
    elasticity = np.zeros(small.first.size)
    elasticity[~keeps] = dual * limit / theta
    kinds, classes = np.unique(small.rows[balances:], return_inverse=True)
    engine = f"linear program of {lines.shape[1]} variables"
    return FlowSolution(theta, engine, classes.astype(np.int64), elasticity[kinds])


def _matrix(task: ReducedProgram) -> tuple[SparseMatrix, int]:
    """All rows, and how many of them are balances. The last column is theta."""
    net, size = task.net, task.rows.shape[1]
    starts = net.starts
    graph = csr_array((np.ones(net.tail.size), (starts, net.head)), shape=(net.places,) * 2)
    cells: list[tuple[Ints, Ints, Floats]] = []
    width, height = 0, 0
    loads: list[tuple[Ints, Ints, Floats]] = []
    thetas: list[tuple[Ints, Floats]] = []
    for i, source in enumerate(task.sources.tolist()):
        here = int(net.origin[source])
        seen = np.zeros(net.places, dtype=bool)
        seen[breadth_first_order(graph, here, return_predecessors=False)] = True
        wanted = np.zeros(net.places, dtype=bool)
        wanted[:size] = net.forwards | (task.rows[i] > 0)
        wanted[[here, source]] = False
        arcs = np.flatnonzero(seen[starts] & wanted[net.head])
        row = np.full(net.places, -1)
        inner = np.flatnonzero(seen & wanted)
        row[inner] = height + np.arange(inner.size)
        column = width + np.arange(arcs.size)
        leave = row[starts[arcs]] >= 0
        cells.append((row[net.head[arcs]], column, np.ones(arcs.size)))
        cells.append((row[starts[arcs]][leave], column[leave], -np.ones(np.count_nonzero(leave))))
        loads.append((task.orbit[arcs], column, np.full(arcs.size, task.share[i])))
        sinks = np.flatnonzero(task.rows[i] > 0)
        thetas.append((row[sinks], -task.rows[i][sinks]))
        width += arcs.size
        height += inner.size
    cells += [(orbit + height, column, share) for orbit, column, share in loads]
    cells += [(row, np.full(row.size, width), weight) for row, weight in thetas]
    i_, j_, x_ = (np.concatenate(part) for part in zip(*cells, strict=True))
    shape = (height + task.members.size, width + 1)
    return csr_array((x_, (i_, j_)), shape=shape), height


def _kinds(limits: Floats, matrix: SparseMatrix, balances: int) -> tuple[Ints, Ints]:
    """Rows with different right sides and columns with different costs are kept apart."""
    _, limit = np.unique(limits, return_inverse=True)
    rows = np.zeros(matrix.shape[0], dtype=np.int64)
    rows[balances:] = 1 + limit
    columns = np.zeros(matrix.shape[1], dtype=np.int64)
    columns[-1] = 1
    return rows, columns


def _whole(matrix: SparseMatrix) -> Shrunk:
    height, width = matrix.shape
    return Shrunk(np.arange(height), np.arange(width), np.arange(height), matrix)
