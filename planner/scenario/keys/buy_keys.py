"""The keys of make or buy: what hosts charge, and what chips cost under each kind of contract.

Listed prices are a price per token, a multiple of another, or a tier by price and speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from math import prod
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

from pydantic import Field, PlainValidator, ValidationError, ValidationInfo, field_validator

from planner.catalogue.api_prices import host_name, listed_token_prices, open_models, token_price
from planner.scenario.keys.fields import FieldType, Quantity, Record, Refusals, as_rent, read_each
from planner.text.errors import did_you_mean, quote
from planner.text.quantities import parse

MTOK = 1e6
MAX_MULTIPLE = 1000.0  # that a price is of another on one sheet


@dataclass(frozen=True)
class TokenPrice(FieldType):
    """A price per token [USD/token]; `free` allows zero."""

    free: bool = False

    def read(self, value: object) -> float:
        """The price [USD/token].

        Raises ValueError for one that no list would have, with what was probably meant.
        """
        return token_price(parse(value, "token_price"), value, free=self.free)

    def schema(self) -> dict[str, object]:
        """Text or a number."""
        return {
            "type": ["string", "number"],
            "description": "a price per token [USD/token]",
            "examples": ["$3/Mtok"],
        }


@dataclass(frozen=True)
class Multiple(FieldType):
    """A multiple of the sheet's price, such as 6x; or a price, which stays text until it is one."""

    priced: bool = True

    def read(self, value: object) -> float | str:
        """The multiple [-], or the price as it is written.

        Raises ValueError for neither.
        """
        text = value.strip() if isinstance(value, str) else value
        if isinstance(text, str) and text[-1:] in ("x", "×"):
            text = text[:-1].strip()
        elif isinstance(text, str) and self.priced and "/" in text:
            TokenPrice().read(text)
            return text
        number = Quantity("number").read(text)
        if number > MAX_MULTIPLE:
            raise ValueError(f"expected a multiple such as 2.5x, got {quote(value)}")
        return number

    def schema(self) -> dict[str, object]:
        """Text or a number."""
        return {"type": ["string", "number"], "examples": ["2.5x"]}


Factor = Annotated[float | str, Multiple()]
Multiples = dict[str, Annotated[float, Multiple(priced=False)]]


