"""Host prices for the served token mix, from the catalogue or from the user's own rows.

Listed tiers on our curve of price against speed: what each costs us, and in which layout.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import prod

from planner.catalogue import api_prices
from planner.problems.serving.point import ServingPoint, layout_text
from planner.problems.serving.question import Scenario
from planner.scenario.keys.buy_keys import Buy, HostRow, PriceTier, ratios, relative, scaled_prices
from planner.scenario.keys.model_keys import ModelDescription
from planner.text.errors import CatalogueError, FieldError

OWN_ROWS = "rows of one's own, one price for each host; resellers out"
MAX_HOSTS_SHOWN = 6  # hosts in a remark
YEAR = 365  # days
SHARE_SUM_TOLERANCE = 1e-6  # maximum |sum of the row shares of a host - 1|


@dataclass(frozen=True)
class HostPrice:
    """Prices of one host [USD/token], and of the mix."""

    host: str
    input: float
    output: float
    cached: float | None
    mix: float
    as_of: str | None
    counted: bool


@dataclass(frozen=True)
class HostList:
    """The hosts that count, the cheapest first, the resellers, and what to know of them."""

    hosts: tuple[HostPrice, ...]
    resellers: tuple[HostPrice, ...]
    rule: str
    warnings: tuple[str, ...]
    source: str
    as_of: str | None


@dataclass(frozen=True)
class TokenMix:
    """Token mix: `cached` is a share of the input tokens, `out` a share of all tokens."""

    cached: float
    out: float

    def price(self, read: float, cached: float | None, written: float) -> float:
        """Price of a token of the mix [USD/token], by the equation of make or buy."""
        from formulas.economics.make_or_buy import host_mix_price

        return float(
            host_mix_price.numpy()(
                w_out=self.out,
                w_found=self.cached,
                p_host_in=read,
                p_host_hit=read if cached is None else cached,
                p_host_out=written,
            )
        )


def token_mix(scenario: Scenario) -> TokenMix:
    """The mix of a scenario's requests."""
    load, buy = scenario.workload, scenario.buy
    lengths = load.input_tokens.mean, load.output_tokens.mean
    cached = load.cached_input if buy is None or buy.cached is None else buy.cached
    return TokenMix(cached, lengths[1] / sum(lengths))


def host_list(scenario: Scenario, today: date | None = None) -> HostList:
    """The hosts' prices at the scenario's mix.

    Raises FieldError where no price of the model is listed, or a host does not serve it.
    """
    buy, mix = scenario.buy, token_mix(scenario)
    assert buy is not None
    day = date.fromisoformat(buy.on) if buy.on else today or date.today()
    listed = _catalogue(scenario, buy, mix) if isinstance(buy.prices, str) else _rows(buy, mix)
    listed = _multiplied(listed, buy.multiply)
    if not listed.hosts:
        raise FieldError(("buy.prices", "no host that is no reseller is left to compare with"))
    low = [host.host for host in listed.hosts if host.output < host.input / 2]
    warnings = [*listed.warnings, *(f"{x} lists output below half of its input" for x in low)]
    old = [x.host for x in listed.hosts if x.as_of and _age(x.as_of, day) > YEAR]
    if old:
        many = f" and {len(old) - MAX_HOSTS_SHOWN} more" if len(old) > MAX_HOSTS_SHOWN else ""
        words = f"prices of {', '.join(old[:MAX_HOSTS_SHOWN])}{many} are older than a year: "
        words += listed.as_of or "own rows"
        warnings.append(words)
    later = [x.host for x in listed.hosts if x.as_of and x.as_of > day.isoformat()]
    if later:
        words = f"prices of {', '.join(later[:MAX_HOSTS_SHOWN])} are of a later day than {day}"
        warnings.append(
            f"{words} ({len(later)} of {len(listed.hosts)} hosts): they count all the same"
        )
    ranked = tuple(sorted(listed.hosts, key=lambda host: (host.mix, host.host)))
    return HostList(
        ranked, listed.resellers, listed.rule, tuple(warnings), listed.source, listed.as_of
    )


def _multiplied(listed: HostList, multiples: Mapping[str, float]) -> HostList:
    """Multiply the prices of all hosts by the given factors."""
    if not multiples:
        return listed
    rule = f"{listed.rule}; {ratios(multiples)}"
    hosts, resellers = (
        tuple(scaled_prices(host, multiples, "input", "output", "cached", "mix") for host in each)
        for each in (listed.hosts, listed.resellers)
    )
    return replace(listed, hosts=hosts, resellers=resellers, rule=rule)


def _age(as_of: str, day: date) -> int:
    whole = as_of if len(as_of) > len("2026-11") else f"{as_of}-28"
    return (day - date.fromisoformat(whole)).days


