"""What rings through a group reach: the narrowest cut between any two of its members.

Every part of the bytes passes all members but one, so all of it leaves any set that holds some of
them and not all, wherever the rings turn and however many there are. A gather in general crosses
the cut with what lies on its near side alone, which is less where that side is a part of the group.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from topologies.fabric.fabric import Fabric, Group
from topologies.groups.concurrent_groups import GroupPaths
from topologies.groups.fabric_groups import grouped
from topologies.rates.flow_network import involved, network
from topologies.rates.link_usage import GroupArcs, arcs_of

FINE = 2**20  # parts that the widest arc is cut into; flows are whole numbers of them
LOOKED_AT = 256  # members up to which each is looked at; of more, a domain and one of every other


def ring_rate(G: Fabric, n: int) -> float:
    """Bus bandwidth of rings through a group of `n`, all groups of that size at once. [byte/s]

    Raises TopologyError when the fabric has fewer accelerators, or two of a group are not joined.

    >>> from topologies import graph
    >>> ring_rate(graph("hgx-a100", 16), 16)  # eight cards of 25 GB/s leave each machine
    200000000000.0
    """
    groups = grouped(G)
    of_all = groups.rate(n).all_gather
    if n == 1:
        return of_all
    parts = GroupPaths(groups.fabric, groups.groups(n)).parts()
    return min(of_all, *(_narrowest(part, group) for part, group in parts))


def _narrowest(G: Fabric, group: Group) -> float:
    """The least that can pass from one member to another, either way. [byte/s]"""
    net = network(involved(G, group))
    chips = np.array([net.index[chip] for chip in group])
    domains = [G.nodes[chip]["domain"] for chip in group]
    others = [
        i for i in range(1, len(group))
        if len(group) <= LOOKED_AT or domains[i] == domains[0] or domains[i - 1] != domains[i]
    ]  # fmt: skip
    ways = (arcs_of(net, chips, mirror=mirror) for mirror in (False, True))
    return min(_passes(arcs, int(chips[0]), chips[others].tolist()) for arcs in ways)


def _passes(arcs: GroupArcs, start: int, ends: Sequence[int]) -> float:
    """The least flow from a member to any of others [byte/s]."""
    size, unit = arcs.nodes.size, float(arcs.rate.max()) / FINE
    whole = np.rint(arcs.rate / unit).astype(np.int32)
    graph = csr_array((whole, (arcs.tail, arcs.head)), shape=(size, size))
    at = {node: place for place, node in enumerate(arcs.nodes.tolist())}
    flows = [maximum_flow(graph, at[start], at[end]) for end in ends]
    left = csr_array(graph - min(flows, key=lambda flow: flow.flow_value).flow)
    left.eliminate_zeros()
    near = np.zeros(size, dtype=bool)
    near[breadth_first_order(left, at[start], return_predecessors=False)] = True
    return float(arcs.rate[near[arcs.tail] & ~near[arcs.head]].sum())
