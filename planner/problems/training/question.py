"""The scenario of `problem: training`: model, machine, work, and which layouts may be chosen.

`train` says which parameters are trained: `all`, or `{lora: 16}` for adapters of that rank beside
every matrix of the layers, whose own weights are frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from planner.catalogue.systems import System
from planner.catalogue.training.training_stacks import training_stack_names
from planner.scenario.keys import fields, training_fields
from planner.scenario.keys.model_keys import ModelDescription, ModelField
from planner.scenario.keys.references import AUTO, File, name_or_file
from planner.scenario.keys.system_keys import SystemDescription, SystemField, resolved_system
from planner.scenario.keys.uncertain import Distributions
from planner.text.errors import quote
from planner.token_costs.phase_keys import Phase

OBJECTIVES = ("time", "cost", "energy")
PRECISIONS = ("bf16", "fp8", "nvfp4")
SCHEDULES = ("1f1b", "interleaved", "zero-bubble", "gpipe")
RECOMPUTE = ("none", "selective", "full", "reversible")


def _whole_number(value: float) -> float:
    if value % 1:
        raise ValueError(f"expected a whole number of tokens, got {quote(value)}")
    return value


SequenceLength: TypeAlias = Annotated[
    float, fields.Quantity("tokens", least=1.0), AfterValidator(_whole_number)
]


class Work(fields.Record):
    """Work of a training run: batch, sequence length and tokens."""

    global_batch: Annotated[training_fields.BatchSize, training_fields.BatchField()] = Field(
        description="of one optimiser step: tokens, or `512 sequences`"
    )
    sequence: SequenceLength = Field(description="length of a sequence [token]")
    tokens: Annotated[float, fields.Quantity("tokens")] | None = Field(
        None, description="of the whole run [token]; gives days and money"
    )

    @field_validator("tokens")
    @classmethod
    def _at_least_a_batch(cls, value: float | None, info: ValidationInfo) -> float | None:
        batch, sequence = info.data.get("global_batch"), info.data.get("sequence")
        if value is not None and batch is not None and sequence is not None:
            least = batch.sequences(sequence) * sequence
            if value < least:
                raise ValueError(
                    f"{value:g} tokens are fewer than a batch of {least:,.0f}: no step is whole"
                )
        return value

    @property
    def sequences(self) -> int:
        """Sequences of one optimiser step [seq]."""
        return self.global_batch.sequences(self.sequence)

    @property
    def batch_tokens(self) -> float:
        """Tokens of one optimiser step [token]."""
        return self.sequences * self.sequence


BytesPerParam = Annotated[float, fields.Quantity("bytes_per_param", zero=True, at_most=64.0)]


class ParameterState(fields.Record):
    """Memory per trained parameter [byte/param]."""

    weights: BytesPerParam = Field(2.0, description="[byte/param]")
    gradients: BytesPerParam = Field(4.0, description="[byte/param]")
    optimizer: BytesPerParam = Field(12.0, description="master weights and moments [byte/param]")


class TrainingLimits(fields.Record):
    """Upper limits on days and cost of the run; memory is a limit of its own."""

    days: Annotated[float, training_fields.Days()] | None = Field(
        None, description="of the whole run [day]"
    )
    usd: Annotated[float, fields.Quantity("money")] | None = Field(
        None, description="of the whole run [USD]"
    )


class Reliability(fields.Record):
    """Mean time between failures of a chip, and time lost to a checkpoint and a restart."""

    mtbf: Annotated[float, fields.Quantity("mtbf")] = Field(
        description="mean time between failures of one chip [s]"
    )
    save: fields.Seconds = Field(description="a checkpoint holds up training for [s]")
    restart: fields.Seconds = Field(description="from a failure until training goes on [s]")


class TrainingChoose(fields.Record):
    """Allowed values of the layout choices; an absent choice is free."""

    tp: fields.ListKey | None = Field(None, description="chips that share every matrix")
    pp: fields.ListKey | None = Field(None, description="stages of the pipeline")
    dp: fields.ListKey | None = Field(None, description="replicas that share the batch")
    ep: fields.ListKey | None = Field(None, description="groups of experts")
    tp_expert: fields.ListKey | None = Field(
        None, description="chips that share an expert's matrices"
    )
    cp: fields.ListKey | None = Field(None, description="chips that share a sequence")
    micro_batch: fields.ListKey | None = Field(None, description="sequences of a micro-batch")
    virtual_stages: fields.ListKey | None = Field(None, description="virtual stages of each stage")
    schedule: Annotated[tuple[str, ...], fields.ChoiceListField(SCHEDULES)] | None = None
    """of the pipeline"""
    recompute: Annotated[tuple[str, ...], fields.ChoiceListField(RECOMPUTE)] | None = None
    """what runs forward again in place of being kept"""
    zero: fields.Copies | None = Field(None, description="ZeRO stage, 0 to 3")
    offload: Annotated[tuple[str, ...], training_fields.Offloads()] | None = None
    """what lives in the memory of the host: none, optimizer, activations"""
    sequence_parallel: Annotated[tuple[bool, ...], training_fields.Flags()] | None = None
    """whether tp also divides what it leaves whole, along the sequence"""
    overlap: Annotated[tuple[bool, ...], training_fields.Flags()] | None = None
    """whether data-parallel traffic runs beside the arithmetic"""

    @field_validator("zero")
    @classmethod
    def _stages(cls, value: tuple[int, ...] | range | None) -> tuple[int, ...] | range | None:
        if value is not None and value[-1] > 3:
            raise ValueError(f"expected ZeRO stages 0 to 3, got {value[-1]}")
        return value


class TrainingCurrent(fields.Record):
    """The layout in use."""

    tp: fields.Count = 1
    pp: fields.Count = 1
    dp: fields.Count | None = Field(None, description="what the chips leave, where it is absent")
    ep: fields.Count = 1
    tp_expert: fields.Count | None = Field(None, description="as tp where it is absent")
    cp: fields.Count = 1
    micro_batch: fields.Count = 1
    virtual_stages: fields.Count = 1
    schedule: Annotated[str, fields.EnumKey(SCHEDULES)] = "1f1b"
    recompute: Annotated[str, fields.EnumKey(RECOMPUTE)] = "none"
    zero: Annotated[int, fields.IntegerField(least=0)] = 1
    offload: Annotated[tuple[str, ...], training_fields.Offloads()] = training_fields.OFFLOADS[:1]
    sequence_parallel: bool = False
    overlap: bool = True


def _stack(value: object, info: ValidationInfo) -> str | File:
    return name_or_file(value, "profile", AUTO, (AUTO, *training_stack_names()), info)


StackField = Annotated[
    str | File,
    PlainValidator(_stack),
    WithJsonSchema({"type": "string", "minLength": 1}),
    Field(description="the software stack whose coefficients are taken, or a file"),
]


class TrainingQuestion(fields.QuestionRecord):
    """One question of training layouts in base units (s, byte, flop, token, USD, J); frozen."""

    COUNTS: ClassVar[Mapping[str, str]] = {
        "chips": "chip", "choose.micro_batch": "seq", "limits.days": "day",
    }  # fmt: skip

    problem: fields.ProblemName[Literal["training"]]
    model: ModelField = Field(description="a catalogue name, or a path to a Hugging Face config")
    system: SystemField = Field(
        description="a catalogue name, a topology file, or a description; or a list of them"
    )
    chips: fields.SystemChips = Field(description="chips paid: a number, a list, or {from, to}")
    work: Work = Field(description="what is trained on")
    precision: Annotated[str, fields.EnumKey(PRECISIONS)] = Field(
        "bf16", description="format of the matrix products"
    )
    state: ParameterState = Field(default_factory=ParameterState, description="bytes per parameter")
    train: Annotated[training_fields.LoraRank, training_fields.TrainableField()] = Field(
        training_fields.LoraRank(), description="which parameters: all, or {lora: RANK}"
    )
    reversible: bool = Field(
        default=False, description="whether the layers of the model can be run backwards"
    )
    limits: TrainingLimits = Field(
        default_factory=TrainingLimits, description="what the run may take"
    )
    reliability: Reliability | None = Field(None, description="failures and checkpoints")
    choose: TrainingChoose = Field(
        default_factory=TrainingChoose, description="limits on, or values of, choices"
    )
    objective: Annotated[str, fields.EnumKey(OBJECTIVES)] = Field(
        "time", description="what is made small"
    )
    price: fields.ListedRent = None
    power_price: Annotated[float, fields.Quantity("energy_price")] | None = Field(
        None, description="electricity, paid on top of the rent [USD/J]"
    )
    pue: Annotated[float, fields.Quantity("number", least=1.0, at_most=10.0)] | None = Field(
        None, description="power drawn by the site per power drawn by the machines, at least 1"
    )
    current: TrainingCurrent | None = Field(None, description="the layout in use, evaluated beside")
    profile: StackField = "auto"
    uncertain: Distributions = None

    @model_validator(mode="after")
    def _agrees(self) -> TrainingQuestion:
        faults: fields.Faults = [
            *self._limits_of_a_run(),
            *self._model_alone(),
            *self._current_product(),
        ]
        described = isinstance(self.system, SystemDescription) and self.system.price
        if self.price is not None and described:
            faults.append((("price",), "give price here or in system, not both"))
        reversible = "reversible" in (self.choose.recompute or ())
        if reversible and not self.reversible:
            words = "the model is not declared so: give reversible: true, or another recompute"
            faults.append((("choose", "recompute"), words))
        return fields.check_faults(self, faults)

    def _limits_of_a_run(self) -> fields.Faults:
        if self.work.tokens is not None:
            return []
        words = "a limit of the whole run needs its tokens: give work.tokens"
        return [(("limits", key), words) for key, value in self.limits if value is not None]

    def _model_alone(self) -> fields.Faults:
        if isinstance(self.model, ModelDescription) and self.model.like is None:
            words = "training needs the layers of a model: give a catalogue name or a config.json"
            return [(("model",), words)]
        return []

    def _current_product(self) -> fields.Faults:
        layout = self.current
        if layout is None:
            return []
        others = layout.tp * layout.cp * layout.pp
        chips = list(self.chips)
        if layout.dp is not None and layout.dp * others not in chips:
            product = f"tp {layout.tp} * cp {layout.cp} * pp {layout.pp} * dp {layout.dp}"
            words = f"{product} = {layout.dp * others} chips, but chips is {chips[-1]}"
            return [(("current",), words)]
        if layout.dp is None and all(number % others for number in chips):
            words = f"tp * cp * pp = {others} does not divide the {chips[-1]} chips"
            return [(("current",), words)]
        return []

    def systems(self) -> tuple[System | File, ...]:
        """The systems asked about, with the chip's figures varied as given."""
        choices = self.system if isinstance(self.system, tuple) else (self.system,)
        return tuple(resolved_system(choice) for choice in choices)


