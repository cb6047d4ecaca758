"""What serving a member costs in a lifecycle: rent, idle time, both pools."""

from __future__ import annotations

from typing import Any

import pytest

from planner.laws.model_family import ModelFamily
from planner.problems.lifecycle.members import FamilyRule
from planner.problems.lifecycle.question import Serving
from planner.problems.lifecycle.serving_cost import ServedMember, serving_question

N, INTO, OUT = 8e9, 3000, 600
GIVEN: dict[str, Any] = {
    "system": "hgx-h100",
    "chips": [8],
    "price": "$2.50/hour",
    "workload": {"input_tokens": INTO, "output_tokens": OUT},
    "promises": {"tpot": "50 ms", "ttft": "2 s"},
    "choose": {"weights": "fp8", "mode": "aggregated", "tp": 1, "pp": 1, "batch": 256},
}
PAIR = {"choose": {"weights": "fp8", "mode": "disaggregated"}}


def served(**changes: Any) -> ServedMember:
    """The cheapest plan of a dense member of eight billion parameters."""
    question = serving_question(Serving.model_validate({**GIVEN, **changes}))
    member = question.cheapest(FamilyRule(ModelFamily()), N, 1.0)
    assert member is not None
    return member


@pytest.mark.parametrize("change", [{}, PAIR], ids=["one pool", "two pools"])
def test_a_price_is_the_rent_over_what_is_served(change):
    """Of all chips that are paid, over prompts and answers together."""
    member = served(**change)
    rent = member.plan.chips_used * 2.5 / 3600
    assert member.price == pytest.approx(rent / member.tokens_per_s, rel=1e-6)


@pytest.mark.parametrize("change", [{}, PAIR], ids=["one pool", "two pools"])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_idle_time_is_paid_too(share, change):
    """At a share of the time sold, the rate falls and the price grows by as much."""
    full, idle = served(**change), served(utilisation=share, **change)
    requests = full.plan.requests_per_s
    assert full.tokens_per_s == pytest.approx(requests * (INTO + OUT))
    assert idle.tokens_per_s == pytest.approx(share * full.tokens_per_s)
    assert idle.tokens_per_chip_second == pytest.approx(share * requests * (INTO + OUT) / 8)
    assert idle.price == pytest.approx(full.price / share)
    assert idle.band.usd_per_mtok == pytest.approx([end / share for end in full.band.usd_per_mtok])


def test_the_price_is_that_of_the_serving_planner():
    """At the member's own size, and it follows the size as two members do."""
    member = served()
    assert member.price * 1e6 == pytest.approx(member.plan.usd_per_mtok)
    size = member.member.n_active
    assert size == pytest.approx(N, rel=0.01)
    assert member.at(size) == pytest.approx(member.price)
    price, slope = member.tangent(size)
    assert price == pytest.approx(member.price)
    step = 1e-3
    ends = member.at(size * (1 + step)), member.at(size * (1 - step))
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step * member.price), rel=1e-3)
    assert 0 < slope < 1.1


def test_each_pool_bears_what_it_would_cost_alone():
    """A pool that waits for the other counts for its time in use: shares of balanced pools."""
    member = served(**PAIR)
    plan = member.plan
    assert plan.prefill.utilisation < 1 or plan.decode.utilisation < 1
    used = [pool.usd_per_hour * pool.utilisation for pool in (plan.prefill, plan.decode)]
    shares = [share for _, share, _ in member.parts]
    assert shares == pytest.approx([each / sum(used) for each in used], rel=1e-3)


def test_elasticities_of_a_served_member_are_those_of_prices():
    """What a faster memory saves, against members on machines with one percent more and less."""
    member = served()
    slopes = member.elasticities_at(member.member.n_active)
    faster = served(system={"like": "hgx-h100", "memory_bandwidth": "3383.5 GB/s"})
    nearby = served(system={"like": "hgx-h100", "memory_bandwidth": "3316.5 GB/s"})
    difference = (faster.price - nearby.price) / (0.02 * member.price)
    assert slopes["system.memory_bandwidth"] == pytest.approx(difference, abs=0.02)
