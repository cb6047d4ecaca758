"""Make or buy, typed: own cost, hosts, where they meet, which fleet is worth renting.

Where renting and buying meet, in closed form: at a use, at a demand, in whole fleets.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from planner.problems.serving.point import MTOK, Chips, Interval, ServingPoint, Share, UsdPerMtok
from planner.protocol.document import Unit

TokensPerDay = Annotated[float, Unit("token/day")]
PerChipHour = Annotated[Interval, Unit("USD/(chip*hour)")]
PriceEnds = Annotated[Interval, Unit("USD per million tokens")]


# Columns of make-or-buy results in a row of a sweep, with their units.
COLUMNS: Mapping[str, str] = MappingProxyType({
    "buy.cheaper": "", "buy.chance": "", "buy.hosts": "",
    "buy.host_usd_per_mtok": "USD per million tokens",
    "buy.own_full_usd_per_mtok": "USD per million tokens",
    "buy.break_even_utilisation": "", "buy.break_even_tokens_per_day": "token/day",
    "buy.marginal_input": "USD per million input tokens",
    "buy.marginal_output": "USD per million output tokens",
})  # fmt: skip


@dataclass(frozen=True)
class ContractCost:
    """Own cost under one kind of contract, from the least rent to the most."""

    rent: PerChipHour
    full: PriceEnds
    at_demand: PriceEnds | None


@dataclass(frozen=True)
class OwnCost:
    """Our cost of a token where the chips are always full, and at the demand (null without one).

    `bound` and `band` are of the cost at full use, `demand_band` at the demand; `contracts` by kind
    of contract. The fleet costs `usd_per_day` and serves at most `tokens_per_day`.
    """

    full: UsdPerMtok
    at_demand: UsdPerMtok | None
    bound: UsdPerMtok | None
    band: PriceEnds | None
    demand_band: PriceEnds | None
    contracts: Mapping[str, ContractCost]
    chips: Chips
    usd_per_day: Annotated[float, Unit("USD/day")]
    tokens_per_day: TokensPerDay


@dataclass(frozen=True)
class HostSpread:
    """Prices of the hosts at the mix, and the price at the requested quantile."""

    min: UsdPerMtok
    q25: UsdPerMtok
    median: UsdPerMtok
    q75: UsdPerMtok
    n: int
    quantile: UsdPerMtok


@dataclass(frozen=True)
class MeetingPoint:
    """Break-even point: utilisation and demand at equal cost of our fleet and a price.

    `utilisation` above one is out of reach: even full chips cost more, and no demand of one fleet
    does (`tokens_per_day` is null). `always_from` is the demand above which whole fleets are
    cheaper whatever it is.
    """

    price: UsdPerMtok
    utilisation: Share
    tokens_per_day: TokensPerDay | None
    always_from: TokensPerDay | None


@dataclass(frozen=True)
class BreakEvens:
    """Break-even against the host at the quantile, and `by` minimum, quartiles and median."""

    utilisation: Share
    tokens_per_day: TokensPerDay | None
    always_from: TokensPerDay | None
    by: Mapping[str, MeetingPoint]


@dataclass(frozen=True)
class HostOffer:
    """One host: its prices, that of the mix, its mark-up over our cost, where we meet it."""

    host: str
    usd_per_mtok: UsdPerMtok
    input: UsdPerMtok
    output: UsdPerMtok
    cached: UsdPerMtok | None
    markup: Share
    break_even: MeetingPoint
    as_of: str | None
    counted: bool


@dataclass(frozen=True)
class FleetCost:
    """A fleet by its chips: cost at full use, and break-even demand against the host."""

    chips: Chips
    usd_per_mtok: UsdPerMtok
    tokens_per_day: TokensPerDay
    usd_per_day: Annotated[float, Unit("USD/day")]
    break_even_tokens_per_day: TokensPerDay | None


@dataclass(frozen=True)
class FormatCost:
    """Cheapest plan in one format of the weights; null if no plan is feasible."""

    weights: str
    usd_per_mtok: UsdPerMtok | None


@dataclass(frozen=True)
class MarginalCost:
    """Marginal price per input and output token: of two resized pools, or of a shared pool."""

    input: UsdPerMtok | None
    output: UsdPerMtok | None
    source: str


@dataclass(frozen=True)
class WhoWins:
    """Own cost over the host's price at each demand and rent: below one, renting is cheaper.

    Fleets are rented whole, the cheapest number of the cheapest fleet at each demand.
    """

    tokens_per_day: Annotated[tuple[float, ...], Unit("token/day")]
    rent: Annotated[tuple[float, ...], Unit("USD/(chip*hour)")]
    own_over_host: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MakeOrBuy:
    """Rent chips or buy tokens: both costs, break-evens, and the chance that buying is cheaper.

    `weights` is the format that was taken of those tried; `smallest_fleet` the fewest chips that
    cost no more at full use than the host at the quantile, null where none was found.
    """

    ours: OwnCost = field(metadata={"key": "own"})
    hosts: HostSpread
    break_even: BreakEvens
    cheaper: Share
    better: str
    weights: str
    formats: tuple[FormatCost, ...]
    marginal: MarginalCost
    offers: tuple[HostOffer, ...]
    fleets: tuple[FleetCost, ...]
    smallest_fleet: FleetCost | None
    map: WhoWins
    cached: Share
    rule: str


@dataclass(frozen=True, kw_only=True)
class ComparedPoint(ServingPoint):
    """A plan with its comparison to the hosts that sell its tokens."""

    buy: MakeOrBuy


DAY = 86400.0
SLACK = 1e-12  # fleets; rounding error of a demand that fills a fleet


@dataclass(frozen=True)
class Fleet:
    """Chips rented as a unit: bill [USD/s] and maximum throughput [token/s]."""

    chips: int
    bill: float
    rate: float

    @property
    def full(self) -> float:
        """Cost at full use [USD/token]."""
        return self.bill / self.rate


def break_even_point(fleet: Fleet, price: float) -> MeetingPoint:
    """Break-even of a fleet at a price [USD/token]: utilisation, demand, safe demand."""
    from formulas.economics import make_or_buy as equations

    even = float(equations.break_even_use.numpy()(C_full=fleet.full, C_host=price))
    reached = even <= 1
    demand = float(equations.break_even_demand.numpy()(p_fleet=fleet.bill, C_host=price))
    always = None
    if even < 1:
        kernel = equations.fleets_from_which_renting_stays_cheaper.numpy()
        fleets = float(kernel(p_fleet=fleet.bill, C_host=price, X_full=fleet.rate))
        # Safe demand: break-even demand of the last fleet count that starts at a loss.
        always = max(math.ceil(fleets - SLACK), 1) * demand
    return MeetingPoint(
        price=price * MTOK,
        utilisation=even,
        tokens_per_day=demand * DAY if reached else None,
        always_from=None if always is None else always * DAY,
    )


def own_cost(
    fleets: Sequence[Fleet], demands: NDArray[np.float64], rent: float = 1.0
) -> NDArray[np.float64]:
    """Minimum cost per token at each demand [USD/token], with enough copies of one fleet.

    Args:
        demands: [token/s], shape (n,).
        rent: over the one that the bills have.
    """
    costs = [
        np.ceil(demands / fleet.rate - SLACK).clip(1) * fleet.bill * rent / demands
        for fleet in fleets
    ]
    return np.asarray(np.min(costs, axis=0))


def chance_of_buying(cost: float, spread: float, prices: Sequence[float]) -> float:
    """Probability that a host drawn at random is cheaper than our cost.

    Our cost is log-normal with a standard deviation `spread` of its logarithm.
    """
    if not spread:
        return float(np.mean([price < cost for price in prices]))
    normal = NormalDist()
    return float(np.mean([normal.cdf(math.log(cost / price) / spread) for price in prices]))


def log_sd(ends: tuple[float, float] | None, coverage: float) -> float:
    """Standard deviation of the log of a cost from its band and coverage; 0 without a band."""
    if ends is None:
        return 0.0
    return math.log(ends[1] / ends[0]) / (2 * NormalDist().inv_cdf((1 + coverage) / 2))
