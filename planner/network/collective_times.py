"""How long one collective takes, with a band and the reason for it, and the least it could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.collective_curves import ANY, collectives
from planner.network.group import Group, algorithms, collective_kernel, group_of, named
from planner.network.measured_curves import NETWORK, borrowed_curve, crossing
from planner.network.network_source import DescribedNetwork
from planner.text.errors import InputError
from topologies.fabric.limits import TopologyError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SECONDS, WORDS = ("seconds", "low", "high", "bound"), ("algorithm", "reason")
REASONS = {
    "measured": "measured on {chip}",
    "fitted": "beyond the sizes measured on {chip}",
    "borrowed": "borrowed from curves of {chip} and its family",
    "family": "borrowed from the family of {chip}",
    "any": "physics with what is usual: nothing like it was measured on {chip}",
}


@dataclass(frozen=True)
class CollectiveTime:
    """Times of messages, each array of the shape of the sizes that were asked for.

    Attributes
    ----------
    seconds, low, high : Estimate, and the band that holds the profile's coverage of measurements.
        [s]
    bound : Least time of the algorithm on this network. [s]
    algorithm, reason : Which one it is, and on what the estimate stands.
    """

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bound: np.ndarray
    algorithm: np.ndarray
    reason: np.ndarray


def collective_time(
    group: Group,
    operation: str,
    size: ArrayLike,
    *,
    algorithm: str | None = None,
    network: str = NETWORK,
) -> CollectiveTime:
    """How long messages take.

    Raises CatalogueError if operation, algorithm or network is not known; ValueError if a size is
    negative or not a number.

    Parameters
    ----------
    group : chips that talk, such as `group_of(machine, n)`.
    operation : `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `dispatch`, `combine`.
    size : what each chip holds (all-reduce), ends with (all-gather), begins with
        (reduce-scatter) or sends, its own part included (the others). [byte]
    algorithm : one by name, `library` for the one NCCL chooses, or the fastest.
    network : what joins the domains of a group that leaves its own.
    """
    sizes = _sizes(size)
    offered = algorithms(group, operation)
    if group.n == 1:
        return _nothing(sizes)
    names = offered if algorithm is None else (named(group, operation, algorithm),)
    candidates = [_estimate(group, operation, name, sizes, network) for name in names]
    best = np.argmin(np.stack([found.seconds for found in candidates]), axis=0)
    return CollectiveTime(
        *(
            np.choose(best, [getattr(found, name) for found in candidates])
            for name in CollectiveTime.__dataclass_fields__
        )
    )


def hop_time(
    size: ArrayLike,
    rate: float,
    *,
    network: str = "scale-up",
    latency: float | None = None,
    software: float = 0.0,
) -> np.ndarray:
    """Times to hand messages from one stage to the next [s].

    Raises CatalogueError if the network is not known; ValueError if a size, rate, latency or
    software time is not a number or is out of range.

    Parameters
    ----------
    size : activations of one microbatch. [byte]
    rate : of the links that share the message, all together, one way. [byte/s]
    network : `scale-up`, `infiniband`, `efa` or `tcp`: how the stages are joined.
    latency : in the network, library included; what is usual there if not given. [s]
    software : what the engine takes to hand over, none of it the network's. [s]
    """
    usual = collectives().crossing(network, "p2p", ANY)
    late = usual.step if latency is None else latency
    for name, value in (("latency", late), ("software", software)):
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} is {value!r} s; it is at least 0")
    if not 0 < rate < float("inf"):
        raise ValueError(f"rate is {rate!r} byte/s; it is more than 0")
    times = collective_kernel("hand_over_time")(
        t_hop_net=late, t_hop_sw=software, n_hand=_sizes(size), h_act=1.0, b_act=1.0,
        r_hop=rate * usual.efficiency,
    )["T_pass"]  # fmt: skip
    return np.asarray(times)


def _estimate(
    group: Group, operation: str, algorithm: str, sizes: np.ndarray, network: str
) -> CollectiveTime:
    """By one algorithm."""
    chip = "this chip" if group.chip == ANY else group.chip
    reasons = {kind: text.format(chip=chip) for kind, text in REASONS.items()}
    if group.domains > 1:
        across = crossing(group, operation, algorithm, network)
        seconds, wire = across.seconds(sizes), across.wire
        evidence, inside = ANY, np.ones(sizes.shape, dtype=bool)
        reasons[ANY] = f"physics with what {network} was measured to add"
    else:
        curve = borrowed_curve(group, operation, algorithm)
        seconds, wire = curve.seconds(sizes), curve.wire
        evidence, inside = curve.evidence, curve.inside(sizes)
    beyond = "fitted" if evidence == "measured" else evidence
    bands = collectives().bands
    low, high = (np.where(inside, bands[evidence][i], bands[beyond][i]) for i in (0, 1))
    bound = wire * sizes
    return CollectiveTime(
        seconds=seconds,
        low=np.maximum(seconds * low, bound),
        high=seconds * high,
        bound=bound,
        algorithm=np.full(sizes.shape, algorithm),
        reason=np.where(inside, reasons[evidence], reasons[beyond]),
    )


def _nothing(sizes: np.ndarray) -> CollectiveTime:
    """A single chip talks to nobody."""
    zero, evidence = np.zeros(sizes.shape), np.full(sizes.shape, "a single chip talks to nobody")
    return CollectiveTime(zero, zero, zero, zero, np.full(sizes.shape, "none"), evidence)


def _sizes(size: ArrayLike) -> np.ndarray:
    sizes = np.asarray(size, dtype=float)
    if not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise ValueError(f"message sizes are finite and not negative; got {sizes!r}")
    return sizes


def timed(
    of: DescribedNetwork, operation: str, sizes: Sequence[int], messages: Sequence[float]
) -> list[dict[str, object]]:
    """Seconds of an operation for each size of group and of message, base units.

    Raises InputError when there is no such operation or group.

    Parameters
    ----------
    operation : `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `dispatch` or `combine`.
    messages : What each chip holds, ends with, begins with or sends, its own part included. [byte]
    """
    rows: list[dict[str, object]] = []
    for n in sizes:
        try:
            group = group_of(of.machine if of.machine is not None else of.fabric, n)
        except TopologyError as error:
            raise InputError(str(error)) from error
        times = collective_time(group, operation, list(messages))
        for i, size in enumerate(messages):
            row = {"operation": operation, "chips": n, "domains": group.domains, "bytes": size}
            row |= {name: float(getattr(times, name)[i]) for name in SECONDS}
            rows.append(row | {name: str(getattr(times, name)[i]) for name in WORDS})
    return rows
