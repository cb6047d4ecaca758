"""Times of collectives with a band and its reason, lower bounds, and three coefficients.

T = alpha + q V/(r e) + gamma sqrt(V) is a posynomial of the message V. Its coefficients are fitted
to a curve, non-negative, by relative error to the power POWER: between least squares, which serve
the many, and the least worst error, which serves the few. The efficiency cannot exceed one, so what
is fitted never beats the bound. Outliers are dealt with before: a curve is its own lower envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.collective_curves import ANY_CHIP, collectives
from planner.network import measured_curves
from planner.network.group import Group, algorithms, collective_kernel, get_algorithm, place_group
from planner.network.measured_curves import NETWORK, BorrowedCurve, borrowed_curve, crossing
from planner.text.errors import InputError
from topologies import group_rate
from topologies.fabric.limits import TopologyError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from planner.network.network_source import DescribedNetwork
    from topologies import Machine
    from topologies.fabric.fabric import Fabric


SEND = "send"
SECONDS, RESULT_LABELS = ("seconds", "low", "high", "bound"), ("algorithm", "reason")
REASONS = {
    "measured": "measured on {chip}",
    "fitted": "beyond the sizes measured on {chip}",
    "borrowed": "borrowed from curves of {chip} and its family",
    "family": "borrowed from the family of {chip}",
    "any": "physics with what is usual: nothing like it was measured on {chip}",
}


@dataclass(frozen=True)
class CollectiveTime:
    """Times of messages, each array of the shape of the given sizes.

    Attributes:
        seconds, low, high: Estimate, and the band that holds the profile's coverage of
            measurements. [s]
        bound: Least time of the algorithm on this network. [s]
        algorithm, reason: Which one it is, and on what the estimate stands.
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
    """Return times, bands and lower bounds of messages [s], by the fastest or a given algorithm.

    Raises CatalogueError if operation, algorithm or network is not known; ValueError if a size is
    negative or not a number.

    Args:
        group: chips that talk, such as `group_of(machine, n)`.
        operation: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `dispatch`,
            `combine`.
        size: what each chip holds (all-reduce), ends with (all-gather), begins with
            (reduce-scatter) or sends, its own part included (the others). [byte]
        algorithm: one by name, `library` for the one NCCL chooses, or the fastest.
        network: what joins the domains of a group that leaves its own.
    """
    sizes = _sizes(size)
    offered = algorithms(group, operation)
    if group.n == 1:
        return _nothing(sizes)
    names = offered if algorithm is None else (get_algorithm(group, operation, algorithm),)
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

    Args:
        size: activations of one microbatch. [byte]
        rate: of the links that share the message, all together, one way. [byte/s]
        network: `scale-up`, `infiniband`, `efa` or `tcp`: how the stages are joined.
        latency: in the network, library included; what is usual there if not given. [s]
        software: what the engine takes to hand over, none of it the network's. [s]
    """
    usual = collectives().crossing(network, "p2p", ANY_CHIP)
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


def send_time(group: Group, rate: float, size: ArrayLike) -> CollectiveTime:
    """Time of messages from a chip to the next of a group [s], at `rate` [byte/s] one way."""
    sizes, network = _sizes(size), NETWORK if group.domains > 1 else "scale-up"
    if group.n == 1:
        return _nothing(sizes)
    seconds, bound = hop_time(sizes, rate, network=network), sizes / rate
    low, high = collectives().bands[ANY_CHIP]
    words = f"physics with what a message over {network} was measured to add"
    return CollectiveTime(
        seconds, np.maximum(seconds * low, bound), seconds * high, bound,
        np.full(sizes.shape, "one message"), np.full(sizes.shape, words),
    )  # fmt: skip


def _estimate(
    group: Group, operation: str, algorithm: str, sizes: np.ndarray, network: str
) -> CollectiveTime:
    """By one algorithm."""
    chip = "this chip" if group.chip == ANY_CHIP else group.chip
    reasons = {kind: text.format(chip=chip) for kind, text in REASONS.items()}
    if group.domains > 1:
        across = crossing(group, operation, algorithm, network)
        # A ring has no gather stage inside a domain: its bound is the wire time between domains.
        seconds, wire = across.seconds(sizes), across.wire if algorithm == "ring" else across.floor
        evidence, inside = ANY_CHIP, np.ones(sizes.shape, dtype=bool)
        reasons[ANY_CHIP] = f"physics with what {network} was measured to add"
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
    zero, evidence = np.zeros(sizes.shape), np.full(sizes.shape, "a single chip talks to nobody")
    return CollectiveTime(zero, zero, zero, zero, np.full(sizes.shape, "none"), evidence)


def _sizes(size: ArrayLike) -> np.ndarray:
    sizes = np.asarray(size, dtype=float)
    if not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise ValueError(f"message sizes are finite and not negative; got {sizes!r}")
    return sizes


def collective_time_table(
    of: DescribedNetwork, operation: str, sizes: Sequence[int], messages: Sequence[float]
) -> list[dict[str, object]]:
    """Seconds of an operation for each size of group and of message, base units.

    Groups over several domains by each algorithm, others by the fastest.

    Raises InputError when there is no such operation or group.

    Args:
        operation: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `dispatch`,
            `combine`, or `send`, from one chip of the group to the next.
        messages: What each chip holds, ends with, begins with or sends, its own part included.
            [byte]
    """
    rows: list[dict[str, object]] = []
    for n in sizes:
        try:
            group = place_group(rate := of.machine or of.fabric, n, rings=of.fabric)
        except TopologyError as error:
            raise InputError(str(error)) from error
        several = operation != SEND and group.domains > 1
        for name in algorithms(group, operation) if several else (None,):
            times = (
                send_time(group, group_rate(rate, n).send, list(messages))
                if operation == SEND
                else collective_time(group, operation, list(messages), algorithm=name)
            )
            for i, size in enumerate(messages):
                row = {"operation": operation, "chips": n, "domains": group.domains, "bytes": size}
                row |= {each: float(getattr(times, each)[i]) for each in SECONDS}
                rows.append(row | {each: str(getattr(times, each)[i]) for each in RESULT_LABELS})
    return rows


MAX_REFITS = 20
POWER = 2.5
MIN_ERROR = 0.01  # relative error below which points get equal weight


@dataclass(frozen=True)
class Triple:
    """Floor [s], efficiency [1] and mid-range term [s/byte**0.5] of a curve."""

    alpha: float
    efficiency: float
    gamma: float

    def times(self, sizes: np.ndarray, wire: np.ndarray) -> np.ndarray:
        """Times [s] of messages [byte] whose bytes on the wire take `wire` [s] at the full rate."""
        return self.alpha + wire / self.efficiency + self.gamma * np.sqrt(sizes)


def non_negative(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Non-negative least squares of a few columns, by all choices of those that are not zero.

    Of the least squares of each choice that have no negative entry the nearest is the optimum. A
    solver for many columns would be loaded at every start, which takes longer than the search.
    `matrix` has shape (m, n), n up to about 4, `target` (m,).
    """
    n = matrix.shape[1]
    best, least = np.zeros(n), float(target @ target)
    for chosen in product((True, False), repeat=n):
        columns = np.flatnonzero(chosen)
        if not columns.size:
            break
        solution = np.linalg.lstsq(matrix[:, columns], target, rcond=None)[0]
        missed = target - matrix[:, columns] @ solution
        if (solution >= 0).all() and missed @ missed < least:
            best, least = np.zeros(n), float(missed @ missed)
            best[columns] = solution
            if columns.size == n:
                break  # fewer columns come no nearer
    return best


