"""Traffic: groups that exchange all to all, and weighted pairs, in any sum.

Weights say how the demands compare; how fast they can all be served at once is what
`topologies.rates.flow` answers, in byte/s per unit of weight. What crosses a cut over its
bandwidth bounds that, cheap where a linear program is not; exact where a routing reaches it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from topologies.fabric.fabric import ACCELERATOR, Arc, Fabric, Group, Node, accelerators
from topologies.fabric.limits import TopologyError


@dataclass(frozen=True)
class GroupExchange:
    """Disjoint groups at work side by side; every member sends `weight` to each of its group."""

    groups: tuple[Group, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Traffic:
    """A demand: exchanges within groups, and ordered pairs `(from, to, weight)`; `+` joins two.

    >>> both = all_to_all([0, 1, 2]) + pairs({(0, 3): 2.0})
    >>> len(both.exchanges), both.sent
    (1, ((0, 3, 2.0),))
    """

    exchanges: tuple[GroupExchange, ...] = ()
    sent: tuple[tuple[Node, Node, float], ...] = ()

    def __add__(self, more: Traffic) -> Traffic:
        return Traffic(self.exchanges + more.exchanges, self.sent + more.sent)


def all_to_all(*groups: Iterable[Hashable], weight: float = 1.0) -> Traffic:
    """Every member of a group sends equally to each other one; several groups at once.

    Args:
        groups: iterables of nodes. Disjoint. A group of one sends nothing.
        weight: Demand of each ordered pair.

    >>> all_to_all([0, 1], [2, 3]).exchanges[0].groups
    ((0, 1), (2, 3))
    """
    faults = [
        f"group {i} is {group!r}; a list of nodes was expected"
        for i, group in enumerate(groups)
        if isinstance(group, str) or not isinstance(group, Iterable)
    ]
    listed = [] if faults else [tuple(group) for group in groups]
    faults += [
        f"group {i}: {node!r} cannot be the name of a node"
        for i, group in enumerate(listed)
        for node in group
        if not _is_name(node)
    ]
    if faults:
        raise TopologyError("all_to_all", faults)
    return Traffic(exchanges=(GroupExchange(tuple(listed), weight),))


def pairs(weights: Mapping[Arc, float]) -> Traffic:
    """From `a` to `b` with a weight, for every key `(a, b)`."""
    faults = [
        f"{pair!r}: a pair (from, to) was expected"
        for pair in weights
        if not (isinstance(pair, tuple) and len(pair) == 2)
    ]
    if faults:
        raise TopologyError("pairs", faults)
    return Traffic(sent=tuple((a, b, weight) for (a, b), weight in weights.items()))


def traffic_checked(G: Fabric, traffic: Traffic) -> Traffic:
    """`traffic` itself, if all of it can be sent in `G`.

    Raises TopologyError, listing every problem: members unknown, repeated, in two groups of one
    exchange or no accelerators; empty groups; weights that are not above 0; a pair of a node with
    itself; nothing sent at all.
    """
    faults = [
        *(f for i, what in enumerate(traffic.exchanges) for f in _exchange_faults(G, i, what)),
        *(f for a, b, weight in traffic.sent for f in _pair_faults(G, a, b, weight)),
    ]
    alone = all(len(group) < 2 for what in traffic.exchanges for group in what.groups)
    if not faults and not traffic.sent and alone:
        faults = ["nothing is sent: no group has two members (its time is 0, it has no rate)"]
    if faults:
        raise TopologyError("traffic", faults)
    return traffic


def _exchange_faults(G: Fabric, number: int, what: GroupExchange) -> Iterator[str]:
    place = f"exchange {number}"
    if not what.groups:
        yield f"{place}: no groups"
    if (fault := _weight_fault(what.weight)) is not None:
        yield f"{place}: weight {fault}"
    kinds = G.nodes(data="kind")
    home: dict[Node, int] = {}
    for i, group in enumerate(what.groups):
        if not group:
            yield f"{place}, group {i}: no members"
        if len(set(group)) < len(group):
            for node, times in Counter(group).items():
                if times > 1:
                    yield f"{place}, group {i}: {node!r} is a member {times} times"
        for node in dict.fromkeys(group):
            if node not in G or kinds[node] != ACCELERATOR:
                yield f"{place}, group {i}: {_unknown_node(G, node)}"
            elif home.setdefault(node, i) != i:
                yield f"{place}: {node!r} is in group {home[node]} and in group {i}"


def _pair_faults(G: Fabric, a: Node, b: Node, weight: object) -> Iterator[str]:
    place = f"pair {a!r} to {b!r}"
    for node in dict.fromkeys((a, b)):
        if node not in G or G.nodes[node].get("kind") != ACCELERATOR:
            yield f"{place}: {_unknown_node(G, node)}"
    if a == b:
        yield f"{place}: a node sends nothing to itself"
    if (fault := _weight_fault(weight)) is not None:
        yield f"{place}: weight {fault}"


def _unknown_node(G: Fabric, node: Node) -> str:
    if node not in G:
        return f"the fabric has no node {node!r}"
    return f"{node!r} is of kind {G.nodes[node].get('kind')!r}, not {ACCELERATOR!r}"


def _is_name(node: object) -> bool:
    try:
        hash(node)
    except TypeError:
        return False
    return True


def _weight_fault(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return f"is {value!r}; a finite number was expected"
    fault = f"is {value!r}; it must be above 0 (leave out what is not sent)"
    return None if float(value) > 0 else fault


def checked_members(what: str, G: Fabric, members: Iterable[Hashable] | None) -> list[Node]:
    """Return the members in the order given; all accelerators of `G` if `members` is None.

    Raises TopologyError, listing every member that is no accelerator of `G` or is named twice; or
    because there are fewer than two: a chip alone has nobody to send to, it takes no time and has
    no rate.
    """
    group = accelerators(G) if members is None else list(members)
    problems = list(_faults(G, group))
    if not problems and len(group) < 2:
        problems.append(f"{len(group)} members; a rate needs at least two (one takes no time)")
    if problems:
        raise TopologyError(what, problems)
    return group


def disjoint(what: str, G: Fabric, groups: Sequence[Iterable[Hashable]]) -> list[list[Node]]:
    """The groups of two or more members; a group of one has nothing to do.

    Raises TopologyError, listing every member that is no accelerator, or is named twice in one
    group or in two; or because no group has two.
    """
    listed = [list(group) for group in groups]
    problems = list(_faults(G, [member for group in listed for member in group]))
    several = [group for group in listed if len(group) > 1]
    if not problems and not several:
        problems.append("no group has two members; a rate needs at least two (one takes no time)")
    if problems:
        raise TopologyError(what, problems)
    return several


def _faults(G: Fabric, members: list[Node]) -> Iterator[str]:
    seen: set[Hashable] = set()
    kinds = dict(G.nodes(data="kind"))
    for member in members:
        if member not in kinds:
            yield f"{member!r} is not a node of the fabric"
        elif kinds[member] != ACCELERATOR:
            yield f"{member!r} is a {kinds[member]}, not an accelerator"
        elif member in seen:
            yield f"{member!r} is named twice"
        seen.add(member)


RATE_TOL = 1e-9  # rates that differ by less are equal: far below the 1e-6 that engines agree to
Weights: TypeAlias = defaultdict[int, float]


@dataclass(frozen=True)
class TrafficCut:
    """The narrowest of some cuts: an upper bound per unit of weight [byte/s]."""

    rate: float
    arcs: tuple[Arc, ...]  # arcs across the cut; empty if switches join the halves


def is_optimal(G: Fabric, traffic: Traffic, rate: float, full: Collection[Arc]) -> bool:
    """True if no routing is better: the full arcs form a cut that limits the rate."""
    return narrowest_part_cut(G, traffic, components(G, set(full))).rate <= rate * (1 + RATE_TOL)


def narrowest_part_cut(G: Fabric, traffic: Traffic, part: Mapping[Node, int]) -> TrafficCut:
    """The narrowest of the cuts around each of the parts."""
    leaves: defaultdict[int, float] = defaultdict(float)
    enters: defaultdict[int, float] = defaultdict(float)
    for u, beside in G.adjacency():
        for v, arc in beside.items():
            if part[u] != part[v]:
                leaves[part[u]] += arc["bandwidth"]
                enters[part[v]] += arc["bandwidth"]
    out, into = crossing(traffic, part)
    bounds = [(leaves[i] / weight, i, 0) for i, weight in out.items() if weight]
    bounds += [(enters[i] / weight, i, 1) for i, weight in into.items() if weight]
    rate, which, end = min(bounds, default=(float("inf"), -1, 0))
    return TrafficCut(
        rate,
        tuple(arc for arc in G.edges if part[arc[end]] == which and part[arc[1 - end]] != which),
    )


def crossing(traffic: Traffic, part: Mapping[Node, int]) -> tuple[Weights, Weights]:
    """Weights that leave each part, and that enter it."""
    out, into = defaultdict[int, float](float), defaultdict[int, float](float)
    for a, b, weight in traffic.sent:
        if part[a] != part[b]:
            out[part[a]] += weight
            into[part[b]] += weight
    for what in traffic.exchanges:
        for group in what.groups:
            for i, n in Counter(part[chip] for chip in group).items():
                across = what.weight * n * (len(group) - n)
                out[i] += across
                into[i] += across
    return out, into


def components(G: Fabric, without: Collection[Arc]) -> dict[Node, int]:
    """The number of the part that each node is in when these arcs, and those back, are gone."""
    number = dict(zip(G, range(len(G)), strict=True))
    gone = {*without, *((v, u) for u, v in without)}
    heads = [[number[v] for v in beside if (u, v) not in gone] for u, beside in G.adjacency()]
    at = np.cumsum([0, *map(len, heads)])
    head = np.fromiter(chain.from_iterable(heads), np.int64, at[-1])
    joined = csr_array((np.ones(head.size), head, at), shape=(len(G), len(G)))
    _, part = connected_components(joined, directed=False)
    return dict(zip(G, part.tolist(), strict=True))
