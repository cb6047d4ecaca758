"""The scenario of `problem: cache`: a prefix, the tiers that can hold it, when it comes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PlainValidator, ValidationError, ValidationInfo, field_validator

from planner.catalogue.listed_prices import tier, tier_names
from planner.scenario.keys import fields
from planner.scenario.keys.budget_fields import OneOrMany
from planner.scenario.keys.fields import Count, Quantity, QuestionRecord, Record, Refusals
from planner.scenario.keys.model_keys import ModelField
from planner.scenario.keys.references import File, name_or_file
from planner.scenario.keys.system_keys import SystemChoice, SystemField
from planner.scenario.keys.uncertain import Distributions

CATALOGUE = "catalogue"
BLOCK = 512  # default tokens of a block of a trace
DEFAULT_HOLD_TIMES = (60.0, 300.0, 3600.0)  # s, defaults without hold and reuse
LIFETIMES = (10.0, 60.0, 300.0, 600.0, 3600.0)  # s, lifetimes in the printed hit rates of a trace
BLOCKS = (10_000, 30_000)  # blocks of an LRU cache in the printed hit rates
EFFICIENCY = 0.45  # share of peak FLOP/s in prefill, middle of published values
ANSWER = 30.0  # s


@dataclass(frozen=True)
class PriceOfTier(fields.FieldType):
    """A price per byte and time; or of the whole device and time, whose capacity is then needed.

    Read as (USD/(byte*s), None) or (None, USD/s).
    """

    def read(self, value: object) -> tuple[float | None, float | None]:
        """The price per byte and time, or that of the device and time."""
        if isinstance(value, tuple | list) and len(value) == 2:  # as it is written back
            per_byte, whole = value
            return (per_byte, whole)
        try:
            return (Quantity("byte_price").read(value), None)
        except ValueError as error:
            try:
                return (None, Quantity("spending").read(value))
            except ValueError:
                raise ValueError(f'{error}; or of the whole device, such as "$2/hour"') from None

    def schema(self) -> dict[str, object]:
        """JSON Schema: a price per byte and time, or per time."""
        return {"type": ["string", "number"], "examples": ["$0.10/GB/month", "$2/hour"]}


class CacheTier(Record):
    """Memory or storage tier for a cache: from the catalogue (`like`) or user-defined."""

    name: str | None = Field(None, description="what the answer calls it")
    like: str | None = Field(None, description="a tier of the catalogue, varied in place")
    capacity: Annotated[float, Quantity("size")] | None = Field(
        None, description="bytes of one device [byte]"
    )
    read_rate: Annotated[float, Quantity("bandwidth")] | None = Field(
        None, description="rate at which one device is read [byte/s]"
    )
    price: Annotated[tuple[float | None, float | None], PriceOfTier()] | None = Field(
        None, description="per byte and time, or of the whole device [USD/(byte*s)]"
    )
    shared: Count = Field(1, description="chips that share one device's capacity and read rate")

    @field_validator("like")
    @classmethod
    def _in_catalogue(cls, value: str | None) -> str | None:
        if value is not None:
            tier(value)
        return value

    @field_validator("price")
    @classmethod
    def _of_a_device(
        cls, value: tuple[float | None, float | None] | None, info: ValidationInfo
    ) -> tuple[float | None, float | None] | None:
        described = info.data.get("capacity") or info.data.get("like")
        if value is not None and value[0] is None and described is None:
            raise ValueError(
                "a price of the whole device needs its capacity; or give one per byte and time, "
                'such as "$0.10/GB/month"'
            )
        return value


def _tiers(value: object) -> tuple[CacheTier, ...] | str:
    """The tiers of a scenario: `catalogue`, names of it, or descriptions."""
    if value == CATALOGUE:
        return CATALOGUE
    items = value if isinstance(value, list | tuple) else [value]
    if not items:
        raise ValueError("expected catalogue or at least one tier, got an empty list")

    def read(item: object) -> CacheTier:
        if isinstance(item, CacheTier):
            return item
        if isinstance(item, str):
            return CacheTier(like=item)
        if not isinstance(item, Mapping):
            raise ValueError(f"expected a tier such as {tier_names()[0]}, got {item!r}")
        described = CacheTier.model_validate(item)
        if described.like is None and described.price is None:
            raise Refusals([(("price",), "missing required key 'price' (or give like: a tier)")])
        return described

    return tuple(fields.read_each(items, read))


TiersField = Annotated[
    tuple[CacheTier, ...] | str,
    PlainValidator(_tiers, json_schema_input_type=str | list[str | CacheTier]),
]


def _trace_file(value: object, info: ValidationInfo) -> File:
    file = name_or_file(value, "trace", "requests.csv", (), info)
    assert isinstance(file, File)  # there is no catalogue of traces
    return file


class Trace(Record):
    """A trace of block hashes with times, and the lifetimes and capacities to print."""

    trace: Annotated[File, PlainValidator(_trace_file, json_schema_input_type=str)] = Field(
        description="a CSV file with timestamp_ms (or timestamp_s) and block_hashes, or the same "
        "as JSON lines with timestamp and hash_ids"
    )
    block: Count = Field(BLOCK, description="tokens of one block [token]")
    ttl: Annotated[tuple[float, ...], OneOrMany(Quantity("time"))] = Field(
        LIFETIMES, description="lifetimes, renewed by use, of which the hit rate is printed [s]"
    )
    capacity: fields.ListKey = Field(
        BLOCKS, description="blocks that a cache holds, least recently used evicted"
    )


def _reuse(value: object, info: ValidationInfo) -> Trace | tuple[tuple[float, float], ...]:
    """A trace, or the chance of a hit by hold time, in the order of the times."""
    if isinstance(value, Trace | tuple):
        return value
    if isinstance(value, str):
        value = {"trace": value}
    if isinstance(value, list) and all(isinstance(x, list | tuple) and len(x) == 2 for x in value):
        value = dict(value)  # as it is written back
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            "expected the chance of a hit by hold time such as {5 min: 60%, 1 hour: 80%}, or "
            f"{{trace: requests.csv}}, got {value!r}"
        )
    if "trace" in value:
        try:
            return Trace.model_validate(dict(value), context=info.context)
        except ValidationError as error:
            raise Refusals([((), error)]) from None
    time, share = Quantity("time"), Quantity("share", at_most=1.0)
    faults: fields.Faults = []
    pairs = fields.read_items(
        value.items(), lambda key, chance: (time.read(key), share.read(chance)), faults
    )
    if faults:
        raise Refusals(faults)
    return tuple(sorted(pairs.values()))


class CacheScenario(QuestionRecord):
    """One question of caches kept between requests, in base units (s, byte, token, USD); frozen."""

    COUNTS: ClassVar[dict[str, str]] = {"chips": "chip", "sharing": "seq"}

    problem: fields.ProblemName[Literal["cache"]]
    model: ModelField = Field(
        description="a catalogue name, a path to a Hugging Face config.json, or a description"
    )
    system: SystemField = Field(description="a catalogue name or a description")
    price: fields.ListedRent = None
    chips: Count = Field(8, description="chips that read the prompt together")
    kv: fields.Dtype | None = Field(None, description="dtype of the cache; the model's if absent")
    weights: fields.Dtype | None = Field(
        None, description="dtype of the weights; the checkpoint's if absent"
    )
    prefill_efficiency: Annotated[float, Quantity("share", at_most=1.0)] = Field(
        EFFICIENCY, description="share of the peak that prefill reaches"
    )
    prefix: Annotated[float, Quantity("tokens", least=1.0)] | None = Field(
        None, description="tokens that are kept [token]; attention is left aside when absent"
    )
    sharing: Count = Field(1, description="sequences at a time that share one prefix, held once")
    answer: Annotated[float, Quantity("time", zero=True)] = Field(
        ANSWER, description="time of an answer, in which the cache occupies HBM [s]"
    )
    tiers: TiersField = Field(
        CATALOGUE, description="catalogue, names of it, or descriptions, beside the HBM of the chip"
    )
    hold: Annotated[tuple[float, ...], OneOrMany(Quantity("time"))] | None = Field(
        None, description="times from writing a cache to reading it again [s]"
    )
    reuse: (
        Annotated[
            Trace | tuple[tuple[float, float], ...],
            PlainValidator(_reuse, json_schema_input_type=Trace | dict[str, float | str]),
        ]
        | None
    ) = Field(None, description="chance of a hit by hold time, or a trace of block hashes")
    hit: Annotated[float, Quantity("share", at_most=1.0)] | None = Field(
        None, description="chance that a held cache is read again; certain when absent"
    )
    margin: Annotated[float, Quantity("share", zero=True, below=1.0)] | None = Field(
        None, description="share of the price to charge that is not cost"
    )
    uncertain: Distributions = None

    @field_validator("system")
    @classmethod
    def _single(cls, value: SystemChoice) -> SystemChoice:
        if isinstance(value, tuple | File):
            raise ValueError("expected one system whose chip is known, such as hgx-h200")
        return value

    @field_validator("reuse", "hit")
    @classmethod
    def _one_chance(cls, value: object, info: ValidationInfo) -> object:
        pairs = value if info.field_name == "reuse" else info.data.get("reuse")
        if isinstance(pairs, tuple) and info.data.get("hold") is not None:
            raise ValueError("reuse says the hold times with their chances: leave hold out")
        if value is not None and info.field_name == "hit" and pairs is not None:
            raise ValueError("reuse says the chance already: leave hit out, or give hold with hit")
        return value

    @property
    def attention(self) -> bool:
        """True if the arithmetic of attention is counted, i.e. if a prefix is given."""
        return self.prefix is not None

    @property
    def holds(self) -> tuple[tuple[float, float], ...]:
        """(hold time [s], chance of a hit) of every question, the shortest first."""
        if isinstance(self.reuse, tuple):
            return self.reuse
        chance = 1.0 if self.hit is None else self.hit
        return tuple((hold, chance) for hold in self.hold or DEFAULT_HOLD_TIMES)


QUESTION = CacheScenario
