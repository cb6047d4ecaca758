"""A curve of the profile moved to a group: time against the time its bytes take on the wire.

Kept that way, a curve bends with the rate of the network and with the size of the group, never
falls as messages grow, and never beats the bound. Between two sizes of group that were measured
logarithms are interpolated; beyond the largest, its floor grows with every doubling. A group that
leaves its scale-up domain adds to that what crossing was measured to add.

Monotone piecewise cubics through points (PCHIP), with nothing to import but NumPy.

SciPy's PchipInterpolator is the same polynomial; importing it costs a plan a third of a second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import isclose, log2, sqrt

import numpy as np

from planner.catalogue.collective_curves import ANY_CHIP, Curve, collectives
from planner.network.group import EXCHANGES, Group, collective_kernel, library
from planner.text.errors import CatalogueError

NETWORK = "infiniband"  # what joins scale-up domains where nothing else is named


def monotone_cubic(x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The shape-preserving cubic interpolant of Fritsch and Butland (1984) on [x[0], x[-1]].

    Args:
        x, y: points, shape (n,), n of two or more, x rising. Between them y neither overshoots nor
            turns.
    """
    step = np.diff(x)
    secant = np.diff(y) / step
    slope = _slopes(step, secant)
    bend = (slope[:-1] + slope[1:] - 2 * secant) / step
    third, second = bend / step, (secant - slope[:-1]) / step - bend

    def value(at: np.ndarray) -> np.ndarray:
        place = np.clip(np.searchsorted(x, at, side="right") - 1, 0, step.size - 1)
        s = at - x[place]
        square = s * s
        result: np.ndarray = (
            y[place] + slope[place] * s + second[place] * square + third[place] * (square * s)
        )
        return result

    return value


