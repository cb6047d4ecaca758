"""The answer to a serving question, typed: pools, times, prices, memory, proof, sources.

Everything is in base units; `to_document` makes JSON of it, keys in the order of the fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from planner.problems.serving import point as points
from planner.problems.serving.advice import records
from planner.problems.serving.make_or_buy.offers import ComparedPoint
from planner.problems.serving.question import Scenario
from planner.protocol.document import to_document
from planner.protocol.plan import (
    Answer,
    KnownAnswer,
    MissedPromise,
    Plan,
    Provenance,
    Status,
    gap_status,
    presentation_method,
)
from planner.protocol.promise import PromiseChance, sum_chance

TAILS = ("ttft_p95", "ttft_p99")  # as far off as their mean
METHOD = (
    "every layout; largest feasible batch, last full stage and last full group by bisection, exact "
    "because T(B)/B never rises between two ceilings; lower bound by geometric programs, branch "
    "and bound"
)


@dataclass(frozen=True)
class ServingCertificate:
    """Counts of decided points, and the relaxation bound in the unit of the objective."""

    layouts_considered: int
    points_considered: int
    points_evaluated: int
    objective: float | None = None
    relaxation: float | None = None
    gap: points.Share | None = None
    programs_solved: int = 0
    method: str = METHOD


@dataclass(frozen=True)
class WinningChange:
    """A change of one quantity, by `factor`, that lets another kind of plan overtake the plan."""

    what: str
    factor: float
    value: float | None
    before: float | None
    dimension: str
    verified: bool


@dataclass(frozen=True)
class RivalKind:
    """Best plan of another kind, its relative gap to the plan, and changes that let it win."""

    kind: str
    plan: points.ShortPoint
    behind: points.Share
    wins_if: tuple[WinningChange, ...] | None


@dataclass(frozen=True)
class ComparedSystem:
    """Best plan on one system of a list, and its relative gap; null if no plan is feasible.

    It is `unranked` where another maker's chips lend its efficiencies, or where they are another
    maker's than the plan's and the two bands overlap.
    """

    system: str
    behind: points.Share | None
    unranked: bool


@dataclass(frozen=True)
class ExceededPromise:
    """A promise that the user's own layout breaks, and the factor of the excess."""

    promise: str
    short_by: float


@dataclass(frozen=True)
class CurrentPoint(points.ServingPoint):
    """The user's own layout, its roofline, and the promises it breaks."""

    bound: points.ServingBound
    breaks: tuple[ExceededPromise, ...]


@dataclass(frozen=True, kw_only=True)
class BrokenPromise(MissedPromise):
    """A promise that the nearest plan breaks; `alone` would be feasible, all others unchanged.

    Memory would suffice at `memory_utilisation`, in the thousandths that engines are told; null of
    other promises, and where no share does.
    """

    short_by: float
    alone: float | None
    memory_utilisation: points.Share | None = None


@dataclass(frozen=True)
class RelaxedPromise:
    """A promise and its tightest feasible value with the others unchanged; null if infeasible."""

    promise: str
    promised: float
    alone: float | None


@dataclass(frozen=True, kw_only=True)
class ServingProvenance(Provenance):
    """Provenance of an answer: version, assumptions, profile, sources, warnings."""

    assumptions: str
    estimate: str
    profile: str
    queueing: str


