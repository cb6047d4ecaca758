"""Table of unit words, and the small grammar that joins them: `$/GPU-hour`, `USD/(chip*s)`.

A unit is a scale and exponents of the base units s, byte, flop, param, token, seq, chip, USD, J, g;
units.toml holds them all. A plain number is in base units. `B` is a byte and `b` a bit, case
counts.
"""

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from topologies.fabric.limits import did_you_mean, latency_fault, quote, rate_fault

Powers = tuple[tuple[str, int], ...]  # base unit and exponent, sorted by name, no zeros


@dataclass(frozen=True)
class ParsedQuantity:
    """A number read with its unit: value in base units, exponents, and what stood there.

    `magnitude` is true when the only word was a lone k, M, B or T ("70B"), which means a count
    where a count is wanted and bytes nowhere; `bare` when there was no word at all.
    """

    digits: str
    scale: float
    powers: Powers
    bare: bool = False
    magnitude: bool = False

    @property
    def value(self) -> float:
        """The number in base units."""
        return float(self.digits) * self.scale


class QuantityParseError(ValueError):
    """Text that is not a number with a unit: the text, and the part of it that is invalid."""

    def __init__(self, got: str, reason: str = "") -> None:
        self.reason = reason
        super().__init__(got + reason)


MAX_TEXT_LENGTH = 80  # characters of a quantity; a longer text is not one
NUMBER_PATTERN = re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?")
UNIT_WORD_PATTERN = re.compile(r"\s*([A-Za-zµμ]+|[$%¢/()*·-])")
CURRENCY_PATTERN = re.compile(r"(?:US\$|\$|USD\b)\s*")


# A unit there has names, scale, exponents, and the set of prefixes that it is written with.
_TABLES = tomllib.loads(Path(__file__).with_name("units.toml").read_text(encoding="utf-8"))
MAGNITUDES: Mapping[str, float] = _TABLES["magnitudes"]
TABLE: Mapping[str, tuple[float, Mapping[str, int]]] = {  # scale and exponents of every word
    prefix + name: (row["scale"] * factor, row["powers"])
    for row in _TABLES["unit"]
    for name in row["names"].split()
    for prefix, factor in _TABLES["prefixes"][row["prefixes"]].items()
}
COUNT_UNITS = frozenset(
    name
    for row in _TABLES["unit"]
    if row["powers"].keys() & {"token", "param", "seq", "chip", "flop"} and "s" not in row["powers"]
    for name in row["names"].split()
)
SUGGESTIONS: Mapping[str, str] = {
    word: text for words, text in _TABLES["suggestions"].items() for word in words.split()
}


