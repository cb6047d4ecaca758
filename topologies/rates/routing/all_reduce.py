"""All-reduce with and without switches that add: two algorithms, each with its own bound.

Without, a reduce-scatter and an all-gather move 2 (n - 1)/n S through every chip. Switches that
add what passes through them (NVLS, SHARP) take S once from each chip and give S once back: the
bound is B S where it was 2 (n - 1)/n S, nearly twice the rate, which as bus bandwidth may exceed
the links. Across nodes it holds for what stays under such switches; a spine that cannot add
still carries the exchange between the nodes.
"""

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

from topologies.fabric.fabric import Arc, Fabric, Node
from topologies.fabric.limits import TopologyError, count_fault
from topologies.rates.members import chosen
from topologies.rates.routing.concurrent_collectives import joint_rate

PLAIN, IN_NETWORK = "plain", "in_network"


@dataclass(frozen=True)
class AllReduceRate:
    """Upper bound on the rate of an all-reduce with one algorithm.

    Attributes
    ----------
    algorithm
        `plain` (only chips add: rings, trees, exchanges) or `in_network` (switches add too).
    members
        How many take part.
    bus_bandwidth
        As nccl-tests count it: n members reduce S bytes each in 2 (n - 1)/n S over it. With
        switches that add it is no rate of any wire. [byte/s]
    binding
        Arcs that would raise it if they and those like them were faster.
    """

    algorithm: str
    members: int
    bus_bandwidth: float
    binding: tuple[Arc, ...]

    @property
    def algorithm_bandwidth(self) -> float:
        """Bytes that each member has, over the time to reduce them. [byte/s]"""
        return self.bus_bandwidth * self.members / (2 * (self.members - 1))


def all_reduce_bounds(
    G: Fabric,
    members: Iterable[Hashable] | None = None,
    *,
    reduce_from: int | None = None,
    adding: Collection[Hashable] | None = None,
) -> tuple[AllReduceRate, ...]:
    """The bound of each algorithm that the group can use, plain first.

    Parameters
    ----------
    members : iterable of nodes, optional
        Who takes part; all accelerators if not given.
    reduce_from : int, optional
        Smallest group for which switches add; every group if not given.
    adding : collection of nodes, optional
        Switches that add; those that the fabric marks with `in_network_reduce` if not given.

    Notes
    -----
    A switch that adds is taken to copy as well. Reduce-scatter and all-gather run at once; on
    links alike in both directions the plain bound is that of one after the other, but for
    lines and other fabrics whose cuts are full one way at a time, where it is higher.

    Raises
    ------
    TopologyError
        When members are unsound, `reduce_from` is no count, or `adding` names what is no switch.

    >>> from topologies import switch
    >>> for bound in all_reduce_bounds(switch(8, up=450e9, in_network_reduce=True)):
    ...     print(bound.algorithm, f"{bound.bus_bandwidth:.4g}")
    plain 4.5e+11
    in_network 7.875e+11
    """
    group = chosen("all_reduce_bounds", G, members)
    fault = None if reduce_from is None else count_fault(reduce_from)
    switches = _adding(G, adding)
    if fault is not None:
        raise TopologyError("all_reduce_bounds", f"reduce_from {fault}")
    bounds = [_bound(G, group, PLAIN, ())]
    if switches and len(group) >= (reduce_from or 2):
        bounds.append(_bound(G, group, IN_NETWORK, switches))
    return tuple(bounds)


def best_all_reduce(
    G: Fabric,
    members: Iterable[Hashable] | None = None,
    *,
    reduce_from: int | None = None,
    adding: Collection[Hashable] | None = None,
) -> AllReduceRate:
    """The fastest of `all_reduce_bounds`; the plain one if switches that add gain nothing."""
    bounds = all_reduce_bounds(G, members, reduce_from=reduce_from, adding=adding)
    plain, *others = bounds
    gain = [b for b in others if b.bus_bandwidth > plain.bus_bandwidth * (1 + 1e-9)]
    return gain[0] if gain else plain


def _bound(G: Fabric, group: list[Node], algorithm: str, adding: Collection[Node]) -> AllReduceRate:
    joint = joint_rate(G, [group], "all_reduce", adding=adding)
    others = len(group) - 1
    return AllReduceRate(algorithm, len(group), joint.rate * others, joint.binding)


def _adding(G: Fabric, named: Collection[Hashable] | None) -> list[Node]:
    if named is None:
        return [node for node, adds in G.nodes(data="in_network_reduce") if adds]
    strange = [
        f"adding: {node!r} is not a switch of the fabric"
        for node in named
        if node not in G or G.nodes[node].get("kind") != "switch"
    ]
    if strange:
        raise TopologyError("all_reduce_bounds", strange)
    return list(named)
