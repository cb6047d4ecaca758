"""Make or buy beside a plan: its numbers by hand, contracts, formats, fleets, refusals."""

import itertools
from collections.abc import Mapping
from functools import cache
from statistics import NormalDist

import numpy as np
import pytest

import planner
from planner.catalogue.api_prices import host_prices
from planner.problems.serving.make_or_buy.comparison_text import CostRatioChart
from planner.protocol.problem import get_problem
from planner.text.errors import InputError
from tests.loops import for_all

ROWS = [
    {"host": "a", "input": "$0.04/Mtok", "output": "$0.08/Mtok", "cached": "$0.01/Mtok"},
    {"host": "b", "input": "$0.10/Mtok", "output": "$0.10/Mtok"},
    {"host": "c", "input": "$0.20/Mtok", "output": "$0.40/Mtok"},
    {"host": "d", "input": "$0.01/Mtok", "output": "$0.02/Mtok", "reseller": True},
]
SMALL = {
    "problem": "serving", "units": "base",
    "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 1,
    "contract": {"on_demand": ["$2/hour", "$4/hour"], "spot": "$1.20/hour"},
    "workload": {"input_tokens": 3000, "output_tokens": 1000},
    "promises": {"tpot": "33 ms"},
}  # fmt: skip


def asked(prices: object = "catalogue", **changes: object) -> dict[str, object]:
    """The small question with hosts, and changes."""
    buy = {"prices": prices, **changes.pop("buy", {})}
    return {**SMALL, "buy": buy, **changes}


@cache
def beside_rows():
    """The plan beside one's own rows."""
    return planner.solve(asked(ROWS))


def test_the_answer_has_the_keys_that_are_agreed_on():
    """plan.buy: own, hosts, break_even, cheaper."""
    buy = beside_rows().to_json()["plan"]["buy"]
    assert {"own", "hosts", "break_even", "cheaper"} <= buy.keys()
    assert {"full", "at_demand"} <= buy["own"].keys()
    assert {"min", "q25", "median", "q75", "n"} <= buy["hosts"].keys()
    assert {"utilisation", "tokens_per_day"} <= buy["break_even"].keys()
    assert beside_rows().chosen["buy"]["cheaper"] == buy["cheaper"]


def test_hosts_are_priced_at_the_mix_and_resellers_are_shown_and_not_counted():
    """Three input tokens to one of output, nothing cached; quartiles of the three hosts."""
    buy = beside_rows().answer.plan.buy
    by_hand = {"a": 0.05, "b": 0.10, "c": 0.25}
    counted = {each.host: each.usd_per_mtok for each in buy.offers if each.counted}
    assert counted == pytest.approx(by_hand)
    assert [each.host for each in buy.offers if not each.counted] == ["d"]
    assert buy.hosts.n == 3
    quartiles = (buy.hosts.min, buy.hosts.q25, buy.hosts.median, buy.hosts.q75)
    assert quartiles == pytest.approx(np.quantile(list(by_hand.values()), (0, 0.25, 0.5, 0.75)))


def test_multiples_stack_and_take_caches_with_them():
    """Two fifths of host a go by batch at half its prices; where data stay costs a tenth on all."""
    now, batch = {**ROWS[0], "share": 0.6}, {**ROWS[0], "share": 0.4, "multiply": {"batch": "0.5x"}}
    rows = [now, batch, ROWS[1]]
    more = {"multiply": {"residency": "1.1x"}, "cached": 0.5}
    offers = planner.solve(asked(rows, buy=more)).answer.plan.buy.offers
    found = {each.host: each.usd_per_mtok for each in offers}
    a, b = (0.375 * 0.04 + 0.375 * 0.01 + 0.25 * 0.08), 0.10
    assert found == pytest.approx({"a": a * (0.6 + 0.4 * 0.5) * 1.1, "b": b * 1.1})


def test_a_multiple_of_nothing_is_refused():
    """With its place."""
    with pytest.raises(InputError, match=r"buy\.multiply\.batch: expected a plain number"):
        planner.solve(asked(ROWS, buy={"multiply": {"batch": "-1x"}}))


def test_break_evens_and_mark_ups_follow_from_our_cost():
    """Utilisation is our cost at full use over the host's price; demand is that share of ours."""
    plan = beside_rows().answer.plan
    buy, own = plan.buy, plan.buy.ours
    assert own.full == plan.usd_per_mtok
    assert own.at_demand is None
    tokens = plan.requests_per_s * 4000 * 86400
    assert own.tokens_per_day == pytest.approx(tokens)
    assert own.usd_per_day == pytest.approx(24 * plan.usd_per_hour)
    assert buy.break_even.utilisation == pytest.approx(own.full / buy.hosts.median)
    assert buy.break_even.by["median"].utilisation == buy.break_even.utilisation
    for offer in buy.offers:
        assert offer.markup == pytest.approx(offer.usd_per_mtok / own.full)
        assert offer.break_even.utilisation == pytest.approx(1 / offer.markup)
    if buy.break_even.utilisation <= 1:
        demand = buy.break_even.utilisation * tokens
        assert buy.break_even.tokens_per_day == pytest.approx(demand)


