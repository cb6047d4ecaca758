"""The answer to a serving question, typed: pools, times, prices, memory, proof, sources.

Everything is in base units; `document_of` makes JSON of it, keys in the order of the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any

from planner.problems.serving.advice.records import (
    CheaperWeights,
    FewerChips,
    QuotedAccuracy,
    UsedLimit,
    WayOut,
)
from planner.problems.serving.make_or_buy.offers import ComparedPoint
from planner.problems.serving.point import (
    Chips,
    Ends,
    NextBest,
    PerMillion,
    PlannedPool,
    PoolLayout,
    Second,
    Sequences,
    ServingBand,
    ServingBound,
    ServingEstimate,
    ServingPoint,
    Share,
    TokenRate,
    layout_text,
)
from planner.problems.serving.question import Scenario
from planner.protocol.document import Unit, document_of
from planner.protocol.plan import Answer, KnownAnswer, MissedPromise, Plan, Provenance, presented

METHOD = (
    "every layout; largest feasible batch, last full stage and last full group by bisection, exact "
    "because T(B)/B never rises between two ceilings; lower bound by geometric programs, branch "
    "and bound"
)


@dataclass(frozen=True)
class NarrowingRun:
    """The run that would narrow most what is outside the fit, as commands in their order.

    `sigma` is the standard deviation of the logarithm of the time that it takes away. Where the
    plan overlaps two batches the run does not: it would not tell what they hide (`overlap_off`).
    """

    narrows: str
    sigma: Share
    commands: tuple[str, ...]
    overlap_off: bool


@dataclass(frozen=True)
class ServingCertificate:
    """How many points were decided; what no layout beats, in the unit of the objective."""

    layouts_considered: int
    points_considered: int
    points_evaluated: int
    objective: float | None = None
    relaxation: float | None = None
    gap: Share | None = None
    programs_solved: int = 0
    method: str = METHOD


@dataclass(frozen=True)
class ShortPool:
    """One of two pools of a runner-up."""

    layout: PoolLayout
    chip: str
    chips: Chips
    chips_used: Chips
    batch: Sequences


@dataclass(frozen=True)
class ShortPoint:
    """A runner-up of another kind in a few numbers."""

    mode: str
    layout: PoolLayout | None
    prefill: ShortPool | None
    decode: ShortPool | None
    chip: str | None
    chips: Chips
    batch: Sequences
    ttft: Second | None
    tpot: Second | None
    usd_per_mtok: PerMillion
    tokens_per_s: TokenRate | None
    engines: tuple[str, ...] | None
    e2e: Second | None
    joule_per_token: Annotated[float, Unit("J/token")] | None


@dataclass(frozen=True)
class WinningChange:
    """A change of one quantity, by `factor`, at which another kind of plan overtakes the plan."""

    what: str
    factor: float
    value: float | None
    before: float | None
    dimension: str
    verified: bool


@dataclass(frozen=True)
class RivalKind:
    """The best plan of another kind, by how much it is worse, and what would let it win."""

    kind: str
    plan: ShortPoint
    behind: Share
    wins_if: tuple[WinningChange, ...] | None


@dataclass(frozen=True)
class ComparedSystem:
    """The best plan on one system of a list, by how much it is worse; null where there is none.

    It is `unranked` where another maker's chips lend its efficiencies, or where they are another
    maker's than the plan's and the two bands overlap.
    """

    system: str
    behind: Share | None
    unranked: bool


@dataclass(frozen=True)
class ExceededPromise:
    """A promise that the user's own layout breaks, and by which factor."""

    promise: str
    short_by: float


@dataclass(frozen=True)
class CurrentPoint(ServingPoint):
    """The user's own layout, its roofline, and the promises it breaks."""

    bound: ServingBound
    breaks: tuple[ExceededPromise, ...]


@dataclass(frozen=True, kw_only=True)
class BrokenPromise(MissedPromise):
    """A promise that the nearest plan breaks; `alone` would be feasible, all others unchanged.

    Memory would suffice at `memory_utilisation`, in the thousandths that engines are told; null of
    other promises, and where no share does.
    """

    short_by: float
    alone: float | None
    memory_utilisation: Share | None = None


@dataclass(frozen=True)
class RelaxedPromise:
    """A promise, and the least value that all others leave possible; null where none is."""

    promise: str
    promised: float
    alone: float | None


@dataclass(frozen=True, kw_only=True)
class ServingProvenance(Provenance):
    """What an answer rests on: version, assumptions, profile, sources, warnings."""

    assumptions: str
    estimate: str
    profile: str
    queueing: str


