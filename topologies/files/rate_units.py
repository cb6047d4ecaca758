"""Rates and times as people write them in a file, "45 GB/s", "400 Gbit/s", "0.5 us".

A plain number is in the base unit, byte/s or s. `B` is a byte and `b` a bit, case counts; GB is
1e9 bytes and GiB 1024**3.
"""

from __future__ import annotations

import re
from fractions import Fraction

from topologies.fabric.limits import latency_fault, meant, rate_fault, shown

LONGEST = 80  # characters of a quantity; a longer text is not one
DIGITS = r"[0-9](?:_?[0-9])*"
QUANTITY = re.compile(
    rf"([+-]?(?:{DIGITS}\.?(?:{DIGITS})?|\.{DIGITS})(?:[eE][+-]?[0-9]{{1,4}})?)\s*(\D.*)?"
)
DECIMAL = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}
PREFIXES = {
    **{prefix: Fraction(10**power) for prefix, power in DECIMAL.items()},
    **{prefix: Fraction(2**power) for prefix, power in BINARY.items()},
}
SIZES = {
    **dict.fromkeys(("B", "byte", "bytes"), Fraction(1)),
    **dict.fromkeys(("b", "bit", "bits"), Fraction(1, 8)),
}
RATES = {
    f"{prefix}{size}{per}": scale * width
    for prefix, scale in PREFIXES.items()
    for size, width in SIZES.items()
    for per in ("/s", "ps", "/sec", "/second")
    if not (per == "ps" and len(size) > 1)
}
TIMES = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), Fraction(1)),
    "ms": Fraction(1, 10**3),
    **dict.fromkeys(("us", "µs", "μs"), Fraction(1, 10**6)),
    "ns": Fraction(1, 10**9),
    "ps": Fraction(1, 10**12),
}
COMMON_RATES = ("GB/s", "Gbit/s", "Gbps", "TB/s", "MB/s", "GiB/s", "B/s")
COMMON_TIMES = ("s", "ms", "us", "ns")
EXAMPLES = {"rate": "45 GB/s or 45e9", "time": "1 us or 1e-6"}


class Misread(ValueError):  # noqa: N818 - the reader of a file turns it into a problem with a place
    """Why a value is not the quantity that was asked for; finishes a sentence about it."""


def rate(given: object) -> float:
    """A bandwidth in one direction. [byte/s]

    Raises
    ------
    Misread
        When it is no rate, has no unit or a strange one, or is 0, negative, or not finite.

    >>> rate("400 Gbit/s"), rate("1 GiB/s"), rate(45e9)
    (50000000000.0, 1073741824.0, 45000000000.0)
    """
    value = _amount(given, "rate", RATES) if isinstance(given, str) else given
    fault = rate_fault(value)
    if fault is not None:
        raise Misread(_quoting(given, fault))
    return float(value)  # type: ignore[arg-type]


def latency(given: object) -> float:
    """The time from one end of a link to the other. [s]

    Raises
    ------
    Misread
        When it is no time, has no unit or a strange one, is negative, or is a tenth of a
        second or more.

    >>> latency("0.5us")
    5e-07
    """
    value = _amount(given, "time", TIMES) if isinstance(given, str) else given
    fault = latency_fault(value)
    if fault is not None:
        raise Misread(_quoting(given, fault))
    return float(value)  # type: ignore[arg-type]


def _amount(text: str, what: str, units: dict[str, Fraction]) -> float:
    expected = f"a {what} such as {EXAMPLES[what]} was expected"
    read = QUANTITY.fullmatch(text.strip())
    if read is None or len(text) > LONGEST:
        raise Misread(f"is the text {shown(text)}; {expected}")
    number, unit = read.groups()
    if unit is None:
        raise Misread(f"is the text {shown(text)}, without a unit; {expected}, without quotes")
    scale = units.get("".join(unit.split()))
    if scale is None:
        raise Misread(f"is {shown(text)}; {_strange(''.join(unit.split()), what, units)}")
    # In whole numbers throughout: 0.1 + unit is the same number as the figure written out.
    value = Fraction(number.replace("_", "")) * scale
    try:
        return float(value)
    except OverflowError:
        raise Misread(f"is {shown(text)}, which is too large") from None


def _strange(unit: str, what: str, units: dict[str, Fraction]) -> str:
    """What to say of a unit that is none."""
    expected = f"a {what} such as {EXAMPLES[what]} was expected"
    if unit in (TIMES if what == "rate" else RATES):
        return f"{unit} is a unit of {'time' if what == 'rate' else 'rates'}; {expected}"
    if what == "rate" and f"{unit}/s" in units:
        return f"{unit} is a size; did you mean '{unit}/s'?"
    if what == "rate" and unit in DECIMAL:
        return f"did you mean '{unit}B/s' (bytes) or '{unit}bit/s' (bits)?"
    alike = [known for known in units if known.lower() == unit.lower()]
    if len(alike) > 1:
        choices = " or ".join(f"{one!r} ({'bytes' if 'B' in one else 'bits'})" for one in alike)
        return f"unknown unit {unit!r}; did you mean {choices}?"
    common = alike or (COMMON_RATES if what == "rate" else COMMON_TIMES)
    return f"unknown unit {shown(unit)}; {meant(unit, common)}"


def _quoting(given: object, fault: str) -> str:
    return f"is {shown(given)}: it {fault}" if isinstance(given, str) else fault
