"""Make or buy for a plan: own cost, hosts, break-evens, fleets of other sizes, the map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalogue.systems import System, machine_chips
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.questions import searches_with_best_point
from planner.problems.serving.deployment.scored_points import PlanPoint, best_point
from planner.problems.serving.make_or_buy import offers
from planner.problems.serving.make_or_buy import offers as records
from planner.problems.serving.make_or_buy.host_prices import HostList, HostPrice, token_mix
from planner.problems.serving.point import MTOK, ServingBand, ServingPoint
from planner.problems.serving.question import Scenario
from planner.problems.serving.task.resolve import resolve
from planner.text.errors import InputError
from planner.text.tolerances import REL_TOL

HOUR = 3600.0
DOUBLINGS = 3  # doublings of the given chips, up to the largest fleet considered for rent
GRID = 13  # demands and rents of the map
DECADES = 2  # decades of demand on the map, below and above the plan's throughput
RENT_RANGE = (0.5, 2.0)  # of the rent, where no contract has a range


@dataclass(frozen=True)
class OwnPlan:
    """A plan with its price band, price bound, and tokens served at full use [token/s]."""

    point: ServingPoint
    band: ServingBand | None
    bound: float | None
    tokens: float

    @property
    def fleet(self) -> offers.Fleet:
        """The plan as one fleet."""
        bill = self.point.usd_per_mtok / MTOK * self.tokens
        return offers.Fleet(self.point.chips, bill, self.tokens)


def compare_make_or_buy(
    scenario: Scenario,
    points: Sequence[PlanPoint],
    chosen: ServingPoint,
    band: ServingBand | None,
    listed: HostList,
) -> records.MakeOrBuy:
    """Compare the best plan with hosts; `points` are all feasible plans, the best first."""
    loaded = scenario.workload.arrivals is not None
    best = points[0].candidate
    full = _plan_of(scenario, best, chosen, band)
    if loaded:
        alone = full_use(scenario, chosen.chips)
        full = alone or full
    prices = [host.mix for host in listed.hosts]
    spread = _spread(prices, scenario.buy.quantile if scenario.buy else 0.5)
    target = spread.quantile / MTOK
    fleets = _fleets(scenario, full, target)
    cost = chosen.usd_per_mtok / MTOK
    rows = best.band(chosen)  # whose ends no bound has cut
    width = offers.log_sd(rows.usd_per_mtok, rows.coverage) if rows else 0.0
    cheaper = offers.chance_of_buying(cost, width, prices)
    met = offers.break_even_point(full.fleet, target)
    economic = [row for row in fleets if row.usd_per_mtok <= spread.quantile]
    return records.MakeOrBuy(
        ours=records.OwnCost(
            full=full.point.usd_per_mtok,
            at_demand=chosen.usd_per_mtok if loaded else None,
            bound=full.bound,
            band=full.band.usd_per_mtok if full.band else None,
            demand_band=band.usd_per_mtok if loaded and band else None,
            contracts=_contracts(scenario, full.point, chosen if loaded else None),
            chips=full.point.chips,
            usd_per_day=full.fleet.bill * offers.DAY,
            tokens_per_day=full.tokens * offers.DAY,
        ),
        hosts=spread,
        break_even=records.BreakEvens(
            met.utilisation,
            met.tokens_per_day,
            met.always_from,
            {
                name: offers.break_even_point(full.fleet, getattr(spread, name) / MTOK)
                for name in ("min", "q25", "median", "q75")
            },
        ),
        cheaper=cheaper,
        better="buy" if cost > target else "rent",
        weights=chosen.weights,
        formats=tuple(_formats(points)),
        marginal=_marginal(chosen),
        offers=tuple(_offer(host, full.fleet) for host in (*listed.hosts, *listed.resellers)),
        fleets=fleets,
        smallest_fleet=min(economic, key=lambda row: row.chips, default=None),
        map=cost_ratio_map(scenario, fleets, full, target),
        cached=token_mix(scenario).cached,
        rule=listed.rule,
    )


def make_or_buy_row(
    scenario: Scenario, best: Candidate, chosen: ServingPoint, listed: HostList
) -> dict[str, float | str | None]:
    """Return the make-or-buy columns of one plan; fleets of other sizes are not evaluated."""
    band = best.band(chosen)
    full = _plan_of(scenario, best, chosen, band)
    if scenario.workload.arrivals is not None:
        full = full_use(scenario, chosen.chips) or full
    prices = [host.mix for host in listed.hosts]
    target = _spread(prices, scenario.buy.quantile if scenario.buy else 0.5).quantile
    met = offers.break_even_point(full.fleet, target / MTOK)
    width = offers.log_sd(band.usd_per_mtok, band.coverage) if band else 0.0
    more = _marginal(chosen)
    values = (
        "buy" if chosen.usd_per_mtok > target else "rent",
        offers.chance_of_buying(chosen.usd_per_mtok / MTOK, width, prices),
        len(prices), target, full.point.usd_per_mtok, met.utilisation, met.tokens_per_day,
        more.input, more.output,
    )  # fmt: skip
    return dict(zip(records.COLUMNS, values, strict=True))


def _plan_of(
    scenario: Scenario, candidate: Candidate, point: ServingPoint, band: ServingBand | None
) -> OwnPlan:
    lengths = scenario.workload.input_tokens.mean + scenario.workload.output_tokens.mean
    bound = candidate.floor(None).usd_per_mtok
    return OwnPlan(point, band, bound, point.requests_per_s * lengths)


def at_full_utilisation(scenario: Scenario, chips: int) -> Scenario:
    """Copy of the scenario on `chips` chips at full utilisation: no arrivals, no queue."""
    alone = {"demand": None, "utilisation": None, "spare_replicas": 0, "headroom": 0.0}
    no_tails = {"ttft_p95": None, "ttft_p99": None, "cache_fits": None}
    return scenario.model_copy(
        update={
            "chips": (chips,),
            "workload": scenario.workload.model_copy(update=alone),
            "promises": scenario.promises.model_copy(update=no_tails),
            "objective": "cost",
        }
    )


def full_use(scenario: Scenario, chips: int) -> OwnPlan | None:
    """Cheapest plan on `chips` chips at full utilisation; None if no plan is feasible."""
    question = at_full_utilisation(scenario, chips)
    try:
        fullest = best_point(searches_with_best_point(resolve(question)))
    except InputError:
        return None  # the given layout needs more chips
    if fullest is None:
        return None
    candidate = fullest.candidate
    point = candidate.plan()
    return _plan_of(question, candidate, point, candidate.band(point))


def _contracts(
    scenario: Scenario, full: ServingPoint, loaded: ServingPoint | None
) -> dict[str, records.ContractCost]:
    """Own cost from the least rent to the most of each contract; empty where chips differ.

    What is paid for power beside the rent stays.
    """
    systems = [each for each in scenario.systems() if isinstance(each, System)]
    rented = [each for each in systems if each.chip.name == full.chip]
    if not rented:
        return {}
    base = scenario.price_of(rented[0]).value

    def scaled(point: ServingPoint, rent: float) -> float:
        power = (point.power_usd_per_hour or 0.0) / point.usd_per_hour
        return point.usd_per_mtok * ((1 - power) * rent / base + power)

    costs = {}
    for kind, price in scenario.rents_of(rented[0]).items():
        ends = (price.low, price.high)
        low, high = (scaled(full, end) for end in ends)
        at_demand = (scaled(loaded, ends[0]), scaled(loaded, ends[1])) if loaded else None
        costs[kind] = records.ContractCost(
            rent=(ends[0] * HOUR, ends[1] * HOUR), full=(low, high), at_demand=at_demand
        )
    return costs


def _spread(prices: Sequence[float], quantile: float) -> records.HostSpread:
    """Least and quartiles of the hosts' prices of the mix [USD per million tokens]."""
    at = np.quantile(prices, [0.0, 0.25, 0.5, 0.75, quantile]) * MTOK
    low, first, middle, third, wanted = map(float, at)
    return records.HostSpread(low, first, middle, third, len(prices), wanted)


