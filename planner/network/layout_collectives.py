"""Coefficients of a layout's collectives: three for each group, looked up before the search.

An all-reduce of a decode step is small and goes through kernels made for it; that of a prompt is
large and goes through the library. Experts are reached by whichever kernels are fastest at the
messages of the phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.store import by_columns
from planner.network.collective_times import coefficients
from planner.network.group import LONG_MESSAGE, Group, algorithms, library, place_group
from planner.network.measured_curves import NETWORK, crossing
from topologies import group_rate

if TYPE_CHECKING:
    from topologies import Machine
    from topologies.fabric.fabric import Fabric

# Messages of one collective of either phase [byte]: from one sequence of a small model to a
# thousand of a large one, and from a short chunk to the longest.
DECODE, PREFILL = (8e3, 16e6), (4e6, 256e6)
# Collectives of context parallelism per layer: an all-gather of queries and an all-to-all of
# partial results, half of the bytes each; in prefill an all-gather of keys and values.
ROUNDS: Mapping[tuple[float, float], tuple[tuple[str, float], ...]] = {
    DECODE: (("all-gather", 0.5), ("all-to-all", 0.5)),
    PREFILL: (("all-gather", 1.0),),
}
PER_EXPERT = "deepep-low-latency"  # sends a copy for each expert, even to the same chip


@dataclass(frozen=True)
class Reduction:
    """All-reduces: T = floor + V/rate + root sqrt(V); arrays (n,). [s, byte/s, s/byte**0.5]"""

    floor: np.ndarray
    rate: np.ndarray
    root: np.ndarray


@dataclass(frozen=True)
class Exchange(Reduction):
    """Dispatch and combine together, in the bytes of both; each of shape (n,).

    `per_expert` says where a token is copied once for each expert, not once for each chip that has
    some of its experts. Groups over several domains prefill with one copy for each domain.
    """

    per_expert: np.ndarray
    domains: np.ndarray


@by_columns
def reductions(
    of: Machine | Fabric, chip: str, sizes: np.ndarray, within: tuple[float, float]
) -> Reduction:
    """All-reduces of groups of these sizes, by messages `within` [byte]."""
    groups, back = np.unique(sizes, return_inverse=True)
    rows = [_reduction(of, chip, int(n), within) for n in groups]
    return Reduction(*np.array(rows)[back].T)


@by_columns
def exchanges(
    of: Machine | Fabric, chip: str, sizes: np.ndarray, within: tuple[float, float], there: float
) -> Exchange:
    """Exchanges with experts in groups of these sizes; `there` is dispatch's share of the bytes."""
    groups, back = np.unique(sizes, return_inverse=True)
    rows = [_exchange(of, chip, int(n), within, there) for n in groups]
    floor, rate, root, per_expert, domains = np.array(rows)[back].T
    return Exchange(floor, rate, root, per_expert.astype(bool), domains.astype(np.int64))


@by_columns
def rounds(
    of: Machine | Fabric,
    chip: str,
    parts: np.ndarray,
    stages: np.ndarray,
    within: tuple[float, float],
) -> Reduction:
    """Rounds between the parts of a context, in the bytes that a chip has in the end.

    A part is the same place in each of `parts` equal slices of a stage, which lie one after the
    other; where the stage covers several domains, a part passes on to the next at the rate between
    two of these.
    """
    pairs, back = np.unique(parts + 1j * stages, return_inverse=True)
    rows = [_round(of, chip, int(each.real), int(each.imag), within) for each in pairs]
    return Reduction(*np.array(rows)[back].T)


@lru_cache(maxsize=65536)
def _round(
    of: Machine | Fabric, chip: str, n: int, stage: int, within: tuple[float, float]
) -> tuple[float, float, float]:
    if n == 1:
        return 0.0, 1.0, 0.0
    names, shares = zip(*ROUNDS[within], strict=True)
    whole = group_rate(of, stage)
    if whole.domains == 1:
        return _joined([_triple(of, chip, n, name, "library", within) for name in names], shares)
    domains = min(n, whole.domains)
    inside = place_group(of, ceil(n / domains), chip)
    group = Group(chip, n, domains, whole.send, whole.send, inside=inside)
    laws = [crossing(group, name, library(group, name), NETWORK) for name in names]
    return _joined([(law.alpha, law.efficiency / law.wire, law.gamma) for law in laws], shares)


def _joined(
    laws: Sequence[tuple[float, float, float]], shares: Sequence[float]
) -> tuple[float, float, float]:
    both = list(zip(shares, laws, strict=True))
    slowness = sum(share / rate for share, (_, rate, _) in both)
    root = sum(share**0.5 * root for share, (_, _, root) in both)
    return sum(floor for floor, _, _ in laws), 1.0 / slowness, root


@lru_cache(maxsize=65536)
def _reduction(
    of: Machine | Fabric, chip: str, n: int, within: tuple[float, float]
) -> tuple[float, float, float]:
    if n == 1:
        return 0.0, 1.0, 0.0
    group = place_group(of, n, chip)
    if group.domains > 1:
        name = LONG_MESSAGE if within == PREFILL else library(group, "all-reduce")
        law = crossing(group, "all-reduce", name, NETWORK)
        return law.alpha, law.efficiency / law.wire, law.gamma
    fused = within == DECODE and "fused" in algorithms(group, "all-reduce")
    return _triple(of, chip, n, "all-reduce", "fused" if fused else "library", within)


@lru_cache(maxsize=65536)
def _exchange(
    of: Machine | Fabric, chip: str, n: int, within: tuple[float, float], there: float
) -> tuple[float, float, float, bool, int]:
    if n == 1:
        return 0.0, 1.0, 0.0, False, 1
    group = place_group(of, n, chip)
    names = algorithms(group, "dispatch")
    if group.domains > 1:
        names = (PER_EXPERT,) if within == DECODE else ("deepep-normal",)
    times = {name: _both_ways(of, chip, group, name, there) for name in names}
    size = float(np.sqrt(within[0] * within[1]))

    def seconds(name: str) -> float:
        floor, rate, root = times[name]
        return floor + size / rate + root * float(np.sqrt(size))

    best = min(names, key=seconds)
    return *times[best], best == PER_EXPERT, group.domains


def _both_ways(
    of: Machine | Fabric, chip: str, group: Group, name: str, there: float
) -> tuple[float, float, float]:
    ways = [_triple(of, chip, group.n, way, name, None) for way in ("dispatch", "combine")]
    return _joined(ways, (there, 1.0 - there))


def _triple(
    of: Machine | Fabric,
    chip: str,
    n: int,
    operation: str,
    name: str,
    within: tuple[float, float] | None,
) -> tuple[float, float, float]:
    triple = coefficients(of, operation, [n], algorithm=name, chip=chip, within=within)
    wire = float(triple.traffic[0] / triple.rate[0])
    return float(triple.alpha[0]), 1.0 / wire, float(triple.gamma[0])
