"""Collectives at work side by side: how fast all of them can go on the links that they share.

Every collective divides its use of the arcs so that its own cuts are wide enough; the uses of
all add up to no more than the bandwidths. A node that can neither add nor copy passes on as
much as it takes in. This is a linear program and its optimum a bound for every schedule; where
trees exist for every such division, as ForestColl (arXiv:2402.06787) shows for plain switches,
it is reached. An all-reduce is a reduce-scatter and an all-gather at work at the same time.

Switches that add are nodes like members then, without a share of their own: this is what
reduction in the network is.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, diags_array

from topologies.errors import TopologyError, meant
from topologies.fabric import Fabric
from topologies.rates.members import disjoint
from topologies.rates.network import demand, network
from topologies.rates.orbits import orbits
from topologies.rates.refinement import shrunk
from topologies.rates.traffic import all_to_all
from topologies.rates.uses import Program

__all__ = ["COLLECTIVES", "Joint", "joint_rate"]

# Whether each of the flows of a collective runs against the arcs: from a member to all others.
COLLECTIVES = {
    "all_gather": (False,),
    "reduce_scatter": (True,),
    "all_reduce": (True, False),
}
# A dual above this says that the arc binds.
BINDING = 1e-9


@dataclass(frozen=True)
class Joint:
    """What all groups reach at once.

    Attributes
    ----------
    rate
        Of each member's share, the same for every group. With n members and S bytes in all, S/n
        from each, a gather or scatter takes S/(n rate), an all-reduce 2 S/(n rate). [byte/s]
    binding
        Arcs that would raise the rate if they and those that are like them were faster.
    variables
        Size of the linear program that was solved.
    """

    rate: float
    binding: tuple[tuple[Any, Any], ...]
    variables: int


def joint_rate(
    G: Fabric,
    groups: Sequence[Iterable[Hashable]],
    collective: str = "all_gather",
    *,
    adding: Collection[Hashable] = (),
) -> Joint:
    """The rate at which every group can perform the same collective at the same time.

    Parameters
    ----------
    groups : sequence of iterables of nodes
        Disjoint. Groups of one take part without sending anything.
    collective : {"all_gather", "reduce_scatter", "all_reduce"}
    adding : collection of nodes, optional
        Switches that add and copy what passes through them.

    Raises
    ------
    TopologyError
        When members are unsound or in two groups, no group has two members, no permitted path
        joins the members of a group, or the solver does not report an optimum.

    >>> from topologies import torus
    >>> G = torus((4,), link=1.0)
    >>> joint_rate(G, [[(0,), (1,)], [(2,), (3,)]]).rate
    2.0
    """
    if collective not in COLLECTIVES:
        raise TopologyError(
            "joint_rate", f"unknown collective {collective!r}; {meant(collective, COLLECTIVES)}"
        )
    chosen = disjoint("joint_rate", G, groups)
    net = network(G)
    what = demand(net, all_to_all(*chosen))
    adds = np.zeros(what.size, dtype=bool)
    adds[[net.index[node] for node in adding]] = True
    # No symmetry may take a switch that adds to one that does not: each is as if it sent to itself.
    marks = csr_array(diags_array(adds.astype(float))) if adds.any() else what.sent
    found = orbits(net, replace(what, sent=marks))
    program = Program(net, what.groups, found, adds)
    for mirror in COLLECTIVES[collective]:
        program.add(mirror=mirror)
    return _solved(G, program, times=len(COLLECTIVES[collective]))


def _solved(G: Fabric, program: Program, *, times: int) -> Joint:
    matrix, equalities, limits = program.rows()
    _, kind = np.unique(limits, return_inverse=True)
    rows = np.where(np.arange(matrix.shape[0]) < equalities, 0, 1 + kind)
    columns = np.zeros(matrix.shape[1], dtype=np.int64)
    columns[0] = 1
    small = shrunk(matrix, rows, columns)
    equal = small.first < equalities
    folded: Any = small.matrix
    cost = np.zeros(small.matrix.shape[1], dtype=np.float64)
    cost[small.columns[0]] = -1.0
    answer = linprog(
        cost,
        A_ub=folded[~equal],
        b_ub=limits[small.first[~equal]],
        A_eq=folded[equal],
        b_eq=np.zeros(np.count_nonzero(equal)),
        method="highs",
    )
    if answer.status != 0 or answer.fun is None:
        raise TopologyError("joint_rate", f"the solver stopped: {answer.message}")
    rate = -float(answer.fun)
    if rate <= 0:
        raise TopologyError(
            f"fabric {G.graph.get('name')!r}", "no permitted path joins the members of some group"
        )
    duals = np.zeros(small.matrix.shape[0])
    duals[~equal] = -answer.ineqlin.marginals
    arcs = program.binding(duals[small.rows] > BINDING)
    return Joint(rate * program.unit * times, arcs, small.matrix.shape[1])