def test_the_chance_of_buying_is_that_of_the_band_and_the_hosts():
    """Our cost log-normal within its band, each host as likely as another."""
    whole = beside_rows().answer
    low, high = whole.band.usd_per_mtok
    width = np.log(high / low) / (2 * NormalDist().inv_cdf((1 + whole.band.coverage) / 2))
    chances = [
        NormalDist().cdf(np.log(whole.plan.usd_per_mtok / each.usd_per_mtok) / width)
        for each in whole.plan.buy.offers if each.counted
    ]  # fmt: skip
    assert whole.plan.buy.cheaper == pytest.approx(np.mean(chances))


def test_cost_follows_the_contracts():
    """The plan pays the middle of the first contract; both ends of each are those of a price."""
    buy = beside_rows().answer.plan.buy
    assert buy.ours.contracts["on_demand"].rent == pytest.approx((2, 4))
    for kind, ends in {"on_demand": (2, 4), "spot": (1.2, 1.2)}.items():
        plain = [
            planner.solve({**SMALL, "contract": None, "price": f"${rent}/hour",
                           "choose": {"weights": buy.weights}}).cost
            for rent in ends
        ]  # fmt: skip
        assert buy.ours.contracts[kind].full == pytest.approx(plain, rel=1e-9)
    assert buy.ours.full == pytest.approx(np.mean(buy.ours.contracts["on_demand"].full))


def test_every_format_that_the_chip_runs_is_tried_and_the_cheapest_taken():
    """A bf16 checkpoint is served in fp8 too, as hosts do; a format that is asked for stays."""
    buy = beside_rows().answer.plan.buy
    prices = {each.weights: each.usd_per_mtok for each in buy.formats}
    assert prices.keys() == {"bf16", "fp8"}
    assert buy.weights == min(prices, key=prices.__getitem__)
    for name, price in prices.items():
        pinned = planner.solve({**SMALL, "choose": {"weights": name}})
        assert pinned.cost == pytest.approx(price)
    asked_for = planner.solve(asked(ROWS, choose={"weights": "bf16"})).answer.plan.buy
    assert [each.weights for each in asked_for.formats] == ["bf16"]


def test_at_a_demand_idle_chips_are_paid_and_full_ones_are_not():
    """Half a request a second bears the whole bill; the break-even is that of full use."""
    load = {**SMALL["workload"], "demand": "0.5 requests/s"}
    plan = planner.solve(asked(ROWS, workload=load)).answer.plan
    own = plan.buy.ours
    assert own.at_demand == pytest.approx(1e6 * plan.usd_per_hour / 3600 / (0.5 * 4000))
    assert own.full == pytest.approx(beside_rows().answer.plan.buy.ours.full)
    assert own.full < own.at_demand
    assert plan.buy.break_even.utilisation == pytest.approx(own.full / plan.buy.hosts.median)


def test_cached_input_is_cheaper_on_both_sides():
    """A host without a price for it bills it as input."""
    load = {**SMALL["workload"], "cached_input": "50%"}
    buy = planner.solve(asked(ROWS, workload=load)).answer.plan.buy
    prices = {each.host: each.usd_per_mtok for each in buy.offers}
    assert prices["a"] == pytest.approx(0.75 * (0.04 + 0.01) / 2 + 0.25 * 0.08)
    assert prices["b"] == pytest.approx(0.10)
    assert buy.ours.full < beside_rows().answer.plan.buy.ours.full
    other = planner.solve(asked(ROWS, workload=load, buy={"cached": 0})).answer.plan.buy
    assert other.offers[0].usd_per_mtok == pytest.approx(0.05)


def test_rows_of_one_host_are_averaged_by_their_shares():
    """Night prices for a third of the tokens."""
    rows = [
        {"host": "x", "input": "$0.60/Mtok", "output": "$2/Mtok", "share": 2 / 3},
        {"host": "x", "input": "$0.30/Mtok", "output": "$1/Mtok", "share": 1 / 3},
    ]
    buy = planner.solve(asked(rows)).answer.plan.buy
    assert buy.hosts.n == 1
    assert buy.hosts.median == pytest.approx(0.75 * 0.5 + 0.25 * 5 / 3)


