"""The frontier of price against speed: for each speed promised to a user, the cheapest plan.

Each point is the exact optimum under one promise on the time per output token, everything else of
the question held. Between the fastest plan that keeps the other promises and the cheapest one the
promises are spaced evenly in the logarithm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from planner.problems.serving import frontier_text
from planner.problems.serving.advice.current_layout import current_layout, price_lower_bound
from planner.problems.serving.advice.grounds import provenance
from planner.problems.serving.deployment.beyond_fit import extrapolations
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.missed_promises import missed_promises
from planner.problems.serving.deployment.pool import ROOFS, min_output
from planner.problems.serving.deployment.questions import EDGE, Question, TwoPools, all_searches
from planner.problems.serving.deployment.scored_points import ranked_points, sort_points
from planner.problems.serving.make_or_buy.host_prices import MarkedTier, marked_tiers
from planner.problems.serving.plan import CurrentPoint, ServingProvenance
from planner.problems.serving.point import ServingBand, ServingBound, ServingEstimate, ServingPoint
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.promise_limits import quantile_factors
from planner.problems.serving.search.sizing import shared_batches
from planner.problems.serving.task.requests import modes as modes_of
from planner.problems.serving.task.resolve import resolve
from planner.protocol.document import Unit, to_document
from planner.protocol.plan import MissedPromise, Outside, Status, gap_status
from planner.scenario import resolve_keys
from planner.text.errors import FieldError, InputError
from planner.text.tolerances import TIE

DEFAULT_POINTS = 25
MAX_POINTS = 1000
# Price of the lecture's fast mode over the normal one (lecture notes, section 1).
FAST_PRICE = 6.0
# Search for the fastest pair: TPOT promises solved together in a round, and number of rounds.
PROMISES_PER_ROUND = 32
ROUNDS = 2
TIED = 1 - 1 / (1 + TIE)  # max price gap of a plainer plan to the cheapest at its speed


@dataclass(frozen=True)
class FrontierPlan:
    """Plan of the frontier: error band, extrapolation, roofline bound, estimate."""

    plan: ServingPoint
    band: ServingBand | None
    outside: tuple[Outside, ...]
    bound: ServingBound
    estimate: ServingEstimate | None


@dataclass(frozen=True)
class ComparedMode:
    """Speed and price of a mode as multiples of the normal one's."""

    speed: float
    price: float


@dataclass(frozen=True)
class FastestEnd:
    """Shares of one step [s] of the fastest plan, largest first: with few sequences a floor."""

    batch_per_replica: int
    step: float
    shares: Mapping[str, float]


@dataclass(frozen=True)
class CheapestEnd:
    """Binding limits, or the given quantity, at the cheapest end; empty if the price is flat."""

    binds: tuple[str, ...]


@dataclass(frozen=True)
class FrontierEnds:
    """Limiting factors at the fastest and at the cheapest end of a frontier."""

    fastest: FastestEnd
    cheapest: CheapestEnd


@dataclass(frozen=True, kw_only=True)
class ServingFrontier:
    """The cheapest plan at each speed, fastest first; places of the modes among them."""

    problem: str = "serving"
    status: Status = "infeasible"
    gap: Annotated[float, Unit("1")] | None = None
    scenario: Mapping[str, Any]
    points: tuple[FrontierPlan, ...] = ()
    marks: Mapping[str, int] = field(default_factory=dict)
    compared: Mapping[str, ComparedMode] | None = None
    tiers: tuple[MarkedTier, ...] | None = None
    ends: FrontierEnds | None = None
    current: CurrentPoint | None
    infeasible: tuple[MissedPromise, ...] | None = None
    provenance: ServingProvenance