QUESTION = TrainingQuestion


# ---- pre-training as a phase of a longer question, its layout planned for whatever model is chosen


class PlannedRun(fields.Record):
    """The run that the training planner lays out, as in `problem: training`."""

    chips: fields.SystemChips = Field(description="chips paid: a number, a list, or {from, to}")
    global_batch: Annotated[training_fields.BatchSize, training_fields.BatchField()] = Field(
        description="of one optimiser step: tokens, or `512 sequences`"
    )
    sequence: SequenceLength = Field(description="length of a sequence [token]")
    state: ParameterState = Field(default_factory=ParameterState, description="bytes per parameter")
    reliability: Reliability | None = Field(None, description="failures and checkpoints")
    choose: TrainingChoose = Field(
        default_factory=TrainingChoose, description="limits on, or values of, choices"
    )
    profile: StackField = "auto"


class PretrainPhase(Phase):
    """Pre-training at a given share of the peak, or at the share of its model's best layout."""

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
            raise ValueError("give the system of the layouts, such as hgx-h100")
        if isinstance(info.data.get("system"), tuple):
            raise ValueError("give one system: layouts are planned for one, not for a list")
        dtype = info.data.get("dtype")
        if dtype is not None and dtype not in PRECISIONS:
            raise ValueError(f"the training planner knows {', '.join(PRECISIONS)}, not {dtype}")
        return value
