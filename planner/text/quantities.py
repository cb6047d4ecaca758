"""Quantities as people write them, "3.35 TB/s", read into base units and shown again.

Base units: s, byte, flop (2 per multiply-add), param, token, seq, chip, USD, J, g. A bare number is
read only where nobody could mean another unit, or where it is said to be in base units. GB is 1e9
bytes and GiB 1024**3; `b` is a bit and `B` a byte, case counts. Nothing is evaluated.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from planner.text.errors import QuantityError, quote
from planner.text.tables import table
from topologies.files.units import Powers, QuantityParseError, parse_quantity

IN_BASE_UNITS: ContextVar[bool] = ContextVar("in_base_units", default=False)
"""Whether bare numbers are known to be in base units, as those that this program wrote are."""


@contextmanager
def base_units(written: bool = True) -> Iterator[None]:
    """Meanwhile bare numbers are in base units, where they were written so."""
    before = IN_BASE_UNITS.set(written)
    try:
        yield
    finally:
        IN_BASE_UNITS.reset(before)


BASE_ONLY = 1e6  # above it nobody counts in units larger than the base
MONTH_HOURS = 8760 / 12  # hours of a mean month, for monthly bills


@dataclass(frozen=True)
class Dimension:
    """Dimension of a field, a row of dimensions.toml: its phrase, base unit and exponents."""

    name: str
    phrase: str
    example: str
    unit: str
    powers: Powers
    also: tuple[Powers, ...]
    words: str = ""
    suffix: str = ""
    counted: bool = False
    bare: tuple[str, ...] = ()


def _powers(unit: str) -> Powers:
    return () if unit == "1" else parse_quantity(f"1 {unit}").powers


def _dimensions() -> dict[str, Dimension]:
    rows = table("planner.text", "dimensions.toml")
    return {
        name: Dimension(
            name,
            powers=_powers(row["unit"]),
            also=tuple(_powers(unit) for unit in row.pop("also", ())),
            bare=tuple(row.pop("bare", ())),
            **row,
        )
        for name, row in rows.items()
    }


DIMENSIONS = _dimensions()
PLAIN_NAMES = {
    (): "a number without unit",
    (("s", -1),): "a rate without the thing counted",
    **{dimension.powers: dimension.words for dimension in DIMENSIONS.values() if dimension.words},
}


def parse(text: object, dimension: str) -> float:
    """The quantity in the base unit of `dimension`; finite and not negative.

    `text` is a string with a unit, or a number where that can be read in one way. Raises
    QuantityError, whose message names the expected dimension with an example, and what was read
    instead.
    """
    wanted = DIMENSIONS[dimension]
    expected = f'expected {wanted.phrase} such as "{wanted.example}"'
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(f"{expected}, got {quote(text)}")
    if not isinstance(text, str):
        return _with_unit(_checked(text, f"{expected}, got {quote(text)}"), wanted)
    try:
        read = parse_quantity(text)
    except QuantityParseError as reason:
        raise QuantityError(f"{expected}, {reason}") from None
    shown = f'{expected}, got "{text.strip()}"'
    if read.magnitude and wanted.counted:
        return _checked(read.value * (1e9 if read.powers else 1.0), shown)
    if not read.bare and read.powers not in (wanted.powers, *wanted.also):
        raise QuantityError(f"{shown} ({describe(read.powers)}){_meant(text, read.powers, wanted)}")
    value = _checked(read.value, shown)
    return _with_unit(value, wanted) if read.bare else value


def _with_unit(value: float, wanted: Dimension) -> float:
    """A bare number where its unit is known; QuantityError with those that it may have."""
    if value == 0 or not wanted.bare or IN_BASE_UNITS.get():
        return value
    digits = f"{value:.12g}"
    likely = wanted.bare if value < BASE_ONLY else wanted.bare[-1:]
    money = f"${value:.2f}" if value >= 0.995 else f"${digits}"
    ways = (f"{money}{x[1:]}" if x[0] == "$" else f"{digits} {x}" for x in likely)
    written = " or ".join(f'"{way}"' for way in ways)
    raise QuantityError(
        f'expected {wanted.phrase} such as "{wanted.example}", got {digits} without a unit; '
        f"write {written}"
    )


def has_unit(text: object) -> bool:
    """True if a value is a number with a unit, of any dimension."""
    try:
        return isinstance(text, str) and not parse_quantity(text).bare
    except QuantityParseError:
        return False


def needs_unit(unit: str) -> bool:
    """True if a scenario writes numbers of a base unit with the unit: `s`, and not `token`."""
    return unit in {dimension.unit for dimension in DIMENSIONS.values() if dimension.bare}


def show(value: float, dimension: str) -> str:
    """The value as a person would write it (`46 ms`, `$3.50/hour`), which `parse` reads again."""
    if dimension in ("price", "spending"):
        hourly = value * 3600
        return f"${hourly:{'.2f' if hourly >= 0.995 or hourly == 0 else '.3g'}}/hour"
    if dimension == "money":
        return f"${value:.2f}"
    if dimension == "token_price":
        return f"${value * 1e6:{'.2f' if value >= 1e-7 or value == 0 else '.2g'}}/Mtoken"
    if dimension == "byte_price":
        return f"${value * 3.6e12:.4g}/GB/hour"
    if dimension == "hold_price":
        return f"${value * 3.6e9:.4g}/Mtok/hour"
    if dimension == "mtbf":
        return f"{value / 3600:.4g} hours/chip"
    if dimension == "energy_price":
        return f"${value * 3.6e6:.4g}/kWh"
    if dimension == "carbon":
        return f"{value * 3.6e6:.4g} g/kWh"
    if dimension == "share":
        return f"{value * 100:.3g}%"
    if dimension == "time":
        return _shown_time(value)
    wanted = DIMENSIONS[dimension]
    suffix, billion = wanted.suffix, "B" if wanted.counted else "G"
    gap = " " if suffix else ""
    spaced = wanted.counted or suffix.startswith(("tokens/", "requests/"))
    word_gap = " " if spaced else ""
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, billion), (1e6, "M"), (1e3, "k")):
        if value >= scale * 0.9995 and not (letter == "k" and word_gap and value < 1e5):
            return f"{_digits(value / scale)} {letter}{word_gap}{suffix}".rstrip()
    return f"{_digits(value)}{gap}{suffix}"


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
        time = {"hold_price": "hour", "byte_price": "month"}.get(wanted.name, "s")
        return f'; did you mean "{single}/{time}"?'
    if wanted.name == "time" and powers == DIMENSIONS["token_rate"].powers:
        value = parse_quantity(text).value
        pace = f'; as a time per token "{_shown_time(1 / value)}"' if value > 0 else ""
        return f'{pace}, or promise it as speed: "{body}"'
    if wanted.name == "token_price" and powers == _powers("USD"):
        return f'; did you mean "{body}/Mtok"?'
    if wanted.name == "price" and powers in (_powers("USD"), _powers("USD/chip")):
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


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}" if value < 1e15 else f"{value:.3g}"
    return f"{value:.3g}"