def _offer(host: HostPrice, fleet: offers.Fleet) -> records.HostOffer:
    """Compare one host with our fleet."""
    from formulas.economics.make_or_buy import implied_markup

    prices = (host.mix, host.input, host.output)
    mix, read, written = (price * MTOK for price in prices)
    return records.HostOffer(
        host=host.host,
        usd_per_mtok=mix,
        input=read,
        output=written,
        cached=None if host.cached is None else host.cached * MTOK,
        markup=float(implied_markup.numpy()(C_host=host.mix, C_full=fleet.full)),
        break_even=offers.break_even_point(fleet, host.mix),
        as_of=host.as_of,
        counted=host.counted,
    )


def _formats(points: Sequence[PlanPoint]) -> Iterator[records.FormatCost]:
    """The cheapest plan in each format of the weights, the best first."""
    best: dict[str, float] = {}
    for point in points:
        task = point.tasks[-1]
        name = task.sizes.weight_dtype["routed" if task.sizes.n_experts else "dense_ffn"]
        if name not in best:
            best[name] = point.candidate.usd_per_mtok
    for name, price in sorted(best.items(), key=lambda pair: pair[1]):
        yield records.FormatCost(name, price)


def _marginal(point: ServingPoint) -> records.MarginalCost:
    long = point.marginal
    if long is not None:
        source = "each pool sized anew for what it serves"
        return records.MarginalCost(long.usd_per_mtok_input, long.usd_per_mtok_output, source)
    source = "one pool, its time shared by what each kind takes"
    return records.MarginalCost(point.usd_per_mtok_input, point.usd_per_mtok_output, source)


