"""Three numbers per group: T = alpha + q V/(r e) + gamma sqrt(V), a posynomial of the message V.

They are fitted to a curve, non-negative, by relative error to the power POWER: between least
squares, which serve the many, and the least worst error, which serves the few. The efficiency
cannot exceed one, so what is fitted never beats the bound. Outliers are dealt with before: a curve
is its own lower envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.collective_curves import ANY, collectives
from planner.network import measured_curves
from planner.network.group import Group, algorithms, group_of, named
from planner.network.measured_curves import NETWORK, BorrowedCurve, borrowed_curve, crossing

if TYPE_CHECKING:
    from topologies import Machine
    from topologies.fabric.fabric import Fabric

TURNS = 20
POWER = 2.5
LEAST = 0.01  # relative error below which points count alike


@dataclass(frozen=True)
class Triple:
    """Floor [s], efficiency [1] and mid-range term [s/byte**0.5] of a curve."""

    alpha: float
    efficiency: float
    gamma: float

    def times(self, sizes: np.ndarray, wire: np.ndarray) -> np.ndarray:
        """Times [s] of messages [byte] whose bytes on the wire take `wire` [s] at the full rate."""
        return self.alpha + wire / self.efficiency + self.gamma * np.sqrt(sizes)


def scipy_least_squares(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Non-negative least squares by SciPy, which takes longer to load than a plan to find."""
    from scipy.optimize import nnls

    return np.asarray(nnls(matrix, target)[0])


def fit_triple(
    sizes: np.ndarray,
    wire: np.ndarray,
    seconds: np.ndarray,
    *,
    root: bool = True,
    least_squares: Callable[[np.ndarray, np.ndarray], np.ndarray] = scipy_least_squares,
) -> Triple:
    """The coefficients that fit a curve best.

    Parameters
    ----------
    sizes, seconds : the curve. [byte, s]
    wire : seconds that the bytes of each size take at the full rate. [s]
    root : whether there is a square-root term.
    least_squares : solves for coefficients that are not negative.
    """
    columns = [np.ones_like(sizes), wire] + ([np.sqrt(sizes)] if root else [])
    matrix = np.stack(columns, axis=1) / seconds[:, None]
    target = (seconds - wire) / seconds  # the efficiency's part below one is what is unknown
    scale = matrix.max(axis=0)
    weight = np.ones_like(seconds)
    solution = np.zeros(len(columns))
    for _ in range(TURNS):
        weighted = matrix / scale * weight[:, None]
        solution = least_squares(weighted, target * weight) / scale
        missed = np.maximum(np.abs(matrix @ solution - target), LEAST)
        weight = missed ** (POWER / 2 - 1)
    return Triple(
        float(solution[0]), float(1 / (1 + solution[1])), float(solution[2]) if root else 0.0
    )


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


def intervals(
    draws: Callable[[np.random.Generator], Triple], seed: int, count: int
) -> dict[str, tuple[float, float]]:
    """Ranges [10 %, 90 %] of the coefficients over refits."""
    generator = np.random.default_rng(seed)
    made = [draws(generator) for _ in range(count)]
    ranges = {}
    for name in ("alpha", "efficiency", "gamma"):
        low, high = np.quantile([getattr(each, name) for each in made], [0.1, 0.9])
        ranges[name] = (float(low), float(high))
    return ranges


POINTS = 25


@dataclass(frozen=True)
class Coefficients:
    """Of groups in the order they were asked for, each array of shape (n_groups,).

    Attributes
    ----------
    n : Chips of each group. [1]
    alpha, rate, gamma : T = alpha + traffic V/rate + gamma sqrt(V). [s, byte/s, s/byte**0.5]
    traffic : Bytes on the wire per byte; 0 for a single chip. [1]
    efficiency : `rate` over the rate of the network. [1]
    low, high : Measured over predicted: the band that holds the profile's coverage. [1]
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

    Parameters
    ----------
    of : the network, a machine or a fabric.
    operation, algorithm, network : as for `collective_time`, but no fastest is sought.
    sizes : chips of each group.
    chip : whose curves to take; by the name of the machine or fabric if not given.
    within : smallest and largest message that matter [byte]; the coefficients then fit best there.
    """
    rows = [_row(group_of(of, n, chip), operation, algorithm, network, within) for n in sizes]
    n, *columns = np.array(rows).reshape(len(rows), 8).T
    return Coefficients(n.astype(np.int64), *columns)


@lru_cache(maxsize=4096)
def _row(
    group: Group, operation: str, algorithm: str, network: str, within: tuple[float, float] | None
) -> tuple[float, ...]:
    """What `Coefficients` holds of one group, in its order."""
    algorithms(group, operation)  # an operation that does not exist is refused for one chip too
    rate = group.rate(operation)
    if group.n == 1:
        return 1, 0.0, rate, 0.0, 0.0, 1.0, 1.0, 1.0
    name = named(group, operation, algorithm)
    traffic = group.traffic(operation, name)
    law: measured_curves.DomainCrossing | BorrowedCurve | Triple
    if group.domains > 1:
        law, evidence = crossing(group, operation, name, network), ANY
    else:
        curve = borrowed_curve(group, operation, name)
        law, evidence = _refitted(curve, within) if within else curve, curve.evidence
    bands = [collectives().bands[kind] for kind in ("fitted", evidence)]
    low, high = min(band[0] for band in bands), max(band[1] for band in bands)
    share = law.efficiency
    return group.n, law.alpha, rate * share, law.gamma, traffic, share, low, high


@lru_cache(maxsize=4096)
def _refitted(curve: BorrowedCurve, within: tuple[float, float]) -> Triple:
    # Where only the rate between domains is varied, curves inside them are the same.
    low, high = within
    if not 0 < low < high < float("inf"):
        raise ValueError(f"messages lie within {within!r} bytes; give 0 < smallest < largest")
    sizes = np.geomspace(low, high, POINTS)
    seconds = curve.seconds(sizes)
    return fit_triple(sizes, curve.wire * sizes, seconds, least_squares=non_negative)
