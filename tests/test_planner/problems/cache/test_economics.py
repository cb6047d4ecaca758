"""What tiers cost and save, by arithmetic on what they are given; lifetimes by following blocks."""

from dataclasses import asdict

import numpy as np
import pytest

from planner.catalogue import listed_prices
from planner.problems.cache.economics import (
    HeldTier,
    TokenCosts,
    best_lifetime,
    decision,
    resolve_cache,
    trace_reuse,
)
from planner.problems.cache.reuse_trace import trace_of_requests
from planner.scenario.loading import load
from tests.test_planner.problems.cache.test_tiers_of_a_cache import H200

RENT, MEMORY, KV = 4.59 / 3600, 141e9, 70272.0  # USD/(chip*s), byte, byte/token
PREFIX, SHARING, CHIPS, ANSWER, HOLD, CHANCE, MARGIN = 8000.0, 4, 16, 20.0, 600.0, 0.4, 0.25
DISK = {"name": "disk", "price": "$0.10/GB/month", "capacity": "30 TB", "read_rate": "28 GB/s",
        "shared": 2}  # fmt: skip
TIERS = [
    {"name": "dram", "price": "$0.004/GB/hour"}, DISK,
    {**DISK, "name": "slow", "read_rate": "2 MB/s"}, {**DISK, "name": "own", "price": "$3/hour"},
]  # fmt: skip
A_BYTE = (RENT / MEMORY, 0.004e-9 / 3600, 0.1e-9 / (365.25 / 12 * 86400),
          0.1e-9 / (365.25 / 12 * 86400), 3 / 3600 / 30e12)  # fmt: skip
RATES = (None, None, 28e9, 2e6, 28e9)


def costs(**changes: object) -> TokenCosts:
    """Those of the question with changes."""
    given = {"prefix": PREFIX, "sharing": SHARING, "answer": f"{ANSWER} s", "tiers": TIERS}
    return TokenCosts(resolve_cache(load({**H200, **given, **changes})))


@pytest.fixture(scope="module")
def asked() -> TokenCosts:
    """Costs of a shared prefix in five tiers, of which one is read too slowly."""
    return costs()


def test_a_tier_by_itself_by_hand(asked):
    """Rent of bytes, the device's while it is read, and what a chip would have computed."""
    assert [each.price for each in asked.task.tiers] == pytest.approx(A_BYTE)
    again = PREFIX * asked.miss / (RENT * CHIPS)
    for tier, price, rate in zip(asked.task.tiers, A_BYTE, RATES, strict=True):
        row = asked.economics(tier, CHIPS)
        fetch = KV * price * 30e12 / rate if rate else 0.0
        hourly, saved = KV * price * 3600 / SHARING, asked.miss - fetch
        pays = saved > 0
        assert pays == (tier.name != "slow")
        assert row.break_even_hold == (
            pytest.approx(SHARING * saved / (KV * price)) if pays else None
        )
        assert row.reads_per_hour == (pytest.approx(hourly / saved) if pays else None)
        assert row.usd_per_gb_hour == pytest.approx(price * 1e9 * 3600)
        assert row.usd_per_mtok_hour == pytest.approx(1e6 * hourly)
        assert row.fetch == pytest.approx(1e6 * fetch)
        assert row.drain_time == (pytest.approx(30e12 / rate) if rate else None)
        late = PREFIX * KV / (rate * CHIPS / 2) if rate else 0.0 if tier.name == "HBM" else None
        assert row.fetch_time == (None if late is None else pytest.approx(late))
        assert row.ttft_saved == (None if late is None else pytest.approx(again - late))
    assert asked.prefill_time(CHIPS) == pytest.approx(again)
    alone = costs(prefix=None)
    assert alone.prefill_time(CHIPS) is None
    assert {alone.economics(tier, CHIPS).ttft_saved for tier in alone.task.tiers} == {None}


@pytest.mark.parametrize("margin", [None, MARGIN])
def test_a_hold_time_in_each_tier_by_hand(asked, margin):
    """Storage of all holds falls on those that are read; HBM and storage on all that share."""
    hbm = KV * RENT / MEMORY * ANSWER / SHARING
    for tier, price, rate in zip(asked.task.tiers, A_BYTE, RATES, strict=True):
        row = asked.option(tier, HOLD, CHANCE, margin)
        fetch = KV * price * 30e12 / rate if rate else 0.0
        store = KV * price * HOLD / SHARING
        total = store / CHANCE + fetch + hbm
        parts = {"store": 1e6 * store / CHANCE, "fetch": 1e6 * fetch, "hbm": 1e6 * hbm,
                 "total": 1e6 * total, "share": total / asked.miss}  # fmt: skip
        assert asdict(row.hit) == pytest.approx(parts)
        assert (row.tier, row.floor) == (tier.name, pytest.approx(1e6 * total))
        assert row.cost == pytest.approx(1e6 * (store + CHANCE * fetch))
        needed = store / (asked.miss - fetch)
        assert row.hit_chance_needed == (pytest.approx(needed) if needed > 0 else None)
        assert row.price == (None if margin is None else pytest.approx(1e6 * total / 0.75))


