"""What a model's life costs, typed: tokens and spending of its phases, in base units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from planner.protocol.document import Unit, json_key

Param = Annotated[float, Unit("param")]


Token = Annotated[float, Unit("token")]


Usd = Annotated[float, Unit("USD")]


Flop = Annotated[float, Unit("flop")]


Nat = Annotated[float, Unit("nat")]


Share = Annotated[float, Unit("1")]


Ends = tuple[float, float]


@dataclass(frozen=True)
class PhaseTokens:
    """Tokens of each phase of a model's life."""

    pretrain: Token
    rl: Token
    inference: Token


@dataclass(frozen=True)
class PhaseShares:
    """Share of the cost that each phase bears."""

    pretrain: Share
    rl: Share
    inference: Share


@dataclass(frozen=True)
class Spending:
    """What a phase costs; null without a price, or without a chip."""

    usd: Usd | None
    flop: Flop
    flop_paid: Flop
    chip_hours: Annotated[float, Unit("chip*hour")] | None


@dataclass(frozen=True)
class LifeSpending:
    """What each phase costs, and all of them."""

    pretrain: Spending
    rl: Spending
    inference: Spending
    total: Spending


@dataclass(frozen=True)
class PhaseMachine:
    """What a phase runs on, and what that costs."""

    system: str | None
    chip: str | None
    dtype: str | None
    mfu: Share | None
    usd_per_chip_hour: Annotated[float, Unit("USD/(chip*hour)")] | None
    usd_per_flop: Annotated[float, Unit("USD/flop")] | None


class PretrainTokens(Protocol):
    """Tokens of pre-training, whatever stands beside them."""

    @property
    def pretrain(self) -> float: ...


class SizeAndTokens(Protocol):
    """A size and its tokens: a plan, or another choice beside it."""

    @property
    def n_active(self) -> float: ...
    @property
    def sparsity(self) -> float: ...
    @property
    def tokens(self) -> PretrainTokens: ...


class LifePoint(SizeAndTokens, Protocol):
    """What the plans of a budget and of a lifecycle have in common."""

    @property
    def n_total(self) -> float: ...
    @property
    def tokens(self) -> PhaseTokens: ...
    @property
    def epochs(self) -> float | None: ...
    @property
    def cost(self) -> LifeSpending: ...
    @property
    def share(self) -> PhaseShares: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def law(self) -> str: ...
    @property
    def objective(self) -> str: ...
    @property
    def total(self) -> float: ...


class LifeAnswer(Protocol):
    """What the answers to a budget and to a lifecycle have in common."""

    @property
    def plan(self) -> LifePoint | None: ...
    @property
    def band(self) -> LawInterval | None: ...
    @property
    def bound(self) -> object | None: ...
    @property
    def alternatives(self) -> Sequence[SizeAndTokens]: ...


@dataclass(frozen=True, kw_only=True)
class LawInterval:
    """Ends that hold a share of the answers by laws drawn from the standard errors."""

    coverage: Share
    source: str = json_key("from")
    answered: Share
    n_active: Ends | None
    pretrain: Ends | None
    cost: Ends | None


@dataclass(frozen=True)
class ServedTokens:
    """Tokens served over a life.

    `tokens` is how many there are if the model is not overtaken, None without end; `counted` is
    what they weigh in the cost: discounted, and times the chance of being served.
    """

    tokens: Token | None
    counted: Token


@dataclass(frozen=True)
class MissedLimit:
    """What falls short, by which factor, and why."""

    promise: str
    short_by: float | None
    expression: str


def size_and_cost(plan: LifePoint | None) -> str:
    """Size, tokens and cost of a plan in half a line."""
    if plan is None:
        return ""
    total = plan.cost.total
    cost = f"{total.flop:.4g} FLOP" if total.usd is None else f"${total.usd:,.4g}"
    return f"{plan.n_active:.4g} parameters on {plan.tokens.pretrain:.4g} tokens, {cost}"