def test_the_smallest_fleet_is_that_of_every_number_of_chips():
    """The fewest chips whose full use costs no more than the host: one by one."""
    rows = [{"host": "x", "input": "$0.9/Mtok", "output": "$0.9/Mtok"}]
    question = {**asked(rows), "model": "llama-3.1-70b", "chips": [2, 4, 8],
                "choose": {"weights": "bf16", "mode": "aggregated"}}  # fmt: skip
    buy = planner.solve(question).answer.plan.buy
    alone = {}
    for chips in (1, 2, 4):
        plan = planner.solve({**question, "chips": chips, "buy": None})
        alone[chips] = plan.cost if plan.cost else float("inf")
    cheap = [chips for chips, cost in alone.items() if cost <= 0.9]
    assert buy.smallest_fleet.chips == min(cheap)
    costs = {row.chips: row.usd_per_mtok for row in buy.fleets}
    assert costs[min(cheap)] == pytest.approx(alone[min(cheap)])


def test_rows_of_a_sweep_have_what_the_plan_says():
    """Hosts, break-evens, chance and marginal prices of every point, as a plan there has them."""
    rents = ("$1/hour", "$4/hour")
    scenario = {k: v for k, v in asked(ROWS).items() if k != "contract"} | {"price": rents[0]}
    table = planner.sweep(scenario, over=["price=$1/hour,$4/hour", "buy.quantile=0.5,1"])
    assert len(table) == 4
    for row, (rent, quantile) in zip(table, itertools.product(rents, (0.5, 1)), strict=True):
        buy = planner.solve(
            {**scenario, "price": rent, "buy": {**scenario["buy"], "quantile": quantile}}
        ).answer.plan.buy
        assert row["buy.cheaper"] == buy.better
        assert row["buy.chance"] == pytest.approx(buy.cheaper)
        assert row["buy.hosts"] == buy.hosts.n
        assert row["buy.host_usd_per_mtok"] == pytest.approx(buy.hosts.quantile)
        assert row["buy.own_full_usd_per_mtok"] == pytest.approx(buy.ours.full)
        assert row["buy.break_even_utilisation"] == pytest.approx(buy.break_even.utilisation)
        assert row["buy.break_even_tokens_per_day"] == pytest.approx(buy.break_even.tokens_per_day)
        assert row["buy.marginal_output"] == pytest.approx(buy.marginal.output)
    assert table.units["buy.break_even_tokens_per_day"] == "token/day"


def test_the_map_is_the_cost_of_whole_fleets_over_the_host():
    """Every cell by hand; the picture draws the same on a finer grid."""
    buy = beside_rows().answer.plan.buy
    fleet, price = buy.fleets, buy.hosts.quantile
    for rent, row in zip(buy.map.rent, buy.map.own_over_host, strict=True):
        for want, ratio in zip(buy.map.tokens_per_day, row, strict=True):
            costs = [
                np.ceil(want / x.tokens_per_day - 1e-9).clip(1) * x.chips * rent * 24 / want
                for x in fleet
            ]
            assert ratio == pytest.approx(1e6 * min(costs) / price, rel=1e-6)
    demands, rents, ratios = CostRatioChart(buy).ratios()
    assert ratios.shape == (len(rents), len(demands))
    assert ratios[-1, 0] == pytest.approx(buy.map.own_over_host[-1][0])
    assert ratios[0, 0] == pytest.approx(buy.map.own_over_host[0][0])


def test_the_map_is_drawn():
    """The picture of a plan with hosts is the map; without them the bars stay."""
    pytest.importorskip("matplotlib")
    problem = get_problem("serving")
    drawn = problem.picture(beside_rows()).draw("svg")
    assert drawn == problem.picture(beside_rows()).draw("svg")
    assert b"<svg" in drawn
    assert isinstance(problem.picture(beside_rows()), CostRatioChart)


def test_hosts_of_the_catalogue_are_one_row_each():
    """The newest standard row of each host at the mix; a few hosts by their names."""
    rows = host_prices("llama-3.1-8b")
    buy = planner.solve(asked()).answer.plan.buy
    assert buy.hosts.n == len(rows)
    mixes = [1e6 * (3 * row.input + row.output) / 4 for row in rows]
    assert buy.hosts.median == pytest.approx(np.median(mixes))
    names = [rows[0].host, rows[1].host]
    few = planner.solve(asked(buy={"hosts": names, "quantile": 1})).answer.plan.buy
    assert few.hosts.n == 2
    assert few.hosts.quantile == pytest.approx(max(mixes[:2]))


