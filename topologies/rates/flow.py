"""Maximum concurrent flow: the most traffic that a fabric carries over any permitted paths.

The largest theta such that theta times every demand can be sent at once; no schedule beats it.
One linear program, with the flows of a source taken together; what a checked symmetry makes equal
is solved for once. Where few orbits of arcs can bind, its columns are generated: each round prices
the arcs, sends every source along its cheapest paths (in equal parts where several are cheapest),
and mixes all routings seen so far. Prices also bound the optimum from above, and the rounds end
when mixture and bound meet, so the answer is exact.

References
----------
Shahrokhi, Matula, The maximum concurrent flow problem, J. ACM 37, 1990; Basu et al., Efficient
all-to-all collective communication schedules for direct-connect topologies, arXiv 2309.13541;
Ford, Fulkerson, A suggested computation for maximal multi-commodity network flows, 1958;
Wentges, Weighted Dantzig-Wolfe decomposition, 1997 (prices between the last and the best).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack
from scipy.sparse.csgraph import dijkstra

from topologies.fabric.fabric import SCALE_UP, Arc, Fabric, Node, accelerators
from topologies.fabric.limits import TopologyError, suggest
from topologies.fabric.measure import halves
from topologies.rates.automorphisms import Orbits
from topologies.rates.flow_network import Floats, FlowNetwork, NodeDemand, demand, network
from topologies.rates.flow_program import FlowSolution, ReducedProgram, by_program, maximum
from topologies.rates.orbits import orbits
from topologies.rates.shortest_paths import ecmp
from topologies.rates.traffic import (
    RATE_TOL,
    Traffic,
    TrafficCut,
    all_to_all,
    components,
    crossing,
    is_optimal,
    narrowest_part_cut,
    traffic_checked,
)

GAP = 1e-9
ROUNDS, MIN_ROUNDS = 60, 4
# Minimum arc length, as shares of the mean and of the longest: arcs of length zero would allow
# cycles. The bound is computed with the increased lengths.
MEAN_LENGTH_SHARE, TIE = 1e-11, 1e-12
PRICE_SMOOTHING = 0.7
MAX_STALLED_ROUNDS = 6
IDLE = 12  # Rounds after which a routing that the best mixture leaves out is forgotten.


def column_generation(task: ReducedProgram) -> FlowSolution | None:
    """Optimum of the flow program by generation of columns.

    None after `ROUNDS` rounds; the bound as it is then where the program is beyond `SOLVED`.
    """
    router, mixtures = _Router(task), _Mixtures(task)
    whole = task.members * task.capacity
    prices = best = whole / whole.sum()
    theta, bound = 0.0, np.inf
    large = task.most_columns > SOLVED
    for number in range(_rounds(task.most_columns, task.sources.size * task.members.size)):
        between = PRICE_SMOOTHING if number > MAX_STALLED_ROUNDS and number % 2 else 0.0
        tried = between * best + (1 - between) * prices
        step = max(MEAN_LENGTH_SHARE / whole.sum(), TIE * float((tried / whole).max()))
        loads, costs = router.cheapest(tried / whole, step)
        # Any prices bound theta from above: value of all arcs over cost of the demand (duality).
        limit = float((1 + step * whole.sum()) / (task.share @ costs))
        if limit < bound:
            bound, best = limit, tried
        if bound <= theta * (1 + GAP + step * whole.sum()):
            return FlowSolution(
                theta, f"routings mixed in {number + 1} rounds", np.arange(whole.size), best
            )
        mixtures.add(loads)
        theta, prices = mixtures.solve()
        prices = prices / prices.sum()
    if not large:
        return None
    engine = f"bound of {number + 1} rounds of routings, which reach {theta / bound:.1%} of it"
    return FlowSolution(bound, engine, np.arange(whole.size), best, exact=False)


class _Router:
    """Cheapest paths of every source under prices of arcs."""

    def __init__(self, task: ReducedProgram) -> None:
        net = task.net
        self.task = task
        numbers, ends = np.arange(net.tail.size, dtype=float), (net.starts, net.head)
        self.graph = csr_array((numbers, ends), shape=(net.places,) * 2)
        self.order = self.graph.data.astype(np.int64)

    def cheapest(self, lengths: Floats, step: float) -> tuple[Floats, Floats]:
        """Load of each arc orbit by each source at theta = 1 as a part of its capacity; costs."""
        task = self.task
        length = lengths[task.orbit] + step
        self.graph.data = length[self.order]
        at = task.net.origin[task.sources]
        far = np.atleast_2d(dijkstra(self.graph, indices=at))
        size = task.rows.shape[1]
        costs = np.array(
            [row[row > 0] @ away[:size][row > 0] for row, away in zip(task.rows, far, strict=True)]
        )
        loads = np.array([self._loads(i, length, far[i], step / 4) for i in range(at.size)])
        return loads * (task.share[:, None] / (task.members * task.capacity)), costs

    def _loads(self, i: int, length: Floats, far: Floats, near: float) -> Floats:
        """Load of source `i` on each arc orbit, split evenly over its cheapest last arcs."""
        task, net = self.task, self.task.net
        starts, head = net.starts, net.head
        reach = far[starts] + length
        used = np.flatnonzero((reach <= far[head] + near) & np.isfinite(reach))
        into, out = head[used], starts[used]
        part = 1.0 / np.bincount(into, minlength=net.places)[into]
        back = csr_array((part, (out, into)), shape=(net.places,) * 2)
        sent = np.zeros(net.places)
        sent[: task.rows.shape[1]] = task.rows[i]
        through, step = sent.copy(), sent
        for _ in range(net.places):
            step = np.asarray(back @ step)
            if not step.any():
                break
            through += step
        else:
            raise TopologyError("concurrent flow", "cheapest paths run in circles: rounding")
        onto = csr_array((part, (task.orbit[used], into)), shape=(task.members.size, net.places))
        return np.asarray(onto @ through)


class _Mixtures:
    """Restricted master problem over the generated routings."""

    def __init__(self, task: ReducedProgram) -> None:
        self.sources = task.sources.size
        self.loads = np.empty((0, task.members.size))
        self.of = np.empty(0, dtype=np.int64)
        self.idle = np.empty(0, dtype=np.int64)

    def add(self, loads: Floats) -> None:
        """Add a routing of every source, loads as array (sources, arc orbits) [-]."""
        self.loads = np.concatenate([self.loads, loads])
        self.of = np.r_[self.of, np.arange(self.sources)]
        self.idle = np.r_[self.idle, np.zeros(self.sources, dtype=np.int64)]

    def solve(self) -> tuple[float, Floats]:
        """Theta of the best mixture, and prices of the arc orbits."""
        active = self.idle < IDLE
        self.loads, self.of, self.idle = self.loads[active], self.of[active], self.idle[active]
        count = self.of.size
        use = csc_array(np.c_[self.loads.T, np.zeros(self.loads.shape[1])])
        membership = csc_array((np.ones(count), (self.of, np.arange(count))))
        shares = hstack([membership, csc_array(-np.ones((self.sources, 1)))], format="csc")
        theta, mixed, prices = maximum(use, np.ones(use.shape[0]), shares)
        self.idle = np.where(mixed[:-1] > 0, 0, self.idle + 1)
        return theta, prices


ROUTINGS = ("optimal", "shortest_ecmp")
# Rounds of routings are quicker than one linear program where few orbits of arcs can bind, and
# where the program would have more variables than this.
FEW_ORBITS, LARGE_PROGRAM_CELLS = 32, 30_000
# Variables above which the program is solved by column generation; work limits of its rounds, in
# priced arcs and in loads of the master problem; variables above which no paths are counted.
# About a second each.
SOLVED, PRICING_WORK_LIMIT, CELLS, MAX_ROUTED_PATHS = 60_000, 4_000_000, 400_000, 10_000_000
BINDING = 1e-9  # An elasticity below this is rounding.


@dataclass(frozen=True)
class Bottleneck:
    """Class of saturated arcs with equal role.

    Attributes:
        arcs: All of them, by their ends.
        elasticity: By how many percent the rate changes when all of them get one percent more or
            less bandwidth. Where several sets bind at once the two directions differ, and the
            numbers of all of them together are one sound choice in between.
    """

    arcs: tuple[Arc, ...] = field(repr=False)
    elasticity: float

    @property
    def members(self) -> int:
        """Number of arcs."""
        return len(self.arcs)


@dataclass(frozen=True)
class Flow:
    """Maximum concurrent flow of a demand.

    Attributes:
        rate: Per unit of weight: for an all-to-all of weight 1, of each ordered pair. [byte/s]
        engine: How it was found.
        binding: What holds the rate down, the strongest first. Elasticities add up to 1.
        exact: Does some routing reach it? Else no routing does better, on a fabric too large and
            irregular for the program.
    """

    rate: float
    engine: str
    binding: tuple[Bottleneck, ...]
    exact: bool = True


def concurrent_flow(
    G: Fabric, traffic: Traffic, *, routing: str = "optimal", shortest: bool = True
) -> Flow:
    """Maximum rate for all of `traffic` concurrently, per unit of weight.

    On a large fabric without symmetry an upper bound, which its `engine` says.

    Raises TopologyError when the traffic cannot be sent, the fabric is unsound, no permitted path
    joins two that talk, or the solver finds no optimum.

    Args:
        traffic: Made by `all_to_all` and `pairs`, and sums of these.
        routing: {"optimal", "shortest_ecmp"}. Any permitted paths in the best proportions, or
            shortest ones in equal parts.
        shortest: Whether a bound may be met by shortest paths; False if they are seen not to.

    >>> from topologies import torus
    >>> G = torus((4, 4), link=64e9)
    >>> round(concurrent_flow(G, all_to_all(list(G))).rate / 1e9, 6)
    8.0
    """
    if routing not in ROUTINGS:
        raise TopologyError(
            "concurrent_flow", f"unknown routing {routing!r}; {suggest(routing, ROUTINGS)}"
        )
    if routing == "shortest_ecmp":
        routed = ecmp(G, traffic)
        engine = "shortest paths in equal parts"
        return Flow(routed.rate, engine, (Bottleneck(routed.binding, 1.0),))
    traffic_checked(G, traffic)
    net = network(G)
    what = demand(net, traffic)
    symmetry = orbits(net, what)
    size = _size(net, what, symmetry)
    senders = np.unique(symmetry.nodes[what.sources()]).size
    loads = senders * np.unique(symmetry.arcs).size
    if size > SOLVED and _rounds(size, loads) < MIN_ROUNDS:
        return _bounded(G, traffic, size, shortest=shortest and size <= MAX_ROUTED_PATHS)
    program = ReducedProgram(net, what, symmetry, G.graph.get("name"))
    solution = None
    if program.members.size <= FEW_ORBITS or program.most_columns > LARGE_PROGRAM_CELLS:
        solution = column_generation(program)
    solution = solution or by_program(program)
    rate = solution.theta * program.unit
    if not (math.isfinite(rate) and rate > 0):
        raise TopologyError("concurrent_flow", f"the solver reports a rate of {rate}")
    if not solution.exact and (cut := narrowest_cut(G, traffic)).rate < rate:
        return _cut_off(cut, size)
    senders = int(program.share.sum())
    engine = (
        f"{solution.engine}; {program.sources.size} of {senders} sources, "
        f"{program.members.size} of {net.tail.size} arcs"
    )
    return Flow(rate, engine, _binding(program, solution), solution.exact)


def program_size(G: Fabric, traffic: Traffic) -> int:
    """Variables of the program of a checked traffic: a source of each orbit times the arcs."""
    net = network(G)
    what = demand(net, traffic)
    return _size(net, what, orbits(net, what))


def _rounds(size: int, loads: int) -> int:
    if size <= SOLVED:
        return ROUNDS
    return min(ROUNDS, PRICING_WORK_LIMIT // size, math.isqrt(2 * CELLS // loads))


def _size(net: FlowNetwork, what: NodeDemand, symmetry: Orbits) -> int:
    return int(np.unique(symmetry.nodes[what.sources()]).size) * net.tail.size


def _bounded(G: Fabric, traffic: Traffic, size: int, *, shortest: bool) -> Flow:
    """Rate of shortest paths if a cut confirms it; else the narrowest of some cuts."""
    if shortest:
        routed = ecmp(G, traffic)
        if is_optimal(G, traffic, routed.rate, routed.binding):
            engine = "shortest paths in equal parts, confirmed by a cut"
            return Flow(routed.rate, engine, (Bottleneck(routed.binding, 1.0),))
    cut = narrowest_cut(G, traffic)
    if not 0 < cut.rate < math.inf:
        fault = "no permitted path joins some that talk"
        raise TopologyError(f"fabric {G.graph.get('name')!r}", fault)
    return _cut_off(cut, size)


def _cut_off(cut: TrafficCut, size: int) -> Flow:
    binding = (Bottleneck(cut.arcs, 1.0),) if cut.arcs else ()
    engine = f"narrowest of the cuts around chips, domains and halves; {size:,} variables"
    return Flow(cut.rate, engine, binding, exact=False)


def narrowest_cut(G: Fabric, traffic: Traffic) -> TrafficCut:
    """The narrowest cut around a chip, around what scale-up links join, and between halves."""
    alone = {node: i for i, node in enumerate(G)}
    joined = components(G, {(u, v) for u, v, arc in G.edges(data=True) if arc["tier"] != SCALE_UP})
    cuts = [narrowest_part_cut(G, traffic, divided) for divided in (alone, joined)]
    return min([*cuts, *_halved(G, traffic)], key=lambda cut: cut.rate)


def _halved(G: Fabric, traffic: Traffic) -> Iterator[TrafficCut]:
    chips = accelerators(G)
    for _, half, rates in halves(G):
        rest = set(chips) - half
        out, into = crossing(traffic, {chip: chip in half for chip in chips})
        sides = ((out[True], (half, rest)), (into[True], (rest, half)))
        for rate, (weight, ends) in zip(rates, sides, strict=True):
            if weight:
                straight = [(u, v) for u in ends[0] for v in G.succ[u] if v in ends[1]]
                alone = sum(G.edges[arc]["bandwidth"] for arc in straight) >= rate * (1 - RATE_TOL)
                yield TrafficCut(rate / weight, tuple(straight) if alone else ())


def all_to_all_rate(
    G: Fabric, members: Iterable[Node] | None = None, *, routing: str = "optimal"
) -> Flow:
    """Every one of `members` (all accelerators unless said) sends equally to every other one.

    Raises TopologyError as `concurrent_flow`; also for a single member, who talks to nobody.

    >>> from topologies import switch
    >>> all_to_all_rate(switch(8, up=450e9)).rate / 1e9
    64.28571428571429
    """
    return concurrent_flow(
        G, all_to_all(accelerators(G) if members is None else members), routing=routing
    )


def _binding(program: ReducedProgram, solution: FlowSolution) -> tuple[Bottleneck, ...]:
    of = solution.classes[program.orbit]
    full = np.flatnonzero(solution.elasticity > BINDING)
    strongest = full[np.argsort(-solution.elasticity[full], kind="stable")]
    return tuple(
        Bottleneck(
            tuple(map(program.net.arc, np.flatnonzero(of == which).tolist())),
            float(solution.elasticity[which]),
        )
        for which in strongest.tolist()
    )
