"""Rates of parallel axes: the pattern each sends, with all groups of the axis at work.

Tensor-parallel and data-parallel ranks gather and scatter, experts exchange, context-parallel
ranks pass blocks around a ring, pipeline stages hand on to the next. A group that straddles a
node or a rack shows up as the slower rate, and as the arcs that are full.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import isfinite
from types import MappingProxyType

from topologies.fabric.fabric import Arc, Fabric, Group, Node, by_domain
from topologies.fabric.limits import TopologyError, suggest
from topologies.fabric.placement import Placement
from topologies.groups.concurrent_groups import GroupPaths, max_concurrent_rate
from topologies.groups.tree_networks import inner_nodes, own_links
from topologies.rates.concurrent_collectives import ConcurrentRate
from topologies.rates.traffic import Traffic, pairs

GATHER, EXCHANGE, RING, STAGES = "gather", "exchange", "ring", "stages"
PATTERNS: Mapping[str, str] = MappingProxyType(
    {"tp": GATHER, "tp_expert": GATHER, "ep": EXCHANGE, "cp": RING, "dp": GATHER, "pp": STAGES}
)
PATTERN_KINDS = (GATHER, EXCHANGE, RING, STAGES)


@dataclass(frozen=True)
class AxisRate:
    """Rate and latency of the groups of a parallel axis, all at once.

    Attributes:
        axes, pattern: What was asked: `gather` (all-gather or reduce-scatter), `exchange`
            (all-to-all), `ring` (each to the next, the last to the first) or `stages` (each to the
            next).
        size, groups: Members of a group, and groups.
        rate: Of one chip, one way: what it sends to all others of an exchange, receives of a
            gather, hands on in a ring or to the next stage. A group of one sends nothing and has
            none. [byte/s]
        binding: Arcs that are full.
        tiers: The tiers that those belong to.
        domains: Scale-up domains that a group touches: fewest and most.
        latency_hops, latency: Arcs and seconds between the two members of a group that are farthest
            apart.
    """

    axes: tuple[str, ...]
    pattern: str
    size: int
    groups: int
    rate: float | None
    binding: tuple[Arc, ...]
    tiers: tuple[str, ...]
    domains: tuple[int, int]
    latency_hops: int
    latency: float

    def time(self, size: float) -> float:
        """Time to pass each chip's `size` bytes at the rate [s]; 0 for a group of one."""
        return 0.0 if self.rate is None else size / self.rate


def axis_rate(
    G: Fabric,
    placement: Placement,
    *axes: str,
    pattern: str | None = None,
    crossing: float | None = None,
    routing: str = "optimal",
) -> AxisRate:
    """The rate of one axis, or of several together, with all of its groups at work.

    Raises TopologyError when an axis or pattern is unknown or left open, or `crossing` is no such
    share.

    Args:
        axes: One axis, or several whose ranks form one group.
        pattern: What is sent; for an axis of `PATTERNS` it need not be said.
        crossing: Of an exchange that sends one copy of a token to each domain and spreads it there:
            how many copies cross per copy that is needed beyond, above 0 and at most 1. Not given,
            every copy crosses on its own.
        routing: `optimal` or `shortest_ecmp`; a gather is always optimal.

    >>> from topologies import hierarchy, switch
    >>> from topologies import place
    >>> G = hierarchy(switch(8, up=450e9), 2, out=50e9)
    >>> ep = axis_rate(G, place(G, {"ep": 16}), "ep")
    >>> round(ep.rate / 1e9, 6), ep.tiers, ep.domains
    (93.75, ('scale_out',), (2, 2))
    """
    groups = placement.groups(*axes)
    kind = _pattern(axes, pattern, crossing)
    touched = [len({G.nodes[chip]["domain"] for chip in group}) for group in groups]
    span = (min(touched), max(touched))
    if len(groups[0]) == 1:
        return AxisRate(axes, kind, 1, len(groups), None, (), (), span, 0, 0.0)
    places = _places(G, groups) if span[1] == 1 else [(G, groups)]
    rates = [_concurrent_rate(part, some, kind, crossing, routing) for part, some in places]
    slowest = min((answer for answer, _, _ in rates), key=lambda answer: answer.rate)
    return AxisRate(
        axes=axes,
        pattern=kind,
        size=len(groups[0]),
        groups=len(groups),
        rate=slowest.rate,
        binding=slowest.binding,
        tiers=tuple(sorted({G.edges[arc]["tier"] for arc in slowest.binding})),
        domains=span,
        latency_hops=max(hops for _, hops, _ in rates),
        latency=max(latency for _, _, latency in rates),
    )


