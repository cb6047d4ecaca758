"""What the collectives of a layout take: three numbers for each group, looked up before the search.

An all-reduce of a decode step is small and goes through kernels made for it; that of a prompt is
large and goes through the library. Experts are reached by whichever kernels are fastest at the
messages of the phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.coefficients import coefficients
from planner.collectives.group import Group, algorithms, group_of

if TYPE_CHECKING:
    from topologies import Machine
    from topologies.fabric import Fabric

__all__ = ["DECODE", "PREFILL", "Exchange", "Reduction", "exchanges", "reductions"]

# Messages of one collective of either phase [byte]: from one sequence of a small model to a
# thousand of a large one, and from a short chunk to the longest.
DECODE, PREFILL = (8e3, 16e6), (4e6, 256e6)
PER_EXPERT = "deepep-low-latency"  # sends a copy for each expert, even to the same chip


@dataclass(frozen=True)
class Reduction:
    """All-reduces: T = floor + V/rate + root sqrt(V); arrays (n,). [s, byte/s, s/byte**0.5]"""

    floor: np.ndarray
    rate: np.ndarray
    root: np.ndarray


@dataclass(frozen=True)
class Exchange:
    """Dispatch and combine together, in the bytes of both; each of shape (n,).

    `each` says where a token is copied once for each expert, not once for each chip that holds
    some of its experts. Groups over several domains prefill with one copy for each domain.
    """

    floor: np.ndarray
    rate: np.ndarray
    root: np.ndarray
    each: np.ndarray
    domains: np.ndarray


def reductions(
    of: Machine | Fabric, chip: str, sizes: np.ndarray, within: tuple[float, float]
) -> Reduction:
    """All-reduces of groups of these sizes, by messages `within` [byte]."""
    groups, back = np.unique(sizes, return_inverse=True)
    rows = [_reduction(of, chip, int(n), within) for n in groups]
    return Reduction(*np.array(rows)[back].T)


def exchanges(
    of: Machine | Fabric,
    chip: str,
    sizes: np.ndarray,
    within: tuple[float, float],
    there: float,
) -> Exchange:
    """Exchanges with experts in groups of these sizes; `there` is dispatch's share of the bytes."""
    groups, back = np.unique(sizes, return_inverse=True)
    rows = [_exchange(of, chip, int(n), within, there) for n in groups]
    floor, rate, root, each, domains = np.array(rows)[back].T
    return Exchange(floor, rate, root, each.astype(bool), domains.astype(np.int64))


@lru_cache(maxsize=65536)
def _reduction(
    of: Machine | Fabric, chip: str, n: int, within: tuple[float, float]
) -> tuple[float, float, float]:
    if n == 1:
        return 0.0, 1.0, 0.0
    group = group_of(of, n, chip)
    offered = algorithms(group, "all-reduce")
    name = "fused" if within == DECODE and "fused" in offered else "library"
    return _triple(of, chip, n, "all-reduce", name, within if group.domains == 1 else None)


@lru_cache(maxsize=65536)
def _exchange(
    of: Machine | Fabric, chip: str, n: int, within: tuple[float, float], there: float
) -> tuple[float, float, float, bool, int]:
    if n == 1:
        return 0.0, 1.0, 0.0, False, 1
    group = group_of(of, n, chip)
    names = algorithms(group, "dispatch")
    if group.domains > 1:
        names = (PER_EXPERT,) if within == DECODE else ("deepep-normal",)
    found = {name: _both_ways(of, chip, group, name, there) for name in names}
    size = float(np.sqrt(within[0] * within[1]))

    def seconds(name: str) -> float:
        floor, rate, root = found[name]
        return floor + size / rate + root * float(np.sqrt(size))

    best = min(names, key=seconds)
    return *found[best], best == PER_EXPERT, group.domains


def _both_ways(
    of: Machine | Fabric, chip: str, group: Group, name: str, there: float
) -> tuple[float, float, float]:
    """One after the other, as one law of the bytes of both."""
    shares = (there, 1.0 - there)
    ways = [
        _triple(of, chip, group.n, operation, name, None) for operation in ("dispatch", "combine")
    ]
    slowness = sum(share / rate for share, (_, rate, _) in zip(shares, ways, strict=True))
    root = sum(share**0.5 * root for share, (_, _, root) in zip(shares, ways, strict=True))
    return sum(floor for floor, _, _ in ways), 1.0 / slowness, root


def _triple(
    of: Machine | Fabric,
    chip: str,
    n: int,
    operation: str,
    name: str,
    within: tuple[float, float] | None,
) -> tuple[float, float, float]:
    found = coefficients(of, operation, [n], algorithm=name, chip=chip, within=within)
    wire = float(found.traffic[0] / found.rate[0])
    return float(found.alpha[0]), 1.0 / wire, float(found.gamma[0])
