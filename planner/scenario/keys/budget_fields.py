"""The kinds of value that only a budget's fields hold: laws, limits in two currencies, rates."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated

from pydantic import PlainValidator, ValidationInfo

from planner.catalogue.scaling_laws import law_names
from planner.scenario.keys.fields import LONGEST_LIST, FieldType, Quantity, one_or_many, read_each
from planner.scenario.keys.references import FILE_SUFFIXES, File, name_or_file
from planner.text.errors import QuantityError, quote
from planner.text.quantities import parse

FOREVER = "forever"
INTERVAL = 0.8  # share of the draws between the ends of an interval, as of a serving plan's band
MAX_VALUES = 200  # of one choice; every combination is solved
YEARLY = re.compile(
    r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(%?)\s*(?:(?:/|per)\s*(year|month|day))?"
)
LARGEST_GROWTH = 700.0  # logarithm of the largest factor, about, that is still a number
PER_YEAR = {"year": 1.0, "month": 12.0, "day": 365.25}


@dataclass(frozen=True)
class Limit:
    """At most this much; `per` is USD or FLOP, None for a bare number (the objective's unit)."""

    value: float
    per: str | None


@dataclass(frozen=True)
class LimitField(FieldType):
    """A cost in USD or FLOP."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: work or money."""
        return {"type": ["string", "number"], "examples": ["1e24 FLOP", "$5M"]}

    def read(self, value: object) -> Limit:
        """The cost, and whether it is in USD or FLOP."""
        if isinstance(value, Limit):
            return value
        if isinstance(value, int | float):
            return Limit(Quantity("work").read(value), None)
        for dimension, per in (("work", "FLOP"), ("money", "USD")):
            with suppress(QuantityError):  # if it is neither, the refusal below names both
                return Limit(Quantity(dimension).read(value), per)
        raise ValueError(f'expected a cost such as "1e24 FLOP" or "$5M", got {quote(value)}')


@dataclass(frozen=True)
class Yearly(FieldType):
    """A relative change per year, compounded; `5 %/month` is read as such."""

    least: float = 0.0

    def schema(self) -> dict[str, object]:
        """JSON Schema: a fraction, or a change per span."""
        return {"type": ["string", "number"], "examples": [0.5, "5 %/month"]}

    def read(self, value: object) -> float:
        """Change of one year as a fraction of the previous value [1/year]."""
        expected = f'expected a change per year such as 0.5 or "5 %/month", got {quote(value)}'
        match = YEARLY.fullmatch(value.strip()) if isinstance(value, str) else None
        if match:
            number, percent, span = match.groups()
            times = PER_YEAR[span or "year"]
            try:
                base = 1 + float(number) * (0.01 if percent else 1.0)
            except ValueError:
                raise ValueError(expected) from None
            grown = times * math.log(base) if base > 0 else -math.inf
            change = math.exp(grown) - 1 if grown < LARGEST_GROWTH else math.inf
        elif isinstance(value, int | float) and not isinstance(value, bool):
            change = float(value)
        else:
            raise ValueError(expected)
        if not math.isfinite(change):
            raise ValueError(f"{expected}, which is not finite")
        if change < self.least:
            least = f"at least {self.least:g}" if self.least >= 0 else "more than -100 %"
            raise ValueError(f"expected {least} per year, got {quote(value)}")
        if change > 1000:
            raise ValueError(f"expected at most a factor of 1001 per year, got {quote(value)}")
        return change


@dataclass(frozen=True)
class Lifetime(FieldType):
    """A time, or forever (read as infinity)."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: a time, or forever."""
        return {"type": ["string", "number"], "examples": ["60 days", FOREVER]}

    def read(self, value: object) -> float:
        """The time, or infinity [s]."""
        if value == FOREVER or (isinstance(value, float) and value == math.inf):
            return math.inf
        try:
            return Quantity("time").read(value)
        except QuantityError as error:
            raise ValueError(f"{error} (or {FOREVER})") from None


@dataclass(frozen=True)
class Ratio(FieldType):
    """A ratio N_total/N_active, 1 (dense) or more."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: one or more."""
        return {"type": "number", "minimum": 1}

    def read(self, value: object) -> float:
        """N_total/N_active [-]."""
        ratio = parse(value, "number")
        if not 1 <= ratio <= 1e6:
            raise ValueError(f"expected N_total/N_active, 1 (dense) or more, got {quote(value)}")
        return ratio


@dataclass(frozen=True)
class OneOrMany(FieldType):
    """One number of a kind or a list of them to try; read as a sorted tuple without repetitions."""

    single: Quantity | Ratio

    def schema(self) -> dict[str, object]:
        """JSON Schema: one value, or a list of them."""
        return one_or_many(self.single.schema())

    def read(self, value: object) -> tuple[float, ...]:
        """The values in base units, ascending."""
        if not isinstance(value, list | tuple):
            return (self.single.read(value),)
        if not 0 < len(value) <= min(MAX_VALUES, LONGEST_LIST):
            raise ValueError(f"expected 1 to {MAX_VALUES} values, got {len(value)}")
        return tuple(sorted(set(read_each(value, self.single.read))))


Law = str | File | dict[str, object]


def _laws(value: object, info: ValidationInfo) -> Law | tuple[Law, ...]:
    if not isinstance(value, list | tuple):
        return _law(value, info)
    if not 0 < len(value) <= MAX_VALUES:
        raise ValueError(f"expected 1 to {MAX_VALUES} laws, got {len(value)}")
    return tuple(read_each(value, lambda item: _law(item, info)))


def _law(value: object, info: ValidationInfo) -> Law:
    if isinstance(value, File):
        return value
    if isinstance(value, Mapping):
        values = dict(value)
        points = values.get("fit")
        folder = (info.context or {}).get("folder")
        if folder is None or not isinstance(points, str):
            return values
        return {**values, "fit": str(folder / points)}
    if isinstance(value, str) and " + " in value:  # a routed law on a dense one
        parts = [name_or_file(each.strip(), *LAW, info) for each in value.split(" + ")]
        return " + ".join(str(each) for each in parts)
    _refuse_a_family(value)
    law = name_or_file(value, *LAW, info)
    if isinstance(law, File) and law.path.suffix.lower() not in FILE_SUFFIXES:
        endings = ", ".join(FILE_SUFFIXES)
        raise ValueError(f"expected a file that ends in one of {endings}, got {quote(value)}")
    return law


def _refuse_a_family(value: object) -> None:
    """Tell the laws of a family that is named without saying which: `hoffmann`, `chinchilla`."""
    if not isinstance(value, str) or value in law_names() or not FAMILY.fullmatch(value):
        return
    word = (get_close_matches(value.lower(), LAW_ALIASES, n=1) or [value.lower()])[0]
    near = [name for name in law_names() if name.startswith(f"{LAW_ALIASES.get(word, word)}-")]
    if word in LAW_ALIASES:
        near.append("besiroglu-2024 (the default, which corrects the third)")
    if len(near) > 1:
        slip = "" if word == value.lower() else f"unknown law {quote(value)}; "
        raise ValueError(f"{slip}several laws are called {quote(word)}: {', '.join(near)}")


LAW = ("law", "besiroglu-2024", law_names())
FAMILY = re.compile(r"[A-Za-z]+(?:-[0-9]{4})?")
LAW_ALIASES = {"chinchilla": "hoffmann"}  # the model after which it is named
_Written = str | dict[str, object]
LawField = Annotated[
    Law | tuple[Law, ...], PlainValidator(_laws, json_schema_input_type=_Written | list[_Written])
]
