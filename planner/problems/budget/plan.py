"""Answer to a token budget, typed: size and tokens, cost of each phase, proof, sources.

Everything is in base units; `to_document` makes JSON of it, keys in the order of the fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from planner.problems.budget.question import BudgetScenario
from planner.protocol.document import Share, Token, Usd
from planner.token_costs import spending as life


@dataclass(frozen=True, kw_only=True)
class BudgetPoint(life.LifePoint):
    """Size, its tokens, and the results derived by the equations of `formulas`."""

    over_training_from_pools: Share | None
    phases: Mapping[str, life.PhaseMachine]

    json_first: ClassVar[tuple[str, ...]] = (
        "n_active", "n_total", "sparsity", "tokens", "epochs", "cost", "share", "over_training",
        "over_training_from_pools",
    )  # fmt: skip


class RuledPoint(BudgetPoint):
    """The size and tokens of a rule for an arithmetic, which knows no loss."""

    json_first = (
        "n_active", "n_total", "sparsity", "tokens", "epochs", "over_training",
        "over_training_from_pools", "loss",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BudgetInterval(life.LawInterval):
    """`LawInterval` with loss and over-training."""

    loss: life.Interval | None
    over_training: life.Interval | None


@dataclass(frozen=True)
class BudgetBound:
    """Lower bounds over all choices for the question; `least_loss` at unlimited cost."""

    usd: Usd | None
    flop_paid: life.Flop | None
    loss: life.Nat | None
    least_loss: life.Nat


@dataclass(frozen=True)
class BudgetCertificate:
    """Method that found the optimum, and the differences between solvers, in logarithms.

    `relaxation` is what no choice goes below, in the unit of the objective.
    """

    method: str
    objective: float | None
    relaxation: float | None
    gap: Share | None
    points_considered: int
    multiplier: float | None
    differences: Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """Alternative size and tokens, compared with the plan: cost, loss, and excess."""

    n_active: life.Param
    tokens: life.PhaseTokens
    cost: float
    loss: life.Nat
    worse_by: Share
    saving: Share


@dataclass(frozen=True)
class RuleComparison:
    """`Comparison` of a rule, or the reason why its tokens reach no size of the required loss."""

    n_active: life.Param | None
    tokens: life.PhaseTokens
    cost: float | None
    loss: life.Nat | None
    worse_by: Share | None
    saving: Share | None
    why_not: str | None


class UnreachedRule(RuleComparison):
    """A rule whose tokens alone are known."""

    json_first = ("n_active", "cost", "loss", "worse_by", "saving")


@dataclass(frozen=True)
class OtherLaw:
    """The answer by another law, or why it has none."""

    law: str
    plan: BudgetPoint | None
    why_not: str | None


@dataclass(frozen=True)
class LawSpread:
    """Lowest and highest answers to a question over the laws of the catalogue."""

    laws: tuple[str, ...]
    n_active: life.Interval
    pretrain: life.Interval
    cost: life.Interval


@dataclass(frozen=True)
class ServedSpread(LawSpread):
    """`LawSpread` of a search for the served tokens that make a model optimal, with their range."""

    served: life.Interval


@dataclass(frozen=True)
class UniqueData:
    """Distinct tokens that a plan needs, and the stock of public text.

    `low` and `high` hold `coverage` of what the stock may be; `needed` are the tokens of
    pre-training, where they are all fresh.
    """

    needed: Token
    stock: Token
    low: Token
    high: Token
    coverage: Share
    source: str


@dataclass(frozen=True)
class LawNote(life.FormlessLawNote):
    """The law that answered."""

    form: str

    json_first = ("name", "form")


@dataclass(frozen=True, kw_only=True)
class LawProvenance(life.LifeProvenance):
    """Provenance of an answer: version of this program, law, sources, warnings."""

    law: LawNote


@dataclass(frozen=True, kw_only=True)
class BudgetAnswer(life.LifeAnswer):
    """The whole answer to a token budget."""

    problem: str = "budget"
    plan: BudgetPoint | None = None
    band: BudgetInterval | None = None
    bound: BudgetBound | None = None
    certificate: BudgetCertificate
    alternatives: tuple[BudgetPoint, ...] = ()
    heuristic: RuleComparison | None = None
    compute_optimal: Comparison | None = None
    demand: life.ServedTokens
    laws: tuple[OtherLaw, ...] | None = None
    over_laws: ServedSpread | LawSpread | None = None
    unique_data: UniqueData | None = None
    provenance: LawProvenance


@dataclass(frozen=True, kw_only=True)
class PlannedBudget(BudgetAnswer):
    """Answer with pre-training charged by the best layout of its model."""

    training: life.PlannedLayout


HEAD = ("problem", "status", "gap", "scenario")


class RuledAnswer(BudgetAnswer):
    """The answer of a rule for an arithmetic: nothing was weighed."""

    json_first = (
        *HEAD, "band", "bound", "heuristic", "compute_optimal", "laws", "infeasible",
    )  # fmt: skip


class InfeasibleBudget(BudgetAnswer):
    """The answer to a question that nothing answers: what falls short."""

    json_first = (*HEAD, "plan", "band", "bound", "heuristic", "compute_optimal", "laws")


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPlan(life.LifePlan[BudgetAnswer]):
    """The answer to a token budget, and the scenario that asked for it."""

    question: BudgetScenario

    kind = "budget"
    answer_type = BudgetAnswer