@dataclass(frozen=True, repr=False)
class Frontier:
    """The cheapest plan at each speed; shows itself as a table, in a notebook too."""

    answer: ServingFrontier
    warnings: tuple[str, ...] = ()

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """Exactly what `planner pareto --json` prints, in base units (s, byte, USD, token)."""
        document: dict[str, Any] = to_document(self.answer)
        return document

    @property
    def status(self) -> Status:
        """`optimal`, `feasible` where ties were taken, or `infeasible` without a point."""
        return self.answer.status

    @property
    def plans(self) -> tuple[Mapping[str, object], ...]:
        """Plans in the words of the answer, fastest first, none slower and dearer than another."""
        return tuple(point["plan"] for point in self.document["points"])

    @property
    def marks(self) -> Mapping[str, int]:
        """Places of the fast, the normal and the slow mode among the plans."""
        return dict(self.answer.marks)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The points as plain dicts of numbers and words, fastest first."""
        return frontier_text.frontier_rows(self.answer)

    def __str__(self) -> str:
        return frontier_text.frontier_text(self.answer)

    def __repr__(self) -> str:
        rows = self.rows
        if not rows:
            return "<Pareto: infeasible>"
        ends = [f"{row['tokens_per_s_per_user']:.3g}" for row in (rows[-1], rows[0])]
        prices = [f"${row['usd_per_mtok']:.3g}" for row in (rows[-1], rows[0])]
        return (
            f"<Pareto of {len(rows)} plans: {ends[0]} to {ends[1]} tokens/s per user, "
            f"{prices[0]} to {prices[1]} per Mtok>"
        )

    def _repr_html_(self) -> str:
        return frontier_text.frontier_page(self.answer)


def frontier(scenario: Scenario, points: int = DEFAULT_POINTS) -> Frontier:
    """The frontier of a serving question, whatever its objective, within its promises.

    Args:
        points: promises on speed to look at, 2 to 1000; fewer plans where some share one.

    Raises InputError for a question that contradicts itself, or without decoding; SolverError if a
    plan does not survive its independent evaluation.
    """
    if not 2 <= points <= MAX_POINTS:
        raise InputError(f"points: {points} is not between 2 and {MAX_POINTS}")
    if "prefill" in modes_of(scenario):
        words = "a prompt alone has no speed of its own; choose aggregated, disaggregated or decode"
        raise FieldError(("choose.mode", words))
    tasks = resolve(_on_fewer_chips(scenario).model_copy(update={"objective": "cost"}))
    questions = all_searches(tasks)
    cheapest = ranked_points(questions)
    candidates: list[Candidate] = []
    if cheapest:
        last = cheapest[0].candidate
        first = min(min_tpot(question) for question in questions)
        paces = np.geomspace(first, _promised_pace(last), points)[:-1] * EDGE
        every = zip(*(question.paced(paces) for question in questions), strict=True)
        best = [sort_points([point for point in row if point is not None]) for row in every]
        candidates = _undominated([*(row[0].candidate for row in best if row), last])
    for candidate in candidates:
        candidate.recheck()
    plans = [candidate.plan() for candidate in candidates]
    profile = (candidates[-1] if candidates else questions[0]).task.profile
    answer = ServingFrontier(
        scenario=resolve_keys(scenario),
        current=current_layout(scenario, tasks.tasks),
        provenance=provenance(scenario, tasks, profile),
    )
    if not plans:
        return Frontier(
            replace(answer, infeasible=tuple(missed_promises(questions))), tasks.warnings
        )
    marks, least = modes(plans), price_lower_bound(scenario)
    answer = replace(
        answer,
        status=gap_status(TIED),
        gap=TIED,
        points=tuple(_point(*each, least) for each in zip(candidates, plans, strict=True)),
        marks=marks,
        tiers=marked_tiers(scenario.tiers, plans, plans[marks["normal"]]),
        compared={
            name: _compared(plans[marks[name]], plans[marks["normal"]]) for name in ("fast", "slow")
        },
        ends=FrontierEnds(_fastest_end(candidates[0]), _cheapest_end(candidates[-1])),
    )
    return Frontier(answer, tasks.warnings)


def _on_fewer_chips(scenario: Scenario) -> Scenario:
    """Of requests kept in flight every number of whole machines up to the chips that are given.

    Their batch is no choice: how many chips share them makes them fast or cheap.
    """
    if scenario.workload.concurrency is None:
        return scenario
    fewer = range(scenario.unit, scenario.paid[-1], scenario.unit)
    return scenario.model_copy(update={"chips": tuple(sorted({*fewer, *scenario.paid}))})


def _point(candidate: Candidate, plan: ServingPoint, least: float | None) -> FrontierPlan:
    bound, outside = candidate.floor(least), extrapolations(candidate)
    return FrontierPlan(plan, candidate.band(plan, bound), outside, bound, candidate.expected())


def modes(plans: Sequence[ServingPoint]) -> dict[str, int]:
    """Places of the fast, the normal and the slow mode among plans, fastest first.

    The slow mode is the cheapest. At the normal one a percent of speed costs a percent of price: it
    has the least product of price and time. The fast one is the fastest within the lecture's
    multiple of the normal price.
    """
    price = np.array([plan.usd_per_mtok for plan in plans])
    time = np.array([plan.tpot for plan in plans])
    normal = int(np.argmin(price * time))
    affordable = np.flatnonzero(price <= FAST_PRICE * price[normal])
    return {"fast": int(affordable[0]), "normal": normal, "slow": len(plans) - 1}


def _undominated(candidates: Sequence[Candidate]) -> list[Candidate]:
    cheaper: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda x: (x.last.chosen_by["tpot"], x.usd_per_mtok)):
        if not cheaper or candidate.usd_per_mtok < cheaper[-1].usd_per_mtok / EDGE:
            cheaper.append(candidate)
    return cheaper


def _compared(plan: ServingPoint, normal: ServingPoint) -> ComparedMode:
    times = (normal.tpot or 0.0), (plan.tpot or 0.0)
    return ComparedMode(speed=times[0] / times[1], price=plan.usd_per_mtok / normal.usd_per_mtok)


def _fastest_end(candidate: Candidate) -> FastestEnd:
    pool = candidate.last
    times = pool.step_times()
    if times is None:
        # Roofs overlap, so the highest alone is the time of a step.
        parts = {roof: pool.bound[f"roof.{roof}"] for roof in ROOFS}
        whole = max(parts.values())
    else:
        parts = dict(vars(times))
        whole = sum(parts.values())
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    shares = {name: value / whole for name, value in ordered if value > 0}
    return FastestEnd(int(pool.batch), whole, shares)


def _cheapest_end(candidate: Candidate) -> CheapestEnd:
    if candidate.last.task.loop is not None:
        return CheapestEnd(("number of requests in flight",))
    if candidate.last.task.batches is not None:
        return CheapestEnd(("batch",))
    if candidate.demand is not None:
        return CheapestEnd(("demand",))
    return CheapestEnd(candidate.held_by())


def min_tpot(question: Question) -> float:
    """Minimum time per output token that keeps the promises [s]; infinite if infeasible.

    A pair that decodes one sequence at a time, or a given batch, is as fast as its layout that
    decodes; a given load slows it down, and the promise it still keeps is found by bisection.
    """
    if not isinstance(question, TwoPools):
        return min_output(question.step, "tpot")
    if not question.pairs:
        return np.inf
    prefill, decode = question.pools
    step = decode.step.with_task(question.task.with_layout(arrivals=None))
    rows = np.arange(len(step.layouts))
    batch, fill = np.ones(rows.size), np.ones(rows.size)
    if step.task.batches is not None:
        rows, batch, fill, _ = shared_batches(step, np.full(rows.size, np.inf))
    part = step.take(rows)
    tpot = part(batch, fill)["tpot"] * quantile_factors(part, batch, also="tpot").get("tpot", 1.0)
    # Chips of a decode replica plus those of the smallest prefill replica.
    beside = step.layouts.replica_chips + prefill.step.layouts.replica_chips.min()
    fits = beside[rows] <= max(question.task.chips)
    alone = np.unique(np.broadcast_to(tpot, rows.shape)[fits])
    low = float(alone[0])
    # Usually the fastest decode layout leaves room for a prefill pool.
    if question.paced(alone[:1] * EDGE)[0]:
        return low
    high = _promised_pace(question.point(question.pairs[0]).candidate)
    for _ in range(ROUNDS):
        low, high = _turn(question, np.geomspace(low, high, PROMISES_PER_ROUND))
    if question.pair.demand is not None:
        return high
    return _turn(question, np.array([low, *alone[(alone > low) & (alone < high)], high]))[1]


def _promised_pace(candidate: Candidate) -> float:
    """Minimum TPOT promise that a plan keeps at the required chance [s]."""
    return candidate.last.chosen_by["tpot"] * candidate.last.quantile_factor("tpot")


def _turn(question: TwoPools, paces: np.ndarray) -> tuple[float, float]:
    points = question.paced(paces[:-1] * EDGE)
    k = next((k for k, point in enumerate(points) if point), paces.size - 1)
    return float(paces[max(k - 1, 0)]), float(paces[k])