@pytest.mark.parametrize(("hold", "choice", "tier"), [
    (1.0, "keep", "HBM"), (3600.0, "move", "disk"), (1e8, "recompute", None),
])  # fmt: skip
def test_the_choice_is_the_least_of_its_options(hold, choice, tier):
    """With the numbers of the tier that is chosen, or of computing again."""
    asked = costs(tiers=[DISK])
    made = decision(asked, hold, CHANCE, MARGIN, CHIPS)
    again = 1e6 * CHANCE * asked.miss
    assert (made.hold, made.hit, made.choice, made.tier) == (hold, CHANCE, choice, tier)
    assert made.recompute == pytest.approx(again)
    assert made.cost == pytest.approx(min(again, *(option.cost for option in made.options)))
    best = min(made.options, key=lambda option: option.cost)
    assert made.hit_chance_needed == best.hit_chance_needed
    of_choice = (best.floor, best.price) if tier else (None, None)
    assert (made.floor, made.price) == of_choice
    saved = {each.name: asked.economics(each, CHIPS).ttft_saved for each in asked.task.tiers}
    assert made.ttft_saved == (saved[tier] if tier else None)


TIMES, PROMPTS = [0.0, 10.0, 40.0, 45.0], [["a", "b"], ["a", "b", "c"], ["a", "b", "x"], ["a"]]


def test_a_trace_is_followed_by_hand():
    """Uses found at 5 s: one of a; at 10 s also a and b; at 30 s these twice. Blocks of 64."""
    asked, trace = costs(prefix=None), trace_of_requests(TIMES, PROMPTS)
    seen = trace_reuse(asked, trace, 64, (5.0, 10.0, 29.0, 30.0), (1, 2, 3))
    assert (seen.requests, seen.blocks, seen.block, seen.duration) == (4, 9, 64, 45.0)
    rates = [(row.ttl, row.hit_rate) for row in seen.ttl]
    assert rates == [(5.0, 1 / 9), (10.0, 3 / 9), (29.0, 3 / 9), (30.0, 5 / 9)]
    # Of one block the last of a prompt stays, of two the last two, of three all of it.
    found = [(row.blocks, row.bytes, row.hit_rate) for row in seen.lru]
    assert found == [(1, 64 * KV, 0.0), (2, 128 * KV, 2 / 9), (3, 192 * KV, 5 / 9)]


def test_the_lifetime_that_pays_by_hand():
    """Of nine uses four are of a, 10, 30, and 5 s apart, and three of b, 10 and 30 s apart."""
    asked, trace = costs(prefix=None, sharing=1), trace_of_requests(TIMES, PROMPTS)
    held, found = {5.0: 9 * 5.0, 10.0: 8 * 10.0 + 5, 30.0: 2 * 10 + 6 * 30.0 + 5}, {5.0: 1}
    found |= {10.0: 3, 30.0: 5}
    assert trace.stored(np.array([*held])) == pytest.approx([*held.values()])
    for share in (0.001, 0.02, 0.03, 0.05, 1.0):  # of a miss, that a second costs
        tier = HeldTier("own", "own", share * asked.miss / KV, None, None, 1, "given")
        best = best_lifetime(asked, tier, trace, 64)
        net = {ttl: found[ttl] - share * held[ttl] for ttl in held}
        ttl = max(net, key=net.__getitem__)
        if net[ttl] <= 0:
            assert (best.ttl, best.hit_rate, best.saved, best.bytes) == (None, 0.0, 0.0, 0.0)
            continue
        assert (best.tier, best.ttl, best.hit_rate) == ("own", ttl, found[ttl] / 9)
        assert best.saved == pytest.approx(net[ttl] / 9)
        assert best.bytes == pytest.approx(held[ttl] * 64 * KV / 45)


def test_requests_of_one_moment_hold_nothing():
    """What comes again at once is found at a lifetime of zero, in which nothing is held."""
    asked, trace = costs(prefix=None), trace_of_requests([3.0, 3.0], [["a", "b"], ["a", "b", "c"]])
    best = best_lifetime(asked, asked.task.tiers[0], trace, 64)
    assert (best.ttl, best.hit_rate, best.bytes) == (0.0, 2 / 5, 0.0)
    assert best.saved == pytest.approx(2 / 5)


def test_tiers_of_the_catalogue_are_varied_in_place():
    """Capacity, rate and price of a device stand unless they are given; so does its name."""
    device = listed_prices.tier("micron-9650-30.7tb")
    listed = listed_prices.tier_price("flash")
    assert listed is not None
    asked = costs(tiers=[
        {"like": "micron-9650-30.7tb"}, {"name": "half", "like": "micron-9650-30.7tb",
         "capacity": "1 TB", "read_rate": "5 GB/s", "price": "$2/hour", "shared": 3},
        {"like": "micron-9650-30.7tb", "name": "rented", "price": "$2/hour"},
        {"price": "$1/GB/month"},
    ])  # fmt: skip
    _, plain, half, rented, unnamed = asked.task.tiers
    assert (plain.name, plain.kind, plain.price) == ("micron-9650-30.7tb", "flash", listed.base)
    assert (plain.capacity, plain.read_rate, plain.shared) == (device.capacity, device.read_rate, 1)
    assert listed.source in plain.price_from
    assert (half.capacity, half.read_rate, half.shared) == (1e12, 5e9, 3)
    assert half.price == pytest.approx(2 / 3600 / 1e12)
    assert rented.price == pytest.approx(2 / 3600 / device.capacity)
    assert (unnamed.name, unnamed.kind, unnamed.price_from) == ("tier 4", "own", "given")


def test_one_device_stands_for_each_kind_of_the_catalogue():
    """Host memory that eight chips share, and a drive of one; the others are counted."""
    task = costs(tiers="catalogue").task
    assert [(each.kind, each.shared) for each in task.tiers[1:]] == [("dram", 8), ("flash", 1)]
    assert f"lists {len(listed_prices.tier_names()) - 2} more" in " ".join(task.warnings)