def test_text_and_sections_say_it():
    """The comparison stands in the text, within 80 columns, and as a section."""
    plan = beside_rows()
    text = f"{plan}\n{plan.text('more')}"
    assert all(f"\n  {label}: " in str(plan) for label in ("break-even", "cheaper"))
    assert "make or buy" in text
    assert max(map(len, text.splitlines())) <= 80
    titles = [section.title for section in get_problem("serving").sections(plan)]
    assert "make or buy" in titles


@pytest.mark.parametrize(("price", "words", "absent"), [
    (1e-3, ["never: these chips, always full, cost", "over 99%", "1 of 1 sold below our cost",
            "chips is worth renting"], ["out of reach", "least", "100%"]),
    (100, ["under 1% of full use", "chance of under 1%", "from 1 chip on"],
     ["0% of", "e+", "1 chips", "below our cost"]),
])  # fmt: skip
def test_hosts_that_always_win_or_never_do_are_said_in_words(price, words, absent):
    """No share of 0 or 100 %, no quartiles of one host, no use beyond all there is."""
    host = {"host": "x", "input": f"${price}/Mtok", "output": f"${price}/Mtok"}
    text = planner.solve(asked([host])).text("more")
    start = text.index("make or buy")
    section = " ".join(text[start : text.index("\n\n", start)].split())
    assert [each for each in words if each not in section] == []
    assert [each for each in absent if each in section] == []


def test_odd_prices_are_warned_of():
    """Output below half of the input, and prices older than a year."""
    rows = [{"host": "x", "input": "$1/Mtok", "output": "$0.3/Mtok", "as_of": "2020-01-01"}]
    warnings = " ".join(planner.solve(asked(rows)).warnings)
    assert "output below half" in warnings
    assert "older than a year" in warnings


@pytest.mark.parametrize(("buy", "words"), [
    ({"on": "2020-01-01"}, "later day than 2020-01-01"),
    ({"on": "2030-01-01"}, "older than a year"),
    ({"prices": [{**ROWS[0], "as_of": "2099-01-01"}]}, "later day"),
])  # fmt: skip
def test_prices_of_another_time_are_warned_of(buy, words):
    """Read long before the day that is asked for, or after it."""
    assert words in " ".join(planner.solve({**SMALL, "buy": buy}).warnings)


REFUSED: list[tuple[Mapping[str, object], str]] = [
    ({"price": "$2/hour"}, "contract"),
    ({"system": {"like": "hgx-h100", "price": "$2/hour"}}, "contract"),
    ({"contract": {}}, "at least one"),
    ({"contract": {"on_demand": ["$4/hour", "$2/hour"]}}, "lower end first"),
    ({"contract": {"on_demand": ["$1/hour", "$2/hour", "$3/hour"]}}, "two"),
    ({"contract": {"ondemand": "$2/hour"}}, "on_demand"),
    ({"contract": {"spot": 2}}, "did you mean"),
    ({"buy": {"prices": [{"host": "x", "input": 0.3, "output": 0.6}]}}, r"\$0.3/Mtok"),
    ({"buy": {"prices": [{"host": "x", "input": "1 EUR/Mtok", "output": "$1/Mtok"}]}}, "USD"),
    ({"buy": {"prices": [{"host": "x", "input": "$1/Mtok"}]}}, "output"),
    ({"buy": {"prices": [{**ROWS[0], "cached": "$1/Mtok"}]}}, "above input"),
    ({"buy": {"prices": [{**ROWS[0], "share": "40%"}]}}, "add to 1"),
    ({"buy": {"prices": [{**ROWS[0], "reseller": True}]}}, "no reseller"),
    ({"buy": {"prices": []}}, "empty"), ({"buy": {"prices": "catalog"}}, "catalogue"),
    ({"buy": {"prices": ROWS, "hosts": ["z"]}}, "hosts"),
    ({"buy": {"hosts": ["togehter"]}}, "together"), ({"buy": {"model": "lama"}}, "llama"),
    ({"buy": {"quantile": 1.5}}, "quantile"), ({"buy": {"on": "yesterday"}}, "2026-11-24"),
    ({"buy": {}, "choose": {"mode": "decode"}}, "whole requests"),
    ({"buy": {"host": "x"}}, "hosts"), ({"buy": {"cached": 2}}, "cached"),
]  # fmt: skip


@for_all(("change", "words"), REFUSED)
def test_what_cannot_be_compared_is_refused_with_its_place(change, words):
    """Every mistake names its key and what would put it right."""
    with pytest.raises(InputError, match=words):
        planner.solve({**SMALL, **change})