@dataclass(frozen=True, kw_only=True)
class ServingAnswer(Answer):
    """The whole answer to a serving question."""

    json_first = ("problem", "status", "gap", "scenario", "plan", "promises", "needed_chance",
                  "sizes", "simplest", "sure", "band", "outside", "narrow", "accuracy",
                  "cheaper_weights", "cheaper_caches", "limits_used", "bound",
                  "estimate")  # fmt: skip
    json_last = ("infeasible", "eased", "ways_out", "notes", "provenance", "layout_held")

    problem: str = "serving"
    plan: ComparedPoint | points.ServingPoint | None = None
    promises: tuple[PromiseChance, ...] = ()
    needed_chance: points.Share | None = None
    sizes: tuple[records.FleetSize, ...] = ()
    simplest: records.SimplerPlan | None = None
    sure: records.SurePlan | None = None
    band: points.ServingBand | None = None
    narrow: records.NarrowingRun | None = None
    accuracy: records.QuotedAccuracy | None = None
    cheaper_weights: records.CheaperWeights | None = None
    cheaper_caches: records.CheaperCaches | None = None
    limits_used: tuple[records.UsedLimit, ...] = ()
    bound: points.ServingBound | None = None
    estimate: points.ServingEstimate | None = None
    certificate: ServingCertificate
    alternatives: tuple[points.NextBest | points.ServingPoint, ...] = ()
    rivals: tuple[RivalKind, ...] = ()
    systems: tuple[ComparedSystem, ...] | None = None
    current: CurrentPoint | None = None
    infeasible: tuple[BrokenPromise, ...] | None = None
    eased: tuple[RelaxedPromise, ...] | None = None
    ways_out: tuple[records.WayOut, ...] | None = None
    provenance: ServingProvenance

    def chance(self, output: str, value: float, limit: float, *, rises: bool) -> float | None:
        """The chance that a time keeps a limit: tails as their mean, whole requests by both."""
        if output == "tokens_per_s_per_user":
            return self.chance("tpot", 1 / value, 1 / limit, rises=False)
        for promise in self.promises:
            if (promise.promise, promise.limit) == (output, limit):
                return promise.chance
        point, ttft, tpot = self.plan, self._ratios("ttft"), self._ratios("tpot")
        if point is None or ttft is None or (output not in TAILS and (output != "e2e" or not tpot)):
            return super().chance(output, value, limit, rises=rises)
        if output in TAILS or tpot is None or point.ttft is None:
            return sum_chance(limit, [(value, *ttft)])
        return sum_chance(limit, [(point.ttft, *ttft), (value - point.ttft, *tpot)])

    def _ratios(self, name: str) -> tuple[float, float] | None:
        mean, ends = getattr(self.plan, name, None), getattr(self.band, name, None)
        return (ends[0] / mean, ends[1] / mean) if mean and ends else None

    @property
    def load(self) -> str:
        """Load type: `none`, `given` for a fixed load, `most` for the maximum load."""
        load = self.scenario["workload"]
        demand = "max" if load["utilisation"] else load["demand"]
        return "none" if demand is None else "most" if demand == "max" else "given"

    @property
    def counts_power(self) -> bool:
        """True if the power computed from the work is billed, or is minimised."""
        source = None if self.plan is None else self.plan.power_from
        counts = self.scenario["power_price"] or self.scenario["objective"] == "energy"
        return bool(counts) and source in ("measured", "shared")


@dataclass(frozen=True, kw_only=True)
class ExplainedAnswer(ServingAnswer):
    """Serving answer with the left and right elasticities at a fixed layout."""

    layout_held: Mapping[str, points.Interval] | None


@dataclass(frozen=True, eq=False, repr=False)
class ServingPlan(Plan[ServingAnswer]):
    """The answer to a serving question; what proves and explains it is worked out when looked at.

    `point` is the plan, None where nothing keeps the promises; `bound` is its pure roofline, which
    no implementation beats, `band` the ranges that hold the stated share of measured runs;
    `compared` is how far above the least of all points compared it lies, of it.
    """

    question: Scenario
    point: points.ServingPoint | None
    bound: points.ServingBound | None = None
    band: points.ServingBand | None = None
    compared: float | None = None

    kind = "serving"
    version = 2
    answer_type = ServingAnswer

    @property
    def status(self) -> Status:
        """`optimal`, `feasible` with a `gap` above 1e-6, or `infeasible` without a plan."""
        status = gap_status(self.compared, feasible=self.point is not None)
        return self.answer.status if status == "feasible" else status

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The chosen plan as a mapping, without what proves it; empty when there is none."""
        whole = self.answer.plan if self.question.buy else self.point
        return MappingProxyType(to_document(whole) if whole else {})

    @property
    def mode(self) -> str | None:
        """aggregated, disaggregated, decode or prefill."""
        return self.point.mode if self.point else None

    @property
    def pools(self) -> tuple[points.PlannedPool | points.ServingPoint, ...]:
        """The pool of the plan, or that of prompts and that of answers; empty without a plan."""
        point = self.point
        if point is None:
            return ()
        return (point,) if point.layout else tuple(point.phases.values())

    @property
    def layout(self) -> Mapping[str, object]:
        """tp, pp, cp, dcp, dp_attention, ep, tp_expert and replicas; of two pools by phase."""
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
        """Mean time per output token [s]; None without a decode phase."""
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
    def layout_held(self) -> Mapping[str, points.Interval]:
        """d ln price / d ln parameter, left and right, with the layout held.

        `elasticities` are those where everything follows: replicas, pools and chips. Empty where
        both are one question.
        """
        from planner.problems.serving.slopes.serving import layout_held

        return layout_held(self.question, tuple(self.elasticities)) if self.point else {}

    def explained(self) -> Plan[ServingAnswer]:
        """Plan with the changes that let its rivals win, and elasticities at a fixed layout."""
        parts = {**vars(self.answer), "rivals": self.rivals}
        del parts["status"]  # follows from the gap
        answer = ExplainedAnswer(**parts, layout_held=self.layout_held or None)
        plan = replace(self, make=KnownAnswer(answer))
        plan.__dict__.update(rivals=self.rivals, layout_held=self.layout_held)
        return plan

    why = presentation_method("explanation_text")
    text = presentation_method("answer")

    def summary(self) -> str:
        """Mode, layouts, batch and price."""
        text = points.layout_text(self.point)
        return f"{self.mode}, {text}, batch {self.batch}, ${self.cost:.4g}/Mtok"
