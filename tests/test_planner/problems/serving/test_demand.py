"""Scenarios with a demand, from the file to the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner import solve
from planner.problems.serving.presentation import answer

CHIPS = [1, 2, 4, 6, 8]


def scenario(demand: Any, **changes: Any) -> dict[str, Any]:
    """Llama 3.1 8B for chats, on as few H100 as carry the demand."""
    workload = {"input_tokens": 2000, "output_tokens": 400, "demand": demand}
    workload |= changes.pop("workload", {})
    asked = {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": CHIPS,
        "price": "$2.50/hour", "workload": workload, "promises": {"ttft_p95": "1 s"},
        "choose": {"mode": "aggregated"},
    }  # fmt: skip
    return asked | changes


@pytest.fixture(scope="module")
def plan():
    """The plan for ten requests per second."""
    return solve(scenario("10 requests/s"))


def test_a_demand_in_tokens_is_one_in_requests(plan):
    """4,000 tokens/s of 400 tokens each are ten requests per second."""
    other = solve(scenario("4000 tokens/s"))
    assert other.chosen == plan.chosen
    assert plan.chosen["requests_per_s"] == pytest.approx(10.0)


def test_the_plan_carries_the_demand_and_no_more(plan):
    """Slots are busy nearly all of the time, readers less, the promise holds."""
    demand = plan.chosen["demand"]
    assert 0.9 < demand["load"] <= 1
    assert 0 < demand["readers_busy"] < 1
    assert plan.chosen["ttft"] < demand["ttft_p95"] < demand["ttft_p99"]
    assert demand["ttft_p95"] <= 1.0
    replicas = plan.chosen["layout"]["replicas"]
    assert demand["decoding_per_replica"] * replicas <= demand["slots"]


def test_requests_in_flight_are_those_that_decode_and_those_that_wait(plan):
    """Little's law over the whole fleet: rate times the time from arrival to the last token."""
    chosen = plan.chosen
    demand, replicas = chosen["demand"], chosen["layout"]["replicas"]
    decoding = replicas * demand["decoding_per_replica"]
    assert demand["in_flight"] == pytest.approx(decoding + 10 * chosen["ttft"], rel=1e-9)


def test_the_answer_says_what_arrives_and_what_waits(plan):
    """The load, the room in memory and the queue stand in the text."""
    assert "10 requests/s" in answer(plan).replace("\n", " ")
    assert all(f"\n  {label}: " in answer(plan, "more") for label in ("Load", "Queue"))


def test_a_demand_beyond_the_chips_says_how_much_they_serve():
    """A thousand billion requests per second: which share of it can be served, at least."""
    found = solve(scenario("1e12 requests/s"))
    (missed,) = found.document["infeasible"]
    assert missed["promise"] == "demand"
    served = 1e12 / missed["short_by"]
    most = solve(scenario("max", objective="throughput")).chosen["requests_per_s"]
    assert served == pytest.approx(most, rel=1e-9)
    assert "% of the load carried" in answer(found)


@pytest.mark.slow
def test_two_pools_say_how_much_of_a_load_they_serve():
    """The same of two pools: a hair less than that is carried, a hair more is not."""
    two = {"choose": {"mode": "disaggregated"}, "chips": [4]}
    (missed,) = solve(scenario("1e4 requests/s", **two)).document["infeasible"]
    assert missed["promise"] == "demand"
    for slack, carried in ((1 - 1e-6, True), (1 + 1e-6, False)):
        load = 1e4 / missed["short_by"] * slack
        assert solve(scenario(f"{load!r} requests/s", **two)).feasible == carried


def test_replicas_without_room_are_warned_of():
    """Long answers that fill the memory: requests come at random, and some do not fit."""
    full = scenario("max", chips=[1], objective="throughput", promises={"cache_fits": 0},
                    workload={"input_tokens": 8000, "output_tokens": 8000})  # fmt: skip
    found = solve(full)
    demand = found.chosen["demand"]
    assert demand["crowded"] > 0.05
    assert any("more than the" in warning for warning in found.warnings)


def test_a_fleet_with_room_is_not_warned_of(plan):
    """Memory for many times the mean is never exceeded."""
    demand = plan.chosen["demand"]
    assert demand["crowded"] < 0.05
    assert not any("come at random" in warning for warning in plan.warnings)


@pytest.mark.parametrize("mode", ["decode", "prefill"])
def test_a_phase_alone_carries_a_load(mode):
    """Only what the phase knows of is told."""
    chosen = solve(scenario("10 requests/s", choose={"mode": mode})).chosen
    reads = mode == "prefill"
    assert (chosen["demand"]["wait"] is not None) is reads
    assert (chosen["ttft"] is not None) is reads
    assert chosen["requests_per_s"] == pytest.approx(10.0)


def test_the_bound_carries_no_fewer_than_the_estimate(plan):
    """On the roofline fewer chips are enough, and nobody waits."""
    found = solve(scenario("10 requests/s", estimate="bound")).document
    assert found["plan"]["chips"] <= plan.chosen["chips"]
    assert found["plan"]["demand"]["wait"] == 0
    assert "excludes queueing" in found["provenance"]["queueing"]


@pytest.mark.parametrize(
    ("replicas", "spare", "demand"), [(1, 0, "200 requests/s"), (1, 1, "2 requests/s")]
)
def test_a_layout_of_ones_own_that_does_not_carry_the_load_has_times_without_end(
    replicas, spare, demand
):
    """They are null in the document, which has no infinity; how much load is missed is said."""
    plan = solve(
        {
            "problem": "serving",
            "model": "llama-3.1-8b",
            "system": "hgx-h100",
            "chips": 16,
            "price": "$2/hour",
            "workload": {
                "input_tokens": 500,
                "output_tokens": 100,
                "demand": demand,
                "spare_replicas": spare,
            },
            "current": {"tp": 2, "batch": 16, "replicas": replicas},
        }
    )
    current = json.loads(json.dumps(plan.document, allow_nan=False))["current"]
    assert current["ttft"] is None
    assert current["demand"]["wait"] is None
    assert current["demand"]["in_flight"] is None
    assert "demand" in [missed["promise"] for missed in current["breaks"]]