DAY = {"input": "$0.55/Mtok", "cached": "$0.14/Mtok", "output": "$2.19/Mtok"}
NIGHT = {"input": "$0.135/Mtok", "cached": "$0.035/Mtok", "output": "$0.55/Mtok"}


def published_day(at_night):
    """DeepSeek's day: 608 billion input tokens, 56 % cached, and 168 billion output."""
    answer = 4989 / (608 / 168 + 0.5)
    prices = [{"host": "x", "share": 1 - at_night, **DAY}]
    prices += [{"host": "x", "share": at_night, **NIGHT}] if at_night else []
    return planner.solve({
        "problem": "serving", "units": "base",
        "model": "deepseek-v3", "system": "hgx-h800", "chips": 176,
        "price": "$2/hour", "promises": {"tpot": "50 ms", "chance": "1%"},
        "choose": {"weights": "fp8"},
        "workload": {"input_tokens": answer * 608 / 168, "output_tokens": answer,
                     "cached_input": 342 / 608},
        "buy": {"prices": prices},
    })  # fmt: skip


@pytest.mark.slow
def test_the_published_day_costs_what_it_did():
    """$87,072, and 15.5 % of the revenue at list prices."""
    buy = published_day(0.0).answer.plan.buy
    published = 87_072 / 776e3
    assert buy.ours.full == pytest.approx(published, rel=0.2)
    low, high = buy.ours.band
    assert low < published < high
    assert buy.break_even.utilisation == pytest.approx(0.155, rel=0.2)


@pytest.mark.slow
def test_the_published_day_by_the_hour_costs_what_it_did():
    """226.75 nodes on average and 278 at most: replicas by the hour, and the tokens sold at night.

    Replicas of both pools are started apart, as theirs were. The night prices hold for the eight
    hours around the least load, 16:30 to 00:30 UTC.
    """
    hours = (np.arange(24_000) + 0.5) / 1000
    load = 1 - (278 / 226.75 - 1) * np.cos(2 * np.pi * hours / 24)
    at_night = load[(hours < 4) | (hours > 20)].sum() / load.sum()
    assert at_night == pytest.approx(0.271, abs=5e-4)
    plan = published_day(at_night)
    buy = plan.answer.plan.buy
    by_hour = 776e9 / 24 * load.reshape(24, -1).mean(axis=1) / (buy.ours.tokens_per_day / 24)
    cost = np.zeros(24)
    for pool in (plan.chosen["prefill"], plan.chosen["decode"]):
        replicas = pool["layout"]["replicas"]
        started = np.ceil(by_hour * pool["utilisation"] * replicas)
        cost += started * pool["usd_per_hour"] / replicas
    assert cost.sum() == pytest.approx(87_072, rel=0.2)
    assert cost.max() * 24 == pytest.approx(87_072 * 278 / 226.75, rel=0.2)
    by_day, by_night = 562_100, 0.135 * 266e3 + 0.035 * 342e3 + 0.55 * 168e3
    revenue = 776e3 * buy.hosts.median
    assert revenue == pytest.approx((1 - at_night) * by_day + at_night * by_night, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "chips", "batch", "per_node"), [
    ("decode", 72, {"batch": 18_432}, 22.3e3), ("prefill", 32, {}, 52.3e3),
])  # fmt: skip
def test_the_published_96_h100_cost_what_they_did(phase, chips, batch, per_node):
    """DeepSeek-V3, 2,000 tokens in and 100 out, at $2 an hour: tokens/s of a node and their price.

    52.3k input tokens/s of a prefill node, 22.3k output tokens/s and so $0.20 of a decode node.
    """
    ranks = {"tp": 1, "pp": 1, "ep": chips, "dp_attention": chips}
    plan = planner.solve({
        "problem": "serving", "units": "base",
        "model": "deepseek-v3", "system": "hgx-h100", "price": "$2/hour",
        "workload": {"input_tokens": 2000, "output_tokens": 100}, "chips": chips,
        "choose": {"mode": phase, "weights": "fp8", **ranks, **batch},
        "engine": "none",  # it ran with copies of experts, which are not counted here
    })  # fmt: skip
    published = 16 / 3600 / per_node * 1e6
    if phase == "decode":
        assert published == pytest.approx(0.20, abs=0.005)
    assert plan.cost == pytest.approx(published, rel=0.2)
    low, high = plan.answer.band.usd_per_mtok
    assert low < published < high


def test_one_percent_more_rent_is_one_percent_more_cost_under_a_contract():
    """The price of sensitivity is that which the contract has the plan pay."""
    slopes = planner.solve({**SMALL, "choose": {"weights": "bf16"}}).elasticities
    assert slopes["price"] == pytest.approx(1.0)
