"""Closed forms of make or buy against enumeration, bisection and draws."""

import math

import numpy as np
import pytest

from planner.problems.serving.make_or_buy.offers import (
    DAY,
    Fleet,
    break_even_point,
    chance_of_buying,
    log_sd,
    own_cost,
)

CASES = 1000


def random_case(rng: np.random.Generator) -> tuple[Fleet, float]:
    """A fleet and a host's price, the fleet cheaper or dearer when it is full."""
    rate, bill = math.exp(rng.uniform(5, 14)), math.exp(rng.uniform(-8, 3))
    fleet = Fleet(int(rng.integers(1, 512)), bill, rate)
    return fleet, fleet.full * math.exp(rng.uniform(-0.7, 2.5))


def bisected(fleet: Fleet, price: float) -> float | None:
    """The least demand of one fleet [token/s] at which a token costs the price, by bisection."""
    low, high = fleet.rate * 1e-9, fleet.rate
    if own_cost([fleet], np.array([high]))[0] > price:
        return None
    for _ in range(50):
        middle = math.sqrt(low * high)
        dear = own_cost([fleet], np.array([middle]))[0] > price
        low, high = (middle, high) if dear else (low, middle)
    return high


def last_too_dear(fleet: Fleet, price: float) -> float:
    """The demand up to which some number of whole fleets costs more than the price, enumerated."""
    counts = np.arange(1, 400)
    dear_up_to = np.minimum(counts * fleet.bill / price, counts * fleet.rate)
    dear = dear_up_to > (counts - 1) * fleet.rate * (1 + 1e-12)
    return float(dear_up_to[dear][-1])


def test_break_evens_are_those_of_brute_force():
    """A thousand random fleets and prices: use, demand, and the demand from which it is safe."""
    rng = np.random.default_rng(5)
    reached = 0
    for _ in range(CASES):
        fleet, price = random_case(rng)
        met, demand = break_even_point(fleet, price), bisected(fleet, price)
        assert met.utilisation == pytest.approx(fleet.full / price)
        if demand is None:
            assert met.tokens_per_day is None
            assert met.utilisation > 1
            continue
        reached += 1
        assert met.tokens_per_day == pytest.approx(demand * DAY, rel=1e-9)
        assert met.tokens_per_day == pytest.approx(met.utilisation * fleet.rate * DAY)
        if met.utilisation < 0.99:
            assert met.always_from == pytest.approx(last_too_dear(fleet, price) * DAY, rel=1e-9)
    assert reached > CASES / 2


def test_the_cost_at_a_demand_is_the_least_over_whole_fleets():
    """Every fleet by itself, in as many as carry the demand."""
    rng = np.random.default_rng(9)
    for _ in range(100):
        fleets = [random_case(rng)[0] for _ in range(3)]
        demands = np.exp(rng.uniform(3, 15, 5))
        by_hand = [
            min(math.ceil(want / each.rate) * each.bill / want for each in fleets)
            for want in demands
        ]
        assert own_cost(fleets, demands) == pytest.approx(by_hand)
        assert own_cost(fleets, demands, 2.0) == pytest.approx([2 * x for x in by_hand])


def test_the_chance_of_buying_is_that_of_draws():
    """Our cost from a log-normal band, a host at random."""
    rng = np.random.default_rng(2)
    prices = [0.3, 0.44, 0.49, 1.2, 2.0]
    spread = log_sd((0.25, 0.9), 0.9)
    drawn = math.sqrt(0.25 * 0.9) * np.exp(spread * rng.standard_normal(400_000))
    share = np.mean(drawn > rng.choice(prices, 400_000))
    cost = math.sqrt(0.25 * 0.9)
    assert chance_of_buying(cost, spread, prices) == pytest.approx(share, abs=0.004)
    assert np.mean((drawn > 0.25) & (drawn < 0.9)) == pytest.approx(0.9, abs=0.003)


def test_without_a_band_the_chance_counts_the_hosts_that_are_cheaper():
    """Two of four; and it rises with our cost."""
    prices = [0.3, 0.4, 0.5, 0.6]
    assert chance_of_buying(0.45, 0.0, prices) == 0.5
    chances = [chance_of_buying(cost, 0.2, prices) for cost in (0.1, 0.3, 0.5, 1.0)]
    assert chances == sorted(chances)
