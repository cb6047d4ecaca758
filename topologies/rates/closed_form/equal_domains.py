"""Equal scale-up domains behind one non-blocking layer: group rates by formula, without a solver.

A group takes as few domains as hold it and spreads evenly over them; in a torus it takes the
smallest box that holds it, of equals the one in which it exchanges most. Groups side by side have
links of their own, so that one group alone is as fast as all of them at once.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf

from topologies.rates.closed_form import closed_form
from topologies.rates.closed_form.closed_form import Shares, Sides, best_box
from topologies.rates.closed_form.uplink_sharing import Trunk, clos_trunk, rail_trunk
from topologies.rates.rate_table import GroupRate


@dataclass(frozen=True)
class Domains:
    """Domains of one kind and size, and the cards that join them.

    Attributes
    ----------
    kind
        `switch`, `mesh` or `torus`.
    links
        Of a chip into the switch, to one peer, or along each side of the torus. [byte/s one way]
    latency
        Of one such link. [s]
    dims, rings
        Sides of the torus, and which of them close into rings.
    twisted
        Whether who comes back round a short side is farther along the long ones.
    out, out_latency
        From a chip into the network between domains; None if there is none. [byte/s one way; s]
    join, leaf, above
        What joins domains: one `spine`, `rails` or a `clos` network with `leaf` cards on a leaf;
        what leads up from a leaf or rail for each card, None if it is enough. [byte/s one way]
    """

    kind: str
    chips: int
    scale_up: float
    links: tuple[float, ...]
    latency: float
    dims: Sides = ()
    rings: tuple[bool, ...] = ()
    out: float | None = None
    out_latency: float = 0.0
    twisted: bool = False
    join: str = "spine"
    leaf: int | None = None
    above: float | None = None


@lru_cache(maxsize=65536)
def group_in(domains: Domains, n: int) -> GroupRate | None:
    """Rates of a group of `n` chips; None if it leaves its domain and nothing joins domains."""
    if n == 1:
        up = domains.scale_up
        return GroupRate(1, up, up, up, 0, 0.0, 1, 0.0)
    if n <= domains.chips:
        return _inside(domains, n)
    return None if domains.out is None else _across(domains, n, domains.out)


def cards_bind(domains: Domains, n: int) -> bool:
    """Are the links between domains what a group that leaves its domain waits for?

    Then the formula is exact whatever the layer between them: what crosses it, and what must
    first reach a chip of the right place within a domain, fits beside the rest.
    """
    if domains.out is None or n <= domains.chips or domains.out > domains.scale_up:
        return False
    count = ceil(n / domains.chips)
    least, most = n // count, ceil(n / count)
    within = _shares(domains, most).all_to_all * least / n if most > 1 else inf
    return domains.out / (n - least) <= within


def _inside(domains: Domains, n: int) -> GroupRate:
    """A group within one domain."""
    hop = domains.latency
    sides: Sides | None = None
    if domains.kind == "switch":
        shares, send = closed_form.switch(n, domains.links[0]), domains.links[0]
        hops, step = 2, 2 * hop
    elif domains.kind == "mesh":
        shares, send = closed_form.mesh(domains.links[0]), domains.links[0]
        hops, step = 1, hop
    else:
        sides, rings = _box(domains, n)
        shares = closed_form.box(sides, domains.links, rings)
        hops = closed_form.box_diameter(sides, rings)
        if domains.twisted and sides == domains.dims:
            shares = closed_form.twisted(sides, domains.links[0])
            hops = closed_form.twisted_diameter(sides)
        # Every neighbouring pair along any long side may be the one that sends.
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
    """A group over as few domains as hold it, evenly filled."""
    count = ceil(n / domains.chips)
    least, most = n // count, ceil(n / count)
    whole, part = _within_domain(domains, domains.chips), _within_domain(domains, most)
    shares = closed_form.joined(
        n,
        least=least,
        most=most,
        out=out,
        smallest=_shares(domains, least),
        largest=_shares(domains, most),
    )
    trunk = _trunk(domains, n)
    arcs = 4 if trunk is not None and trunk.crossed else 2
    beyond = arcs * domains.out_latency
    hops, latency = arcs, beyond
    if domains.join == "rails" and trunk is None:
        # Who is on another rail is reached by way of a chip that shares one.
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


def _trunk(domains: Domains, n: int) -> Trunk | None:
    """The uplinks above the leaves or rails, or None."""
    if domains.join == "clos" and domains.leaf is not None and domains.above is not None:
        above = domains.above * domains.leaf
        return clos_trunk(n, chips=domains.chips, leaf=domains.leaf, above=above)
    if domains.join == "rails" and domains.above is not None:
        return rail_trunk(n, chips=domains.chips, above=domains.above)
    return None


def _within_domain(domains: Domains, n: int) -> GroupRate:
    rate = group_in(domains, n)
    if rate is None:
        raise ValueError(f"{n} chips lie within a domain of {domains.chips}")
    return rate


def _shares(domains: Domains, n: int) -> Shares:
    rate = _within_domain(domains, n)
    others = max(n - 1, 1)
    return Shares(rate.all_to_all / others, rate.all_gather / others)


def _box(domains: Domains, n: int) -> tuple[Sides, tuple[bool, ...]]:
    """The box of a group inside the torus, and which of its sides are rings."""

    def rings(sides: Sides) -> tuple[bool, ...]:
        filled = zip(sides, domains.dims, domains.rings, strict=True)
        # The short sides of a twisted torus close over its long ones, not over themselves.
        short = min(domains.dims) if domains.twisted else 0
        return tuple(ring and side == whole != short for side, whole, ring in filled)

    sides = best_box(domains.dims, n, domains.links, rings, exact=False)
    return sides, rings(sides)
