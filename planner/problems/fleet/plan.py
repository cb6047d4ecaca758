"""The answer to a fleet question, typed: machines by contract and hour, replicas, bill, proof."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from planner.problems.fleet.question import FleetScenario
from planner.protocol.document import Second, Share, Unit, Usd
from planner.protocol.plan import Answer, Plan, Provenance, presentation_method

Hourly = Annotated[float, Unit("USD/hour")]
UsdPerMtok = Annotated[float, Unit("USD per million tokens")]
ByHour = tuple[int, ...]


@dataclass(frozen=True)
class ModelBill:
    """Bill of one model: its share of all chips and starts that are paid.

    `usd_per_mtok` is null where nothing says how many tokens a request has.
    """

    usd_per_hour: Hourly
    usd_per_mtok: UsdPerMtok | None
    usd_per_1000_requests: Usd
    share_of_bill: Share


@dataclass(frozen=True)
class FleetPoint:
    """Machines by contract, replicas by model and hour, and the bill.

    `replicas` are all of a column, `on_spot` those of them on spot machines; `utilisation` is the
    share of paid chips that hold replicas; `served` that of models and hours whose demand is served
    though spot machines are lost, null where none are in use; `served_in` requests/s of each model
    and region by where they are served, of those that may move.
    """

    usd_per_hour: Hourly
    usd_per_day: Annotated[float, Unit("USD/day")]
    usd_per_month: Annotated[float, Unit("USD/month")]
    reserved: Mapping[str, int]
    on_demand: Mapping[str, ByHour]
    spot: Mapping[str, ByHour]
    replicas: Mapping[str, Mapping[str, ByHour]]
    on_spot: Mapping[str, Mapping[str, ByHour]]
    utilisation: Mapping[str, Share]
    per_model: Mapping[str, ModelBill]
    served: Share | None = None
    served_in: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pricing:
    """Pricing of layouts by the duals of the relaxation: layouts, rounds, columns added.

    In the last round none improved it: the relaxation is that of all these layouts.
    """

    layouts: int
    rounds: int
    added: int


@dataclass(frozen=True)
class FleetCertificate:
    """Method of the plan, lower bound on its cost [USD/hour], gap, and layouts priced."""

    method: str
    columns: int
    nodes: int
    objective: Hourly | None
    relaxation: Hourly | None
    gap: Share | None
    priced: Pricing | None = None


@dataclass(frozen=True)
class PlannedColumn:
    """A replica that the plan may use: chips, requests/s, and its own proof."""

    model: str
    column: str
    pool: str
    chips: int
    rate: Annotated[float, Unit("seq/s")]
    start: Second
    ttft_p95: Second | None
    in_plan: bool
    certificate: str | None


@dataclass(frozen=True)
class FleetPrices:
    """Duals of the continuous relaxation.

    `request` is what one request/s more of a model would cost in each hour [USD/hour], of work that
    may wait in the cheapest hour of its window; `machine`
    what one more machine of a pool in an hour is worth; `reserved` what one more reserved is worth
    per hour of the horizon where its limit binds; `headroom` what a hundredth more of it costs;
    `spare` what one more spare replica of a model does, empty without.
    """

    source: str
    request: Mapping[str, tuple[float, ...]]
    machine: Mapping[str, tuple[float, ...]]
    reserved: Mapping[str, Hourly]
    headroom: Hourly = 0.0
    spare: Mapping[str, Hourly] = field(default_factory=dict)


@dataclass(frozen=True)
class RestrictedFleet:
    """The bill with one freedom or one rule less, and by how much it is more.

    Null where nothing does it.
    """

    restriction: str
    usd_per_hour: Hourly | None
    more: Share | None


@dataclass(frozen=True)
class ChanceLevel:
    """Lower bound on the cost of plans that keep their promises with a chance."""

    chance: Share
    usd_per_hour: Hourly


@dataclass(frozen=True)
class BenchmarkRun:
    """Benchmark run of one replica and its saving: the mean over plans made after its outcomes.

    `before` and `after` are standard deviations of the logarithm of the speed of the model on the
    pool; `commands` measure it and make a profile, none where the planner knows no such replica.
    """

    model: str
    pool: str
    column: str
    usd_per_hour: Hourly
    before: Share
    after: Share
    commands: tuple[str, ...]


@dataclass(frozen=True)
class RobustFleet:
    """Service level of a plan with a chance, and its costs.

    `keeps` is the share of draws, none of which the plan saw, in which all was met; `margins`
    are factors of capacity over demand; `measured` is what knowing a model's speed would save;
    `runs` what single benchmark runs would, by so many `outcomes` of each, the best first.
    """

    chance: Share
    keeps: Share
    margins: Mapping[str, float]
    curve: tuple[ChanceLevel, ...]
    measured: Mapping[str, Hourly]
    runs: tuple[BenchmarkRun, ...]
    outcomes: int


@dataclass(frozen=True, kw_only=True)
class FleetAnswer(Answer):
    """The whole answer to a fleet question."""

    problem: str = "fleet"
    plan: FleetPoint | None = None
    bound: Hourly | None = None
    certificate: FleetCertificate
    columns: tuple[PlannedColumn, ...] = ()
    dropped: tuple[str, ...] = ()
    prices: FleetPrices | None = None
    beside: tuple[RestrictedFleet, ...] = ()
    robust: RobustFleet | None = None
    provenance: Provenance


@dataclass(frozen=True, eq=False, repr=False)
class FleetPlan(Plan[FleetAnswer]):
    """The answer to a fleet question, and the scenario that asked it."""

    question: FleetScenario

    kind = "fleet"
    cost_of = "usd_per_hour"  # USD per hour, a mean over the horizon
    answer_type = FleetAnswer

    why = presentation_method("explanation_text")
