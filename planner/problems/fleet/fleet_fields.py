"""Field types of fleets only: chances per hour, machines, demand by hour, regions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from planner.scenario.keys.fields import EnumKey, FieldType, IntegerField, Quantity, Record, count
from planner.text.errors import QuantityError, quote
from planner.text.quantities import parse
from topologies.files.units import QuantityParseError, parse_quantity

HOUR = 3600.0
MACHINES = re.compile(r"\s*([0-9]+)\s*(?:machines?)?\s*")
MAX_HOURS = 8784  # hours of a year
LENGTHS = {"day": 24, "week": 168, "month": 720}  # hours; a month is that of its CSV, or of 30 days
Fraction = Annotated[float, Quantity("share", zero=True, at_most=1.0)]
Latency = Annotated[float, Quantity("time", zero=True, at_most=60.0)]


@dataclass(frozen=True)
class HourlyChance(FieldType):
    """A chance per hour; a bare number or a share is one."""

    def read(self, value: object) -> float:
        """The chance [1/hour]."""
        expected = f'expected a chance per hour such as "5%/hour", got {quote(value)}'
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(expected)
        try:
            read = parse_quantity(str(value))
        except QuantityParseError:
            raise ValueError(expected) from None
        if read.powers not in ((), (("s", -1),)):
            raise ValueError(expected)
        chance = read.value * (HOUR if read.powers else 1.0)
        if not 0 <= chance < 1:
            raise ValueError(f"expected a chance of at least 0 and below 1 per hour, got {value}")
        return round(chance, 15)

    def schema(self) -> dict[str, object]:
        """JSON Schema: a chance per hour."""
        return {"type": ["string", "number"], "examples": ["5%/hour"]}


@dataclass(frozen=True)
class Machines(FieldType):
    """A whole number of machines: 12, or "12 machines"."""

    least: int = 0

    def read(self, value: object) -> int:
        """The number."""
        match = MACHINES.fullmatch(value) if isinstance(value, str) else None
        return count(int(match.group(1)) if match else value, self.least)

    def schema(self) -> dict[str, object]:
        """JSON Schema: a count, with or without its word."""
        whole = IntegerField(self.least).schema()
        return {**whole, "type": ["integer", "string"], "examples": [12, "12 machines"]}


@dataclass(frozen=True)
class Hours(FieldType):
    """A whole number of hours: 24, `day`, `week`, `month` or "30 days"."""

    def read(self, value: object) -> int:
        """The number."""
        if isinstance(value, str):
            try:
                hours = LENGTHS.get(value.strip().casefold()) or parse(value, "time") / HOUR
            except QuantityError:
                hours = 0.5
            if hours % 1:
                words = 'expected whole hours such as 168, week, month or "30 days"'
                raise ValueError(f"{words}, got {quote(value)}")
            value = int(hours)
        return count(value, 1, MAX_HOURS)

    def schema(self) -> dict[str, object]:
        """JSON Schema: a count of hours, or a word."""
        whole = IntegerField(most=MAX_HOURS).schema()
        return {**whole, "type": ["integer", "string"], "examples": [168, *LENGTHS]}


def contract_as_mapping(value: object) -> Any:
    """Return a price alone as a contract mapping; other values are unchanged."""
    return value if isinstance(value, Mapping) or value is None else {"price": value}


def latencies(value: object) -> object:
    """One latency as that to every other region, "*"."""
    return value if isinstance(value, Mapping) or value is None else {"*": value}


class FleetRegion(Record):
    """Region that requests come from, and the latency of serving them elsewhere."""

    demand: Fraction = Field(description="share of every model's demand")
    utc: Annotated[int, IntegerField(least=-12, most=14)] = 0
    """hours by which its clock is ahead of UTC: the hours of demand are then those of its clock"""
    moves: Annotated[str, EnumKey(("none", "allowed"))] = "none"
    """whether its requests may be served in another region"""
    latency: Annotated[dict[str, Latency] | None, BeforeValidator(latencies)] = Field(
        None, description="added to the time to first token elsewhere [s], or {region: latency}"
    )

    @model_validator(mode="after")
    def _moves_or_stays(self) -> "FleetRegion":
        if (self.moves == "allowed") != (self.latency is not None):
            raise ValueError("moves: allowed and latency, such as 90 ms, go together: give both")
        return self

    def latency_to(self, region: str) -> float | None:
        """Latency added by serving there [s]; None if its requests may not move there."""
        return None if self.latency is None else self.latency.get(region, self.latency.get("*"))
