"""Rates of groups on any fabric: which groups there are of a size, and what answers for them.

Groups of a size that a domain holds lie side by side within domains, in a torus as boxes; a
larger group takes as few whole domains as hold it, evenly filled. All groups of a size talk at
once and the slowest counts. Formulas answer where every link is as its shape says; the flow and
cut engines answer elsewhere, for one of several equal domains.

How fast groups of chips can talk: every size at once, on a machine or on any fabric.

A group takes as few domains as hold it and spreads evenly over them. On a machine the rates are
formulas; on a fabric, formulas where its links are all alike and the flow and cut engines
elsewhere, with every group of that size talking at once and the worst of them counting.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

import networkx as nx

from topologies.fabric.fabric import ACCELERATOR, SCALE_UP, Fabric
from topologies.fabric.limits import TopologyError, count_fault
from topologies.fabric.placement import filling
from topologies.fabric.validation import check
from topologies.groups.closed_form_match import domains_of, joint_of
from topologies.groups.domain_wiring import Inside, insides
from topologies.groups.group_paths import group_rates
from topologies.groups.node_aggregation import Group
from topologies.groups.tree_networks import tree_of
from topologies.machines.hardware import Machine
from topologies.rates.closed_form.equal_domains import Domains, cards_bind, group_in
from topologies.rates.rate_table import GroupRate, RateTable, columns

__all__ = ["FabricGroups", "GroupRate", "RateTable", "group_rate", "grouped", "rate_table"]

KEPT = 16  # fabrics whose groups are remembered


def grouped(G: Fabric, order: Sequence[Hashable] | None = None) -> FabricGroups:
    """The groups of a fabric, remembered as long as its nodes, arcs and order stay the same.

    Raises
    ------
    TopologyError
        When the fabric is unsound, or the order names what is no accelerator or one twice.
    """
    if not isinstance(G, nx.DiGraph):
        check(G)
    key = _content(G, order)
    if key not in _known:
        _known[key] = FabricGroups(check(G), order)
    _known.move_to_end(key)
    while len(_known) > KEPT:
        _known.popitem(last=False)
    return _known[key]


_known: OrderedDict[Hashable, FabricGroups] = OrderedDict()


class FabricGroups:
    """Domains of a fabric, their formulas if they have any, and the rates found so far.

    Attributes
    ----------
    domains
        The accelerators by domain, in the order in which they are filled.
    size
        Accelerators of the largest domain.
    """

    def __init__(self, G: Fabric, order: Sequence[Hashable] | None = None) -> None:
        self.fabric = G.copy()
        chips = filling(G) if order is None else list(order)
        self.name = f"fabric {G.graph.get('name')!r}"
        self.domains = domains_of(G, _sound(self.name, G, chips))
        self.chips = sum(map(len, self.domains))
        self.size = max(map(len, self.domains))
        self._inner = insides(self.fabric, self.domains)
        self._formula = _formula(self.fabric, self.domains, self._inner)
        plain = all(inner.plain for inner in self._inner)
        self._tree = tree_of(self.fabric, self.domains) if plain else None
        self._rates: dict[int, GroupRate] = {}

    @property
    def joined(self) -> bool:
        """Is there more than one domain?"""
        return len(self.domains) > 1

    @property
    def tiled(self) -> bool:
        """Do groups inside a domain take boxes of a torus?"""
        return any(inner.box for inner in self._inner)

    def rate(self, n: int) -> GroupRate:
        """Rates of a group of `n`, all groups of that size at once.

        Raises
        ------
        TopologyError
            When the fabric has fewer accelerators.
        """
        if n not in self._rates:
            if n > self.chips:
                told = f"a group of {n} exceeds its {self.chips} accelerators"
                raise TopologyError(self.name, told)
            if n == 1:
                self._rates[n] = self._alone()
            else:
                self._rates[n] = self._inside(n) if n <= self.size else self._across(n)
        return self._rates[n]

    def groups(self, n: int) -> list[Group]:
        """The groups of `n` that lie side by side on the fabric."""
        if n <= self.size:
            return [
                group
                for members, inner in zip(self.domains, self._inner, strict=True)
                for group in inner.tiles(members, n)
            ]
        return _spread(self.domains, self._inner, n)

    def _alone(self) -> GroupRate:
        up = min(_entrance(self.fabric, chip) for members in self.domains for chip in members)
        return GroupRate(1, up, up, up, 0, 0.0, 1, 0.0)

    def _inside(self, n: int) -> GroupRate:
        large = [
            inner
            for members, inner in zip(self.domains, self._inner, strict=True)
            if len(members) >= n
        ]
        return _worst([inner.rate(n) for inner in dict.fromkeys(large)])

    def _across(self, n: int) -> GroupRate:
        whole = self.rate(self.size)
        if self._formula is not None:
            known = group_in(self._formula, n)
            if known is not None and cards_bind(self._formula, n):
                return known
        groups = _spread(self.domains, self._inner, n)
        rate = self._in_tree(groups) or group_rates(self.fabric, groups)
        rate = replace(
            rate, send=min(rate.send, whole.send), latency=max(rate.latency, whole.latency)
        )
        if not self.tiled:
            return rate
        # Boxes of several tori are not credited with more than a whole torus, as on machines.
        return replace(
            rate,
            all_to_all=min(rate.all_to_all, whole.all_to_all),
            all_gather=min(rate.all_gather, whole.all_gather),
        )

    def _in_tree(self, groups: Sequence[Group]) -> GroupRate | None:
        """By counting, where the levels above the domains allow it."""
        tree, n = self._tree, len(groups[0])
        if tree is None or not ((tree.nested or tree.railed) and tree.even):
            return None
        cards = tree.cards(groups)
        inside = {k: self.rate(k) for k in cards if k > 1}
        shares = [rate.all_to_all / (k - 1) for k, rate in inside.items()]
        theta = min([tree.exchange(groups), *shares])
        # Around one chip: its links inside, narrower in a part of a mesh, and its own card.
        around = [(rate.all_gather + cards[k]) / (n - 1) for k, rate in inside.items()]
        alpha = min([tree.gather(groups), *around])
        hops, latency = tree.farthest(groups)
        return GroupRate(
            n,
            all_to_all=theta * (n - 1),
            all_gather=alpha * (n - 1),
            send=tree.send(groups),
            latency_hops=hops,
            latency=latency,
            domains=max(len({tree.domain[chip] for chip in group}) for group in groups),
            step_latency=latency,
        )


def _formula(
    G: Fabric, domains: Sequence[Sequence[Any]], inside: Sequence[Inside]
) -> Domains | None:
    """The formula of the whole fabric: equal domains behind a layer that never blocks."""
    first = inside[0]
    if first.shape is None or any(inner is not first for inner in inside) or len(domains) == 1:
        return None
    outer = G.copy()
    outer.remove_edges_from([e for e in G.edges if G.edges[e]["tier"] == SCALE_UP])
    joint = joint_of(outer, domains)
    if joint is None:
        return None
    out, latency, join = joint
    return replace(first.shape, out=out, out_latency=latency, join=join)


def _spread(domains: Sequence[Sequence[Any]], inside: Sequence[Inside], n: int) -> list[Group]:
    """Groups over as few neighbouring domains as hold each, evenly filled."""
    groups, taken = [], []
    for members, inner in zip(domains, inside, strict=True):
        taken.append((members, inner))
        if sum(len(chips) for chips, _ in taken) < n:
            continue
        counts = _even(n, [len(chips) for chips, _ in taken])
        parts = [
            of.tiles(chips, count)[0] for (chips, of), count in zip(taken, counts, strict=True)
        ]
        groups.append(tuple(chip for part in parts for chip in part))
        taken = []
    return groups


def _even(n: int, room: Sequence[int]) -> list[int]:
    """`n` spread over places of limited room, as evenly as they allow."""
    counts = [0] * len(room)
    left, open_ = n, [i for i, most in enumerate(room) if most]
    while left:
        for share, i in enumerate(open_):
            more = -(-left // (len(open_) - share))
            counts[i] += min(more, room[i] - counts[i])
            left = n - sum(counts)
        open_ = [i for i in open_ if counts[i] < room[i]]
    return counts


def _worst(rates: Sequence[GroupRate]) -> GroupRate:
    """The slowest rate and the longest way of any of them."""
    first = rates[0]
    gather = min(rates, key=lambda rate: (rate.all_gather, rate.shared_evenly))
    return replace(
        first,
        all_to_all=min(rate.all_to_all for rate in rates),
        all_gather=gather.all_gather,
        shared_evenly=gather.shared_evenly,
        send=min(rate.send for rate in rates),
        latency_hops=max(rate.latency_hops for rate in rates),
        latency=max(rate.latency for rate in rates),
        step_latency=max(rate.step_latency for rate in rates),
    )


def _sound(name: str, G: Fabric, chips: Sequence[Any]) -> Sequence[Any]:
    problems = [
        f"order: {chip!r} is no accelerator of it"
        for chip in chips
        if chip not in G or G.nodes[chip].get("kind") != ACCELERATOR
    ]
    problems += [
        f"order: {chip!r} stands in it {times} times"
        for chip, times in Counter(chips).items()
        if times > 1
    ]
    if problems or not chips:
        raise TopologyError(name, problems or "order: it names no accelerator")
    return chips


def _entrance(G: Fabric, chip: Any) -> float:
    """What a chip can send into its scale-up network; into all there is, if it has none."""
    arcs = list(G.succ[chip].values())
    inside = [arc["bandwidth"] for arc in arcs if arc["tier"] == SCALE_UP]
    return float(sum(inside or [arc["bandwidth"] for arc in arcs]))


def _content(G: Fabric, order: Sequence[Hashable] | None) -> str:
    said = repr((G.graph, list(G.nodes(data=True)), list(G.edges(data=True)), order))
    return sha256(said.encode()).hexdigest()


def group_rate(
    of: Machine | Fabric, n: int, *, order: Sequence[Hashable] | None = None
) -> GroupRate:
    """Rates and latency of a group of `n` chips of a machine or a fabric.

    A single chip has nobody to talk to: its rates are those at which it enters the scale-up
    network, its latency 0. What network cards add to the scale-up links counts in a gather: 16 H100
    on two boards gather at 500 GB/s, not at the 450 of one board.

    Parameters
    ----------
    of : Machine or DiGraph
    n : int
        Chips of the group.
    order : sequence of nodes, optional
        Accelerators of a fabric in the order in which they are filled; domain after domain if
        not given. Not looked at for a machine.

    Raises
    ------
    TopologyError
        When `n` is no count, exceeds the domain of a machine without scale-out, or exceeds the
        accelerators of a fabric.

    >>> from topologies.machines import machine
    >>> group_rate(machine("mi300x-8"), 4).all_to_all
    192000000000.0
    """
    answer, where = _answering(of, order)
    fault = count_fault(n)
    if fault is not None:
        raise TopologyError(where, f"group size {fault}")
    return answer(int(n))


def rate_table(
    of: Machine | Fabric, sizes: Sequence[int], *, order: Sequence[Hashable] | None = None
) -> RateTable:
    """`group_rate` of every size, as arrays.

    Raises
    ------
    TopologyError
        Listing every size that has no answer.
    """
    answer, where = _answering(of, order)
    rates: list[GroupRate] = []
    problems: list[str] = []
    for n in sizes:
        fault = count_fault(n)
        if fault is not None:
            problems.append(f"group size {fault}")
            continue
        try:
            rates.append(answer(int(n)))
        except TopologyError as error:
            problems += error.problems
    if problems:
        raise TopologyError(where, problems)
    return columns(rates)


def _answering(
    of: Machine | Fabric, order: Sequence[Hashable] | None
) -> tuple[Callable[[int], GroupRate], str]:
    """What answers for a size, and what it is called in an error."""
    if isinstance(of, Machine):
        return lambda n: _of_machine(of, n), f"machine {of.name!r}"
    if isinstance(of, str):
        raise TopologyError("group rates", f"{of!r} is a name; machine({of!r}) is what it names")

    groups = grouped(of, order)
    return groups.rate, f"fabric {of.graph.get('name')!r}"


def _of_machine(machine: Machine, n: int) -> GroupRate:
    rate = group_in(_domains(machine), n)
    if rate is None:
        raise TopologyError(
            f"machine {machine.name!r}",
            f"a group of {n} exceeds the domain of {machine.chips_per_domain} chips and "
            "scale_out (byte/s per chip) is not known",
        )
    return rate


@lru_cache(maxsize=4096)
def _domains(machine: Machine) -> Domains:
    return Domains(
        kind=machine.kind,
        chips=machine.chips_per_domain,
        scale_up=machine.scale_up,
        links=machine.links,
        latency=machine.scale_up_latency,
        dims=machine.dims,
        rings=machine.rings if machine.kind == "torus" else (),
        out=machine.scale_out,
        out_latency=machine.scale_out_latency,
        twisted=machine.twisted,
        join=machine.join,
        leaf=machine.leaf,
        above=_above(machine),
    )


def _above(machine: Machine) -> float | None:
    """What leads up from a leaf or a rail for each card; None if there is nothing above it."""
    if machine.scale_out is None or machine.join == "spine":
        return None
    if machine.join == "rails" and machine.oversubscription == 1:
        return None
    return machine.scale_out / machine.oversubscription
