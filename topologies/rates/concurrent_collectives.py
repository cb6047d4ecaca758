"""Concurrent collectives: the rate that all of them reach on the links that they share.

Every collective divides its use of the arcs so that its own cuts are wide enough; the uses of
all add up to no more than the bandwidths. A node that can neither add nor copy passes on as
much as it takes in. This is a linear program and its optimum a bound for every schedule; where
trees exist for every such division, as ForestColl (arXiv:2402.06787) shows for plain switches,
it is reached. An all-reduce is a reduce-scatter and an all-gather at work at the same time.

Switches that add are nodes like members then, without a share of their own: this is what
reduction in the network is.

All-reduce with and without switches that add: two algorithms, each with its own bound.

Without, a reduce-scatter and an all-gather move 2 (n - 1)/n S through every chip. Switches that
add what passes through them (NVLS, SHARP) take S once from each chip and give S once back: the
bound is B S where it was 2 (n - 1)/n S, nearly twice the rate, which as bus bandwidth may exceed
the links. Across nodes it holds for what stays under such switches; a spine that cannot add
still carries the exchange between the nodes.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, vstack

from topologies.fabric.fabric import Arc, Fabric, Node
from topologies.fabric.limits import TopologyError, count_fault, suggest
from topologies.rates.color_refinement import equitable_partition
from topologies.rates.cut import CutSearch
from topologies.rates.flow_network import Floats, demand, network, usable_subfabric
from topologies.rates.flow_program import maximum
from topologies.rates.link_usage import LinkUsage, UsageRows
from topologies.rates.orbits import orbits
from topologies.rates.traffic import all_to_all, checked_members, disjoint

# Direction of each flow of a collective: True runs against the arcs, from a member to all others.
COLLECTIVES = {"all_gather": (False,), "reduce_scatter": (True,), "all_reduce": (True, False)}
BINDING = 1e-9  # A dual above this says that the arc binds.
# Programs with a flow for every target: variables that are worth folding, and worth solving.
MAX_FOLD, SOLVED = 1_500_000, 4_000
# Variable limit for a single group, whose cuts have one variable for each orbit of arcs.
MAX_SINGLE = 20_000
GAP = 1e-8  # Cut generation ends at this relative gap between the reached rate and its bound.
# Weight of the linear program's division in the next trial; the best division has 1 - STEP.
STEP = 0.9
STEPS = 500


@dataclass(frozen=True)
class ConcurrentRate:
    """Rate that all groups reach at once.

    Attributes:
        rate: Of each member's share, the same for every group. With n members and S bytes in all,
            S/n from each, a gather or scatter takes S/(n rate), an all-reduce 2 S/(n rate). Of an
            exchange per ordered pair, of weighted pairs per unit of weight. [byte/s]
        binding: Arcs of the narrowest cut, which would raise the rate if they and those that are
            like them were faster; of weighted pairs the arcs that are full.
        engine: How it was computed: `paths and cut`, `flow`, `cuts`, or `EVENLY` for a gather that
            another division may make faster.
    """

    rate: float
    binding: tuple[Arc, ...]
    engine: str


def joint_rate(
    G: Fabric,
    groups: Sequence[Iterable[Hashable]],
    collective: str = "all_gather",
    *,
    adding: Collection[Hashable] = (),
) -> ConcurrentRate:
    """Maximum rate of every group if all groups perform the collective concurrently.

    Raises TopologyError when members are unsound or in two groups, no group has two members, no
    permitted path joins the members of a group, or the solver does not report an optimum.

    Args:
        groups: sequence of iterables of nodes. Disjoint. Groups of one take part without sending
            anything.
        collective: {"all_gather", "reduce_scatter", "all_reduce"}
        adding: collection of nodes. Switches that add and copy what passes through them.

    >>> from topologies import torus
    >>> G = torus((4,), link=1.0)
    >>> joint_rate(G, [[(0,), (1,)]]).rate, joint_rate(G, [[(0,), (1,)], [(2,), (3,)]]).rate
    (2.0, 1.0)
    """
    if collective not in COLLECTIVES:
        raise TopologyError(
            "joint_rate", f"unknown collective {collective!r}; {suggest(collective, COLLECTIVES)}"
        )
    joint = joint_rate_or_none(G, groups, collective, adding=adding)
    assert joint is not None  # there is no limit to its cuts
    return joint


def joint_rate_or_none(
    G: Fabric,
    groups: Sequence[Iterable[Hashable]],
    collective: str = "all_gather",
    *,
    adding: Collection[Hashable] = (),
    most: float = np.inf,
) -> ConcurrentRate | None:
    """As `joint_rate`; None when cuts times variables of its program come to exceed `most`."""
    chosen = disjoint("joint_rate", G, groups)
    G = usable_subfabric(G, [member for group in chosen for member in group])
    net = network(G)
    what = demand(net, all_to_all(*chosen))
    adds = np.zeros(what.size, dtype=bool)
    adds[[net.index[node] for node in adding if node in net.index]] = True
    # No symmetry may take a switch that adds to one that does not: each is as if it sent to itself.
    marks = csr_array(diags_array(adds.astype(float))) if adds.any() else what.sent
    uses = LinkUsage(net, what.groups, orbits(net, replace(what, sent=marks)), adds)
    for mirror in COLLECTIVES[collective]:
        uses.add(mirror=mirror)
    folded = min(MAX_FOLD, MAX_SINGLE) if uses.alone else MAX_FOLD
    # Further variables with a flow for every target.
    flows = sum(phase.targets.size * phase.use.size for phase in uses.phases)
    optimum = _by_flows(uses) if flows <= folded else None
    optimum = optimum or _by_cuts(uses, most)
    if optimum is None:
        return None
    rate, tight, engine = optimum
    if rate <= 0:
        raise TopologyError(
            f"fabric {G.graph.get('name')!r}", "no permitted path joins the members of some group"
        )
    times = len(COLLECTIVES[collective])
    return ConcurrentRate(rate * uses.unit * times, uses.binding(tight), engine)


def _by_flows(uses: LinkUsage) -> tuple[float, NDArray[np.bool_], str] | None:
    """Rate, tight arc orbits and engine with a flow for each target; None if too large."""
    uses = copy(uses)  # with columns and balances more than the cuts need
    uses.balances = replace(uses.balances, cells=[*uses.balances.cells])
    below = uses.flows()
    parts = [rows.matrix(uses.width) for rows in (uses.balances, below, uses.loads)]
    matrix = csr_array(vstack(parts))
    equalities = parts[0].shape[0]
    limits = np.concatenate([np.zeros(matrix.shape[0] - uses.limits.size), uses.limits])
    _, kind = np.unique(limits, return_inverse=True)
    rows = np.where(np.arange(matrix.shape[0]) < equalities, 0, 1 + kind)
    columns = (np.arange(matrix.shape[1]) == 0).astype(np.int64)
    small = equitable_partition(matrix, rows, columns)
    if small.matrix.shape[1] > SOLVED:
        return None
    equal, folded = small.first < equalities, small.matrix
    rate, _, duals = _optimum(
        folded[~equal], limits[small.first[~equal]], folded[equal], which=small.columns[0]
    )
    every = np.zeros(folded.shape[0])
    every[~equal] = duals
    tight = every[small.rows][-uses.limits.size :] > BINDING
    return rate, tight, f"linear program of {folded.shape[1]} variables"


def _by_cuts(uses: LinkUsage, most: float) -> tuple[float, NDArray[np.bool_], str] | None:
    """Solve by generation of cuts, until the rate reached is within `GAP` of the bound.

    None when cuts times variables exceed `most` before.
    """
    cuts = UsageRows()
    for number, phase in enumerate(uses.phases):
        for target in phase.targets.tolist():
            alone = np.arange(phase.arcs.nodes.size) == target
            _add_cut(uses, cuts, number, alone)
            _add_cut(uses, cuts, number, ~alone)
    loads, balances = uses.loads.matrix(uses.width), uses.balances.matrix(uses.width)
    # The division that gives every use of an arc an equal part of it.
    cells = loads.tocoo()
    row, column = cells.coords
    even = np.zeros(uses.width)
    used = np.unique(row)  # of an arc that nobody may use there is no part
    share = np.zeros(uses.limits.size)
    share[used] = uses.limits[used] / loads.sum(axis=1)[used]
    even[column] = share[row]
    sound = np.abs(np.asarray(balances @ even)).max(initial=0.0) <= BINDING
    best = even if sound else None
    reached = _reached(uses, cuts, even) if sound else 0.0
    for _ in range(STEPS):
        if cuts.count * uses.width > most:
            return None
        limits = np.concatenate([uses.limits, np.zeros(cuts.count)])
        rows = vstack([loads, cuts.matrix(uses.width)]).tocsr()
        rate, division, duals = _optimum(rows, limits, balances, which=0)
        trial = division if best is None else STEP * division + (1 - STEP) * best
        now = _reached(uses, cuts, trial)
        if now >= reached:
            best, reached = trial, now
        if reached >= rate * (1 - GAP):
            tight = duals[: uses.limits.size] > BINDING
            return rate, tight, f"linear program of {uses.width} variables, {cuts.count} cuts"
    raise TopologyError("joint_rate", f"no optimum after {STEPS} rounds of cuts")


def _reached(uses: LinkUsage, cuts: UsageRows, division: Floats) -> float:
    """The rate that a division of the arcs allows; its narrow cuts are added."""
    reached = np.inf
    for number, phase in enumerate(uses.phases):
        rates = np.maximum(division[phase.use], 0.0)
        search = CutSearch(phase.flows.at(rates))
        search.run([phase.targets[i : i + 1] for i in range(phase.targets.size)])
        for inside in search.passed:
            _add_cut(uses, cuts, number, inside)
        reached = min(reached, search.rate)
    return reached


def _add_cut(uses: LinkUsage, cuts: UsageRows, number: int, inside: NDArray[np.bool_]) -> None:
    phase = uses.phases[number]
    arcs = phase.arcs
    leaving = np.flatnonzero(inside[arcs.tail] & ~inside[arcs.head])
    row = cuts.more(1)
    cuts.put(row, np.zeros(1, np.int64), float((arcs.is_member & inside).sum()))
    cuts.put(np.repeat(row, leaving.size), phase.use[leaving], -1.0)


_optimum = partial(maximum, method="highs", where="joint_rate")


ALGORITHM_PLAIN, IN_NETWORK = "plain", "in_network"


@dataclass(frozen=True)
class AllReduceRate:
    """Upper bound on the rate of an all-reduce with one algorithm.

    Attributes:
        algorithm: `plain` (only chips add: rings, trees, exchanges) or `in_network` (switches add
            too).
        members: How many take part.
        bus_bandwidth: As nccl-tests count it: n members reduce S bytes each in 2 (n - 1)/n S over
            it. With switches that add it is no rate of any wire. [byte/s]
        binding: Arcs that would raise it if they and those like them were faster.
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

    Raises TopologyError when members are unsound, `reduce_from` is no count, or `adding` names what
    is no switch.

    Args:
        members: iterable of nodes. Who takes part; all accelerators if not given.
        reduce_from: Smallest group for which switches add; every group if not given.
        adding: collection of nodes. Switches that add; those that the fabric marks with
            `in_network_reduce` if not given.

    A switch that adds is taken to copy as well. Reduce-scatter and all-gather run at once; on
    links alike in both directions the plain bound is that of one after the other, but for
    lines and other fabrics whose cuts are full one way at a time, where it is higher.

    >>> from topologies import switch
    >>> for bound in all_reduce_bounds(switch(8, up=450e9, in_network_reduce=True)):
    ...     print(bound.algorithm, f"{bound.bus_bandwidth:.4g}")
    plain 4.5e+11
    in_network 7.875e+11
    """
    group = checked_members("all_reduce_bounds", G, members)
    fault = None if reduce_from is None else count_fault(reduce_from)
    switches = _adding(G, adding)
    if fault is not None:
        raise TopologyError("all_reduce_bounds", f"reduce_from {fault}")
    ways: list[tuple[str, Collection[Node]]] = [(ALGORITHM_PLAIN, ())]
    if switches and len(group) >= (reduce_from or 2):
        ways.append((IN_NETWORK, switches))
    n, bounds = len(group), []
    for algorithm, adds in ways:
        joint = joint_rate(G, [group], "all_reduce", adding=adds)
        bounds.append(AllReduceRate(algorithm, n, joint.rate * (n - 1), joint.binding))
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
    return next((b for b in others if b.bus_bandwidth > plain.bus_bandwidth * (1 + 1e-9)), plain)


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
