"""Keep, move or recompute: published hold times, brute force over the choices, limits, refusals."""

import math

import numpy as np
import pytest

import planner
from planner.text.errors import InputError
from tests.loops import for_all
from tests.sizes import sized

H200 = {
    "problem": "cache", "model": "deepseek-v3", "system": {"like": "hgx-h200", "memory": "141 GB"},
    "price": "$4.59/hour",
    "tiers": [
        {"name": "dram", "price": "$0.004/GB/hour"}, {"name": "nvme", "price": "$0.10/GB/month"},
        {"name": "cold", "price": "$0.03/GB/month"},
    ],
}  # fmt: skip
MIN, HOUR = 60.0, 3600.0


def point(**changes: object):
    """The plan of the H200 question with changes."""
    return planner.solve({**H200, **changes}).answer.plan


def test_a_miss_and_the_hold_times_are_those_published():
    """DeepSeek-V3 on H200 at $4.59, prefill at 45 % of fp8, attention aside, 141 GB per chip."""
    plan = point()
    assert plan.kv_bytes_per_token == 70272
    assert plan.miss == pytest.approx(0.105, abs=5e-4)
    holds = {tier.name: tier.break_even_hold for tier in plan.tiers}
    assert holds["HBM"] == pytest.approx(165, abs=0.5)
    assert holds["dram"] == pytest.approx(22 * MIN, rel=0.02)
    assert holds["nvme"] == pytest.approx(10.9 * HOUR, rel=0.01)
    assert holds["cold"] == pytest.approx(36 * HOUR, rel=0.01)
    eighth = point(kv="fp8").tiers[0].break_even_hold
    assert eighth == pytest.approx(330, abs=1)


@pytest.mark.parametrize(("kv", "share"), [("bf16", 0.18), ("fp8", 0.09)])
def test_the_hbm_of_an_answer_is_a_tenth_to_a_fifth_of_a_miss(kv, share):
    """Thirty seconds of the chip's memory, at the chip's price."""
    plan = point(kv=kv, answer="30 s")
    assert plan.holds[0].options[0].hit.hbm / plan.miss == pytest.approx(share, abs=0.005)


def by_hand(hold: float, chance: float, rows: list[dict[str, float]]) -> tuple[str, float]:
    """The cheapest of keeping, moving and computing again, from first principles [USD/token]."""
    arithmetic = 2 * 36_625_618_432 / (1979e12 * 0.45)
    miss = 4.59 / HOUR * arithmetic
    costs = {"recompute": chance * miss, "HBM": 70272 * hold * 4.59 / HOUR / 141e9}
    for row in rows:
        fetch = 70272 * row["price"] * row["capacity"] / row["rate"]
        costs[str(row["name"])] = 70272 * hold * row["price"] + chance * fetch
    best = min(costs, key=costs.__getitem__)
    return best, costs[best]


def test_the_choice_is_that_of_brute_force():
    """Random hold times, chances and tiers."""
    rng = np.random.default_rng(11)
    for _ in range(sized(25, 300)):
        hold, chance = math.exp(rng.uniform(0, 13)), rng.uniform(0.01, 1)
        rows = [
            {"name": f"t{n}", "price": math.exp(rng.uniform(-38, -32)),
             "capacity": math.exp(rng.uniform(24, 31)), "rate": math.exp(rng.uniform(19, 27))}
            for n in range(3)
        ]  # fmt: skip
        tiers = [
            {"name": r["name"], "price": r["price"], "capacity": r["capacity"],
             "read_rate": r["rate"]} for r in rows
        ]  # fmt: skip
        chosen = point(tiers=tiers, hold=hold, hit=chance, units="base").holds[0]
        name, cost = by_hand(hold, chance, rows)
        words = {"recompute": "recompute", "HBM": "keep"}.get(name, "move")
        assert (chosen.choice, chosen.tier or "recompute") == (words, name)
        assert chosen.cost == pytest.approx(1e6 * cost, rel=1e-9)


def test_at_the_hit_chance_that_is_needed_holding_and_computing_again_cost_the_same():
    """A little less, and the cache is computed again; a little more, and it is kept."""
    tiers = [{"name": "dram", "price": "$0.004/GB/hour"}]
    needed = point(tiers=tiers, hold="10 min").holds[0].hit_chance_needed
    assert needed == pytest.approx(600 / (22.4 * MIN), rel=0.01)
    less, more = (
        point(tiers=tiers, hold="10 min", hit=needed * f).holds[0].choice for f in (0.999, 1.001)
    )
    assert (less, more) == ("recompute", "move")


