"""The kinds of value a scenario field may hold: how each is read, and its JSON Schema.

Every kind is a piece of `Annotated` metadata for pydantic. A value is read in one step, and every
refusal says what was expected; `Refusals` carries several at once, each with its own place.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import CoreSchema, core_schema

from planner.scenario.kinds import PROBLEMS
from planner.text.errors import did_you_mean, quote
from planner.text.quantities import DIMENSIONS, parse, show

DTYPES = ("fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4", "nvfp4", "mxfp4")
OVERLAPS = ("none", "two-batch")
MODES = ("aggregated", "disaggregated", "decode", "prefill")
LARGEST_COUNT = 10**9
LARGEST_SYSTEM = 10**6  # chips that work on one thing, whose layouts are listed
# Range of the values of a scenario in base units; ratios of values outside it overflow.
MIN_QUANTITY, MAX_QUANTITY = 1e-40, 1e40
LONGEST_LIST = 10_000
MAX_RANGE_LENGTH = 1_000_000
MAX_PLAUSIBLE_RENT = 0.1  # USD/(chip*s): $360 per hour, far above any listed rent

T = TypeVar("T")
P = TypeVar("P", bound=str | int)
Path = tuple[str | int, ...]
Faults = list[tuple[Path, str | ValueError]]  # refusals, each with its path below a field


class Record(BaseModel):
    """A mapping whose keys are all known, and which never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _empty(cls, value: object, info: ValidationInfo) -> object:
        part = cls.model_fields[str(info.field_name)].default_factory
        return {} if value is None and part is not None else value


class QuestionRecord(Record):
    """Base record of scenarios of all problem kinds; a kind narrows `problem` to its name."""

    problem: str


class Refusals(ValueError):  # noqa: N818 - several refusals, not one error
    """Several refusals inside one field; each with its path below the field.

    A refusal is a message, or the pydantic error of a nested record.
    """

    def __init__(self, faults: Sequence[tuple[Path, str | ValueError]]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(str(message) for _, message in faults))


def check_faults(value: T, faults: Sequence[tuple[Path, str | ValueError]]) -> T:
    """Return the value if the list of faults is empty; else raises Refusals with every fault."""
    if faults:
        raise Refusals(faults)
    return value


class FieldType:
    """Reads a value in one plain step and describes itself to editors."""

    def read(self, value: object) -> object:
        """Value in base units; raises ValueError with the expected form and the value got."""
        raise TypeError("a kind of field reads values")

    def schema(self) -> dict[str, object]:
        """JSON Schema of the values that are read."""
        raise TypeError("a kind of field has a schema")

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: object, handler: object) -> dict[str, object]:
        return self.schema()


@dataclass(frozen=True)
class Quantity(FieldType):
    """A quantity of one dimension in base units; zero only where it means something."""

    dimension: str
    zero: bool = False
    least: float = 0.0
    below: float = math.inf
    at_most: float = math.inf

    def read(self, value: object) -> float:
        """The amount in base units of its dimension."""
        amount = parse(value, self.dimension)
        example = DIMENSIONS[self.dimension].example
        if amount == 0 and not self.zero:
            raise ValueError(f'expected a value above zero such as "{example}", got {quote(value)}')
        if amount and not MIN_QUANTITY <= amount <= MAX_QUANTITY:
            raise ValueError(
                f'expected a value that something real could have, such as "{example}", '
                f"got {quote(value)}"
            )
        if self.dimension == "number" and self.least >= 1 and "%" in str(value):
            raise ValueError(f"expected a factor such as {self.least + 0.2:g}, got {quote(value)}")
        if amount < self.least:
            raise ValueError(f"expected at least {self.least:g}, got {quote(value)}")
        if amount >= self.below:
            raise ValueError(f"expected less than {self.below:g}, got {quote(value)}")
        if amount > self.at_most:
            time = self.dimension == "time"
            most = show(self.at_most, "time") if time else f"{self.at_most:g}"
            raise ValueError(f"expected at most {most}, got {quote(value)}")
        return amount

    def schema(self) -> dict[str, object]:
        """JSON Schema: a number with its unit, or in base units."""
        dimension = DIMENSIONS[self.dimension]
        return {
            "type": ["string", "number"],
            "description": f"{dimension.phrase} [{dimension.unit}]",
            "examples": [dimension.example],
        }