def axis_rates(G: Fabric, placement: Placement, *, routing: str = "optimal") -> dict[str, AxisRate]:
    """The rate of every axis of the placement by itself, with its usual pattern."""
    return {axis: axis_rate(G, placement, axis, routing=routing) for axis, _ in placement.axes}


def _pattern(axes: Sequence[str], pattern: str | None, crossing: float | None) -> str:
    usual = {PATTERNS.get(axis) for axis in axes}
    kind = pattern or (usual.pop() if len(usual) == 1 else None)
    problems = []
    if kind is None:
        problems.append(
            f"what {' and '.join(axes)} send is open; give one of {', '.join(PATTERN_KINDS)}"
        )
    elif kind not in PATTERN_KINDS:
        problems.append(f"unknown pattern {kind!r}; {suggest(kind, PATTERN_KINDS)}")
    if crossing is not None:
        if kind != EXCHANGE:
            problems.append(f"crossing is given, which belongs to an exchange, not to a {kind}")
        number = isinstance(crossing, int | float) and not isinstance(crossing, bool)
        if not (number and isfinite(crossing) and 0 < crossing <= 1):
            problems.append(f"crossing is {crossing!r}; a share above 0 and at most 1 was expected")
    if problems or kind is None:
        raise TopologyError("axis_rate", problems)
    return kind


def _places(G: Fabric, groups: Sequence[Group]) -> Sequence[tuple[Fabric, Sequence[Group]]]:
    """Domain by domain the scale-up links and the groups there; cards are not used inside.

    A domain whose own links do not join its chips is no part by itself: then all is one.
    """
    places: dict[Node, list[Group]] = {}
    for group in groups:
        places.setdefault(G.nodes[group[0]]["domain"], []).append(group)
    domains = by_domain(G)
    parts = [
        (own_links(G, inner_nodes(G, domains[name])), members) for name, members in places.items()
    ]
    joined = [(part, members) for part, members in parts if part is not None]
    return joined if len(joined) == len(parts) else [(G, groups)]


def _concurrent_rate(
    G: Fabric, groups: Sequence[Group], kind: str, crossing: float | None, routing: str
) -> tuple[ConcurrentRate, int, float]:
    """Concurrent rate of these groups per chip [byte/s], and their longest path in hops and [s]."""
    paths = GroupPaths(G, groups)
    times = len(groups[0]) - 1 if kind in (GATHER, EXCHANGE) else 1
    if kind == GATHER:
        answer = paths.gather()
    elif kind == EXCHANGE and crossing is None:
        answer = paths.exchange(routing=routing)
    else:
        answer = max_concurrent_rate(G, _traffic(G, kind, groups, crossing), routing=routing)
    return replace(answer, rate=answer.rate * times), *paths.farthest()


def _traffic(G: Fabric, kind: str, groups: Sequence[Group], crossing: float | None) -> Traffic:
    if crossing is not None:
        return _spread(G, groups, crossing)
    steps = {(a, b): 1.0 for group in groups for a, b in pairwise(group)}
    if kind == RING:
        steps |= {(group[-1], group[0]): 1.0 for group in groups}
    return pairs(steps)


def _spread(G: Fabric, groups: Sequence[Group], crossing: float) -> Traffic:
    """Each copy to the chip of equal place in the other domain, from there to those who need it."""
    weights: defaultdict[Arc, float] = defaultdict(float)
    for group in groups:
        parts = by_domain(G, group)
        for home, members in parts.items():
            for (place, chip), (there, others) in product(enumerate(members), parts.items()):
                relay = chip if there == home else others[place % len(others)]
                for target in others:
                    weights[chip, relay] += crossing
                    weights[relay, target] += 1.0
    return pairs({(a, b): weight for (a, b), weight in weights.items() if a != b})
