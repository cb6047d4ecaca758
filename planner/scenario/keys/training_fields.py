"""The kinds of value that only a training scenario holds: batches, days, offloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.scenario.keys import fields
from planner.scenario.keys.fields import Quantity, Refusals
from planner.text.errors import QuantityError, quote
from planner.text.quantities import parse

OFFLOADS = ("none", "optimizer", "activations")
DAY = 86400.0
MEBI = 1.048576  # 2^20 over 10^6: "4 M tokens" of a published batch are 4 x 2^20
ALL_PARAMETERS = "all"  # of the parameters are trained
LORA = "lora "  # before the rank, where it is written in a word


@dataclass(frozen=True)
class BatchSize:
    """Tokens, or sequences, of one optimiser step; `per` says which."""

    value: float
    per: str  # "token" | "seq"

    def sequences(self, length: float) -> int:
        """Number of sequences in the batch, an integer [seq].

        Tokens that are no whole number of sequences are read as 2^20 to the million, as batches
        are published, where that is whole; else the nearest number is taken.
        """
        if self.per == "seq":
            return round(self.value)
        count = self.value / length
        if count % 1 and not (count * MEBI) % 1:
            return round(count * MEBI)
        return max(1, round(count))

    def __str__(self) -> str:
        """The batch as a scenario has it."""
        return f"{self.value!r} {'tokens' if self.per == 'token' else 'sequences'}"

    def exact(self, length: float) -> bool:
        """True if rounding to complete sequences leaves the batch size unchanged."""
        return self.value == self.sequences(length) * (1 if self.per == "seq" else length)


@dataclass(frozen=True)
class BatchField(fields.FieldType):
    """A batch: tokens, or whole sequences."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: tokens, or sequences."""
        return {"type": ["string", "number"], "examples": ["4 M tokens", "512 sequences"]}

    def read(self, value: object) -> BatchSize:
        """The batch, in tokens or in sequences."""
        if isinstance(value, BatchSize):
            return value
        try:
            return BatchSize(Quantity("tokens", least=1.0).read(value), "token")
        except QuantityError as error:
            try:
                count = parse(value, "requests")
            except QuantityError:
                raise ValueError(f'{error}; "512 sequences" are read too') from None
        if not count or count % 1:
            raise ValueError(f"expected a whole number of sequences, got {quote(value)}")
        return BatchSize(count, "seq")


@dataclass(frozen=True)
class Flags(fields.FieldType):
    """True, false, or both to choose from."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: a truth value, or both."""
        return fields.one_or_many({"type": "boolean"})

    def read(self, value: object) -> tuple[bool, ...]:
        """The truth values, false first."""
        values = value if isinstance(value, list | tuple) else (value,)
        if not values or any(not isinstance(each, bool) for each in values):
            raise ValueError(f"expected true, false or [false, true], got {quote(value)}")
        return tuple(sorted(set(values)))


@dataclass(frozen=True)
class Offloads(fields.FieldType):
    """State offloaded to host memory, or a list to choose from; true is the optimizer."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: the state that may be offloaded; true is the optimizer."""
        return fields.one_or_many({"enum": [*OFFLOADS, True, False]})

    def read(self, value: object) -> tuple[str, ...]:
        """The words, without repetitions."""
        values = value if isinstance(value, list | tuple) else [value]
        plain = {True: OFFLOADS[1], False: OFFLOADS[0]}
        return fields.ChoiceListField(OFFLOADS).read([
            plain[each] if isinstance(each, bool) else each for each in values
        ])  # fmt: skip


@dataclass(frozen=True)
class Days(fields.FieldType):
    """Days: a plain number, or a time with its unit."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: days, or a time."""
        return {"type": ["string", "number"], "examples": [60, "8 weeks"]}

    def read(self, value: object) -> float:
        """Days [day]."""
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        return Quantity("number" if plain else "time").read(value) / (1.0 if plain else DAY)


@dataclass(frozen=True)
class TrainableField(fields.FieldType):
    """Trained parameters: all (read as 0), or {lora: RANK}."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: all, or the rank of an adapter."""
        rank = fields.IntegerField().schema()
        return {
            "oneOf": [{"const": ALL_PARAMETERS}, fields.mapping_schema({"lora": rank}, ["lora"])]
        }

    def read(self, value: object) -> LoraRank:
        """The rank; 0 for all parameters."""
        if isinstance(value, LoraRank):
            return value
        if value == ALL_PARAMETERS:
            return LoraRank()
        if isinstance(value, str) and value.startswith(LORA):
            rank = value.removeprefix(LORA)
            value = {"lora": int(rank) if rank.isdecimal() else rank}
        if not isinstance(value, Mapping) or list(value) != ["lora"]:
            raise ValueError(f"expected {ALL_PARAMETERS}, or {{lora: 16}}, got {quote(value)}")
        try:
            return LoraRank(fields.count(value["lora"], 1))
        except ValueError as error:
            raise Refusals([(("lora",), error)]) from None


@dataclass(frozen=True)
class LoraRank:
    """The rank of adapters trained on frozen weights; 0 if all weights are trained."""

    lora: int = 0

    def __str__(self) -> str:
        """Text of the trained parameters, as written in a scenario."""
        return f"{LORA}{self.lora}" if self.lora else ALL_PARAMETERS
