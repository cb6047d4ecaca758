"""Numbers of a plan worked out again from a few of its others: energy, money, memory, transfers."""

from __future__ import annotations

import math
from typing import Any

import pytest

import planner
from planner.catalogue.chips import chip

ASKED: dict[str, Any] = {
    "problem": "serving",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "chips": 8,
    "price": "$2.50/hour",
    "workload": {"input_tokens": 2000, "output_tokens": 400},
    "promises": {"ttft": "2 s", "tpot": "50 ms"},
}
MODES = ("aggregated", "disaggregated")
HOUR, MILLION = 3600.0, 1e6
NVLINK = 450e9  # byte/s one way of an H100


def solved(mode: str, *sets: str, **changes: Any) -> dict[str, Any]:
    """The plan of the question in one mode, as its document has it."""
    question = {**ASKED, "choose": {"mode": mode}, **changes}
    plan = dict(planner.solve(question, list(sets)).chosen)
    return plan


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pue", [1.0, 1.25])
def test_energy_is_the_power_of_the_chips_over_all_tokens(mode, pue):
    """Joule per token, prompts counted; electricity is paid for what the chips draw."""
    plan = solved(mode, power_price="$0.10/kWh", pue=pue)
    power = plan["chips"] * plan["watts_per_chip"]
    assert plan["joule_per_token"] == pytest.approx(power / (plan["requests_per_s"] * 2400))
    assert power < plan["chips"] * chip("h100").power * pue
    assert plan["power_usd_per_hour"] == pytest.approx(power / 1000 * 0.10)
    rent = plan["chips_used"] * 2.50
    assert plan["usd_per_hour"] == pytest.approx(rent + plan["power_usd_per_hour"])


@pytest.mark.parametrize("mode", MODES)
def test_what_is_sold_pays_what_is_rented(mode):
    """Input and output tokens at their prices are the bill; so are all at the mean price."""
    plan = solved(mode)
    sold = plan["requests_per_s"] * HOUR / MILLION
    bill = sold * (2000 * plan["usd_per_mtok_input"] + 400 * plan["usd_per_mtok_output"])
    assert bill == pytest.approx(plan["usd_per_hour"])
    assert sold * 2400 * plan["usd_per_mtok"] == pytest.approx(plan["usd_per_hour"])


def test_each_of_two_pools_is_paid_by_its_tokens():
    """Prompts pay the pool that reads them, answers the pool that decodes."""
    plan = solved("disaggregated")
    sold = plan["requests_per_s"] * HOUR / MILLION
    read, decoded = (plan[pool]["usd_per_hour"] for pool in ("prefill", "decode"))
    assert sold * 2000 * plan["usd_per_mtok_input"] == pytest.approx(read)
    assert sold * 400 * plan["usd_per_mtok_output"] == pytest.approx(decoded)
    assert read + decoded == pytest.approx(plan["usd_per_hour"])


@pytest.mark.parametrize(("senders", "receivers"), [(1, 1), (2, 1), (1, 2), (4, 2), (2, 4)])
def test_a_cache_goes_over_the_links_that_both_replicas_have(senders, receivers):
    """Bytes over the rate of as many links as the smaller replica has chips, and a latency."""
    plan = solved(
        "disaggregated",
        *(f"choose.{pool}.pp=1" for pool in ("prefill", "decode")),
        f"choose.prefill.tp={senders}",
        f"choose.decode.tp={receivers}",
    )
    sent = 2000 * planner.model("llama-3.1-8b")["kv_bytes_per_token"]
    assert plan["transfer"]["bytes"] == pytest.approx(sent)
    latency = plan["transfer"]["seconds"] - sent / (min(senders, receivers) * NVLINK)
    assert 1e-6 < latency < 100e-6
    carried = plan["requests_per_s"] * sent
    assert plan["transfer"]["bytes_per_s"] == pytest.approx(carried)


def test_state_goes_with_the_cache_of_a_prompt():
    """A model with recurrent layers sends what it has cached of the prompt and its state, once."""
    name = "nemotron-3-nano-30b-a3b"
    plan, model = solved("disaggregated", model=name), planner.model(name)
    assert model["state_bytes_per_sequence"] > 0
    sent = 2000 * model["kv_bytes_per_token"] + model["state_bytes_per_sequence"]
    assert plan["transfer"]["bytes"] == pytest.approx(sent)


def test_first_tokens_of_two_pools_wait_for_the_cache():
    """A slower link between pools delays mean, tails and end by what the transfer grows."""
    demand = {"workload": {**ASKED["workload"], "demand": "5 requests/s"}, "chips": 2}
    held = [f"choose.{pool}.{axis}=1" for pool in ("prefill", "decode") for axis in ("tp", "pp")]
    fast = solved("disaggregated", *held, **demand)
    slow = solved("disaggregated", *held, "system.scale_up=45 GB/s", **demand)
    later = slow["transfer"]["seconds"] - fast["transfer"]["seconds"]
    assert later > 1e-3
    for before, after in (
        (fast["ttft"], slow["ttft"]),
        (fast["e2e"], slow["e2e"]),
        (fast["demand"]["ttft_p95"], slow["demand"]["ttft_p95"]),
        (fast["demand"]["ttft_p99"], slow["demand"]["ttft_p99"]),
        (fast["demand"]["in_flight"] / 5, slow["demand"]["in_flight"] / 5),
    ):
        assert after - before == pytest.approx(later, rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_requests_in_flight_are_their_rate_times_their_time(mode):
    """Little's law, and end to end is the first token and then the others."""
    plan = solved(mode, workload={**ASKED["workload"], "demand": "5 requests/s"}, chips=[1, 2, 4])
    assert plan["demand"]["in_flight"] == pytest.approx(5 * plan["e2e"])
    assert plan["e2e"] == pytest.approx(plan["ttft"] + 399 * plan["tpot"])


@pytest.mark.parametrize("mode", MODES)
def test_memory_is_a_tenth_in_reserve_and_weights_caches_and_work(mode):
    """All parts of a chip's memory are its capacity; weights and caches by counting."""
    plan = solved(mode, engine="none")
    model = planner.model("llama-3.1-8b")
    for pool in [plan] if mode == "aggregated" else [plan["prefill"], plan["decode"]]:
        parts, layout = pool["memory_per_chip"], pool["layout"]
        assert parts["capacity"] == chip("h100").memory_reported
        assert parts["reserved"] == pytest.approx(0.1 * parts["capacity"])
        rest = [value for name, value in parts.items() if name != "capacity"]
        assert math.fsum(rest) == pytest.approx(parts["capacity"])
        if layout["pp"] == 1:
            whole = math.fsum(model["weight_bytes"].values()) / layout["tp"]
            assert parts["weights"] == pytest.approx(whole, rel=0.05)


def test_a_replica_has_room_for_what_it_says_and_for_no_more():
    """At `room_per_replica` sequences the plan fits, at one more it does not."""
    loaded = {"workload": {**ASKED["workload"], "demand": "5 requests/s"}, "chips": 1}
    room = solved("aggregated", **loaded)["demand"]["room_per_replica"]
    slow = {"chips": 1, "promises": {"tpot": "10 s"}}
    fits = solved("aggregated", f"choose.batch={room}", **slow)
    assert fits["memory_per_chip"]["free"] >= 0
    question = {**ASKED, **slow, "choose": {"mode": "aggregated", "batch": room + 1}}
    assert planner.solve(question).status == "infeasible"
