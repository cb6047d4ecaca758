"""Rates of a group of chips, for one size or for many as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from topologies.rates.arrays import Floats, Ints


@dataclass(frozen=True)
class GroupRate:
    """Collective rates of a group of `n` chips, per chip and one way. [byte/s]

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
    shared_evenly
        Is `all_gather` what groups side by side reach when each has an even part of the links
        that they share, or when each sends its share to one after the other? Together they might
        reach more, which is not looked into on large fabrics without symmetry.
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

    def column(name: str, kind: type) -> NDArray[np.generic]:
        return np.array([getattr(rate, name) for rate in rates], dtype=kind)

    whole = {name: column(name, np.int64) for name in ("n", "latency_hops", "domains")}
    names = ("all_to_all", "all_gather", "send", "latency", "step_latency")
    return RateTable(**whole, **{name: column(name, np.float64) for name in names})  # type: ignore[arg-type]
