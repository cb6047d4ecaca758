"""The scenario of `problem: prices`: a price sheet, candidate chips, known facts.

A sheet is a name of the catalogue, `host/model`, or rows of one's own. What is known is a value or
a range; what is not takes the ranges of `planner.problems.prices.inferences`.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, ValidationInfo, field_validator

from planner.scenario.keys import fields
from planner.scenario.keys.buy_keys import Factor, Multiples, PriceTier, TokenPrice, relative
from planner.scenario.keys.model_keys import ModelField
from planner.scenario.keys.references import nested
from planner.scenario.keys.system_keys import SystemField
from planner.text.errors import quote
from planner.text.quantities import parse


@dataclass(frozen=True)
class GivenRange(fields.FieldType):
    """A value, or a range as [least, most] or {from: least, to: most}; read as its two ends."""

    single: fields.Quantity

    def read(self, value: object) -> tuple[float, float]:
        """Read an interval (low, high); raises ValueError if the ends are not in order."""
        if isinstance(value, Mapping):
            if value.keys() != {"from", "to"}:
                raise ValueError(f"expected {{from: ..., to: ...}}, got {quote(value)}")
            value = [value["from"], value["to"]]
        if not isinstance(value, list | tuple):
            number = self.single.read(value)
            return number, number
        if len(value) != 2:
            raise ValueError(f"expected a value or [least, most], got {len(value)} values")
        low, high = fields.read_each(value, self.single.read)
        if low > high:
            raise ValueError(f"expected [least, most], got {value[0]} before {value[1]}")
        return low, high

    def schema(self) -> dict[str, object]:
        """A value, two of them, or a mapping of both."""
        ends = self.single.schema()
        both = {"type": "object", "properties": {"from": ends, "to": ends}}
        return {"oneOf": [ends, {"type": "array", "items": ends}, both]}


@dataclass(frozen=True)
class MarkUp(GivenRange):
    """A price over cost, or its range; a share of the price is another number, so it is refused."""

    def read(self, value: object) -> tuple[float, float]:
        """Read an interval of price over cost; raises ValueError for a share of the price."""
        for end in value if isinstance(value, list | tuple) else (value,):
            if isinstance(end, str) and "%" in end:
                share = parse(end, "share")
                hint = f": {end} of the price is {1 / (1 - share):.3g}" if share < 1 else ""
                raise ValueError(f"expected a price over cost such as 2.5, got {quote(end)}{hint}")
        return super().read(value)


Price = Annotated[float, TokenPrice()]
FreePrice = Annotated[float, TokenPrice(free=True)]
Threshold = Annotated[float, fields.Quantity("tokens", least=1000)]


class WritePrice(fields.Record):
    """Price of a cache write for a given hold time."""

    hold: Annotated[float, fields.Quantity("time")] = Field(description="time it is held [s]")
    price: FreePrice = Field(description="of a token that is written [USD/token]")


class PriceStep(fields.Record):
    """A price of the whole request where the prompt is longer than a threshold."""

    above: Threshold = Field(description="length of prompt from which it holds [token]")
    input: Factor | None = Field(None, description="price, or multiple of the input price")
    output: Factor | None = Field(None, description="price, or multiple of the output price")


class SheetRows(fields.Record):
    """A price sheet given as rows by the user."""

    input: Price = Field(description="of an input token [USD/token]")
    output: Price = Field(description="of an output token [USD/token]")
    cached: FreePrice | None = Field(None, description="of a cached input token [USD/token]")
    write: tuple[WritePrice, ...] = Field((), description="of writing a cache, by hold time")
    storage: Annotated[float, fields.Quantity("hold_price")] | None = Field(
        None, description="of holding a token's cache, such as $4.50/Mtok/hour [USD/(token*s)]"
    )
    steps: tuple[PriceStep, ...] = Field((), description="of longer prompts")
    tiers: tuple[PriceTier, ...] = Field((), description="fast, batch and other modes")

    @field_validator("cached")
    @classmethod
    def _hit(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and value > info.data.get("input", value):
            raise ValueError("a cached token dearer than an input token: swap them?")
        return value

    @field_validator("write")
    @classmethod
    def _dearer(cls, value: tuple[WritePrice, ...], info: ValidationInfo) -> object:
        least, faults = info.data.get("input", 0.0), []
        for i, row in enumerate(sorted_rows := list(value)):
            if 0 < row.price < least:
                faults.append(((i, "price"), "a write below the input price: it computes the same"))
            if row.hold in [x.hold for x in sorted_rows[:i]]:
                faults.append(((i, "hold"), "two prices of one hold time"))
            if any(row.hold > x.hold and 0 < row.price < x.price for x in sorted_rows):
                words = "cheaper than a write held for less: nobody would write that one: swap them"
                faults.append(((i, "price"), words))
        return fields.check_faults(tuple(sorted(value, key=lambda row: row.hold)), faults)

    @field_validator("steps")
    @classmethod
    def _check_steps(cls, value: tuple[PriceStep, ...]) -> object:
        edges = [edge(step.above) for step in value]
        faults = [
            ((i, "above"), "the same threshold twice: give one row")
            for i, each in enumerate(edges) if each in edges[:i]
        ] + [
            ((i, "input"), "a step that changes nothing: give input or output")
            for i, step in enumerate(value) if step.input is None and step.output is None
        ]  # fmt: skip
        return fields.check_faults(tuple(sorted(value, key=lambda step: step.above)), faults)

    @field_validator("tiers")
    @classmethod
    def _possible(cls, value: tuple[PriceTier, ...], info: ValidationInfo) -> object:
        faults = [
            ((i, "price"), f"{tier.name} is faster and no dearer: every request would take it")
            for i, tier in enumerate(value)
            if tier.speed and tier.speed > 1 and relative(tier.price, info.data.get("output")) <= 1
        ]
        return fields.check_faults(value, faults)


def edge(above: float) -> int:
    """Minimum length that a threshold reprices [token]: 199,999 and 200,000 give 200,000."""
    return int(above) + 1 if int(above) % 1000 == 999 else int(above)


Efficiency = Annotated[tuple[float, float], GivenRange(fields.Quantity("share", at_most=1.0))]
# Fewer parameters than any language model has are a count in millions or billions without its unit.
Parameters = Annotated[tuple[float, float], GivenRange(fields.Quantity("params", least=1e6))]


class GivenFacts(fields.Record):
    """Known facts of the model and of the host, each a value or a range [least, most]."""

    n_active: Parameters | None = Field(None, description="active parameters [param]")
    n_total: Parameters | None = Field(None, description="parameters held in memory [param]")
    model: ModelField | None = Field(None, description="the model itself, where it is known")
    context: Annotated[tuple[float, float], GivenRange(fields.Quantity("tokens"))] | None = Field(
        None, description="mean context of a request below any step [token]"
    )
    prefill_efficiency: Efficiency | None = Field(
        None, description="attained share of the arithmetic peak"
    )
    decode_efficiency: Efficiency | None = Field(None, description="attained share of bandwidth")
    margin: Annotated[tuple[float, float], MarkUp(fields.Quantity("number"))] | None = Field(
        None, description="price over cost, such as 2.5 or [1, 6]"
    )


def _sheet(value: object, info: ValidationInfo) -> str | SheetRows:
    if isinstance(value, SheetRows):
        return value
    if isinstance(value, Mapping):
        return nested(SheetRows, value, info, ())
    if not isinstance(value, str) or not value.strip():
        raise ValueError(
            "expected HOST/MODEL (planner catalog api-prices), or rows such as "
            f"{{input: $3/Mtok, output: $15/Mtok}}, got {quote(value)}"
        )
    return value.strip()


def _day(value: object) -> str:
    try:
        return datetime.date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise ValueError(f"expected a day such as 2026-11-24, got {quote(value)}") from None


class PricesScenario(fields.QuestionRecord):
    """A price sheet question, in base units (USD, token, s, byte); frozen."""

    problem: fields.ProblemName[Literal["prices"]]
    sheet: Annotated[
        str | SheetRows, PlainValidator(_sheet, json_schema_input_type=str | SheetRows)
    ] = Field(description="HOST/MODEL of the catalogue, a model with open weights, or rows")
    multiply: Multiples = Field(
        default_factory=dict,
        description="of all prices, cached ones too, such as {batch: 0.5x, residency: 1.1x}",
    )
    chips: SystemField | None = Field(
        None, description="what may serve it: systems; by default every chip with a listed rent"
    )
    stated: GivenFacts = Field(
        default_factory=GivenFacts, alias="given", description="what is known"
    )
    date: Annotated[str, PlainValidator(_day, json_schema_input_type=str)] | None = Field(
        None, description="day whose prices are asked for, such as 2026-11-24; else today"
    )


QUESTION = PricesScenario
