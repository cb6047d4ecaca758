"""Parsing of rates and times in a file: "45 GB/s", "400 Gbit/s", "0.5 us".

A plain number is in the base unit, byte/s or s. `B` is a byte and `b` a bit, case counts; GB is
1e9 bytes and GiB 1024**3.
"""

from __future__ import annotations

from topologies.fabric.limits import latency_fault, rate_fault, shown
from topologies.files.units import Powers, UnreadAmount, amount

EXAMPLES = {"rate": "45 GB/s or 45e9", "time": "1 us or 1e-6"}
POWERS: dict[str, Powers] = {"rate": (("byte", 1), ("s", -1)), "time": (("s", 1),)}
SIZE: Powers = (("byte", 1),)


class Misread(ValueError):  # noqa: N818 - the reader of a file turns it into a problem with a place
    """Why a value is not the quantity that was asked for; finishes a sentence about it."""


def rate(quantity: object) -> float:
    """A bandwidth in one direction. [byte/s]

    Raises
    ------
    Misread
        When it is no rate, has no unit or a strange one, or is 0, negative, or not finite.

    >>> rate("400 Gbit/s"), rate("1 GiB/s"), rate(45e9)
    (50000000000.0, 1073741824.0, 45000000000.0)
    """
    value = _amount(quantity, "rate") if isinstance(quantity, str) else quantity
    fault = rate_fault(value)
    if fault is not None:
        raise Misread(_quoting(quantity, fault))
    return float(value)  # type: ignore[arg-type]


def latency(quantity: object) -> float:
    """The time from one end of a link to the other. [s]

    Raises
    ------
    Misread
        When it is no time, has no unit or a strange one, is negative, or is a tenth of a
        second or more.

    >>> latency("0.5us")
    5e-07
    """
    value = _amount(quantity, "time") if isinstance(quantity, str) else quantity
    fault = latency_fault(value)
    if fault is not None:
        raise Misread(_quoting(quantity, fault))
    return float(value)  # type: ignore[arg-type]


def _amount(text: str, what: str) -> float:
    """A text in base units of a `rate` [byte/s] or a `time` [s]."""
    expected = f"a {what} such as {EXAMPLES[what]} was expected"
    try:
        read = amount(text)
    except UnreadAmount as fault:
        end = "" if fault.reason.endswith("?") else f"; {expected}"
        raise Misread(f"is the text {shown(text)}{fault.reason}{end}") from None
    if read.bare:
        raise Misread(f"is the text {shown(text)}, without a unit; {expected}, without quotes")
    number = text.strip()
    if what == "rate" and read.magnitude:
        raise Misread(f"is {shown(text)}; did you mean '{number}B/s' or '{number}bit/s'?")
    if what == "rate" and read.powers == SIZE:
        raise Misread(f"is {shown(text)}, which is a size; did you mean '{number}/s'?")
    if read.magnitude or read.powers != POWERS[what]:
        raise Misread(f"is {shown(text)}, which is no {what}; {expected}")
    return read.rounded_once


def _quoting(quantity: object, fault: str) -> str:
    return f"is {shown(quantity)}: it {fault}" if isinstance(quantity, str) else fault
