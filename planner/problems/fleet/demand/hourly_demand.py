"""A model's requests over the hours: a wave, a list, a CSV file, or tokens of a day."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.problems.fleet.demand.demand_file import hourly_column
from planner.scenario.keys.fields import Quantity, Record, Seconds
from planner.scenario.keys.references import File, name_or_file

DAY, WEEK = 24, 168
Rate = Annotated[float, Quantity("request_rate", zero=True)]


def described_demand(value: object) -> object:
    """A rate or a list of rates as the mapping that it stands for."""
    if isinstance(value, list | tuple):
        return {"hourly": list(value)}
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return {"mean": value}
    return value


def named_column(model: object, name: str) -> object:
    """A model whose demand is in a file, with its name for the column that is meant."""
    if not isinstance(model, Mapping):
        return model
    demand = model.get("demand")
    if isinstance(demand, str) and demand.strip().casefold().endswith(".csv"):
        demand = {"file": demand}
    if not isinstance(demand, Mapping) or demand.get("file") is None:
        return model
    return {**model, "demand": {"column": name, **demand}}


class FleetDemand(Record):
    """Requests of a model over the hours: a daily wave, a list, or work that may wait."""

    mean: Annotated[float, Quantity("request_rate")] | None = Field(
        None, description="of a weekday [seq/s]"
    )
    peak_to_mean: Annotated[float, Quantity("number", least=1.0)] = 1.0
    """the busiest hour over the mean, at most 2"""
    peak_hour: Annotated[float, Quantity("number", zero=True, below=24.0)] = 12.0
    """hour of the peak, UTC"""
    weekend: Annotated[float, Quantity("number", zero=True, at_most=10.0)] = 1.0
    """factor on Saturday and Sunday, of a week or more"""
    hourly: tuple[Rate, ...] | None = Field(None, description="of every hour [seq/s]")
    file: str | None = None
    """a CSV file by hour: hour,chat,code; its head names models, and units: chat [requests/hour]"""
    column: str | None = Field(None, description="of the file; the model's name when absent")
    tokens_per_day: Annotated[float, Quantity("tokens")] | None = None
    """input and output together, spread evenly over the day [token]"""
    deferrable: Seconds | None = Field(None, description="by how much work may wait [s]")

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, value: object, info: ValidationInfo) -> object:
        """What is in the file as the list of hours; `column` then is its head."""
        if not isinstance(value, Mapping) or not value.get("file") or value.get("hourly"):
            return value
        file = name_or_file(value["file"], "demand", "day.csv", (), info)
        assert isinstance(file, File)
        read = hourly_column(file, str(value.get("column") or ""))
        return {**value, "hourly": list(read.rates), "column": read.head}

    @field_validator("peak_to_mean")
    @classmethod
    def _cosine(cls, value: float) -> float:
        if value > 2:
            raise ValueError(
                f"expected at most 2, got {value:g}: a cosine of that height would be negative at "
                "night; give the demand as a list of requests/s by hour, or a CSV file"
            )
        return value

    @model_validator(mode="after")
    def _one_shape(self) -> FleetDemand:
        shapes = [k for k in ("mean", "hourly", "tokens_per_day") if getattr(self, k) is not None]
        if len(shapes) != 1:
            got = " and ".join(shapes) or "none"
            words = "give one of mean, hourly (a list), file (a CSV) and tokens_per_day"
            raise ValueError(f"{words}, got {got}")
        changed = {key for key, field in type(self).model_fields.items()
                if getattr(self, key) != field.default}  # fmt: skip
        wave = changed & {"peak_to_mean", "peak_hour", "weekend"}
        if wave and self.hourly is not None:
            raise ValueError(f"a list says all hours; leave {', '.join(sorted(wave))} out")
        return self

    def rates(self, hours: int, tokens: float | None) -> list[float]:
        """Requests per second in every hour [seq/s]; `tokens` are those of a mean request."""
        if self.hourly is not None:
            return list(self.hourly)
        if self.tokens_per_day is not None:
            assert tokens is not None
            mean = self.tokens_per_day / tokens / 86400
        else:
            assert self.mean is not None
            mean = self.mean
        swing = self.peak_to_mean - 1
        waves = (
            mean * (1 + swing * math.cos(2 * math.pi * (h - self.peak_hour) / DAY))
            for h in range(hours)
        )
        return [
            max(0.0, wave) * (self.weekend if hours >= WEEK and h // DAY % 7 in (5, 6) else 1.0)
            for h, wave in enumerate(waves)
        ]
