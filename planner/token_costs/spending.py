"""Records of the cost of a model's life: tokens and spending of its phases, in base units."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Protocol, Self, TypeVar

import numpy as np

from planner.protocol.document import Day, PerMtok, Second, Share, Token, Unit, Usd, json_key
from planner.protocol.plan import Answer, Plan, Provenance, presentation_method

Param = Annotated[float, Unit("param")]
Flop = Annotated[float, Unit("flop")]
Nat = Annotated[float, Unit("nat")]
Interval = tuple[float, float]
MIN_ANSWERED_SHARE = 0.5  # share of the draws that must have an answer, for ends to mean something


@dataclass(frozen=True)
class TrainedTokens:
    """Tokens of pre-training."""

    pretrain: Token


@dataclass(frozen=True)
class PhaseTokens(TrainedTokens):
    """Tokens of each phase of a model's life."""

    rl: Token
    inference: Token


@dataclass(frozen=True)
class PhaseShares:
    """Share of the cost by phase."""

    pretrain: Share
    rl: Share
    inference: Share


@dataclass(frozen=True)
class Spending:
    """Spending of a phase; null without a price, or without a chip."""

    usd: Usd | None
    flop: Flop
    flop_paid: Flop
    chip_hours: Annotated[float, Unit("chip*hour")] | None


@dataclass(frozen=True)
class LifeSpending:
    """Spending of each phase, and in total."""

    pretrain: Spending
    rl: Spending
    inference: Spending
    total: Spending


@dataclass(frozen=True)
class PhaseMachine:
    """Machine of a phase, with its MFU and prices."""

    system: str | None
    chip: str | None
    dtype: str | None
    mfu: Share | None
    usd_per_chip_hour: Annotated[float, Unit("USD/(chip*hour)")] | None
    usd_per_flop: Annotated[float, Unit("USD/flop")] | None


@dataclass(frozen=True)
class FixedShare:
    """Outcome of a fixed share of the peak in place of planned layouts.

    `claimed` is what its life costs by its own account, `cost` what it costs with the best layout
    of the size that it chose (of a limited cost both are losses), `worse_by` over the plan.
    """

    mfu: Share
    source: str
    n_active: Param
    tokens: TrainedTokens
    claimed: float
    cost: float | None
    worse_by: Share | None


@dataclass(frozen=True)
class PlannedLayout:
    """The training layout of the model that is chosen.

    `share` of the peak is of the arithmetic of the weights, idle chips and failures paid; `mfu` is
    that of the training planner, with the causal half of attention. `sizes` were laid out.
    """

    system: str
    chips: int
    layout: str
    step_time: Second
    tokens_per_s: Annotated[float, Unit("token/s")]
    mfu: Share
    share: Share
    usd_per_mtok: PerMtok
    days: Day
    sizes: int
    fixed_mfu: FixedShare | None = None


@dataclass(frozen=True)
class OvertrainingCheck:
    """Over-training by its definition, and as the costs of the phases ask for it."""

    ratio: Share | None
    from_pools: Share | None


@dataclass(frozen=True, kw_only=True)
class SizeAndTokens:
    """Size of a model and its tokens, of a plan or of an alternative."""

    n_active: Param
    n_total: Param
    sparsity: Share
    tokens: TrainedTokens


@dataclass(frozen=True, kw_only=True)
class LifePoint(SizeAndTokens):
    """Fields common to the plans of a budget and of a lifecycle."""

    tokens: PhaseTokens
    epochs: Share | None
    cost: LifeSpending
    share: PhaseShares
    over_training: Share | None
    tokens_per_parameter: Annotated[float, Unit("token/param")]
    loss: Nat | None
    law: str
    coefficients: Mapping[str, float]
    objective: str

    @property
    def total(self) -> float:
        """Cost of the whole life, in the unit of the objective [USD or flop of the peak]."""
        total = self.cost.total
        return (total.usd or 0.0) if self.objective == "usd" else total.flop_paid


class EqualPools(Protocol):
    """Life with equal costs of training and serving; null if infeasible."""

    @property
    def n_active(self) -> float | None:
        """Active parameters [param]."""

    @property
    def cost(self) -> float | None:
        """Cost of that life, in the unit of the objective [USD or FLOP]."""

    @property
    def worse_by(self) -> float | None:
        """Excess cost over the optimum, as a share of the optimum [-]."""


@dataclass(frozen=True, kw_only=True)
class LawInterval:
    """Ends that hold a share of the answers by laws drawn from the standard errors."""

    coverage: Share
    source: str = json_key("from")
    answered: Share
    n_active: Interval | None
    pretrain: Interval | None
    cost: Interval | None

    @classmethod
    def of(
        cls, columns: Mapping[str, Sequence[float]], law: str, count: int, coverage: float
    ) -> Self:
        """The quantiles that hold `coverage` of the answers by `count` drawn laws, by column.

        None where too few of the draws have an answer, or one of them has no such number.
        """
        ends: dict[str, Interval | None] = dict.fromkeys(columns)
        for name, values in columns.items():
            if len(values) >= max(2, MIN_ANSWERED_SHARE * count) and not np.isnan(values).any():
                low, high = np.quantile(values, ((1 - coverage) / 2, (1 + coverage) / 2)).tolist()
                ends[name] = (low, high)
        return cls(
            coverage=coverage,
            source=f"{count} draws from the standard errors of {law}",
            answered=len(columns["cost"]) / count,
            **ends,
        )


@dataclass(frozen=True)
class ServedTokens:
    """Tokens served over a life.

    `tokens` is how many there are if the model is not overtaken, None without end; `counted` is
    what they weigh in the cost: discounted, and times the chance of being served.
    """

    tokens: Token | None
    counted: Token


@dataclass(frozen=True)
class FormlessLawNote:
    """The law that answered."""

    name: str
    title: str
    scope: str
    note: str


@dataclass(frozen=True, kw_only=True)
class LifeProvenance(Provenance):
    """Provenance of an answer: version of this program, law, sources, warnings."""

    law: FormlessLawNote


@dataclass(frozen=True, kw_only=True)
class LifeAnswer(Answer):
    """Fields common to the answers to a budget and to a lifecycle."""

    plan: LifePoint | None = None
    band: LawInterval | None = None
    alternatives: tuple[SizeAndTokens, ...] = ()
    heuristic: EqualPools | None = None
    provenance: LifeProvenance


A = TypeVar("A", bound=LifeAnswer)


def with_training(planned: Callable[..., A], answer: A, training: PlannedLayout) -> A:
    """An answer as one of the type that has the layout of its training too."""
    return planned(
        **{each.name: getattr(answer, each.name) for each in fields(answer) if each.init},
        training=training,
    )


class LifePlan(Plan[A]):
    """The answer to a budget or to a lifecycle, in the words of its room's `presentation`."""

    cost_of = "cost.total.usd"  # USD of the whole life; None where FLOP alone are counted
    question: Any  # each room has its own

    @property
    def between(self) -> str:
        """Label of the ranges: share of the sampled law fits whose answers they contain."""
        band = self.answer.band
        return f"{band.coverage:.0%} of law fits lie between" if band else super().between

    why = presentation_method("explanation_text")
