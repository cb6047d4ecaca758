"""Typed answer to a lifecycle: model, tokens, cost of each phase, chips, serving plan.

It builds on that of a budget; serving stands in it as the serving planner answers.
"""

from dataclasses import dataclass
from typing import Annotated

from planner.problems.lifecycle.question import LifecycleScenario
from planner.problems.serving import ServingBand, ServingPoint
from planner.protocol.document import Byte, Day, PerMtok, Second, Share, Token, Unit, Usd, json_key
from planner.token_costs import spending as life


@dataclass(frozen=True)
class ModelShape:
    """Architecture of the model: layers, heads, experts, bytes."""

    name: str
    family: str
    layers: int
    hidden: float
    heads: int
    kv_heads: int
    experts: int
    experts_active: int
    shared_experts: int
    vocab: int
    kv_bytes_per_token: Annotated[float, Unit("byte/token")]
    weight_bytes: Byte
    source: str


@dataclass(frozen=True)
class TrainingChips:
    """Chips of a phase of training; null where no duration is given."""

    chip: str
    count: int | None
    mfu: Share
    days: Day | None


@dataclass(frozen=True)
class ServingChips:
    """Chips that serve, in units; their number is null where no rate is given."""

    chip: str | None
    count: int | None
    units: int | None
    chips_per_unit: int
    tokens_per_s_per_unit: Annotated[float, Unit("token/s")]


@dataclass(frozen=True)
class LifeChips:
    """Chips of each phase."""

    pretrain: TrainingChips
    inference: ServingChips


@dataclass(frozen=True)
class LifecycleChipsWithRl(LifeChips):
    """Chips of each phase, with a phase of reinforcement learning."""

    rl: TrainingChips

    json_first = ("pretrain", "rl")


@dataclass(frozen=True)
class Checkpoints:
    """Cost of storing checkpoints, reported to show that it may be left out."""

    bytes: Byte
    count: int
    seconds: Second
    usd: Usd
    share: Share
    assumes: str


@dataclass(frozen=True, kw_only=True)
class LifecyclePoint(life.LifePoint):
    """A member in whole numbers, trained until it is as good as asked, and what its life costs."""

    model: ModelShape
    loss: life.Nat
    chips: LifeChips
    serving: ServingPoint
    usd_per_mtok: PerMtok
    slope_of_price: Share
    checkpoints: Checkpoints

    json_first = ("n_active", "n_total", "sparsity", "model")


@dataclass(frozen=True)
class TotalUsd:
    """Cost of the whole life."""

    usd: Usd


@dataclass(frozen=True)
class TotalCost:
    """Cost of the whole life, where a plan has it."""

    total: TotalUsd


@dataclass(frozen=True, kw_only=True)
class OtherSparsity(life.SizeAndTokens):
    """The best life at another sparsity, in short."""

    json_first = ("sparsity",)

    cost: TotalCost
    usd_per_mtok: PerMtok


@dataclass(frozen=True)
class SimplerRule:
    """The life that a simpler rule gives, and by how much it is worse."""

    n_active: life.Param
    tokens: life.TrainedTokens
    cost: Usd
    worse_by: Share


@dataclass(frozen=True)
class SizeCost:
    """Cost of the whole life at one size, at the loss asked for."""

    n_active: life.Param
    pretrain: Token
    training_usd: Usd
    serving_usd: Usd
    total_usd: Usd


@dataclass(frozen=True)
class EvaluatedSize:
    """A size tried by the serving planner; null if no unit serves it or it misses the loss."""

    n_active: life.Param
    usd_per_mtok: PerMtok | None = None
    chip: str | None = None
    chips: int | None = None
    mode: str | None = None
    pretrain: Token | None = None
    training_usd: Usd | None = None
    serving_usd: Usd | None = None
    total_usd: Usd | None = None


@dataclass(frozen=True)
class ServedPriceBound:
    """The roofline of the plan that serves, idle time paid too."""

    usd_per_mtok: PerMtok


@dataclass(frozen=True)
class SmoothOptimum:
    """The optimum with real numbers of layers and sequences."""

    n_active: life.Param
    pretrain: Token
    usd: Usd


@dataclass(frozen=True)
class ProgramBound:
    """One geometric program over size, tokens and batch: its optimum, and its dual bound."""

    usd: Usd
    lower_bound: Usd


@dataclass(frozen=True)
class SolverDifferences:
    """Differences of other solvers from the search, in logarithms."""

    scipy: float | None
    program: float | None


@dataclass(frozen=True)
class LifecycleCertificate:
    """Method and checks of the optimum; no bound over all sizes is proven."""

    method: str
    objective: Usd
    relaxation: None
    gap: None
    smooth: SmoothOptimum
    whole_over_smooth: Share
    over_training: life.OvertrainingCheck
    interpolation_error: Share
    multiplier: float
    program: ProgramBound | None
    differences: SolverDifferences


@dataclass(frozen=True)
class NoCertificate:
    """Placeholder of the certificate if no life is feasible."""

    method: str
    objective: None = None
    relaxation: None = None
    gap: None = None
    smooth: None = None
    multiplier: None = None


HEAD: tuple[str, ...] = ("problem", "status", "gap", "scenario", "plan", "band", "serving_band",
                         "outside")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LifecycleAnswer(life.LifeAnswer):
    """The whole answer to a lifecycle."""

    json_first = HEAD

    problem: str = "lifecycle"
    plan: LifecyclePoint | None = None
    serving_band: ServingBand | None = None
    bound: ServedPriceBound | None = None
    certificate: LifecycleCertificate | NoCertificate
    alternatives: tuple[OtherSparsity, ...] = ()
    heuristic: SimplerRule | None = None
    flat_price: SimplerRule | None = None
    curve: tuple[SizeCost, ...] | None = None
    evaluated: tuple[EvaluatedSize, ...] | None = json_key("asked", default=None)
    demand: life.ServedTokens


@dataclass(frozen=True, kw_only=True)
class PlannedLife(LifecycleAnswer):
    """The answer if pre-training is costed on the model's best training layout."""

    training: life.PlannedLayout


class InfeasibleLife(LifecycleAnswer):
    """The answer to a question that no model answers: what falls short."""

    json_first = (*HEAD, "bound", "heuristic", "flat_price", "curve", "asked")


@dataclass(frozen=True, eq=False, repr=False)
class LifecyclePlan(life.LifePlan[LifecycleAnswer]):
    """The answer to a lifecycle, and the scenario that asked for it."""

    question: LifecycleScenario

    kind = "lifecycle"
    answer_type = LifecycleAnswer