def _slopes(step: np.ndarray, secant: np.ndarray) -> np.ndarray:
    """Derivatives at the points: weighted harmonic means of the secants, 0 where these turn."""
    if secant.size == 1:
        return np.repeat(secant, 2)
    turns = (np.sign(secant[1:]) != np.sign(secant[:-1])) | (secant[1:] == 0) | (secant[:-1] == 0)
    before, after = 2 * step[1:] + step[:-1], step[1:] + 2 * step[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (before / secant[:-1] + after / secant[1:]) / (before + after)
        inner = np.where(turns, 0.0, 1.0 / mean)
    first = _end(step[0], step[1], secant[0], secant[1])
    last = _end(step[-1], step[-2], secant[-1], secant[-2])
    return np.concatenate([[first], inner, [last]])


def _end(near: float, next_: float, secant: float, beyond: float) -> float:
    """Three-point derivative at an end, limited so that the shape stays (Moler 2004, 3.6)."""
    slope = ((2 * near + next_) * secant - near * beyond) / (near + next_)
    if np.sign(slope) != np.sign(secant):
        return 0.0
    if np.sign(secant) != np.sign(beyond) and abs(slope) > 3.0 * abs(secant):
        return 3.0 * secant
    return slope


@dataclass(frozen=True)
class BorrowedCurve:
    """Curves of the profile as a group would follow them.

    Attributes:
        wire: Seconds on the wire per byte of message, at the full rate. [s/byte]
        alpha, efficiency, gamma: T = alpha + wire V/efficiency + gamma sqrt(V). [s, 1, s/byte**0.5]
        lower, upper, share: Curves on either side by size of group, and how far the group lies
            towards the upper.
        more: Floor beyond that of the largest group measured. [s]
        evidence: `measured`, `borrowed`, `family` or `any`.
    """

    wire: float
    alpha: float
    efficiency: float
    gamma: float
    lower: Curve
    upper: Curve
    share: float
    more: float
    evidence: str

    def seconds(self, size: np.ndarray) -> np.ndarray:
        """Times of messages [s]; `size` in bytes."""
        wire = self.wire * size
        low = _log_time(self.lower)(wire)
        if self.share > 0:
            low = (1 - self.share) * low + self.share * _log_time(self.upper)(wire)
        return np.maximum(np.exp(low) + self.more, wire)

    def inside(self, size: np.ndarray) -> np.ndarray:
        """True for each message whose size is within the range of the measured curves."""
        wire = self.wire * size
        spans = [_wire(curve)[[0, -1]] for curve in {self.lower, self.upper}]
        slack = 1 + 1e-9
        within = [(wire * slack >= low) & (wire <= high * slack) for low, high in spans]
        return np.logical_and.reduce(within)


def borrowed_curve(group: Group, operation: str, algorithm: str) -> BorrowedCurve:
    """Return the curves of a group's chip, or of the nearest measured chip, scaled to the group.

    Raises CatalogueError if no chip has a curve of this algorithm.
    """
    curves = collectives().of(group.chip, operation, algorithm)
    if not curves:
        raise CatalogueError(f"no curve of {operation} by {algorithm!r} was measured on any chip")
    wire = group.traffic(operation, algorithm) / group.rate(operation, algorithm)
    lower, upper, share = _neighbours(curves, group.n)
    more = _growth(curves, group.n)
    alpha = lower.alpha * (1 - share) + upper.alpha * share + more
    efficiency = lower.efficiency ** (1 - share) * upper.efficiency**share
    gamma = (_bend(lower) * (1 - share) + _bend(upper) * share) * sqrt(wire)
    evidence = _evidence(group, operation, lower, share, more)
    return BorrowedCurve(wire, alpha, efficiency, gamma, lower, upper, share, more, evidence)


def _neighbours(curves: tuple[Curve, ...], n: int) -> tuple[Curve, Curve, float]:
    below = [curve for curve in curves if curve.n <= n] or [curves[0]]
    above = [curve for curve in curves if curve.n >= n] or [curves[-1]]
    lower, upper = below[-1], above[0]
    if lower.n >= upper.n:
        return upper, upper, 0.0
    return lower, upper, log2(n / lower.n) / log2(upper.n / lower.n)


def _growth(curves: tuple[Curve, ...], n: int) -> float:
    """Latency added beyond the largest measured group [s], extrapolated per doubling."""
    last = curves[-1]
    if n <= last.n:
        return 0.0
    if len(curves) == 1:  # as if it had grown by equal amounts from a single chip on
        per_doubling = last.alpha / (1 + log2(last.n))
    else:
        before = curves[-2]
        per_doubling = max(last.alpha - before.alpha, 0.0) / log2(last.n / before.n)
    return per_doubling * log2(n / last.n)


def _evidence(group: Group, operation: str, curve: Curve, share: float, more: float) -> str:
    if curve.chip in (ANY_CHIP, group.family) or curve.chip != group.chip:
        return "family" if curve.chip == group.family != ANY_CHIP else "any"
    if more:
        return "family"
    measured_here = not share and curve.n == group.n and isclose(curve.rate, group.rate(operation))
    return curve.evidence if measured_here else "borrowed"


def _bend(curve: Curve) -> float:
    """The square-root term against time on the wire [s**0.5]."""
    return curve.gamma * sqrt(curve.rate / curve.traffic)


def _wire(curve: Curve) -> np.ndarray:
    return np.array(curve.sizes) * curve.traffic / curve.rate


@lru_cache(maxsize=1024)
def _log_time(curve: Curve) -> Callable[[np.ndarray], np.ndarray]:
    """log(time) of time on the wire: through the points inside, by the coefficients beyond."""
    wire, bend = _wire(curve), _bend(curve)
    inner = monotone_cubic(np.log(wire), np.log(curve.seconds))

    def fitted(x: np.ndarray | float) -> np.ndarray:
        return np.asarray(curve.alpha + x / curve.efficiency + bend * np.sqrt(x))

    last = np.log(curve.seconds[-1] / fitted(wire[-1]))

    def log_time(x: np.ndarray) -> np.ndarray:
        inside = inner(np.log(np.clip(x, wire[0], wire[-1])))
        return np.where(x > wire[-1], np.log(fitted(x)) + last, inside)

    return log_time


@dataclass(frozen=True)
class DomainCrossing:
    """A group over several domains: coefficients of T, and the group inside one domain.

    Attributes:
        wire: Seconds on the wire per byte of message. [s/byte]
        inner: Curves of the part of the group in its fullest domain; none for a lone chip.
        stays: Share of a message that the part inside a domain exchanges.
    """

    wire: float
    alpha: float
    efficiency: float
    gamma: float
    inner: BorrowedCurve | None
    stays: float = 1.0

    @property
    def floor(self) -> float:
        """Least seconds per byte of message: between domains, or inside one. [s/byte]"""
        return max(self.wire, self.inner.wire * self.stays if self.inner else 0.0)

    def seconds(self, size: np.ndarray) -> np.ndarray:
        """Times of messages [s]; `size` in bytes. What happens inside a domain takes no longer."""
        times = collective_kernel("collective_time")(
            alpha_c=self.alpha, q_wire=self.wire, V_msg=size, r_link=1.0, e_net=self.efficiency,
            gamma_c=self.gamma,
        )["t_coll"]  # fmt: skip
        whole = np.asarray(times)
        if self.inner is None:
            return whole
        return np.maximum(whole, self.inner.seconds(size * self.stays))


def crossing(group: Group, operation: str, algorithm: str, network: str) -> DomainCrossing:
    """The coefficients of a group that leaves its domain.

    The floor is that of the part inside a domain, and a step for every doubling of the domains,
    there and back in an all-reduce.
    """
    wire = group.traffic(operation, algorithm) / group.rate(operation, algorithm)
    add = collectives().crossing(network, operation, algorithm)
    inner, part = None, group.inside
    if operation not in EXCHANGES and part is not None and part.n > 1:
        inner = borrowed_curve(part, operation, library(part, operation))
    return DomainCrossing(
        wire=wire,
        alpha=(inner.alpha if inner else 0.0) + add.step * _steps(group, operation),
        efficiency=add.efficiency,
        gamma=sqrt(wire * add.delay),
        inner=inner,
        stays=part.n / group.n if part and operation == "all-to-all" else 1.0,
    )


def _steps(group: Group, operation: str) -> float:
    if operation in ("all-to-all", *EXCHANGES):
        return 1.0
    return log2(group.domains) * (2.0 if operation == "all-reduce" else 1.0)
