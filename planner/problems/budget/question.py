"""The scenario of `problem: budget`: the size of a model and the tokens of each phase of its life.

What is asked for is a quality at the least cost, or the best quality at a cost.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from planner.problems.training import PretrainPhase
from planner.scenario.keys import budget_fields as fields
from planner.scenario.keys.fields import EnumKey, ProblemName, Quantity, QuestionRecord, Record
from planner.scenario.keys.references import File
from planner.scenario.keys.uncertain import Distributions
from planner.token_costs import phase_keys as keys

OBJECTIVES = ("flop", "cost")


class BudgetChoose(Record):
    """Values that a choice may take; an absent choice is free."""

    sparsity: Annotated[tuple[float, ...], fields.OneOrMany(fields.Ratio())] = Field(
        (1.0,), description="N_total/N_active to try, each at least 1"
    )
    n_active: Annotated[tuple[float, ...], fields.OneOrMany(Quantity("params"))] | None = Field(
        None, description="active parameters to try [param]"
    )
    pretrain: Annotated[tuple[float, ...], fields.OneOrMany(Quantity("tokens"))] | None = Field(
        None, description="tokens of pre-training to try [token]"
    )


class BudgetPhases(keys.Phases):
    """The phases of a model's life that cost something."""

    pretrain: PretrainPhase = Field(default_factory=PretrainPhase, description="pre-training")


class BudgetScenario(QuestionRecord):
    """One question of token budgets in base units (s, flop, param, token, USD); frozen."""

    problem: ProblemName[Literal["budget"]]
    law: fields.LawField = Field(
        keys.DEFAULT_LAW,
        description="a catalogue name, a file or a description; or a list to compare",
    )
    quality: keys.Quality | None = Field(
        None, description="{loss: 2.05}, or {like: ...}: as good as a compute-optimal model"
    )
    cost: Annotated[fields.Limit, fields.LimitField()] | None = Field(
        None,
        validate_default=True,
        description="in place of quality: at most this, in USD or FLOP; the best loss is sought",
    )
    inference: keys.Inference = Field(
        default_factory=keys.Inference, description="tokens served over the model's life"
    )
    rl: keys.Reinforcement = Field(
        default_factory=keys.Reinforcement, description="reinforcement learning after pre-training"
    )
    data: keys.BudgetData = Field(default_factory=keys.BudgetData, description="data to train on")
    choose: BudgetChoose = Field(
        default_factory=BudgetChoose, description="values that the choices may take"
    )
    phases: BudgetPhases = Field(
        default_factory=BudgetPhases, description="chip, utilisation and price of each phase"
    )
    objective: Annotated[str, EnumKey(OBJECTIVES)] = Field(
        "flop", validate_default=True, description="what is made small: flop, or cost in USD"
    )
    extrapolate: keys.Extrapolate = None
    draws: keys.Draws = keys.DRAWS
    coverage: keys.Coverage = fields.INTERVAL
    uncertain: Distributions = None

    @field_validator("cost")
    @classmethod
    def _one_aim(cls, value: fields.Limit | None, info: ValidationInfo) -> fields.Limit | None:
        if "quality" not in info.data:
            return value
        quality = info.data["quality"]
        if value is not None and quality is not None:
            raise ValueError("give quality (the least cost is sought) or cost (the best loss is)")
        if value is None and quality is None:
            raise ValueError(
                "give quality, such as {like: {n_active: 13e9}} or {loss: 2.05}, or cost, such as "
                '"1e24 FLOP" or "$5M"'
            )
        return value

    @field_validator("objective")
    @classmethod
    def _priced(cls, value: str, info: ValidationInfo) -> str:
        needed = {"cost", "inference", "rl", "phases"}
        if not needed <= info.data.keys():
            return value
        phases, used = info.data["phases"], used_phases(info.data["inference"], info.data["rl"])
        limit: fields.Limit | None = info.data["cost"]
        in_usd = (limit.per or value) in ("USD", "cost") if limit else value == "cost"
        lacking = [
            f"phases.{name}.{key}"
            for name in used
            for key in ("system", "mfu")
            if getattr(getattr(phases, name), key, None) is None
            and not (key == "mfu" and _planned(phases, name))
        ]
        if in_usd and lacking:
            raise ValueError(f"a cost in USD needs {', '.join(lacking)}")
        rated = [
            name for name in used
            if getattr(getattr(phases, name), "mfu", None) is not None or _planned(phases, name)
        ]  # fmt: skip
        if rated and len(rated) < len(used):
            bare = [f"phases.{name}.mfu" for name in used if name not in rated]
            raise ValueError(
                f"give {', '.join(bare)} too, or no mfu at all: FLOP done and FLOP paid for do "
                "not add up"
            )
        return value

    @property
    def in_usd(self) -> bool:
        """True if the cost that is minimised or limited is in USD."""
        if self.cost is not None and self.cost.per is not None:
            return self.cost.per == "USD"
        return self.objective == "cost"

    @property
    def rated(self) -> bool:
        """True if a phase has an MFU: FLOP are counted at the peak, not as executed."""
        return any(
            getattr(getattr(self.phases, name), "mfu", None) or _planned(self.phases, name)
            for name in self.used
        )

    @property
    def used(self) -> tuple[str, ...]:
        """The phases that cost something, in the order of a model's life."""
        return used_phases(self.inference, self.rl)

    @property
    def laws(self) -> tuple[str | File | Mapping[str, object], ...]:
        """Laws of the scenario; the first answers, the others are compared with it."""
        return self.law if isinstance(self.law, tuple) else (self.law,)


def _planned(phases: BudgetPhases, name: str) -> bool:
    return getattr(getattr(phases, name), "training", None) is not None


def used_phases(inference: keys.Inference, rl: keys.Reinforcement) -> tuple[str, ...]:
    """The phases that these tokens use, in the order of a model's life."""
    used = {"pretrain": True, "rl": rl.used, "inference": inference.used}
    return tuple(name for name, taken in used.items() if taken)


QUESTION = BudgetScenario
