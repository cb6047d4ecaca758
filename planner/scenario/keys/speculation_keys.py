"""Speculative decoding: number of drafted tokens, drafting method and accepted tokens."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, ValidationInfo, field_validator

from planner.catalogue import models
from planner.scenario.keys import fields
from planner.scenario.keys.fields import EnumKey, Quantity, Record
from planner.text.errors import did_you_mean, quote
from planner.text.tables import table

METHODS = tuple(table("planner.catalogue", "speculation.toml")["methods"])
AUTO = "auto"
MODEL = "draft-model"  # the method of a drafter that is a model of its own
MAX_DRAFTS = 64  # drafts; nobody publishes more than 23


@dataclass(frozen=True)
class _Drafts(fields.FieldType):
    """A number of drafts, or `auto`: the best at each batch."""

    def read(self, value: object) -> int | str:
        if value == AUTO:
            return AUTO
        if isinstance(value, str):
            hint = did_you_mean(value, (AUTO,))
            raise ValueError(f"expected a whole number, or {AUTO}, got {quote(value)}{hint}")
        return fields.count(value, 1, MAX_DRAFTS)

    def schema(self) -> dict[str, object]:
        return {"oneOf": [fields.IntegerField(most=MAX_DRAFTS).schema(), {"enum": [AUTO]}]}


@dataclass(frozen=True)
class _Accepted(fields.FieldType):
    """Mean tokens of a step, at the depth that is drafted, or at depths 1, 2, ..."""

    def read(self, value: object) -> float | tuple[float, ...]:
        if not isinstance(value, list | tuple):
            return _length(value)
        if not 0 < len(value) <= MAX_DRAFTS:
            raise ValueError(f"expected 1 to {MAX_DRAFTS} lengths, got {len(value)}")
        lengths = fields.read_each(value, _length)
        for depth, length in enumerate(lengths, 1):
            if length > 1 + depth:
                words = (
                    f"{length:g} tokens of a step of {depth} drafts; it emits at most {1 + depth}"
                )
                raise fields.Refusals([((depth - 1,), words)])
        return tuple(lengths)

    def schema(self) -> dict[str, object]:
        return fields.one_or_many({"type": "number", "minimum": 1})


def _length(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < MAX_DRAFTS:
        words = "expected the mean tokens of a step, its own counted, such as 2.4"
        raise ValueError(f"{words}, got {quote(value)}")
    return float(value)


class Speculation(Record):
    """Speculative decoding: tokens drafted per step, drafting method and tokens accepted."""

    model_config = ConfigDict(validate_default=True)

    drafts: Annotated[int | str, _Drafts()]
    """tokens drafted per sequence and step, or auto: as many as pay at each batch"""
    acceptance: Annotated[float, Quantity("share", zero=True, at_most=1.0)] | None = None
    """probability that a drafted token is accepted, the same at each place, 0 <= x <= 1"""
    accepted: Annotated[float | tuple[float, ...], _Accepted()] | None = None
    """mean tokens of a step, its own counted: at this depth, or a list by depth"""
    method: Annotated[str, EnumKey(METHODS)] | None = None
    """what drafts; the model's predictor layers, else an EAGLE-3 head, when absent"""
    draft_model: str | None = None
    """a catalogue name, of a model of its own that drafts"""

    @field_validator("accepted")
    @classmethod
    def _possible(
        cls, value: float | tuple[float, ...] | None, info: ValidationInfo
    ) -> float | tuple[float, ...] | None:
        drafts, chance = info.data.get("drafts"), info.data.get("acceptance")
        if value is None or drafts is None:
            return value
        if chance is not None:
            raise ValueError(
                "accepted says how many tokens a step brings, and acceptance says it again; leave "
                "one of the two out"
            )
        if isinstance(value, float) and drafts == AUTO:
            raise ValueError(
                f"one length cannot tell other depths, and drafts: {AUTO} needs them; give a "
                f"list by depth such as [1.7, 2.1, 2.4], or a number of drafts"
            )
        if isinstance(value, float) and value > 1 + int(drafts):
            raise ValueError(
                f"a step of {drafts} drafts emits at most {1 + int(drafts)} tokens, not {value:g}; "
                f"give more drafts, or a smaller length"
            )
        return value

    @field_validator("draft_model")
    @classmethod
    def _named(cls, value: str | None, info: ValidationInfo) -> str | None:
        method = info.data.get("method")
        if value is not None and value not in models.model_names():
            hint = did_you_mean(value, models.model_names())
            raise ValueError(f"unknown model {quote(value)}{hint}")
        if value is not None and method not in (None, MODEL):
            raise ValueError(
                f"a model of its own drafts, and method says {method}; leave one of the two out"
            )
        if value is None and method == MODEL:
            raise ValueError(f"method: {MODEL} needs a name such as llama-3.2-1b")
        return value