def fit_triple(
    sizes: np.ndarray,
    wire: np.ndarray,
    seconds: np.ndarray,
    *,
    root: bool = True,
    least_squares: Callable[[np.ndarray, np.ndarray], np.ndarray] = non_negative,
) -> Triple:
    """The coefficients that fit a curve best.

    Args:
        sizes, seconds: the curve. [byte, s]
        wire: seconds that the bytes of each size take at the full rate. [s]
        root: whether there is a square-root term.
        least_squares: solves for coefficients that are not negative.
    """
    columns = [np.ones_like(sizes), wire] + ([np.sqrt(sizes)] if root else [])
    matrix = np.stack(columns, axis=1) / seconds[:, None]
    target = (seconds - wire) / seconds  # unknown: 1/efficiency - 1, not negative
    scale = matrix.max(axis=0)
    weight = np.ones_like(seconds)
    solution = np.zeros(len(columns))
    for _ in range(MAX_REFITS):
        weighted = matrix / scale * weight[:, None]
        solution = least_squares(weighted, target * weight) / scale
        missed = np.maximum(np.abs(matrix @ solution - target), MIN_ERROR)
        weight = missed ** (POWER / 2 - 1)
    return Triple(
        float(solution[0]), float(1 / (1 + solution[1])), float(solution[2]) if root else 0.0
    )


