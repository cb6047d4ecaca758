"""Quantities as people write them, "3.35 TB/s", read into base units and shown again.

Base units: s, byte, flop (2 per multiply-add), param, token, seq, chip, USD, J. A bare number is
in the base unit of the dimension asked for. GB is 1e9 bytes and GiB 1024**3; `b` is a bit and `B`
a byte, case counts. Nothing is evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.text.errors import QuantityError, quoted
from topologies.files.units import Powers, UnreadAmount, amount


@dataclass(frozen=True)
class Dimension:
    """What a field holds: its name in a sentence, an example, its base unit and exponents.

    `also` lists other exponents that mean the same here (a price per chip and second may be
    written without the chip); `counted` says that "4k" or "70B" is a count of the thing itself.
    """

    name: str
    phrase: str
    example: str
    unit: str
    powers: Powers
    also: tuple[Powers, ...] = ()
    counted: bool = False


def _powers(**exponents: int) -> Powers:
    return tuple(sorted(exponents.items()))


PER_SECOND_TOKENS = _powers(s=-1, token=1)
ALL = (
    Dimension("number", "a plain number", "1.2", "1", ()),
    Dimension("share", "a share", "85%", "1", ()),
    Dimension("time", "a time", "50 ms", "s", _powers(s=1)),
    Dimension("size", "a size in bytes", "80 GB", "byte", _powers(byte=1)),
    Dimension("bandwidth", "a bandwidth", "3.35 TB/s", "byte/s", _powers(byte=1, s=-1)),
    Dimension("work", "an amount of arithmetic", "1e24 FLOP", "flop", _powers(flop=1)),
    Dimension("compute", "a compute rate", "989 TFLOP/s", "flop/s", _powers(flop=1, s=-1)),
    Dimension("params", "a parameter count", "70B params", "param", _powers(param=1), counted=True),
    Dimension("tokens", "a token count", "4000 tokens", "token", _powers(token=1), counted=True),
    Dimension("requests", "a request count", "64 requests", "seq", _powers(seq=1), counted=True),
    Dimension(
        "token_rate",
        "a token rate",
        "5000 tokens/s",
        "token/s",
        PER_SECOND_TOKENS,
        (_powers(s=-1, seq=-1, token=1),),
    ),
    Dimension("request_rate", "a request rate", "10 requests/s", "seq/s", _powers(s=-1, seq=1)),
    Dimension("money", "an amount of money", "$30000", "USD", _powers(USD=1)),
    Dimension(
        "price",
        "a price per chip and time",
        "$3.50/hour",
        "USD/(chip*s)",
        _powers(USD=1, chip=-1, s=-1),
        (_powers(USD=1, s=-1),),
    ),
    Dimension("spending", "a cost per time", "$112/hour", "USD/s", _powers(USD=1, s=-1)),
    Dimension(
        "token_price", "a price per token", "$2/Mtoken", "USD/token", _powers(USD=1, token=-1)
    ),
    Dimension("energy", "an energy", "1 kWh", "J", _powers(J=1)),
    Dimension(
        "power", "a power", "700 W", "J/s", _powers(J=1, s=-1), (_powers(J=1, chip=-1, s=-1),)
    ),
    Dimension("energy_price", "an energy price", "$0.09/kWh", "USD/J", _powers(J=-1, USD=1)),
    Dimension(
        "bytes_per_token",
        "a size per token",
        "2 kB",
        "byte/token",
        _powers(byte=1, token=-1),
        (_powers(byte=1),),
    ),
    Dimension(
        "bytes_per_param",
        "a size per parameter",
        "1 byte",
        "byte/param",
        _powers(byte=1, param=-1),
        (_powers(byte=1),),
    ),
    Dimension(
        "flop_per_token",
        "an amount of arithmetic per token",
        "100 MFLOP",
        "flop/token",
        _powers(flop=1, token=-1),
        (_powers(flop=1),),
    ),
)
DIMENSIONS = {dimension.name: dimension for dimension in ALL}

PLAIN_NAMES = {
    (): "a number without unit",
    _powers(s=1): "seconds",
    _powers(s=-1): "a rate without the thing counted",
    _powers(byte=1): "bytes",
    _powers(byte=1, s=-1): "bytes per second",
    _powers(flop=1): "FLOP, an amount and not a rate",
    _powers(flop=1, s=-1): "FLOP per second",
    _powers(param=1): "parameters",
    _powers(token=1): "tokens",
    _powers(seq=1): "requests",
    PER_SECOND_TOKENS: "tokens per second",
    _powers(s=-1, seq=1): "requests per second",
    _powers(USD=1): "USD",
    _powers(USD=1, s=-1): "USD per second",
    _powers(J=1): "joules",
    _powers(J=1, s=-1): "watts",
}
SUFFIXES = {
    "number": "",
    "size": "B",
    "bandwidth": "B/s",
    "work": "FLOP",
    "compute": "FLOP/s",
    "params": "params",
    "tokens": "tokens",
    "requests": "requests",
    "token_rate": "tokens/s",
    "request_rate": "requests/s",
    "energy": "J",
    "power": "W",
    "bytes_per_token": "B/token",
    "bytes_per_param": "B",
    "flop_per_token": "FLOP/token",
}
COUNT_PREFIXED = ("params", "tokens", "requests")


def parse(text: object, dimension: str) -> float:
    """The quantity in the base unit of `dimension`; finite and not negative.

    `text` is a string with a unit, or a number in the base unit. Raises QuantityError, whose
    message names the expected dimension with an example, and what was read instead.
    """
    wanted = DIMENSIONS[dimension]
    expected = f'expected {wanted.phrase} such as "{wanted.example}"'
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(f"{expected}, got {quoted(text)}")
    if not isinstance(text, str):
        return _checked(text, f"{expected}, got {quoted(text)}")
    try:
        read = amount(text)
    except UnreadAmount as reason:
        raise QuantityError(f"{expected}, {reason}") from None
    shown = f'{expected}, got "{text.strip()}"'
    if read.magnitude and wanted.counted:
        return _checked(read.value * (1e9 if read.powers else 1.0), shown)
    if not read.bare and read.powers not in (wanted.powers, *wanted.also):
        raise QuantityError(f"{shown} ({describe(read.powers)}){_meant(text, read.powers, wanted)}")
    return _checked(read.value, shown)


def show(value: float, dimension: str) -> str:
    """The value as a person would write it (`46 ms`, `$3.50/hour`), which `parse` reads again."""
    if dimension in ("price", "spending"):
        hourly = value * 3600
        return f"${hourly:{'.2f' if hourly >= 0.995 or hourly == 0 else '.3g'}}/hour"
    if dimension == "money":
        return f"${value:.2f}"
    if dimension == "token_price":
        return f"${value * 1e6:{'.2f' if value >= 1e-7 or value == 0 else '.2g'}}/Mtoken"
    if dimension == "energy_price":
        return f"${value * 3.6e6:.4g}/kWh"
    if dimension == "share":
        return f"{value * 100:.3g}%"
    if dimension == "time":
        return _shown_time(value)
    return _prefixed(value, SUFFIXES[dimension], "B" if dimension in COUNT_PREFIXED else "G")


def describe(powers: Powers) -> str:
    """The exponents in words: `bytes`, `tokens per second`, or `USD/token`."""
    if powers in PLAIN_NAMES:
        return PLAIN_NAMES[powers]
    above = "*".join(_raised(name, power) for name, power in powers if power > 0) or "1"
    below = "*".join(_raised(name, -power) for name, power in powers if power < 0)
    return f"{above}/({below})" if "*" in below else f"{above}/{below}" if below else above


def _raised(name: str, power: int) -> str:
    return name if power == 1 else f"{name}^{power}"


def _meant(text: str, powers: Powers, wanted: Dimension) -> str:
    """The spelling that would have been right, where only a `per second` is missing or too much."""
    per_second = dict(powers)
    per_second["s"] = per_second.get("s", 0) - 1
    missing = tuple(sorted((name, power) for name, power in per_second.items() if power))
    body = text.strip()
    if missing in (wanted.powers, *wanted.also) and wanted.name not in ("price", "power"):
        single = body[:-1] if body.endswith("FLOPs") else body
        return f'; did you mean "{single}/s"?'
    if wanted.name == "price" and powers in (_powers(USD=1), _powers(USD=1, chip=-1)):
        return f'; did you mean "{body}/hour"?'
    return ""


def _checked(value: float, shown: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise QuantityError(f"{shown}, which is too large") from None
    if math.isnan(number):
        raise QuantityError(f"{shown}, which is not a number")
    if math.isinf(number):
        raise QuantityError(f"{shown}, which is not finite")
    if number < 0:
        raise QuantityError(f"{shown}, which is negative")
    return abs(number)  # -0.0 is 0.0


def _shown_time(value: float) -> str:
    if value == 0:
        return "0 s"
    for scale, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "min")):
        if value >= 2 * scale:
            return f"{_digits(value / scale)} {unit}"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale * 0.9995:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e-9)} ns"


def _prefixed(value: float, suffix: str, billion: str) -> str:
    gap = " " if suffix else ""
    word_gap = (
        " " if suffix in COUNT_PREFIXED or "tokens/" in suffix or "requests/" in suffix else ""
    )
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, billion), (1e6, "M"), (1e3, "k")):
        if value >= scale * 0.9995 and not (letter == "k" and word_gap and value < 1e5):
            return f"{_digits(value / scale)} {letter}{word_gap}{suffix}".rstrip()
    return f"{_digits(value)}{gap}{suffix}"


def _digits(value: float) -> str:
    """Three significant digits, more in front of the point, no exponent where none is needed."""
    if value >= 99.95:
        return f"{value:.0f}" if value < 1e15 else f"{value:.3g}"
    return f"{value:.3g}"
