"""The flow program, cut down to one source and one arc of each orbit, as one linear program.

Colour refinement folds it, and HiGHS solves it, as it does every linear program of the engines.
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
from topologies.rates.color_refinement import ReducedProgramClasses, equitable_partition
from topologies.rates.flow_network import Floats, FlowNetwork, Ints, NodeDemand, SparseMatrix

MAX_NAMED_PAIRS = 3  # pairs without a path that an error names


class ReducedProgram:
    """Most theta such that every source sends theta times its row: one source, one arc an orbit.

    Raises TopologyError when a source has no permitted path to a node to which it sends.
    """

    def __init__(
        self, net: FlowNetwork, demand: NodeDemand, symmetry: Orbits, name: object
    ) -> None:
        self.net = net
        senders = demand.sources()
        _, first, share = np.unique(symmetry.nodes[senders], return_index=True, return_counts=True)
        self.sources = senders[first]  # a source of each orbit
        self.share = share.astype(float)  # senders in the orbit of each source
        # Demand from each source to every node, shape (sources, nodes).
        self.rows = np.array([demand.row(int(source)) for source in self.sources])
        _, arc, orbit, members = np.unique(
            symmetry.arcs, return_index=True, return_inverse=True, return_counts=True
        )
        self.orbit = orbit.astype(np.int64)  # of each arc
        self.members = members.astype(float)  # arcs in each orbit
        starts = net.origin[self.sources]
        hops = np.atleast_2d(dijkstra(net.graph, unweighted=True, indices=starts))[:, : demand.size]
        lost = np.argwhere((self.rows > 0) & np.isinf(hops))
        if lost.size:
            examples = [
                f"no permitted path from {net.nodes[self.sources[i]]!r} to {net.nodes[v]!r}: "
                "the nodes in between do not forward, or no arcs lead there"
                for i, v in islice(lost, MAX_NAMED_PAIRS)
            ]
            raise TopologyError(f"fabric {name!r}", examples)
        travelled = np.where(self.rows > 0, hops, 0.0)
        # Bandwidth of all arcs over demand times hops: theta is at most one. [byte/s]
        self.unit = float(net.bandwidth.sum() / (share @ (self.rows * travelled).sum(axis=1)))
        # Bandwidth of an arc of each orbit, in `unit`; near the optimum rates are close to 1.
        self.capacity = net.bandwidth[arc] / self.unit
        self.most_columns = self.sources.size * net.tail.size + 1  # variables, or fewer


@dataclass(frozen=True, eq=False)
class FlowSolution:
    """Optimum of a task in its units or a bound of it, its method, and its elasticities."""

    theta: float
    engine: str
    classes: Ints  # class of each arc orbit
    elasticity: Floats  # of theta to the bandwidth of all arcs of a class together
    exact: bool = True


# Variables above which an interior point with crossover is quicker than the simplex.
INNER = 5000


def maximum(
    below: SparseMatrix | csc_array,
    limits: Floats,
    balanced: SparseMatrix | csc_array,
    *,
    which: int = -1,
    method: str | None = None,
    where: str = "concurrent flow",
) -> tuple[float, Floats, Floats]:
    """Maximum of a variable, values of all variables, and the dual of each limit.

    Subject to `below @ x <= limits`, `balanced @ x == 0` and x >= 0. Raises TopologyError when the
    solver does not report an optimum, with what it reports.
    """
    cost = np.zeros(below.shape[1])
    cost[which] = -1.0
    method = method or ("highs-ipm" if cost.size > INNER else "highs-ds")
    zeros = np.zeros(balanced.shape[0])
    # Its type stubs know no sparse matrices.
    solve: Any = linprog
    answer = solve(cost, A_ub=below, b_ub=limits, A_eq=balanced, b_eq=zeros, method=method)
    if answer.status != 0:
        fault = f"no optimum, solver status {answer.status}: {answer.message}"
        raise TopologyError(where, fault)
    return float(-answer.fun), answer.x, np.maximum(-answer.ineqlin.marginals, 0.0)


def by_program(task: ReducedProgram, *, fold: bool = True) -> FlowSolution:
    """Optimum of the flow program, as one linear program.

    Variables are the flow of each source on each arc that may carry it, and theta. Rows are, for
    each source, what stays at each place, then the load of one arc of each orbit. Raises
    TopologyError when the solver does not report an optimum.
    """
    matrix, balances = _matrix(task)
    limits = task.members * task.capacity
    # Rows of different right sides and columns of different costs get different classes.
    kinds = 1 + np.unique(limits, return_inverse=True)[1]
    rows = np.r_[np.zeros(balances, dtype=np.int64), kinds]
    columns = (np.arange(matrix.shape[1]) == matrix.shape[1] - 1).astype(np.int64)
    small = equitable_partition(matrix, rows, columns) if fold else ReducedProgramClasses.of(matrix)
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
    """Constraint matrix, theta last, and the number of its rows that are flow balances."""
    net, size = task.net, task.rows.shape[1]
    starts = net.starts
    cells: list[tuple[Ints, Ints, Floats]] = []
    width, height = 0, 0
    loads: list[tuple[Ints, Ints, Floats]] = []
    thetas: list[tuple[Ints, Floats]] = []
    for i, source in enumerate(task.sources.tolist()):
        here = int(net.origin[source])
        seen = np.zeros(net.places, dtype=bool)
        seen[breadth_first_order(net.graph, here, return_predecessors=False)] = True
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
