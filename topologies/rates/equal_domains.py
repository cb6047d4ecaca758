"""Equal scale-up domains and what joins them: rates of a group of chips by formula, no solver.

A group takes as few domains as hold it and spreads evenly over them; in a torus it takes the
smallest box that holds it, of equals the one in which it exchanges most. Groups side by side have
links of their own, so that one group alone is as fast as all of them at once. Only the uplinks
above the leaves of a Clos network or above rails are shared: domains stand one after the other, so
do the groups, and the fullest leaf counts. Groups that lie below one leaf share nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import ceil, inf, lcm
from typing import TYPE_CHECKING

from topologies.rates import closed_forms
from topologies.rates.closed_forms import BoxSides, Shares, best_box

if TYPE_CHECKING:
    from topologies.rates.flow_network import Floats, Ints


@dataclass(frozen=True)
class GroupRate:
    """Collective rates of a group of `n` chips, per chip and one way. [byte/s]

    Attributes:
        all_to_all: What each chip sends to all others together when it sends equally to each.
        all_gather: What each chip receives in an all-gather or reduce-scatter (the bus bandwidth of
            a ring): gathering S bytes takes (n - 1)/n S/rate, an all-reduce twice that.
        send: From one chip to another, the worst pair of a switch or mesh, neighbours of a torus,
            chips of different domains if there are several.
        latency_hops, latency: Arcs and seconds between the two chips of the group that are farthest
            apart.
        step_latency: Seconds between chips that follow each other in a ring through the group.
        domains: Scale-up domains the group touches.
        box: The box it takes in a torus, if it stays inside one.
        shared_evenly: Is `all_gather` what groups side by side reach when each has an even part of
            the links that they share, or when each sends its share to one after the other? Together
            they might reach more, which is not looked into on large fabrics without symmetry.
    """

    n: int
    all_to_all: float
    all_gather: float
    send: float
    latency_hops: int
    latency: float
    domains: int
    step_latency: float
    box: tuple[int, ...] | None = None
    shared_evenly: bool = False


@dataclass(frozen=True)
class RateTable:
    """`GroupRate` of many sizes as columns, in the order of `n`."""

    n: Ints
    all_to_all: Floats
    all_gather: Floats
    send: Floats
    latency_hops: Ints
    latency: Floats
    domains: Ints
    step_latency: Floats


def columns(rates: Sequence[GroupRate]) -> RateTable:
    """The rates of many sizes as one table, in the order given."""
    import numpy as np

    whole = {"n", "latency_hops", "domains"}
    return RateTable(
        *(
            np.array([getattr(rate, name) for rate in rates], "int64" if name in whole else float)
            for name in (field.name for field in fields(RateTable))
        )
    )


PartKey = tuple[Hashable, Hashable]  # the domain of a chip, and the part of the network it is below


@dataclass(frozen=True)
class Crossings:
    """Counts of traffic between groups of chips that leaves or enters each part of a network."""

    pairs: Counter[Hashable]  # ordered pairs of members: one in the part, one in another domain
    leave: Counter[Hashable]  # shares that leave the part in a gather
    enter: Counter[Hashable]  # shares that enter it
    sent: Counter[Hashable]  # chips whose partner half their group away is in another domain
    taken: Counter[Hashable]  # and such partners

    @classmethod
    def of(cls, groups: Iterable[Sequence[PartKey]]) -> Crossings:
        """Count them for groups that are all at work at once."""
        pairs, leave, enter, sent, taken = (Counter[Hashable]() for _ in range(5))
        for group in groups:
            n = len(group)
            filled = Counter(domain for domain, _ in group)
            for (domain, part), k in Counter(group).items():
                pairs[part] -= k * (filled[domain] - k)
            for part, q in Counter(part for _, part in group).items():
                pairs[part] += q * (n - q)
                leave[part] += q if q < n else 0
                enter[part] += n - q
            for i, (domain, part) in enumerate(group):
                partner, far = group[(i + n // 2) % n]
                if domain != partner and part != far:
                    sent[part] += 1
                    taken[far] += 1
        return cls(pairs, leave, enter, sent, taken)


@dataclass(frozen=True)
class Trunk:
    """Bounds on group rates from the uplinks above leaves or rails."""

    shares: Shares  # [byte/s] per ordered pair of members; infinite without crossing traffic
    send: float  # [byte/s] of each chip to its partner half a group away
    crossed: bool  # True if a group spans several leaves


def _members(n: int, chips: int, first: int) -> list[tuple[int, int]]:
    count = ceil(n / chips)
    return [
        (first + d, (first + d) * chips + i)
        for d in range(count)
        for i in range(n // count + (d < n % count))
    ]


def _shared(groups: Sequence[Sequence[PartKey]], above: float, *, gathers: bool) -> Trunk:
    """Rate of each member where every leaf has `above` of uplink bandwidth each way. [byte/s]"""
    across = Crossings.of(groups)
    most = max(across.pairs.values())
    heard = max(*across.leave.values(), *across.enter.values()) if gathers else 0
    sent = max([*across.sent.values(), *across.taken.values()], default=0)
    return Trunk(
        Shares(above / most if most else inf, above / heard if heard else inf),
        above / sent if sent else inf,
        most > 0,
    )


@dataclass(frozen=True)
class Domains:
    """Domains of one kind and size, and the cards that join them; named as in a machine."""

    kind: str  # `switch`, `mesh` or `torus`
    chips_per_domain: int
    scale_up: float
    # Bandwidth of a chip to the switch, to a peer, or along each torus side [byte/s, one way].
    links: tuple[float, ...]
    scale_up_latency: float  # of one such link [s]
    dims: BoxSides = ()  # sides of the torus
    rings: tuple[bool, ...] = ()  # which of them close into rings
    # Scale-out bandwidth of a chip [byte/s, one way], None without scale-out; latency [s].
    scale_out: float | None = None
    scale_out_latency: float = 0.0
    twisted: bool = False  # do the short sides close farther along the long ones?
    join: str = "spine"  # what joins domains: one `spine`, `rails` or a `clos` network
    leaf: int | None = None  # cards on a leaf of it
    # Uplink bandwidth of a leaf or rail per card [byte/s, one way]; None if non-blocking.
    above: float | None = None


@lru_cache(maxsize=65536)
def domain_group_rate(domains: Domains, n: int) -> GroupRate | None:
    """Rates of a group of `n` chips; None if it leaves its domain and nothing joins domains."""
    if n <= domains.chips_per_domain:
        return _inside(domains, n)
    return None if domains.scale_out is None else _across(domains, n, domains.scale_out)


def cards_bind(domains: Domains, n: int) -> bool:
    """True if the links between domains limit the rate of a group that leaves its domain.

    Then the formula is exact whatever the layer between them: what crosses it, and what must
    first reach a chip of the right place within a domain, fits beside the rest.
    """
    out = domains.scale_out
    if out is None or n <= domains.chips_per_domain or out > domains.scale_up:
        return False
    count = ceil(n / domains.chips_per_domain)
    least, most = n // count, ceil(n / count)
    within = _shares(domains, most).all_to_all * least / n if most > 1 else inf
    return out / (n - least) <= within


@lru_cache(maxsize=65536)
def _inside(domains: Domains, n: int) -> GroupRate:
    """A group within one domain."""
    if n == 1:
        up = domains.scale_up
        return GroupRate(1, up, up, up, 0, 0.0, 1, 0.0)
    hop = domains.scale_up_latency
    sides: BoxSides | None = None
    if domains.kind == "switch":
        shares, send = closed_forms.switch(n, domains.links[0]), domains.links[0]
        hops, step = 2, 2 * hop
    elif domains.kind == "mesh":
        shares, send = closed_forms.mesh(domains.links[0]), domains.links[0]
        hops, step = 1, hop
    else:
        sides, rings = _box(domains, n)
        shares = closed_forms.box(sides, domains.links, rings)
        hops = closed_forms.box_diameter(sides, rings)
        if domains.twisted and sides == domains.dims:
            shares = closed_forms.twisted_torus_rates(sides, domains.links[0])
            hops = closed_forms.twisted_diameter(sides)
        # A send may use any side longer than 1, so its slowest link is the bound.
        send = min(B for B, k in zip(domains.links, sides, strict=True) if k > 1)
        step = hop
    others = n - 1
    return GroupRate(
        n,
        all_to_all=shares.all_to_all * others,
        all_gather=shares.all_gather * others,
        send=send,
        latency_hops=hops,
        latency=hop * hops,
        domains=1,
        step_latency=step,
        box=sides,
    )


def _across(domains: Domains, n: int, out: float) -> GroupRate:
    """Rates of a group over the fewest domains that hold it, evenly filled."""
    count = ceil(n / domains.chips_per_domain)
    least, most = n // count, ceil(n / count)
    part = _inside(domains, most)
    shares = closed_forms.multi_domain_rates(
        n,
        least=least,
        most=most,
        out=out,
        smallest=_shares(domains, least),
        largest=_shares(domains, most),
    )
    trunk = _trunk(n, domains.join, domains.chips_per_domain, domains.leaf, domains.above)
    arcs = 4 if trunk is not None and trunk.crossed else 2
    beyond = arcs * domains.scale_out_latency
    hops, latency = arcs, beyond
    if domains.join == "rails" and trunk is None:
        # Traffic to another rail first crosses its domain to a chip on that rail.
        hops, latency = hops + part.latency_hops, latency + part.latency
    elif part.latency > beyond:
        hops, latency = part.latency_hops, part.latency
    theta, alpha, send = shares.all_to_all, shares.all_gather, min(out, part.send)
    if trunk is not None:
        theta, alpha = min(theta, trunk.shares.all_to_all), min(alpha, trunk.shares.all_gather)
        send = min(send, trunk.send)
    exchanged, gathered = theta * (n - 1), alpha * (n - 1)
    if domains.kind == "torus":
        # No formula is known for boxes of several tori; a whole one is not exceeded.
        whole = _inside(domains, domains.chips_per_domain)
        exchanged = min(exchanged, whole.all_to_all)
        gathered = min(gathered, whole.all_gather)
    return GroupRate(
        n,
        all_to_all=exchanged,
        all_gather=gathered,
        send=send,
        latency_hops=hops,
        latency=latency,
        domains=count,
        step_latency=max(beyond, part.step_latency),
    )


@lru_cache(maxsize=4096)
def _trunk(n: int, join: str, chips: int, leaf: int | None, above: float | None) -> Trunk | None:
    """Uplink bounds of groups of `n` over the fewest domains, below leaves or rails; else None.

    Chips of one domain reach each other inside it even where they hang on different leaves. In
    a gather that help is left out, which is on the safe side. On rails below spines a chip that
    does not relay reaches other ranks of other domains through the spines alone. A gather may pass
    through other members of a domain, whose links are wider.
    """
    count = ceil(n / chips)
    if join == "clos" and leaf is not None and above is not None:
        firsts = range(0, lcm(leaf, count * chips) // chips, count)
        members = [_members(n, chips, first) for first in firsts]
        groups = [[(d, card // leaf) for d, card in group] for group in members]
        return _shared(groups, above * leaf, gathers=True)
    if join == "rails" and above is not None:
        group = [(d, card % chips) for d, card in _members(n, chips, 0)]
        return _shared([group], count * above, gathers=False)
    return None


def _shares(domains: Domains, n: int) -> Shares:
    rate = _inside(domains, n)
    others = max(n - 1, 1)
    return Shares(rate.all_to_all / others, rate.all_gather / others)


def _box(domains: Domains, n: int) -> tuple[BoxSides, tuple[bool, ...]]:
    """The box of a group inside the torus, and which of its sides are rings."""

    def rings(sides: BoxSides) -> tuple[bool, ...]:
        filled = zip(sides, domains.dims, domains.rings, strict=True)
        # The short sides of a twisted torus close over its long ones, not over themselves.
        short = min(domains.dims) if domains.twisted else 0
        return tuple(ring and side == whole != short for side, whole, ring in filled)

    sides = best_box(domains.dims, n, domains.links, rings, exact=False)
    return sides, rings(sides)