@dataclass(frozen=True, kw_only=True)
class ServingAnswer(Answer):
    """The whole answer to a serving question."""

    json_first = ("problem", "status", "scenario", "plan", "band", "outside", "narrow", "accuracy",
                  "cheaper_weights", "fewer_chips", "limits_used", "bound", "estimate")  # fmt: skip
    json_last = ("infeasible", "eased", "ways_out", "provenance", "layout_held")

    problem: str = "serving"
    plan: ComparedPoint | ServingPoint | None = None
    band: ServingBand | None = None
    narrow: NarrowingRun | None = None
    accuracy: QuotedAccuracy | None = None
    cheaper_weights: CheaperWeights | None = None
    fewer_chips: FewerChips | None = None
    limits_used: tuple[UsedLimit, ...] = ()
    bound: ServingBound | None = None
    estimate: ServingEstimate | None = None
    certificate: ServingCertificate
    alternatives: tuple[NextBest | ServingPoint, ...] = ()
    rivals: tuple[RivalKind, ...] = ()
    systems: tuple[ComparedSystem, ...] | None = None
    current: CurrentPoint | None = None
    infeasible: tuple[BrokenPromise, ...] | None = None
    eased: tuple[RelaxedPromise, ...] | None = None
    ways_out: tuple[WayOut, ...] | None = None
    provenance: ServingProvenance

    @property
    def load(self) -> str:
        """`none`, `given` where a load must be carried, `most` where as much as can be is."""
        load = self.scenario["workload"]
        demand = "max" if load["utilisation"] else load["demand"]
        return "none" if demand is None else "most" if demand == "max" else "given"

    @property
    def counts_power(self) -> bool:
        """Whether the power that follows from the work is paid beside the rent, or made small."""
        source = None if self.plan is None else self.plan.power_from
        counts = self.scenario["power_price"] or self.scenario["objective"] == "energy"
        return bool(counts) and source in ("measured", "shared")


@dataclass(frozen=True, kw_only=True)
class ExplainedAnswer(ServingAnswer):
    """The same with the elasticities, left and right, of the layout held as it is."""

    layout_held: Mapping[str, Ends] | None


@dataclass(frozen=True, eq=False, repr=False)
class ServingPlan(Plan[ServingAnswer]):
    """The answer to a serving question; what proves and explains it is worked out when looked at.

    `point` is the plan, None where nothing keeps the promises; `bound` is its pure roofline, which
    no implementation beats, `band` the ranges that hold the stated share of measured runs.
    """

    question: Scenario
    point: ServingPoint | None
    bound: ServingBound | None = None
    band: ServingBand | None = None

    kind = "serving"
    answer_type = ServingAnswer

    @property
    def status(self) -> str:
        """`optimal`, or `infeasible` when nothing keeps the promises."""
        return "infeasible" if self.point is None else "optimal"

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The chosen plan as a mapping, without what proves it; empty when there is none."""
        whole = self.answer.plan if self.question.buy else self.point
        return MappingProxyType(document_of(whole) if whole else {})

    @property
    def mode(self) -> str | None:
        """aggregated, disaggregated, decode or prefill."""
        return self.point.mode if self.point else None

    @property
    def pools(self) -> tuple[PlannedPool | ServingPoint, ...]:
        """The pool of the plan, or that of prompts and that of answers; empty without a plan."""
        point = self.point
        if point is None:
            return ()
        return (point,) if point.layout else tuple(point.phases.values())

    @property
    def layout(self) -> Mapping[str, object]:
        """tp, pp, cp, dp_attention, ep, tp_expert and replicas; of two pools by phase."""
        point = self.point
        if point is None:
            return MappingProxyType({})
        if point.layout:
            return MappingProxyType(vars(point.layout))
        return MappingProxyType({k: dict(vars(v.layout)) for k, v in point.phases.items()})

    @property
    def batch(self) -> int | None:
        """Sequences in flight over all replicas."""
        return self.point.batch if self.point else None

    @property
    def ttft(self) -> float | None:
        """Mean time to first token [s]; None where no prompt is read."""
        return self.point.ttft if self.point else None

    @property
    def tpot(self) -> float | None:
        """Mean time per output token [s]; None where nothing is decoded."""
        return self.point.tpot if self.point else None

    @property
    def tokens_per_s(self) -> float | None:
        """Generated tokens per second of all chips."""
        return self.point.tokens_per_s if self.point else None

    @property
    def cost(self) -> float | None:
        """USD per million tokens, input and output together; None when there is no plan."""
        return self.point.usd_per_mtok if self.point else None

    @cached_property
    def rivals(self) -> tuple[RivalKind, ...]:
        """The best plan of every other kind, and the nearest changes that would let it win.

        Worked out when first asked for, by solving both kinds again at other values.
        """
        from planner.problems.serving.deployment.alternatives import explained_kinds

        return explained_kinds(self.question) if self.point else ()

    @cached_property
    def layout_held(self) -> Mapping[str, Ends]:
        """d ln price / d ln parameter, left and right, with the layout held.

        `elasticities` are those where everything follows: replicas, pools and chips. Empty where
        both are one question.
        """
        from planner.problems.serving.slopes.serving import layout_held

        return layout_held(self.question, tuple(self.elasticities)) if self.point else {}

    def explained(self) -> Plan[ServingAnswer]:
        """The same with what would let the rivals win, and with the layout held."""
        parts = {**vars(self.answer), "rivals": self.rivals}
        answer = ExplainedAnswer(**parts, layout_held=self.layout_held or None)
        plan = ServingPlan(KnownAnswer(answer), self.question, self.point, self.bound, self.band)
        plan.__dict__.update(rivals=self.rivals, layout_held=self.layout_held)
        return plan

    why = presented("why")
    __str__ = presented("answer")

    def summary(self) -> str:
        """Mode, layouts, batch and price."""
        text = layout_text(self.point)
        return f"{self.mode}, {text}, batch {self.batch}, ${self.cost:.4g}/Mtok"
