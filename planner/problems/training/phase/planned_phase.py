"""Pre-training as a phase of a longer question, its layout planned for whatever model is chosen."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from planner.problems.training.question import (
    PRECISIONS,
    ParameterState,
    Reliability,
    StackField,
    TrainingChoose,
)
from planner.scenario.keys.fields import Numbers, Quantity, Record
from planner.scenario.keys.training_fields import BatchField, BatchSize
from planner.text.errors import quoted
from planner.token_costs.phase_keys import Phase


class PlannedRun(Record):
    """The run that the training planner lays out, as in `problem: training`."""

    chips: Numbers = Field(description="chips paid: a number, a list, or {from, to}")
    global_batch: Annotated[BatchSize, BatchField()] = Field(
        description="of one optimiser step: tokens, or `512 sequences`"
    )
    sequence: Annotated[float, Quantity("tokens", least=1.0)] = Field(
        description="length of a sequence [token]"
    )
    state: ParameterState = Field(default_factory=ParameterState, description="bytes per parameter")
    reliability: Reliability | None = Field(None, description="failures and checkpoints")
    choose: TrainingChoose = Field(
        default_factory=TrainingChoose, description="limits on, or values of, choices"
    )
    profile: StackField = Field(
        "auto", description="the software stack whose coefficients are taken, or a file"
    )

    @field_validator("sequence")
    @classmethod
    def _whole(cls, value: float) -> float:
        if value % 1:
            raise ValueError(f"expected a whole number of tokens, got {quoted(value)}")
        return value


class PretrainPhase(Phase):
    """Pre-training at a share of the peak, or at what the best layout of its model reaches."""

    SILENT: ClassVar[tuple[str, ...]] = ("training",)

    training: PlannedRun | None = Field(
        None,
        description="in place of a fixed mfu: the best training layout for the model that is "
        "chosen; an mfu, given or published, then stands beside it",
    )

    @field_validator("training")
    @classmethod
    def _on_a_system(cls, value: PlannedRun | None, info: ValidationInfo) -> PlannedRun | None:
        if value is None:
            return value
        if "system" in info.data and info.data["system"] is None:
            raise ValueError("give system: what the layouts are planned for, such as hgx-h100")
        if isinstance(info.data.get("system"), tuple):
            raise ValueError("give one system: layouts are planned for one, not for a list")
        dtype = info.data.get("dtype")
        if dtype is not None and dtype not in PRECISIONS:
            raise ValueError(f"the training planner knows {', '.join(PRECISIONS)}, not {dtype}")
        return value
