"""The parts of a budget's question: quality, served tokens, reinforcement learning, phases."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from planner.catalogue.chips import MATH
from planner.catalogue.models import model_names
from planner.catalogue.systems import System
from planner.scenario.keys import fields
from planner.scenario.keys.budget_fields import FOREVER, Lifetime, Yearly
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import SystemChoice, SystemField, resolved_system
from planner.text.errors import did_you_mean, quote

DTYPES = tuple(MATH)
LARGEST_LOSS = 20.0  # nat per token; guessing among a million words costs 13.8
MAX_TOKENS = 1e30
CURVE = ("rate", "lifetime", "growth", "discount")
MIN_GROWTH = -0.999999
YEAR = 365.25 * 86400.0

Tokens = Annotated[float, fields.Quantity("tokens", zero=True)]
OPTIMAL = "optimal"  # tokens served: as many as make the model of `quality.like` optimal


@dataclass(frozen=True)
class ServedField(fields.FieldType):
    """Tokens served, or `optimal`, which is infinitely many until the law is known."""

    def schema(self) -> dict[str, object]:
        """JSON Schema: tokens, or optimal."""
        return {"anyOf": [{"const": OPTIMAL}, fields.Quantity("tokens", zero=True).schema()]}

    def read(self, value: object) -> float:
        """The tokens, infinitely many where they are to be sought."""
        if value == OPTIMAL:
            return math.inf
        return fields.Quantity("tokens", zero=True).read(value)


def _in_catalogue(name: str) -> str:
    if name not in model_names():
        hint = did_you_mean(name, model_names()) or " (planner catalog models lists them)"
        raise ValueError(f"unknown model {quote(name)}{hint}")
    return name


ModelName = Annotated[str, AfterValidator(_in_catalogue)]


class Like(fields.Record):
    """A model to be as good as: compute-optimal for its size unless its tokens are given."""

    model: ModelName | None = Field(None, description="a catalogue name, in place of n_active")
    n_active: Annotated[float, fields.Quantity("params")] | None = Field(
        None, validate_default=True, description="active parameters [param]"
    )
    tokens: Annotated[float, fields.Quantity("tokens")] | None = Field(
        None, description="tokens it was trained on [token]; compute-optimal when absent"
    )
    sparsity: Annotated[float, fields.Quantity("number", least=1.0)] = Field(
        1.0, description="N_total/N_active of that model, where the law knows it"
    )

    @field_validator("n_active")
    @classmethod
    def _one_size(cls, value: float | None, info: ValidationInfo) -> float | None:
        if "model" in info.data and (value is None) == (info.data["model"] is None):
            raise ValueError("give either n_active or model, the size of the wanted quality")
        return value


class Quality(fields.Record):
    """Required quality of the model: a loss, or the loss of another model."""

    loss: Annotated[float, fields.Quantity("number", at_most=LARGEST_LOSS)] | None = Field(
        None, description="loss per token on the law's data [nat]"
    )
    like: Like | None = Field(None, validate_default=True, description="as good as this model")

    @field_validator("like")
    @classmethod
    def _loss_or_model(cls, value: Like | None, info: ValidationInfo) -> Like | None:
        if "loss" in info.data and (value is None) == (info.data["loss"] is None):
            raise ValueError("give like or loss, one of them")
        return value


class Inference(fields.Record):
    """Tokens served: a number, or a demand over the life of the model; none when empty."""

    tokens: Annotated[float, ServedField()] | None = Field(
        None,
        description="tokens served over the model's life [token]; or optimal: as many as make the "
        "model of quality.like the cheapest of its quality",
    )
    rate: Annotated[float, fields.Quantity("token_rate", zero=True)] | None = Field(
        None, description="tokens served per second at the start [token/s]"
    )
    lifetime: Annotated[float, Lifetime()] | None = Field(
        None, validate_default=True, description="time the model is served [s], or forever"
    )
    growth: Annotated[float, Yearly(least=MIN_GROWTH)] = Field(
        0.0, description="relative growth of the rate per year; 5 %/month is read too"
    )
    discount: Annotated[float, Yearly()] = Field(
        0.0, validate_default=True, description="relative fall of the worth of money per year"
    )
    obsolescence: Annotated[float, fields.Quantity("share", zero=True, below=1.0)] = Field(
        0.0, description="chance that the model is overtaken before it serves, 0 <= x < 1"
    )

    @field_validator("lifetime")
    @classmethod
    def _one_demand(cls, value: float | None, info: ValidationInfo) -> float | None:
        if not {"tokens", "rate"} <= info.data.keys():
            return value
        tokens, rate = info.data["tokens"], info.data["rate"]
        if tokens is not None and (rate is not None or value is not None):
            raise ValueError("give tokens, or rate and lifetime, not both")
        if (rate is None) != (value is None):
            lacking = "rate" if rate is None else "lifetime"
            raise ValueError(f"give {lacking} too: tokens served are a rate over a lifetime")
        return value

    @field_validator("discount")
    @classmethod
    def _finite(cls, value: float, info: ValidationInfo) -> float:
        data = info.data
        if not set(CURVE) - {"discount"} <= data.keys():
            return value
        if data["rate"] is None:
            if value or data["growth"]:
                raise ValueError("give rate and lifetime with growth and discount")
            return value
        net, life = math.log1p(data["growth"]) - math.log1p(value), data["lifetime"]
        if life is not None and math.isinf(life) and net >= 0:
            raise ValueError(
                f"served {FOREVER}, a demand that grows by {data['growth']:.3g} per year and is "
                f"discounted by {value:.3g} has no finite sum; give a lifetime or a larger discount"
            )
        if life is not None and net * life / YEAR > math.log(MAX_TOKENS):
            raise ValueError("growth over this lifetime has no sum that is a number of tokens")
        return value

    @property
    def used(self) -> bool:
        """True if any tokens are served."""
        return bool(self.tokens or self.rate)


class Reward(fields.Record):
    """A reward to be reached by reinforcement learning, and the sigmoid that leads to it."""

    needed: Annotated[float, fields.Quantity("number")] = Field(
        description="reward on held-out tasks"
    )
    start: Annotated[float, fields.Quantity("number", zero=True)] = Field(
        description="reward before reinforcement learning"
    )
    middle: Annotated[float, fields.Quantity("work")] = Field(
        description="arithmetic at which half of the possible gain is reached [flop]"
    )
    steepness: Annotated[float, fields.Quantity("number", at_most=100.0)] = Field(
        description="exponent of the gain over the arithmetic"
    )
    most: Annotated[float, fields.Quantity("number")] | None = Field(
        None, description="reward that nothing exceeds; that of ScaleRL's recipe when absent"
    )

    @field_validator("start")
    @classmethod
    def _below(cls, value: float, info: ValidationInfo) -> float:
        if info.data.get("needed") is not None and value >= info.data["needed"]:
            raise ValueError(
                f"expected less than {info.data['needed']:g} (needed), got {value:g}: the start "
                "meets it already"
            )
        return value


class RewardedLoss(fields.Record):
    """Loss term of reinforcement learning: coefficient * tokens**-exponent."""

    coefficient: Annotated[float, fields.Quantity("number")] = Field(
        description="loss that one token of reinforcement learning would leave [nat]"
    )
    exponent: Annotated[float, fields.Quantity("number", at_most=10.0)] = Field(
        description="exponent of the tokens"
    )


class Reinforcement(fields.Record):
    """Reinforcement learning: tokens given, or derived from a reward or the law."""

    tokens: Tokens | None = Field(
        None, description="tokens of rollouts [token]; null: what the law or the reward asks for"
    )
    k: Annotated[float, fields.Quantity("number", least=2.0, at_most=6.0)] = Field(
        3.0, description="FLOP per parameter and token: 2 rollouts alone, 6 all are trained on"
    )
    reward: Reward | None = Field(None, description="a reward to reach, and its sigmoid")

    loss: RewardedLoss | None = Field(
        None, description="a term of the loss in these tokens, which are then chosen"
    )

    @field_validator("reward", "loss")
    @classmethod
    def _asked_once(cls, value: fields.Record | None, info: ValidationInfo) -> fields.Record | None:
        others = [key for key in ("tokens", "reward") if info.data.get(key) is not None]
        if value is not None and others:
            raise ValueError(f"give {others[0]} or {info.field_name}, not both")
        return value

    @property
    def used(self) -> bool:
        """True if the scenario has any reinforcement learning."""
        return bool(self.tokens) or self.reward is not None or self.loss is not None


class Phase(fields.Record):
    """Machine, MFU, price and dtype of a phase; each optional."""

    system: SystemField | None = Field(
        None, description="a catalogue name or a description; of a list, the cheapest is taken"
    )
    mfu: Annotated[float, fields.Quantity("share", at_most=1.0)] | None = Field(
        None, description="share of the chip's dense peak that is used, 0 < x <= 1"
    )
    price: fields.Rent | None = Field(None, description="per chip [USD/(chip*s)]")
    dtype: Annotated[str, fields.EnumKey(DTYPES)] = Field(
        "bf16", validate_default=True, description="dtype whose dense peak mfu is a share of"
    )

    @field_validator("price")
    @classmethod
    def _of_a_system(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and "system" in info.data and info.data["system"] is None:
            raise ValueError("give the system that costs this")
        return value

    @field_validator("dtype")
    @classmethod
    def _computes(cls, value: str, info: ValidationInfo) -> str:
        faults: list[tuple[fields.Path, str | ValueError]] = []
        for choice in _listed(info.data.get("system")):
            if isinstance(choice, System) and not choice.chip.computes(value):
                units = ", ".join(choice.chip.flops)
                fault = f"the chip {choice.chip.name} has no {value} arithmetic (it has {units})"
                faults.append(((), fault))
        return fields.check_faults(value, faults)

    @field_validator("system")
    @classmethod
    def _with_a_chip(cls, value: SystemChoice | None) -> SystemChoice | None:
        if any(isinstance(each, File) for each in _listed(value)):
            raise ValueError("expected a system with a chip, got a topology file")
        return value

    def systems(self) -> tuple[System, ...]:
        """The systems the phase may run on; none where FLOP alone are counted."""
        return tuple(each for each in _listed(self.system) if isinstance(each, System))


class Phases(fields.Record):
    """The phases of a model's life that cost something."""

    pretrain: Phase = Field(default_factory=Phase, description="pre-training")
    rl: Phase = Field(default_factory=Phase, description="reinforcement learning")
    inference: Phase = Field(default_factory=Phase, description="serving")


def _listed(choice: SystemChoice | None) -> tuple[System | File, ...]:
    choices = choice if isinstance(choice, tuple) else (choice,)
    return tuple(resolved_system(each) for each in choices if each is not None)


DEFAULT_LAW = "besiroglu-2024"
DRAWS, MAX_DRAWS = 400, 20_000


class BudgetData(fields.Record):
    """Data to train on."""

    unique: Annotated[float, fields.Quantity("tokens")] | None = Field(
        None, description="tokens that differ from each other [token]; beyond them, repetition"
    )


# Keys that a budget and a lifecycle share.
Extrapolate = Annotated[
    bool | None,
    Field(
        description="false refuses what lies outside the law's range; true answers, with a "
        "warning; absent: sizes and tokens outside are answered, sparsities are not"
    ),
]

Draws = Annotated[
    int,
    fields.IntegerField(least=0, most=MAX_DRAWS),
    Field(description="draws from the law's standard errors, for the intervals; 0 for none"),
]

Coverage = Annotated[
    float,
    fields.Quantity("share", below=1.0),
    Field(description="share of the draws that the intervals hold"),
]