class PricedRecord(Protocol):
    """A dataclass with prices."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


PricedType = TypeVar("PricedType", bound=PricedRecord)


def scaled_prices(record: PricedType, multiples: Mapping[str, float], *prices: str) -> PricedType:
    """Record with these prices times the product of `multiples`: tier, batch, data residency."""
    listed = {name: getattr(record, name) for name in prices}
    times = prod(multiples.values())
    return replace(record, **{x: price * times for x, price in listed.items() if price is not None})


def ratios(multiples: Mapping[str, float]) -> str:
    """Each by its name: batch 0.5x, residency 1.1x."""
    return ", ".join(f"{name} {value:g}x" for name, value in multiples.items())


class PriceTier(Record):
    """A mode of the same model at another price, perhaps at another speed."""

    name: str = Field(description="fast, batch, flex, ...")
    price: Factor = Field(description="of the standard price, such as 6x, or an output price")
    speed: Annotated[float, Multiple(priced=False)] | None = Field(
        None, description="tokens per second over those of the standard tier, such as 2.5x"
    )


def relative(price: float | str, standard: float | None) -> float:
    """A multiple as it is; a price over the standard one [-]."""
    if not isinstance(price, str):
        return price
    amount = TokenPrice().read(price)
    return amount / (standard or amount)


CATALOGUE = "catalogue"
Interval = tuple[float, float]


@dataclass(frozen=True)
class DayKind(FieldType):
    """A day, YYYY-MM-DD."""

    def read(self, value: object) -> str:
        """The day as YYYY-MM-DD."""
        try:
            return date.fromisoformat(str(value)).isoformat()
        except ValueError:
            raise ValueError(f"expected a day such as 2026-11-24, got {quote(value)}") from None

    def schema(self) -> dict[str, object]:
        """JSON Schema: a date."""
        return {"type": "string", "format": "date"}


class HostRow(Record):
    """Prices of one host; rows of one host are averaged by their shares of the tokens."""

    host: str = Field(description="name of the host")
    input: Annotated[float, TokenPrice()] = Field(description="of an input token [USD/token]")
    output: Annotated[float, TokenPrice()] = Field(description="of an output token [USD/token]")
    cached: Annotated[float, TokenPrice(free=True)] | None = Field(
        None, description="of a cached input token; that of input when absent [USD/token]"
    )
    share: Annotated[float, Quantity("share", at_most=1.0)] = Field(
        1.0, description="share of the tokens that are billed so, such as those of the night"
    )
    multiply: Multiples = Field(
        default_factory=dict, description="of every price of the row, such as {batch: 0.5x}"
    )
    reseller: bool = Field(False, description="passes another's price on: shown, not counted")
    as_of: Annotated[str, DayKind()] | None = Field(None, description="day of the price")

    @field_validator("cached")
    @classmethod
    def _not_above(cls, value: float | None, info: ValidationInfo) -> float | None:
        price = info.data.get("input")
        if value is not None and price is not None and value > price:
            raise ValueError(
                f"a cached token costs no more than one that is read: ${value * MTOK:g} is "
                f"above input, ${price * MTOK:g} per million"
            )
        return value


def _prices(value: object, info: ValidationInfo) -> tuple[HostRow, ...] | str:
    """Read `catalogue`, or rows given by the user."""
    if value == CATALOGUE:
        return CATALOGUE
    if isinstance(value, str):
        words = f"expected {CATALOGUE} or a list of rows {{host, input, output}}"
        raise ValueError(f"{words}, got {quote(value)}{did_you_mean(value, (CATALOGUE,))}")
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not items:
        raise ValueError("expected catalogue or at least one row, got an empty list")

    def read(item: object) -> HostRow:
        if isinstance(item, HostRow):
            return item
        if not isinstance(item, Mapping):
            raise ValueError(f"expected keys host, input, output, got {quote(item)}")
        try:
            return HostRow.model_validate(dict(item), context=info.context)
        except ValidationError as error:
            raise Refusals([((), error)]) from None

    return tuple(read_each(items, read))


def _hosts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError(f"expected names of hosts such as [together, novita], got {quote(value)}")
    return tuple(dict.fromkeys(host_name(str(item)) for item in items))


class Buy(Record):
    """Buy the tokens from a host in place of renting chips: whose prices count."""

    prices: Annotated[
        tuple[HostRow, ...] | str,
        PlainValidator(_prices, json_schema_input_type=str | list[HostRow]),
    ] = Field(CATALOGUE, description="catalogue, or rows {host, input, output, cached}")
    model: str | None = Field(
        None, description="the model's name in the list of prices, where it has another there"
    )
    hosts: Annotated[
        tuple[str, ...], PlainValidator(_hosts, json_schema_input_type=str | list[str])
    ] = Field((), description="hosts that count; all of the list when absent")
    quantile: Annotated[float, Quantity("share", zero=True, at_most=1.0)] = Field(
        0.5, description="of the hosts' prices, against which renting is held"
    )
    cached: Annotated[float, Quantity("share", zero=True, at_most=1.0)] | None = Field(
        None,
        description="share of the input that a host bills as cached; workload.cached_input when "
        "absent",
    )
    multiply: Multiples = Field(
        default_factory=dict,
        description="of all prices, cached ones too, such as {batch: 0.5x, residency: 1.1x}",
    )
    on: Annotated[str, DayKind()] | None = Field(
        None, description="day whose prices count; that of the snapshot when absent"
    )

    @field_validator("model")
    @classmethod
    def _listed(cls, value: str | None) -> str | None:
        names = sorted({row.model for row in listed_token_prices()})
        if value is not None and value not in names:
            hint = did_you_mean(value, names) or f" (known: {', '.join(open_models())})"
            raise ValueError(f"no price of {quote(value)} is listed{hint}")
        return value

    @field_validator("hosts")
    @classmethod
    def _among(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        listed = info.data.get("prices")
        if not isinstance(listed, tuple):
            return value  # of the catalogue, when the model is known
        names = [host_name(row.host) for row in listed]
        for host in value:
            if host not in names:
                hint = did_you_mean(host, names) or f" (known: {', '.join(names)})"
                raise ValueError(f"no row of prices is of {quote(host)}{hint}")
        return value


@dataclass(frozen=True)
class RentRange(FieldType):
    """Rent of a chip under one kind of contract, minimum to maximum [USD/(chip*s)].

    Read as the two ends, or `catalogue`.
    """

    def read(self, value: object) -> Interval | str:
        """Both ends [USD/(chip*s)], or `catalogue`."""
        if value == CATALOGUE:
            return CATALOGUE
        rent = Quantity("price")
        if isinstance(value, Mapping):
            if value.keys() != {"from", "to"}:
                raise ValueError(
                    f"expected a range such as {{from: $2/hour, to: $3/hour}}, got {quote(value)}"
                )
            value = [value["from"], value["to"]]
        if not isinstance(value, list | tuple):
            both = as_rent(rent.read(value))
            return both, both
        if len(value) != 2:
            raise ValueError(
                f'expected a rent or a range of two such as ["$2/hour", "$3/hour"], got '
                f"{len(value)} values"
            )
        low, high = read_each(value, lambda item: as_rent(rent.read(item)))
        if high < low:
            raise ValueError("expected the lower end first, got the higher one")
        return low, high

    def schema(self) -> dict[str, object]:
        """JSON Schema: a rent, or its two ends."""
        single = {"type": ["string", "number"], "examples": ["$2/hour"]}
        return {"oneOf": [single, {"type": "array", "items": single, "minItems": 2, "maxItems": 2}]}


RentField = Annotated[Interval | str, RentRange()] | None


class Contract(Record):
    """Rents by kind of contract, in place of one price; the first given is what plans pay."""

    on_demand: RentField = Field(None, description="by the hour [USD/(chip*s)]")
    reserved: RentField = Field(None, description="for months or years [USD/(chip*s)]")
    spot: RentField = Field(
        None, validate_default=True, description="until it is taken away [USD/(chip*s)]"
    )

    @field_validator("spot")
    @classmethod
    def _at_least_one(
        cls, value: Interval | str | None, info: ValidationInfo
    ) -> Interval | str | None:
        ranges = (value, *(info.data.get(name) for name in ("on_demand", "reserved")))
        if all(each is None for each in ranges):
            raise ValueError("give at least one of on_demand, reserved, spot")
        return value

    @property
    def kinds(self) -> dict[str, Interval | str]:
        """The contracts that are given, by name."""
        pairs = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: rent for name, rent in pairs if rent is not None}
