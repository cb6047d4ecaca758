"""The scenario of `problem: lifecycle`: one model from its first token of data to its last answer.

Quality, served tokens, training phases and laws are asked as in a budget; what serving costs is
asked as in a serving question, of whatever model turns out best.
"""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from planner.problems.serving import ESTIMATES
from planner.problems.training import PretrainPhase
from planner.scenario.keys.budget_fields import INTERVAL, LawField, OneOrMany, Ratio
from planner.scenario.keys.fields import (
    EnumKey,
    ListedRent,
    ListKey,
    ProblemName,
    Quantity,
    QuestionRecord,
    Record,
)
from planner.scenario.keys.references import ProfileField
from planner.scenario.keys.system_keys import SystemField
from planner.scenario.keys.uncertain import Distributions
from planner.scenario.keys.workload import Choose, Promises, Workload
from planner.token_costs import phase_keys as keys

ATTENTION = ("gqa", "mla")
MIN_FAMILY_PARAMS, MAX_PARAMS = 2e8, 2e13  # of the family rule


class FamilyPart(Record):
    """Candidate models: those of the family rule, or one model at other sizes."""

    attention: Annotated[str, EnumKey(ATTENTION)] = Field(
        "gqa", description="gqa: 8 cached heads at every size; mla: one latent, as DeepSeek-V3"
    )
    like: keys.ModelName | None = Field(
        None, description="a catalogue model, grown or shrunk in proportion, in place of the rule"
    )

    @field_validator("like")
    @classmethod
    def _of_one_kind(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("attention", ATTENTION[0]) != ATTENTION[0]:
            raise ValueError(f"leave attention out: models like {value} have their own")
        return value


class LifecycleChoose(Record):
    """Allowed values of the choices: sparsities, and the range of active parameters."""

    sparsity: Annotated[tuple[float, ...], OneOrMany(Ratio())] | None = Field(
        None, description="N_total/N_active to try, each at least 1; 1 (dense) when absent"
    )
    smallest: Annotated[float, Quantity("params", least=MIN_FAMILY_PARAMS, at_most=MAX_PARAMS)] = (
        Field(MIN_FAMILY_PARAMS, description="fewest active parameters [param]")
    )
    largest: Annotated[float, Quantity("params", least=MIN_FAMILY_PARAMS, at_most=MAX_PARAMS)] = (
        Field(MAX_PARAMS, description="most active parameters [param]")
    )

    @field_validator("largest")
    @classmethod
    def _ordered(cls, value: float, info: ValidationInfo) -> float:
        least = info.data.get("smallest")
        if least is not None and value <= least:
            raise ValueError(f"expected more than smallest = {least:.3g}, got {value:.3g}")
        return value


class Serving(Record):
    """One serving unit: machines, requests, promises and choices, as in `problem: serving`."""

    system: SystemField = Field(
        description="a catalogue name or a description; or a list of them, the cheapest is taken"
    )
    chips: ListKey = Field(description="chips of one unit: a number, a list, or {from, to}")
    price: ListedRent = None
    workload: Workload = Field(description="what the requests are like")
    promises: Promises = Field(default_factory=Promises, description="what must hold")
    choose: Choose = Field(default_factory=Choose, description="limits on, or values of, choices")
    utilisation: Annotated[float, Quantity("share", at_most=1.0)] = Field(
        1.0, description="share of the paid time in which the units are full, 0 < x <= 1"
    )
    estimate: Annotated[str, EnumKey(ESTIMATES)] = Field(
        "calibrated", description="which of the two estimates the plan is chosen by"
    )
    profile: ProfileField = Field(
        "auto", description="a named, dated calibration, or a file of one's own"
    )

    @field_validator("workload")
    @classmethod
    def _of_one_unit(cls, value: Workload) -> Workload:
        for key in ("demand", "concurrency"):
            if getattr(value, key) is not None:
                raise ValueError(
                    f"leave {key} out: a full unit is priced, and inference says how much is served"
                )
        return value

    @field_validator("choose")
    @classmethod
    def _whole_requests(cls, value: Choose) -> Choose:
        alone = sorted({"decode", "prefill"} & set(value.mode or ()))
        if alone:
            raise ValueError(f"mode: {alone[0]} is one phase alone; whole requests are priced here")
        return value


class TrainingPhase(keys.Phase):
    """System, efficiency and time limit of a phase of training."""

    duration: Annotated[float, Quantity("time")] | None = Field(
        None, description="time the phase may take [s]; with it chips are counted"
    )


class PlannablePhase(TrainingPhase, PretrainPhase):
    """System, efficiency and time limit of pre-training, whose layouts may be planned."""

    @field_validator("duration")
    @classmethod
    def _as_long_as_it_takes(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("training") is not None:
            raise ValueError("leave duration out: the chips of training say how long it takes")
        return value


class LifecyclePhases(Record):
    """The phases of training."""

    pretrain: PlannablePhase = Field(description="pre-training")
    rl: TrainingPhase | None = Field(
        None, description="reinforcement learning; where pre-training runs when absent"
    )

    @field_validator("pretrain", "rl")
    @classmethod
    def _somewhere(cls, value: TrainingPhase | None) -> TrainingPhase | None:
        if value is not None and value.system is None:
            raise ValueError("give system: where it runs, such as hgx-h100")
        return value


class LifecycleScenario(QuestionRecord):
    """One question about the whole life of a model in base units; frozen."""

    problem: ProblemName[Literal["lifecycle"]]
    law: LawField = Field(keys.DEFAULT_LAW, description="a catalogue name, a file or a description")
    quality: keys.Quality = Field(
        description="{loss: 2.05}, or {like: ...}: as good as a compute-optimal model"
    )
    inference: keys.Inference = Field(description="tokens served, input and output together")
    rl: keys.Reinforcement = Field(
        default_factory=keys.Reinforcement, description="reinforcement learning after pre-training"
    )
    data: keys.BudgetData = Field(default_factory=keys.BudgetData, description="data to train on")
    family: FamilyPart = Field(default_factory=FamilyPart, description="which models")
    choose: LifecycleChoose = Field(
        default_factory=LifecycleChoose, description="values that the choices may take"
    )
    serving: Serving = Field(description="how the model is served")
    phases: LifecyclePhases = Field(description="where it is trained")
    extrapolate: keys.Extrapolate = None
    draws: keys.Draws = keys.DRAWS
    coverage: keys.Coverage = INTERVAL
    uncertain: Distributions = None

    @field_validator("choose")
    @classmethod
    def _of_a_family(cls, value: LifecycleChoose, info: ValidationInfo) -> LifecycleChoose:
        family = info.data.get("family")
        if family is not None and family.like is not None and value.sparsity is not None:
            raise ValueError(f"leave sparsity out: models like {family.like} have their own")
        return value

    @field_validator("law")
    @classmethod
    def _one_law(cls, value: object) -> object:
        if isinstance(value, tuple):
            raise ValueError("expected one law, not a list: serving is solved for one law")
        return value

    @field_validator("inference")
    @classmethod
    def _serves(cls, value: keys.Inference) -> keys.Inference:
        if not value.used:
            raise ValueError("give tokens, or rate and lifetime: a model without serving is a "
                             "budget (problem: budget)")  # fmt: skip
        return value

    @field_validator("phases")
    @classmethod
    def _reinforced(cls, value: LifecyclePhases, info: ValidationInfo) -> LifecyclePhases:
        rl = info.data.get("rl")
        if rl is not None and rl.used and (value.rl is None or value.rl.mfu is None):
            raise ValueError("give rl: {system, mfu}: no published run states its MFU")
        return value


QUESTION = LifecycleScenario
