"""Which numbers can be a bandwidth, a latency or a count, and what to say of those that cannot.

A fault is a sentence that finishes "bandwidth ...", or None when the number is sound.
"""

from __future__ import annotations

import math
from numbers import Integral, Real

__all__ = ["count_fault", "latency_fault", "rate_fault", "rate_suspicion"]

# Cables of a machine room are below a microsecond; a tenth of a second is a slipped unit.
LATENCY_LIMIT = 0.1
# Slower than any link in use, faster than any package: GB/s written as B/s, or the reverse.
SLOWEST, FASTEST = 1e6, 100e12


def rate_fault(value: object) -> str | None:
    """Why `value` is not a bandwidth [byte/s one way]."""
    number = _number(value, "byte/s one way, such as 45e9 for 45 GB/s")
    if isinstance(number, str):
        return number
    if number == 0:
        return "is 0; leave the link out to model a failure"
    if number < 0:
        return f"is {value!r}; it must be above 0 (each direction is an arc of its own)"
    return None


def latency_fault(value: object) -> str | None:
    """Why `value` is not a latency [s]."""
    number = _number(value, "seconds, such as 1e-6 for one microsecond")
    if isinstance(number, str):
        return number
    if number < 0:
        return f"is {value!r}; it cannot be below 0"
    if number >= LATENCY_LIMIT:
        return f"is {value!r}; less than {LATENCY_LIMIT} s was expected (given in us or ns?)"
    return None


def count_fault(value: object) -> str | None:
    """Why `value` does not count anything."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return f"is {value!r}; a whole number of at least 1 was expected"
    return None if int(value) >= 1 else f"is {value!r}; it must be at least 1"


def rate_suspicion(value: float) -> str | None:
    """What is odd about a sound bandwidth [byte/s], if anything is."""
    if value < SLOWEST:
        return f"is {value:g} byte/s, below 1 MB/s (GB/s written as byte/s?)"
    if value > FASTEST:
        return f"is {value:g} byte/s, above 100 TB/s (a multiple applied twice?)"
    return None


def _number(value: object, expected: str) -> float | str:
    """`value` as a float, or why it is none."""
    if isinstance(value, str):
        return f"is the text {value!r}; a number was expected, in {expected}"
    if isinstance(value, bool) or not isinstance(value, Real):
        return f"is {value!r}; a number was expected, in {expected}"
    number = float(value)
    if not math.isfinite(number):
        return f"is {number}; a finite number was expected, in {expected}"
    return number
