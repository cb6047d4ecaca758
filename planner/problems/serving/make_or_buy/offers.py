"""Make or buy, typed: own cost, hosts, where they meet, which fleet is worth renting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

from planner.problems.serving.point import Chips, Ends, PerMillion, ServingPoint, Share
from planner.protocol.document import Unit

TokensPerDay = Annotated[float, Unit("token/day")]
PerChipHour = Annotated[Ends, Unit("USD/(chip*hour)")]
PriceEnds = Annotated[Ends, Unit("USD per million tokens")]


# What a row of a sweep has of make or buy, with its units.
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

    full: PerMillion
    at_demand: PerMillion | None
    bound: PerMillion | None
    band: PriceEnds | None
    demand_band: PriceEnds | None
    contracts: Mapping[str, ContractCost]
    chips: Chips
    usd_per_day: Annotated[float, Unit("USD/day")]
    tokens_per_day: TokensPerDay


@dataclass(frozen=True)
class HostSpread:
    """Prices of the hosts at the mix, and the one at the quantile that is asked for."""

    min: PerMillion
    q25: PerMillion
    median: PerMillion
    q75: PerMillion
    n: int
    quantile: PerMillion


@dataclass(frozen=True)
class MeetingPoint:
    """Where our fleet costs what a price does.

    `utilisation` above one is out of reach: even full chips cost more, and no demand of one fleet
    does (`tokens_per_day` is null). `always_from` is the demand above which whole fleets are
    cheaper whatever it is.
    """

    price: PerMillion
    utilisation: Share
    tokens_per_day: TokensPerDay | None
    always_from: TokensPerDay | None


@dataclass(frozen=True)
class BreakEvens:
    """The same against the host at the quantile, and against least, quartiles and median."""

    utilisation: Share
    tokens_per_day: TokensPerDay | None
    always_from: TokensPerDay | None
    by: Mapping[str, MeetingPoint]


@dataclass(frozen=True)
class HostOffer:
    """One host: its prices, that of the mix, its mark-up over our cost, where we meet it."""

    host: str
    usd_per_mtok: PerMillion
    input: PerMillion
    output: PerMillion
    cached: PerMillion | None
    markup: Share
    break_even: MeetingPoint
    as_of: str | None
    counted: bool


@dataclass(frozen=True)
class FleetCost:
    """A fleet by its chips: its cost at full use, and from which demand it beats the host."""

    chips: Chips
    usd_per_mtok: PerMillion
    tokens_per_day: TokensPerDay
    usd_per_day: Annotated[float, Unit("USD/day")]
    break_even_tokens_per_day: TokensPerDay | None


@dataclass(frozen=True)
class FormatCost:
    """The cheapest plan in one format of the weights; null where none keeps the promises."""

    weights: str
    usd_per_mtok: PerMillion | None


@dataclass(frozen=True)
class MarginalCost:
    """What a token more of each kind costs where pools are sized anew (two pools) or shared."""

    input: PerMillion | None
    output: PerMillion | None
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
    """Rent chips or buy tokens: what each costs, where they meet, how sure that buying is cheaper.

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
    """The plan with the hosts that sell its tokens beside it."""

    buy: MakeOrBuy