N_SIZES = 25


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of groups in the order given, each array of shape (n_groups,).

    Attributes:
        n: Chips of each group. [1]
        alpha, rate, gamma: T = alpha + traffic V/rate + gamma sqrt(V). [s, byte/s, s/byte**0.5]
        traffic: Bytes on the wire per byte; 0 for a single chip. [1]
        efficiency: `rate` over the rate of the network. [1]
        low, high: Measured over predicted: the band that holds the profile's coverage. [1]
    """

    n: np.ndarray
    alpha: np.ndarray
    rate: np.ndarray
    gamma: np.ndarray
    traffic: np.ndarray
    efficiency: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def seconds(self, size: np.ndarray) -> np.ndarray:
        """Times [s], shape (n_groups, *size.shape); `size` in bytes."""
        expand = (slice(None), *(None,) * np.ndim(size))
        slope = (self.traffic / self.rate)[expand]
        return self.alpha[expand] + slope * size + self.gamma[expand] * np.sqrt(size)


def coefficients(
    of: Machine | Fabric,
    operation: str,
    sizes: Sequence[int],
    *,
    algorithm: str = "library",
    chip: str | None = None,
    network: str = NETWORK,
    within: tuple[float, float] | None = None,
) -> Coefficients:
    """Coefficients of groups of these sizes on a machine or a fabric.

    Raises CatalogueError if operation, algorithm or network is not known; TopologyError if there is
    no such group.

    Args:
        of: the network, a machine or a fabric.
        operation, algorithm, network: as for `collective_time`, but no fastest is sought.
        sizes: chips of each group.
        chip: whose curves to take; by the name of the machine or fabric if not given.
        within: smallest and largest message that matter [byte]; the coefficients then fit best
            there.
    """
    rows = [_row(place_group(of, n, chip), operation, algorithm, network, within) for n in sizes]
    n, *columns = np.array(rows).reshape(len(rows), 8).T
    return Coefficients(n.astype(np.int64), *columns)


@lru_cache(maxsize=4096)
def _row(
    group: Group, operation: str, algorithm: str, network: str, within: tuple[float, float] | None
) -> tuple[float, ...]:
    """Return the values of `Coefficients` for one group, in the order of its fields."""
    algorithms(group, operation)  # an operation that does not exist is refused for one chip too
    rate = group.rate(operation)
    if group.n == 1:
        return 1, 0.0, rate, 0.0, 0.0, 1.0, 1.0, 1.0
    name = get_algorithm(group, operation, algorithm)
    traffic = group.traffic(operation, name)
    law: measured_curves.DomainCrossing | BorrowedCurve | Triple
    if group.domains > 1:
        law, evidence = crossing(group, operation, name, network), ANY_CHIP
    else:
        curve = borrowed_curve(group, operation, name)
        law, evidence = _refitted(curve, within) if within else curve, curve.evidence
    bands = [collectives().bands[kind] for kind in ("fitted", evidence)]
    low, high = min(band[0] for band in bands), max(band[1] for band in bands)
    share = law.efficiency
    return group.n, law.alpha, rate * share, law.gamma, traffic, share, low, high


@lru_cache(maxsize=4096)
def _refitted(curve: BorrowedCurve, within: tuple[float, float]) -> Triple:
    # Cached: a sweep of the rate between domains leaves the curves inside a domain unchanged.
    low, high = within
    if not 0 < low < high < float("inf"):
        raise ValueError(f"messages of {within!r} bytes; give 0 < smallest < largest")
    sizes = np.geomspace(low, high, N_SIZES)
    seconds = curve.seconds(sizes)
    return fit_triple(sizes, curve.wire * sizes, seconds)