def _fleets(scenario: Scenario, full: OwnPlan, target: float) -> tuple[records.FleetCost, ...]:
    """Fleets by their chips, up to the first that costs no more than the host, found exactly.

    Doubling from one machine, beyond what is asked about where none is cheap enough there; then by
    bisection between the last that is too dear and the first that is not, in whole machines.
    """
    looked_up = {full.point.chips: _fleet(full, target)}

    def looked_at(chips: int) -> records.FleetCost | None:
        if chips not in looked_up:
            plan = full_use(scenario, chips)
            if plan is not None:
                looked_up[chips] = _fleet(plan, target)
        return looked_up.get(chips)

    dear = 0
    # Numbers of chips to look at: parts of a machine, machines doubled, a few times beyond.
    machine, most = _machine(full), scenario.paid[-1]
    sizes = [1 << power for power in range(10) if 1 << power < machine]
    size = machine
    while size <= most << DOUBLINGS:
        sizes.append(size)
        size *= 2
    for chips in sorted({*sizes, full.point.chips}):
        row = looked_at(chips)
        if row is None or row.usd_per_mtok > target * MTOK * (1 + REL_TOL):
            dear = chips
            continue
        low, high, unit = dear, chips, _machine(full)
        while high - low > unit and high > unit:
            middle = (low + high) // 2 // unit * unit
            if middle in (low, high):
                break
            between = looked_at(middle)
            cheap = between is not None and between.usd_per_mtok <= target * MTOK
            low, high = (low, middle) if cheap else (middle, high)
        break
    return tuple(looked_up[chips] for chips in sorted(looked_up))


def _machine(full: OwnPlan) -> int:
    return machine_chips(full.point.chip or "")


def _fleet(plan: OwnPlan, target: float) -> records.FleetCost:
    fleet = plan.fleet
    return records.FleetCost(
        chips=fleet.chips,
        usd_per_mtok=fleet.full * MTOK,
        tokens_per_day=fleet.rate * offers.DAY,
        usd_per_day=fleet.bill * offers.DAY,
        break_even_tokens_per_day=offers.break_even_point(fleet, target).tokens_per_day,
    )


def cost_ratio_map(
    scenario: Scenario, fleets: Sequence[records.FleetCost], full: OwnPlan, target: float
) -> records.WhoWins:
    """Own cost over the host's price by demand and rent, fleets rented whole."""
    # Rents of the map: range over all contracts, or RENT_RANGE around the paid rent.
    base = (
        (full.point.usd_per_hour - (full.point.power_usd_per_hour or 0.0)) / HOUR / full.point.chips
    )
    ends = [base]
    for system in scenario.systems():
        if isinstance(system, System) and system.chip.name == full.point.chip:
            ends += [end for price in scenario.rents_of(system).values()
                     for end in (price.low, price.high)]  # fmt: skip
    low, high = min(ends), max(ends)
    if high / low < RENT_RANGE[1]:
        low, high = base * RENT_RANGE[0], base * RENT_RANGE[1]
    rents = np.geomspace(low, high, GRID)
    middle = full.tokens
    demands = np.geomspace(middle / 10**DECADES, middle * 10**DECADES, GRID)
    whole = [
        offers.Fleet(row.chips, row.usd_per_day / offers.DAY, row.tokens_per_day / offers.DAY)
        for row in fleets
    ]
    rows = [offers.own_cost(whole, demands, rent / base) / target for rent in rents]
    return records.WhoWins(
        tuple(float(each * offers.DAY) for each in demands),
        tuple(float(rent * HOUR) for rent in rents),
        tuple(tuple(map(float, row)) for row in rows),
    )
