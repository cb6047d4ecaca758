"""How fast a group of chips can talk on a machine, placed in the best way.

A group takes as few domains as hold it and spreads evenly over them; in a torus it takes the
smallest box that holds it, of equals the one in which it exchanges most. Numbers are for one
group alone, or for groups side by side on links of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from topologies.errors import TopologyError
from topologies.hardware import Machine
from topologies.limits import count_fault
from topologies.rates import closed_form
from topologies.rates.boxes import Sides, best_box
from topologies.rates.closed_form import Shares

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GroupRate", "RateTable", "group_rate", "rate_table"]


@dataclass(frozen=True)
class GroupRate:
    """What `n` chips of a machine reach together. Rates are per chip, one way. [byte/s]

    Attributes
    ----------
    all_to_all
        What each chip sends to all others together when it sends equally to each.
    all_gather
        What each chip receives in an all-gather or reduce-scatter (the bus bandwidth of a
        ring): gathering S bytes takes (n - 1)/n S/rate, an all-reduce twice that.
    send
        From one chip to another, the worst pair of a switch or mesh, neighbours of a torus,
        chips of different domains if there are several.
    latency_hops, latency
        Arcs and seconds between the two chips of the group that are farthest apart.
    step_latency
        Seconds between chips that follow each other in a ring through the group.
    domains
        Scale-up domains the group touches.
    box
        The box it takes in a torus, if it stays inside one.
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


@dataclass(frozen=True)
class RateTable:
    """`GroupRate` of many sizes as columns, in the order of `n`."""

    n: NDArray[np.int64]
    all_to_all: NDArray[np.float64]
    all_gather: NDArray[np.float64]
    send: NDArray[np.float64]
    latency_hops: NDArray[np.int64]
    latency: NDArray[np.float64]
    domains: NDArray[np.int64]
    step_latency: NDArray[np.float64]


def group_rate(machine: Machine, n: int) -> GroupRate:
    """Rates and latency of a group of `n` chips of `machine`.

    A single chip has nobody to talk to: its rates are those at which it enters the scale-up
    network, its latency 0. A group that leaves its domain is never credited with more than a
    whole domain reaches inside: what the network card adds to the scale-up links is left out.

    Raises
    ------
    TopologyError
        When `n` is no count, or exceeds the domain of a machine without scale-out.

    >>> from topologies.machines import machine
    >>> group_rate(machine("mi300x-8"), 4).all_to_all
    192000000000.0
    """
    fault = count_fault(n)
    if fault is not None:
        raise TopologyError(f"machine {machine.name!r}", f"group size {fault}")
    return _group_rate(machine, int(n))


def rate_table(machine: Machine, sizes: Sequence[int]) -> RateTable:
    """`group_rate` of every size, as arrays.

    Raises
    ------
    TopologyError
        Listing every size that has no answer.
    """
    import numpy as np

    rates: list[GroupRate] = []
    problems: list[str] = []
    for n in sizes:
        try:
            rates.append(group_rate(machine, n))
        except TopologyError as error:
            problems += error.problems
    if problems:
        raise TopologyError(f"machine {machine.name!r}", problems)

    def column(name: str, kind: type) -> NDArray[np.generic]:
        return np.array([getattr(rate, name) for rate in rates], dtype=kind)

    whole = {name: column(name, np.int64) for name in ("n", "latency_hops", "domains")}
    names = ("all_to_all", "all_gather", "send", "latency", "step_latency")
    return RateTable(**whole, **{name: column(name, np.float64) for name in names})  # type: ignore[arg-type]


@lru_cache(maxsize=65536)
def _group_rate(machine: Machine, n: int) -> GroupRate:
    if n == 1:
        up = machine.scale_up
        return GroupRate(1, up, up, up, 0, 0.0, 1, 0.0)
    return _inside(machine, n) if n <= machine.chips_per_domain else _across(machine, n)


def _inside(machine: Machine, n: int) -> GroupRate:
    """A group within one domain."""
    hop = machine.scale_up_latency
    sides: Sides | None = None
    if machine.kind == "switch":
        shares, send = closed_form.switch(n, machine.scale_up), machine.scale_up
        hops, step = 2, 2 * hop
    elif machine.kind == "mesh":
        shares, send = closed_form.mesh(machine.links[0]), machine.links[0]
        hops, step = 1, hop
    else:
        sides, rings = _box(machine, n)
        shares = closed_form.box(sides, machine.links, rings)
        # Every neighbouring pair along any long side may be the one that sends.
        send = min(B for B, k in zip(machine.links, sides, strict=True) if k > 1)
        hops, step = closed_form.box_diameter(sides, rings), hop
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


def _across(machine: Machine, n: int) -> GroupRate:
    """A group over as few domains as hold it, evenly filled."""
    out = machine.scale_out
    if out is None:
        raise TopologyError(
            f"machine {machine.name!r}",
            f"a group of {n} exceeds the domain of {machine.chips_per_domain} chips and "
            "scale_out (byte/s per chip) is not known",
        )
    domains = ceil(n / machine.chips_per_domain)
    least, most = n // domains, ceil(n / domains)
    whole = _group_rate(machine, machine.chips_per_domain)
    part = _group_rate(machine, most)
    shares = closed_form.joined(
        n,
        least=least,
        most=most,
        out=out,
        smallest=_shares(machine, least),
        largest=_shares(machine, most),
    )
    beyond = 2 * machine.scale_out_latency
    farther = part if part.latency > beyond else None
    return GroupRate(
        n,
        all_to_all=min(shares.all_to_all * (n - 1), whole.all_to_all),
        all_gather=min(shares.all_gather * (n - 1), whole.all_gather),
        send=min(out, part.send),
        latency_hops=2 if farther is None else farther.latency_hops,
        latency=beyond if farther is None else farther.latency,
        domains=domains,
        step_latency=max(beyond, part.step_latency),
    )


def _shares(machine: Machine, n: int) -> Shares:
    rate = _group_rate(machine, n)
    others = max(n - 1, 1)
    return Shares(rate.all_to_all / others, rate.all_gather / others)


def _box(machine: Machine, n: int) -> tuple[Sides, tuple[bool, ...]]:
    """The box of a group inside the torus of a machine, and which of its sides are rings."""
    closed = machine.rings

    def rings(sides: Sides) -> tuple[bool, ...]:
        filled = zip(sides, machine.dims, closed, strict=True)
        return tuple(ring and side == whole for side, whole, ring in filled)

    sides = best_box(machine.dims, n, machine.links, rings, exact=False)
    return sides, rings(sides)