def test_the_floor_pays_for_what_is_held_in_vain_and_the_margin_comes_on_top():
    """Storage over the chance of a hit, the fetch and the HBM; price = floor / (1 - margin)."""
    row = point(hold="5 min", hit="50%", margin="60%").holds[0]
    hit = next(x.hit for x in row.options if x.tier == row.tier)
    assert row.floor == pytest.approx(hit.store + hit.fetch + hit.hbm)
    assert row.price == pytest.approx(row.floor / 0.4)
    certain = point(hold="5 min").holds[0]
    assert hit.store == pytest.approx(2 * certain.options[-1].hit.store)


def test_a_shared_prefix_is_held_once():
    """Four sequences that share it pay a quarter of storage and HBM each: it pays for longer."""
    alone, shared = point(), point(sharing=4)
    assert shared.tiers[1].break_even_hold == pytest.approx(4 * alone.tiers[1].break_even_hold)
    hits = [plan.holds[0].options[0].hit for plan in (alone, shared)]
    assert hits[1].hbm == pytest.approx(hits[0].hbm / 4)


def test_times_to_first_token_are_saved_by_what_is_read_faster_than_computed():
    """Prefill of the prefix on eight chips less the fetch by their shares of the device."""
    tiers = [{"name": "disk", "price": "$0.10/GB/month", "capacity": "30 TB",
              "read_rate": "28 GB/s", "shared": 16}]  # fmt: skip
    plan = point(tiers=tiers, prefix=8000, chips=8)
    fetch = 8000 * 70272 / (28e9 / 2)
    assert plan.tiers[1].fetch_time == pytest.approx(fetch)
    assert plan.tiers[1].ttft_saved == pytest.approx(plan.prefill_time - fetch)
    assert plan.miss > point().miss  # attention is counted with a prefix


def test_elasticities_are_finite_differences_of_what_is_answered():
    """Of the tier that is chosen, its price bears the cost of holding."""
    plan = planner.solve({**H200, "hold": "1 hour"})
    assert plan.elasticities["tiers.2.price"] == pytest.approx(1.0, abs=1e-6)
    kept = planner.solve({**H200, "hold": "50 hours"})
    assert kept.answer.plan.holds[0].choice == "recompute"
    assert kept.elasticities["price"] == pytest.approx(1.0, abs=1e-6)
    assert kept.elasticities["prefill_efficiency"] == pytest.approx(-1.0, abs=1e-3)


@for_all(("change", "words"), [
    ({"tiers": []}, "tiers"), ({"tiers": [{"name": "x"}]}, "tiers.0.price"),
    ({"tiers": [{"like": "hgx-host-drum"}]}, "hgx-host-dram"),
    ({"tiers": [{"name": "x", "price": "$2/hour"}]}, "capacity"),
    ({"tiers": [{"name": "x", "price": "$0/GB/month"}]}, "above zero"),
    ({"tiers": [{"name": "x", "price": "EUR 1/GB/month"}]}, "tiers.0.price"),
    ({"tiers": [{"name": "x", "price": "$1/GB/month"}] * 2}, "called x"),
    ({"hit": 1.2}, "hit"), ({"hold": 0}, "hold"), ({"margin": 1}, "margin"),
    ({"hold": "60 s", "reuse": {"5 min": 0.5}}, "hold"),
    ({"hit": 0.5, "reuse": {"5 min": 0.5}}, "hit"),
    ({"reuse": {"5 min": 1.5}}, "reuse"), ({"reuse": {"trace": "none.csv"}}, "none.csv"),
    ({"prefix": 0}, "prefix"), ({"system": ["hgx-h200", "hgx-h100"]}, "one system"),
    ({"model": "deepseek-v4"}, "deepseek-v3"), ({"weights": "fp4"}, "fp4"), ({"tier": []}, "tiers"),
    ({"sharing": 0}, "sharing"), ({"prefill_efficiency": "120%"}, "at most"),
])  # fmt: skip
def test_what_is_no_cache_is_refused(change, words):
    """Every mistake names its key, and the nearest word."""
    with pytest.raises(InputError, match=words):
        planner.solve({**H200, **change})