@dataclass(frozen=True)
class IntegerField(FieldType):
    """A whole number of at least one (or `least`), and at most `most`."""

    least: int = 1
    most: int = LARGEST_COUNT

    def read(self, value: object) -> int:
        """The number [count]."""
        return count(value, self.least, self.most)

    def schema(self) -> dict[str, object]:
        """JSON Schema: an integer, its least value and its largest."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Choices(FieldType):
    """Integers to choose from: 8, [1, 2, 4, 8] or {from: 8, to: 64}; `in` works on both.

    None is below `least`.

    Read as a sorted tuple without repetitions, or a `range`: the first is the least, the last the
    most, whatever the number of them.
    """

    least: int = 1
    most: int = LARGEST_COUNT

    def read(self, value: object) -> tuple[int, ...] | range:
        """The numbers, ascending [count]; a range for a mapping of two ends."""
        if isinstance(value, dict):
            return self._span(value)
        if not isinstance(value, list | tuple | range):
            return (count(value, self.least, self.most),)
        if isinstance(value, range):
            value = list(value[: LONGEST_LIST + 1])
        if not 0 < len(value) <= LONGEST_LIST:
            raise ValueError(f"expected 1 to {LONGEST_LIST} numbers, got {len(value)}")
        return tuple(sorted(set(read_each(value, lambda item: count(item, self.least, self.most)))))

    def _span(self, value: Mapping[str | int, object]) -> range:
        both = {key: value.get(key) for key in ("from", "to")}
        faults: Faults = [((key,), unknown_key(key, both)) for key in value.keys() - both]

        def end(key: str, item: object) -> int:
            if key not in value:
                raise ValueError(f"missing required key '{key}'")
            return count(item, self.least, self.most)

        ends = read_items(both.items(), end, faults)
        if len(ends) == 2 and ends["from"] > ends["to"]:
            faults.append((("to",), f"expected at least {ends['from']} (from), got {ends['to']}"))
        elif len(ends) == 2 and ends["to"] - ends["from"] >= MAX_RANGE_LENGTH:
            faults.append((("to",), f"expected a span of at most {MAX_RANGE_LENGTH:,} numbers"))
        if faults:
            raise Refusals(faults)
        return range(ends["from"], ends["to"] + 1)

    def schema(self) -> dict[str, object]:
        """JSON Schema: an integer, several, or both ends of a range."""
        whole = {"type": "integer", "minimum": self.least, "maximum": self.most}
        return one_or_many(whole, mapping_schema({"from": whole, "to": whole}, ["from", "to"]))


@dataclass(frozen=True)
class EnumKey(FieldType):
    """Field that takes one of `words`."""

    words: tuple[str, ...]

    def read(self, value: object) -> str:
        """The word."""
        return parse_choice(value, self.words)

    def schema(self) -> dict[str, object]:
        """JSON Schema: the words to choose from."""
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class ChoiceListField(FieldType):
    """Field that takes one of `words` or a list of them; read as a tuple without repetitions."""

    words: tuple[str, ...]

    def read(self, value: object) -> tuple[str, ...]:
        """The words, in the order that they were written."""
        if not isinstance(value, list | tuple):
            return (parse_choice(value, self.words),)
        if not 0 < len(value) <= LONGEST_LIST:
            raise ValueError(f"expected one of {', '.join(self.words)}, got an empty list")
        return tuple(dict.fromkeys(read_each(value, lambda item: parse_choice(item, self.words))))

    def schema(self) -> dict[str, object]:
        """JSON Schema: a word, or a list of them."""
        return one_or_many({"enum": list(self.words)})


def as_rent(value: float) -> float:
    """The price per chip [USD/(chip*s)] unless it looks like dollars per hour without a unit."""
    if value > MAX_PLAUSIBLE_RENT:
        raise ValueError(
            f'expected a price per chip and time such as "$3.50/hour", got '
            f"{show(value, 'price')} per chip (a bare number is USD per second); "
            f'did you mean "${value:,.2f}/hour"?'
        )
    return value


Count = Annotated[int, IntegerField()]
Seconds = Annotated[float, Quantity("time")]
SizeField = Annotated[float, Quantity("size")]
Bandwidth = Annotated[float, Quantity("bandwidth")]
Params = Annotated[float, Quantity("params")]
Dtype = Annotated[str, EnumKey(DTYPES)]
Rent = Annotated[float, Quantity("price"), AfterValidator(as_rent)]
ListedRent = Annotated[
    Rent | None, Field(description="per chip [USD/(chip*s)]; the catalogue's when absent")
]
ProblemName = Annotated[T, EnumKey(PROBLEMS), Field(description="which question is asked")]
SystemChips = Annotated[tuple[int, ...] | range, Choices(most=LARGEST_SYSTEM)]
ListKey = Annotated[tuple[int, ...] | range, Choices()]
Copies = Annotated[tuple[int, ...] | range, Choices(least=0)]
Dtypes = Annotated[tuple[str, ...], ChoiceListField(DTYPES)]
Modes = Annotated[tuple[str, ...], ChoiceListField(MODES)]
Overlaps = Annotated[tuple[str, ...], ChoiceListField(OVERLAPS)]


def count(value: object, least: int, most: int = LARGEST_COUNT) -> int:
    """The value as a whole number from `least` to `most`; 32.0 and 1e3 are whole numbers."""
    expected = f"expected a whole number of at least {least} such as {max(least, 8)}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{expected}, got {quote(value)}")
    if value % 1 != 0 or value < least:  # NaN and infinity leave NaN
        raise ValueError(f"{expected}, got {quote(value)}")
    if value > most:
        raise ValueError(f"expected at most {most:,}, got {quote(value)}")
    return int(value)


def parse_choice(value: object, words: tuple[str, ...]) -> str:
    """The value if it is one of the words."""
    if isinstance(value, str) and value in words:
        return value
    hint = did_you_mean(value, words) if isinstance(value, str) else ""
    raise ValueError(f"expected one of {', '.join(words)}, got {quote(value)}{hint}")


def read_each(values: Sequence[object], read: Callable[[object], T]) -> list[T]:
    """Every item read, or every refusal with its index."""
    faults: Faults = []
    read_values = read_items(enumerate(values), lambda _, item: read(item), faults)
    return check_faults(list(read_values.values()), faults)


def read_items(
    items: Iterable[tuple[P, object]], read: Callable[[P, object], T], faults: Faults
) -> dict[P, T]:
    """Values of `read(key, item)` by key; refusals are added to the faults, each with its key."""
    values: dict[P, T] = {}
    for key, item in items:
        try:
            values[key] = read(key, item)
        except ValueError as error:
            faults.append(((key,), error))
    return values


def unknown_key(key: object, keys: Iterable[str]) -> str:
    """Message about an unknown key, with the nearest known key or a list of the known keys."""
    hint = did_you_mean(key, keys) or f" (known: {', '.join(keys)})"
    return f"unknown key {quote(key)}{hint}"


def one_or_many(shape: Mapping[str, object], *others: Mapping[str, object]) -> dict[str, object]:
    """JSON Schema of a value, of a list of such, or of one of the other shapes."""
    return {"oneOf": [shape, {"type": "array", "items": shape, "minItems": 1}, *others]}


def mapping_schema(properties: Mapping[str, object], required: Sequence[str]) -> dict[str, object]:
    """JSON Schema of a mapping that has no keys but these."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
