"""The grid of a sweep: `PATH=SPEC` read into axes, and the points of their product by number.

A SPEC lists values as the scenario writes them (`8,16,32`, `20 ms,50 ms`, `hgx-h200,gb200-nvl72`)
or spans them: `1..8` whole numbers, `lin(1..10,10)` even steps, `log(1k..200k,20)` even ratios.
Axes keep what they were given, so that a grid of a billion points is as small as its text.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.scenario.tree import ALIASES
from planner.text.errors import InputError, printable, quote

NUMBER_PATTERN = re.compile(r"\s*(\$?)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*")
INTEGER_RANGE_PATTERN = re.compile(r"\s*(\d{1,15})\s*\.\.\s*(\d{1,15})\s*")
RANGE_PATTERN = re.compile(r"\s*(lin|log)\s*\((.*)\.\.(.*),\s*(\d{1,15})\s*\)\s*")
COUNT_SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
OPENING, CLOSING = "([{", ")]}"
DIGITS = 12  # significant digits of a number between two ends
EXAMPLES = "8,16,32 or 1..8 or lin(1..10,10) or log(1k..200k,20)"


@dataclass(frozen=True)
class ListedValues:
    """Values as they were given."""

    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def text(self, i: int) -> str:
        """The value as `--set` takes it."""
        return self.texts[i]


@dataclass(frozen=True)
class Span:
    """Numbers from `first` to `last` in even steps (`lin`, `whole`) or even ratios (`log`)."""

    kind: str
    first: float
    last: float
    count: int
    before: str = ""
    after: str = ""

    def __len__(self) -> int:
        return self.count

    def number(self, i: int) -> float:
        """The number at place `i`, in the span's own unit."""
        if i in (0, self.count - 1):
            return self.last if i else self.first
        if self.kind == "whole":
            return self.first + i
        share = i / (self.count - 1)
        if self.kind == "log":
            value = self.first * (self.last / self.first) ** share
        else:
            value = self.first + share * (self.last - self.first)
        return float(f"{value:.{DIGITS}g}")

    def text(self, i: int) -> str:
        """The value as `--set` takes it."""
        value = self.number(i)
        shown = str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        return f"{self.before}{shown}{self.after}"