def _catalogue(scenario: Scenario, buy: Buy, mix: TokenMix) -> HostList:
    """Hosts of the price snapshot, one row each, on the date `buy.on`."""
    model = scenario.model
    name = model.like if isinstance(model, ModelDescription) else model
    wanted = buy.model or (name if isinstance(name, str) else None)
    if wanted is None:
        words = "a model of one's own is not listed under a name: give buy.model, or buy.prices"
        raise FieldError(("buy.model", words))
    day = date.fromisoformat(buy.on) if buy.on else None
    path = "buy.hosts" if buy.hosts and wanted in api_prices.model_names() else "buy.model"
    try:
        rows = api_prices.host_prices(wanted, buy.hosts, day)
        others = [row for row in api_prices.prices_on_date(wanted, day) if row.reseller]
    except CatalogueError as error:
        words = f"{error}; or give buy.prices as rows {{host, input, output}}"
        raise FieldError((path, words)) from None
    by_host: dict[str, list[api_prices.ListedPrice]] = defaultdict(list)
    for row in others:
        if row.tier == api_prices.STANDARD and not row.above and not row.hours:
            by_host[row.host].append(row)
    resellers = [api_prices.newest_price(rows) for _, rows in sorted(by_host.items())]
    return HostList(
        tuple(_listed(row, mix, counted=True) for row in rows),
        tuple(_listed(row, mix, counted=False) for row in resellers),
        api_prices.SELECTION_RULE,
        (),
        f"listed prices of {wanted}, {len(rows)} hosts{api_prices.chosen_file()}",
        max((row.as_of for row in rows), default=None),
    )


def _listed(row: api_prices.ListedPrice, mix: TokenMix, *, counted: bool) -> HostPrice:
    price = mix.price(row.input, row.cached, row.output)
    return HostPrice(row.host, row.input, row.output, row.cached, price, row.as_of, counted)


def _rows(buy: Buy, mix: TokenMix) -> HostList:
    """The user's own rows; those of one host averaged by their shares of the tokens."""
    by_host: dict[tuple[str, bool], list[HostRow]] = defaultdict(list)
    assert isinstance(buy.prices, tuple)
    for row in buy.prices:
        if not buy.hosts or api_prices.host_name(row.host) in buy.hosts:
            by_host[row.host, row.reseller].append(row)
    prices = [
        _averaged(host, rows, mix, counted=not sold) for (host, sold), rows in by_host.items()
    ]
    return HostList(
        tuple(each for each in prices if each.counted),
        tuple(each for each in prices if not each.counted),
        OWN_ROWS,
        (),
        "prices given in the scenario",
        None,
    )


def _averaged(host: str, rows: Sequence[HostRow], mix: TokenMix, *, counted: bool) -> HostPrice:
    """One host's rows as one price."""
    shares = [row.share for row in rows]
    times = [prod(row.multiply.values()) for row in rows]
    if abs(sum(shares) - 1) > SHARE_SUM_TOLERANCE:
        words = f"the rows of {host} are of {sum(shares):.0%} of the tokens: shares must add to 1"
        raise FieldError(("buy.prices", words))

    def mean(values: Sequence[float]) -> float:
        return sum(map(prod, zip(shares, times, values, strict=True)))

    read, written = mean([row.input for row in rows]), mean([row.output for row in rows])
    cached = None
    if any(row.cached is not None for row in rows):
        cached = mean([row.input if row.cached is None else row.cached for row in rows])
    dates = [row.as_of for row in rows if row.as_of]
    price = mix.price(read, cached, written)
    return HostPrice(host, read, written, cached, price, max(dates, default=None), counted)


MTOK = 1e6
SPEED_TOL = 1e-9  # relative difference of speeds that are one


@dataclass(frozen=True)
class MarkedTier:
    """A listed tier and our plan at its speed, or at its price, as multiples of normal.

    `place` is that of the plan among the points; none where no plan is so fast, or so cheap.
    """

    name: str
    price: float
    speed: float | None
    place: int | None
    our_price: float | None
    our_speed: float | None
    verdict: str


def marked_tiers(
    tiers: Sequence[PriceTier] | None, plans: Sequence[ServingPoint], normal: ServingPoint
) -> tuple[MarkedTier, ...] | None:
    """Match every listed tier with the plan that would serve it; `plans` has the fastest first.

    A tier with a speed lies at the cheapest plan that is as fast; one with a price alone, such as
    a batch tier, at the fastest plan that is as cheap.
    """
    return None if tiers is None else tuple(_marked(tier, plans, normal) for tier in tiers)


def _marked(tier: PriceTier, plans: Sequence[ServingPoint], normal: ServingPoint) -> MarkedTier:
    """Match one tier with the plan that would serve it; `plans` has the fastest first."""
    price = relative(tier.price, normal.usd_per_mtok / MTOK)
    speeds = [(normal.tpot or 0.0) / (plan.tpot or 1.0) for plan in plans]
    prices = [plan.usd_per_mtok / normal.usd_per_mtok for plan in plans]
    if tier.speed is not None:
        able = [i for i, speed in enumerate(speeds) if speed >= tier.speed * (1 - SPEED_TOL)][-1:]
        missing = "faster than any plan"
    else:
        able = [i for i, each in enumerate(prices) if each <= price * (1 + SPEED_TOL)][:1]
        missing = "cheaper than any plan"
    if not able:
        return MarkedTier(tier.name, price, tier.speed, None, None, None, missing)
    (place,) = able
    fits = price >= prices[place] * (1 - SPEED_TOL)
    verdict = "pays for itself" if fits else "priced below our cost of that speed"
    return MarkedTier(
        tier.name, price, tier.speed, place, prices[place], speeds[place],
        f"{verdict}; {layout_text(plans[place])}, batch {plans[place].batch:,}",
    )  # fmt: skip