def parse_quantity(text: str) -> ParsedQuantity:
    """The number and unit of a text in base units; any sign, finite or not.

    Raises QuantityParseError, saying what was got and which part of it is not read.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise QuantityParseError(f"got a text of {len(text)} characters")
    body = text.strip()
    if not body:
        raise QuantityParseError("got an empty text")
    shown = f'got "{body}"' if body.isprintable() else f"got {body!a}"
    money = CURRENCY_PATTERN.match(body)
    body = body[money.end() :] if money else body
    number = NUMBER_PATTERN.match(body)
    if number is None:
        raise QuantityParseError(
            shown, SUGGESTIONS.get(body[:1], ", which does not begin with a number")
        )
    rest = body[number.end() :].rstrip()
    if rest[:1] == "," and rest[1:2].isdigit():
        raise QuantityParseError(shown, "; write 1_000 or 1000, without a comma")
    words, position = [], 0
    while position < len(rest):
        match = UNIT_WORD_PATTERN.match(rest, position)
        if match is None:
            strange = rest[position:].strip()[:1]
            raise QuantityParseError(shown, f"; {strange!r} is not part of a unit")
        words.append(match.group(1))
        position = match.end()
    digits = number.group().replace("_", "")
    powers: Powers = (("USD", 1),) if money else ()
    if not words:
        return ParsedQuantity(digits, 1.0, powers, bare=money is None)
    if len(words) == 1 and words[0] in MAGNITUDES and (words[0] != "B" or not money):
        if words[0] == "B":
            return ParsedQuantity(digits, 1.0, (("byte", 1),), magnitude=True)
        return ParsedQuantity(digits, MAGNITUDES[words[0]], powers, magnitude=money is None)
    scale, powers = _product(words, shown, dict(powers))
    return ParsedQuantity(digits, scale, powers)


def _product(words: list[str], shown: str, start: dict[str, int]) -> tuple[float, Powers]:
    """Scale and exponents of unit words joined by `/`, `per`, `*` and `-`, with one bracket.

    After a `/` only `-` or a bracket joins (`$/GPU-hour`): `a/b*c` has two readings.
    """
    total, scale = dict(start), 1.0
    sign, bracket, open_for_word, divided = 1, False, not start, False
    for index, word in enumerate(words):
        after = words[index + 1] if index + 1 < len(words) else ""
        if word in ("/", "per") and not open_for_word and not bracket:
            sign, open_for_word, divided = -1, True, True
        elif word in ("*", "·", "-") and not open_for_word:
            if divided and not bracket and word != "-":
                raise QuantityParseError(shown, "; write the units below the line in brackets")
            open_for_word = True
        elif word == "(" and open_for_word and not bracket:
            bracket = True
        elif word == ")" and bracket and not open_for_word:
            bracket = False
        elif open_for_word and word in MAGNITUDES and after in COUNT_UNITS:
            scale *= MAGNITUDES[word] ** sign
        elif open_for_word and (word.isalpha() or word in "$%¢"):
            entry = TABLE.get(word)
            if entry is None:
                hint = SUGGESTIONS.get(word) or did_you_mean(word, TABLE)
                raise QuantityParseError(shown, f"; unknown unit {word!r}{hint}")
            factor, powers = entry
            scale *= factor**sign
            for name, power in powers.items():
                total[name] = total.get(name, 0) + sign * power
            open_for_word = False
        else:
            raise QuantityParseError(shown, f"; {word!r} is not expected there")
    if open_for_word or bracket:
        raise QuantityParseError(shown, ", whose unit is not finished")
    return scale, tuple(sorted((name, power) for name, power in total.items() if power))


EXAMPLES = {"rate": "45 GB/s or 45e9", "time": "1 us or 1e-6"}
POWERS: dict[str, Powers] = {"rate": (("byte", 1), ("s", -1)), "time": (("s", 1),)}
SIZE_EXPONENTS: Powers = (("byte", 1),)


class UnitMismatch(ValueError):  # noqa: N818 - the reader of a file turns it into a problem with a place
    """Reason why a value is not the required quantity; completes a sentence about the value."""


def rate(quantity: object) -> float:
    """A bandwidth in one direction. [byte/s]

    Raises UnitMismatch when it is no rate, has no unit or a strange one, or is 0, negative, or not
    finite.

    >>> rate("400 Gbit/s"), rate("1 GiB/s"), rate(45e9)
    (50000000000.0, 1073741824.0, 45000000000.0)
    """
    return _read(quantity, "rate", rate_fault)


def latency(quantity: object) -> float:
    """The time from one end of a link to the other. [s]

    Raises UnitMismatch when it is no time, has no unit or a strange one, is negative, or is a tenth
    of a second or more.

    >>> latency("0.5us")
    5e-07
    """
    return _read(quantity, "time", latency_fault)


def _read(quantity: object, what: str, fault_of: Callable[[object], str | None]) -> float:
    value = _amount(quantity, what) if isinstance(quantity, str) else quantity
    fault = fault_of(value)
    if fault is not None:
        fault = f"is {quote(quantity)}: it {fault}" if isinstance(quantity, str) else fault
        raise UnitMismatch(fault)
    return float(value)  # type: ignore[arg-type]


def _amount(text: str, what: str) -> float:
    """A text in base units of a `rate` [byte/s] or a `time` [s]."""
    expected = f"a {what} such as {EXAMPLES[what]} was expected"
    try:
        read = parse_quantity(text)
    except QuantityParseError as fault:
        end = "" if fault.reason.endswith("?") else f"; {expected}"
        raise UnitMismatch(f"is the text {quote(text)}{fault.reason}{end}") from None
    if read.bare:
        raise UnitMismatch(f"is the text {quote(text)}, without a unit; {expected}, without quotes")
    number = text.strip()
    if what == "rate" and read.magnitude:
        raise UnitMismatch(f"is {quote(text)}; did you mean '{number}B/s' or '{number}bit/s'?")
    if what == "rate" and read.powers == SIZE_EXPONENTS:
        raise UnitMismatch(f"is {quote(text)}, which is a size; did you mean '{number}/s'?")
    if read.magnitude or read.powers != POWERS[what]:
        raise UnitMismatch(f"is {quote(text)}, which is no {what}; {expected}")
    # Without a rounding of the product, so that 300 ns is the number 3e-7.
    if not 0 < abs(read.value) < math.inf:
        return read.value
    return float(Fraction(read.digits) * Fraction(repr(read.scale)))