@dataclass(frozen=True)
class Axis:
    """One swept path of the scenario: its dotted name and its values."""

    name: str
    values: ListedValues | Span

    def __len__(self) -> int:
        return len(self.values)

    def set_to(self, i: int) -> str:
        """`PATH=VALUE` of the value at place `i`."""
        return f"{self.name}={self.values.text(i)}"

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of the name."""
        return tuple(self.name.split("."))


@dataclass(frozen=True)
class Grid:
    """The product of axes; the last varies fastest."""

    axes: tuple[Axis, ...]

    @property
    def count(self) -> int:
        """Number of points, however large."""
        return math.prod(map(len, self.axes))

    def places(self, point: int) -> tuple[int, ...]:
        """Index of a point on each axis."""
        at = []
        for axis in reversed(self.axes):
            point, place = divmod(point, len(axis))
            at.append(place)
        return tuple(reversed(at))

    def sets(self, point: int) -> list[str]:
        """The changes `PATH=VALUE` that make the point out of the scenario."""
        return self.sets_at(self.places(point))

    def sets_at(self, places: Sequence[int]) -> list[str]:
        """The changes `PATH=VALUE` of these places on the axes."""
        return [axis.set_to(place) for axis, place in zip(self.axes, places, strict=True)]


def parse_grid(over: Mapping[str, object] | Sequence[str]) -> Grid:
    """The grid of `PATH=SPEC` texts, or of a mapping from paths to a SPEC or to values.

    Raises InputError with everything that cannot be read.
    """
    wrong: list[str] = []
    axes: list[Axis] = []
    for name, values in _pairs(over, wrong):
        try:
            axes.append(_axis(name, values))
        except InputError as error:
            wrong.append(f"--over {printable(name, 80)}: {error}")
    wrong += _overlaps(axes)
    if not axes and not wrong:
        wrong.append(f"no axis is given; give --over PATH=SPEC such as chips={EXAMPLES}")
    if wrong:
        raise InputError("\n".join(wrong))
    return Grid(tuple(axes))


def split_number(text: str) -> tuple[float, str, str] | None:
    """Number in a text and the text before and after it; None if the text has no number.

    >>> measured("20 ms"), measured("1.5k"), measured("hgx-h200")
    ((20.0, '', ' ms'), (1500.0, '', ''), None)
    """
    match = NUMBER_PATTERN.fullmatch(text)
    if match is None or (match[3] and match[3][0] not in "/%µ" and not match[3][0].isalpha()):
        return None
    value, unit = float(match[2]), match[3]
    if not math.isfinite(value):
        return None
    if unit in COUNT_SUFFIXES:
        return value * COUNT_SUFFIXES[unit], match[1], ""
    return value, match[1], f" {unit}" if unit and unit[0].isalpha() else unit


def _pairs(
    over: Mapping[str, object] | Sequence[str], wrong: list[str]
) -> Iterator[tuple[str, object]]:
    if isinstance(over, Mapping):
        yield from ((str(name), values) for name, values in over.items())
        return
    for text in [over] if isinstance(over, str) else over:
        name, sign, spec = str(text).partition("=")
        if sign and name.strip():
            yield name.strip(), spec
        else:
            wrong.append(
                f"--over {printable(text, 80)}: expected PATH=SPEC such as chips={EXAMPLES}"
            )


def _axis(name: str, values: object) -> Axis:
    name = ".".join(map(str, ALIASES.get(name, (name,))))
    if isinstance(values, str):
        return Axis(name, _spec(values))
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        values = [values]
    return Axis(name, _listed([_text(value) for value in values]))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value.item() if hasattr(value, "item") else value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"expected numbers or texts, got {quote(value)}") from error


def _spec(spec: str) -> ListedValues | Span:
    whole, spanned = INTEGER_RANGE_PATTERN.fullmatch(spec), RANGE_PATTERN.fullmatch(spec)
    if whole:
        first, last = int(whole[1]), int(whole[2])
        if first > last:
            raise InputError(f"{first}..{last} is empty; did you mean {last}..{first}?")
        return Span("whole", float(first), float(last), last - first + 1)
    if spanned:
        return _span(spanned[1], spanned[2], spanned[3], int(spanned[4]))
    if re.match(r"\s*(lin|log)\s*\(", spec):
        raise InputError(
            f"expected {spec.strip()[:3]}(FIRST..LAST,POINTS) such as log(1k..200k,20), "
            f"got {quote(spec)}"
        )
    values, depth, mark, start = [], 0, "", 0
    for i, letter in enumerate(spec):
        if mark:
            mark = "" if letter == mark else mark
        elif letter in "\"'":
            mark = letter
        elif letter in OPENING:
            depth += 1
        elif letter in CLOSING:
            depth -= 1
        elif letter == "," and depth == 0:
            values.append(spec[start:i])
            start = i + 1
    return _listed([*values, spec[start:]])


def _span(kind: str, first: str, last: str, count: int) -> Span:
    ends = [split_number(first), split_number(last)]
    for text, end in zip((first, last), ends, strict=True):
        if end is None:
            raise InputError(f"{quote(text.strip())} is no number; expected two, as 1k..200k")
    (low, before, unit), (high, _, last_unit) = ends  # type: ignore[misc]
    before = before or ends[1][1]  # type: ignore[index]
    if unit and last_unit and unit != last_unit:
        units = f"one end is in {unit.strip()}, the other in {last_unit.strip()}"
        raise InputError(f"{units}; write both in one unit")
    if count < 2 and low != high:
        raise InputError(f"{count} points do not reach from one end to the other; give 2 or more")
    if count < 1:
        raise InputError("0 points are none; give 1 or more")
    if kind == "log" and not (low > 0 and high > 0):
        raise InputError("the ends of log(...) must be above zero; lin(...) takes any")
    if low == high and count > 1:
        raise InputError(f"both ends are {low:g}, so that {count} points would be one")
    return Span(kind, low, high, count, before, unit or last_unit)


def _listed(texts: Sequence[str]) -> ListedValues:
    words = [text.strip() for text in texts]
    if not any(words):
        raise InputError(f"no value; expected {EXAMPLES}")
    if "" in words:
        raise InputError("an empty value between commas; leave it out, or write null")
    twice = sorted({word for word in words if words.count(word) > 1}) if len(words) < 1000 else []
    if twice or len(set(words)) < len(words):
        raise InputError(f"{', '.join(twice) or 'a value'} is given twice")
    return ListedValues(tuple(words))


def _overlaps(axes: Sequence[Axis]) -> Iterator[str]:
    """Axes that would overwrite each other."""
    for i, later in enumerate(axes):
        for earlier in axes[:i]:
            if later.path == earlier.path:
                yield f"--over {later.name}: is given twice; list all its values in one SPEC"
            elif earlier.path[: len(later.path)] == later.path:
                yield (
                    f"--over {later.name}: would overwrite {earlier.name}; give {later.name} first"
                )
