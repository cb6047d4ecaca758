"""A straight line through times of messages: latency and rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Line", "line", "separable"]


@dataclass(frozen=True)
class Line:
    """Time = latency [s] + bytes / rate [byte/s]; `error` the largest relative miss [1]."""

    latency: float
    rate: float
    error: float

    def time(self, size: float) -> float:
        """Time of a message [s]."""
        return self.latency + size / self.rate


def line(points: Sequence[tuple[float, float]]) -> Line:
    """The line of least relative squares through (bytes, seconds), neither part negative.

    Raises
    ------
    ValueError
        If no size is twice another: latency and rate cannot be told apart.
    """
    if not separable([size for size, _ in points]):
        raise ValueError("a latency and a rate need messages of two sizes, one twice the other")
    # Divided by their times, all points weigh the same: 1 = latency * u + v / rate.
    u = [1 / time for _, time in points]
    v = [size / time for size, time in points]
    uu, uv, vv = _dot(u, u), _dot(u, v), _dot(v, v)
    su, sv = math.fsum(u), math.fsum(v)
    parts = _solved(uu, uv, vv, su, sv)
    if parts[0] < 0:
        parts = (0.0, sv / vv)
    elif parts[1] <= 0:
        # Messages that take no longer when larger: the rate is beyond what was sent.
        parts = (su / uu, 0.0)
    latency, each = parts
    miss = max(abs(latency * a + each * b - 1) for a, b in zip(u, v, strict=True))
    return Line(latency, 1 / each if each else math.inf, miss)


def separable(sizes: Sequence[float]) -> bool:
    """Whether messages of these sizes tell a latency from a rate."""
    return len(sizes) > 1 and max(sizes) >= 2 * min(sizes)


def _solved(uu: float, uv: float, vv: float, su: float, sv: float) -> tuple[float, float]:
    under = uu * vv - uv * uv
    return (su * vv - sv * uv) / under, (uu * sv - uv * su) / under


def _dot(x: Sequence[float], y: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(x, y, strict=True))
