"""What is chosen: layouts, formats and modes, left open, limited, or as they are today."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.scenario.keys.fields import (
    DTYPES,
    MODES,
    Copies,
    Count,
    Dtypes,
    MathDtypes,
    Modes,
    Numbers,
    Quantity,
    Record,
    Whole,
    Word,
)


class _Axes(Record):
    """The sizes of a layout."""

    tp: Numbers | None = Field(None, description="chips that shard attention")
    pp: Numbers | None = Field(None, description="pipeline stages")
    cp: Numbers | None = Field(
        None, description="parts of a context; tried for long prompts when absent, else 1"
    )
    dp_attention: Numbers | None = Field(None, description="copies of attention in a replica")
    ep: Numbers | None = Field(None, description="groups the experts are spread over")
    tp_expert: Numbers | None = Field(None, description="chips that shard one expert")


class PoolChoice(_Axes):
    """Limits on the layout of one of two pools; what is absent is taken from the whole."""

    replicas: Numbers | None = Field(None, description="replicas of this pool")


class Choose(_Axes):
    """Limits on, or values of, the choices; what is absent is chosen freely."""

    replicas: Numbers | None = Field(None, description="independent copies of the model")
    redundant_experts: Copies | None = Field(
        None, description="routed experts of a layer that are held once more; 0 when absent"
    )
    batch: Numbers | None = Field(None, description="sequences in flight over all replicas")
    mode: Modes | None = Field(None, description="one pool, two pools, or one phase alone")
    weights: Dtypes | None = Field(None, description="dtype of the weights")
    kv: Dtypes | None = Field(None, description="dtype of the key-value cache")
    activations: MathDtypes | None = Field(None, description="dtype of the activations")
    chunk: Numbers | None = Field(None, description="tokens of prompt per prefill chunk [token]")
    prefill: PoolChoice | None = Field(None, description="of the pool that prefills, if two")
    decode: PoolChoice | None = Field(None, description="of the pool that decodes, if two")


class Current(Record):
    """The layout in use today, evaluated beside the chosen one."""

    tp: Count = 1
    pp: Count = 1
    cp: Count = 1
    dp_attention: Count = 1
    ep: Count | None = None
    tp_expert: Count | None = None
    replicas: Count | None = None
    redundant_experts: Annotated[int, Whole(least=0)] = 0
    batch: Count | None = Field(None, description="sequences in flight over all replicas")
    mode: Annotated[str, Word(MODES)] | None = None
    weights: Annotated[str, Word(DTYPES)] | None = None
    kv: Annotated[str, Word(DTYPES)] | None = None
    activations: Annotated[str, Word(DTYPES)] | None = None
    chunk: Count | None = None

    @model_validator(mode="after")
    def _experts_fill_the_stage(self) -> Current:
        if self.ep is not None and self.tp_expert is not None:
            chips = self.tp * self.dp_attention
            if self.ep * self.tp_expert != chips:
                raise ValueError(
                    f"ep * tp_expert = {self.ep * self.tp_expert} must equal "
                    f"tp * dp_attention = {chips}: the experts re-partition the same chips"
                )
        return self


class Speculation(Record):
    """Speculative decoding: tokens drafted per step and the chance that one is accepted."""

    drafts: Count = Field(description="tokens drafted per sequence and step")
    acceptance: Annotated[float, Quantity("share", zero=True, at_most=1.0)] = Field(
        description="probability that a drafted token is accepted, 0 <= x <= 1"
    )
