"""Waiting, crowding, activations and the two roofs of a plan, worked out again from the question.

What is compared is the printed number with one that shares no equation with it: the theorem of
Pollaczek and Khinchine, Little's law, a chain of births and deaths, counting of bytes.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import planner
from planner.catalogue.chips import chip
from planner.problems.serving.plan import ServingPlan
from planner.problems.serving.step.binding import shared_values
from planner.problems.serving.step.occupancy import overflow_warnings
from tests.cases.serving import dense, question, searched

ASKED: dict[str, Any] = {
    "problem": "serving",
    "units": "base",
    "model": "llama-3.1-8b",
    "system": "hgx-h100",
    "chips": 8,
    "price": "$2.50/hour",
    "workload": {"input_tokens": 2000, "output_tokens": 400},
    "promises": {"tpot": "50 ms"},
}
HIDDEN, VOCAB, CHUNK = 4096, 128256, 8192  # of the model; of the engine's pass
TWO = 2.0  # byte
REPORTED = 81559 * 2**20  # byte; what nvidia-smi reports of an H100 of 80 GB


def solved(mode: str, load: dict[str, Any] | None = None, **changes: Any) -> ServingPlan:
    """The answer to the question in one mode, on single chips under this load."""
    workload = {**ASKED["workload"], **(load or {})}
    choose = {"mode": mode, **changes.pop("choose", {"tp": 1, "pp": 1})}
    asked = {**ASKED, "workload": workload, "choose": choose, "engine": "none", **changes}
    answer = planner.solve(asked)
    assert isinstance(answer, ServingPlan)
    return answer


@pytest.mark.parametrize("mode", ["aggregated", "prefill"])
@pytest.mark.parametrize("rate", [50, 60])
def test_tails_are_those_of_one_and_of_five_percent(mode, rate):
    """Waits in line are exponential: two quantiles of one mean lie apart by a logarithm.

    Of prompts of one length T(x) = L ln(busy / x) / busy + 2 J, and L + J is the mean wait; both
    printed tails give the same L.
    """
    plan = solved(mode, {"demand": rate}).chosen
    load, first = plan["demand"], plan["ttft"] - plan["demand"]["wait"]
    busy = load["readers_busy"]
    p95, p99 = load["ttft_p95"] - first, load["ttft_p99"] - first
    line = (p99 - p95) * busy / math.log(5)
    joining = load["wait"] - line
    assert 0 < joining < load["wait"]
    assert p95 == pytest.approx(line * math.log(busy / 0.05) / busy + 2 * joining)


def test_where_readers_are_mostly_idle_the_tail_is_the_first_piece_of_m_d_1():
    """P(W <= t) = (1 - rho) exp(x t), and those that share a pass wait for all of it."""
    plan = solved("prefill", {"demand": "20 requests/s"}).chosen
    load, first = plan["demand"], plan["ttft"] - plan["demand"]["wait"]
    each = 20 / plan["layout"]["replicas"]
    service = load["readers_busy"] / each
    beside = (1 - 2000 / CHUNK) * (each * service) ** 2
    waits = math.log((1 - (0.05 - beside)) / (1 - load["readers_busy"])) / each
    assert load["ttft_p95"] - first == pytest.approx(waits)


@pytest.mark.parametrize("rate", [20, 60, 120])
def test_a_wait_is_that_in_line_and_for_the_pass_that_runs(rate):
    """Chips that read alone: Pollaczek-Khinchine for prompts of one length, and a chunk's rest.

    A quarter of a pass of 8192 tokens is one prompt of 2000, so three quarters of those that come
    while it runs are read in the next: gated service; the others wait for half a prompt.
    """
    plan = solved("prefill", {"demand": rate}).chosen
    busy, replicas = plan["demand"]["readers_busy"], plan["layout"]["replicas"]
    service = busy * replicas / rate
    line = busy * service / (2 * (1 - busy))
    share = 1 - 2000 / CHUNK
    joining = share * busy**2 * service / (2 * (1 - busy**2)) + (1 - share) * busy**2 * service / 2
    assert plan["demand"]["wait"] == pytest.approx(line + joining)


def test_a_wait_beside_decoding_is_longer_than_in_line():
    """In one pool a request also waits for the step that runs: more than half of it, and tells."""
    plan = solved("aggregated", {"demand": "60 requests/s"}).chosen
    load = plan["demand"]
    busy, service = load["readers_busy"], load["readers_busy"] * 8 / 60
    line = busy * service / (2 * (1 - busy))
    assert 0.5 * plan["tpot"] / 2 < load["wait"] - line < 2 * plan["tpot"]


@pytest.mark.parametrize("spare", [0, 1, 3])
def test_replicas_that_are_up_share_the_load(spare):
    """Little's law of one replica's decoding, spare replicas down."""
    plan = solved("aggregated", {"demand": "20 requests/s", "spare_replicas": spare}).chosen
    load, replicas = plan["demand"], plan["layout"]["replicas"]
    each = 20 / (replicas - spare)
    assert load["decoding_per_replica"] == pytest.approx(each * 399 * plan["tpot"])


@pytest.mark.parametrize(("share", "room"), [(0.7, 6.0), (0.85, 12.0), (0.6, 30.0)])
def test_crowding_is_that_of_births_and_deaths(share, room):
    """Requests come at one rate and leave at n over the time of n: the chain's steady state.

    Steps that grow in a straight line are what the negative binomial stands for, exactly.
    """
    task = question(dense(), batch=room, mode="decode", chips=(1,), input_tokens=4000.0,
                    context=4100.0)  # fmt: skip
    step = searched(task)
    step = step.take(np.array([0]))
    many = np.arange(1.0, 400.0)
    decoded = task.output_tokens  # of chips that decode alone, the first too
    taken = decoded * np.ravel([step(np.array([n]))["tpot"] for n in many])
    rate = share * room / taken[int(room) - 1]
    more = taken[1] - taken[0]
    steady = rate * (taken[0] - more) / (1 - rate * more)  # as many leave as come
    pace = np.array([(taken[0] + more * (steady - 1)) / decoded])  # no step is of parts of requests
    _, full = step.crowding({"arrivals": np.array([rate]), "tpot": pace})
    fits = int(step.occupancy.room[0])
    logs = np.cumsum(np.log(rate * taken / many))
    chain = np.exp(logs - logs.max())
    assert chain[-1] < 1e-9 * chain.sum()
    chance = chain[fits:].sum() / (chain.sum() + np.exp(-logs.max()))
    assert fits == int(room)
    assert float(full[0]) == pytest.approx(chance, rel=3e-3)


@pytest.mark.parametrize(("share", "warned"), [(0.0, False), (0.049, False), (0.051, True)])
def test_a_replica_full_one_time_in_twenty_is_warned_of(share, warned):
    """Not before, and nothing is said without a load."""
    load = SimpleNamespace(crowded=share, room_per_replica=7)
    assert bool(overflow_warnings(load)) == warned
    assert overflow_warnings(None) == ()


@pytest.mark.parametrize("mode", ["aggregated", "prefill", "decode"])
@pytest.mark.parametrize("tp", [1, 2])
def test_activations_are_live_vectors_and_logits(mode, tp):
    """Eight vectors of two bytes for every token of the pass, four bytes of logits a sequence."""
    choose = {"tp": tp, "pp": 1, "dp_attention": 1, "weights": "bf16", "kv": "bf16"}
    plan = solved(mode, choose=choose).chosen
    each = plan["batch_per_replica"]
    tokens = each + (0 if mode == "decode" else CHUNK)
    by_hand = tokens * 8 * HIDDEN * TWO + each * VOCAB * 4 / tp
    assert plan["memory_per_chip"]["activations"] == pytest.approx(by_hand)


@pytest.mark.parametrize("tp", [1, 2])
def test_caches_are_the_sequences_at_their_mean_context_and_the_rest_is_free(tp):
    """A sequence has half its answer on average; what is left of nine tenths is free."""
    choose = {"tp": tp, "pp": 1, "dp_attention": 1, "batch": 256, "weights": "bf16", "kv": "bf16"}
    plan = solved("aggregated", choose=choose).chosen
    parts, model = plan["memory_per_chip"], planner.model("llama-3.1-8b")
    each = plan["batch_per_replica"]
    cache = each * model["kv_bytes_per_token"] * (2000 + 400 / 2) / tp
    assert parts["kv"] == pytest.approx(cache)
    assert model["kv_bytes_per_token"] == 32 * 2 * 8 * 128 * TWO
    weights = 2 * 8.03e9 / tp
    live = (CHUNK + each) * 8 * HIDDEN * TWO + each * VOCAB * 4 / tp
    assert parts["free"] == pytest.approx(0.9 * REPORTED - weights - cache - live, abs=5e6)


def test_vectors_go_to_experts_in_the_format_of_their_weights():
    """FP8 takes one byte and a scale of four bytes for every 128, anything wider two bytes."""
    for dtype, byte in (("fp8", 1 + 4 / 128), ("bf16", 2.0)):
        sizes = planner_sizes("deepseek-v3", dtype)
        assert shared_values(question(sizes))["b_disp"] == byte


def planner_sizes(name: str, dtype: str) -> Any:
    """The counts of a catalogued model with all weights in one format."""
    from planner.architecture import model_sizes
    from planner.catalogue.models import load

    return model_sizes(load(name), weights=dtype)


def test_two_pools_expect_the_way_of_the_cache_and_their_roof_does_not():
    """The estimate beside a plan is the plan; the roof prices chips at their floors, in balance."""
    answer = solved("disaggregated", choose={}).document
    plan, roof, expected = answer["plan"], answer["bound"], answer["estimate"]
    assert expected == {name: plan[name] for name in ("usd_per_mtok", "tpot", "ttft")}
    on_top = planner.solve(
        {**ASKED, "choose": {"mode": "disaggregated"}, "estimate": "bound"}
    ).document["estimate"]
    assert on_top["ttft"] > answer["bound"]["ttft"]
    assert roof["ttft"] < expected["ttft"] - plan["transfer"]["seconds"]
    reading, decoding = plan["prefill"], plan["decode"]
    rate = min(
        reading["layout"]["replicas"] / roof["ttft"],
        decoding["layout"]["replicas"] * decoding["batch_per_replica"] / (399 * roof["tpot"]),
    )
    rent = (reading["chips"] + decoding["chips"]) * 2.5 / 3600
    assert roof["usd_per_mtok"] == pytest.approx(rent / rate / 2400 * 1e6, rel=0.05)


def test_an_even_router_reads_the_experts_that_the_roof_leaves_out():
    """The bound reads 2 of 8 experts, many tokens all: three quarters more at the bandwidth."""
    answer = solved(
        "decode", model="mixtral-8x7b", choose={"weights": "bf16", "kv": "bf16"}
    ).document
    roof, layout = answer["bound"], answer["plan"]["layout"]
    assert layout["ep"] * layout["tp_expert"] == 8
    experts = 32 * 8 * 3 * 4096 * 14336 * TWO / 8
    late = experts * (1 - 2 / 8) / chip("h100").memory_bandwidth
    even = roof["uniform_routing"]
    assert even["tpot"] - roof["tpot"] == pytest.approx(late, rel=1e-3)
    growth = even["tpot"] / roof["tpot"]
    assert even["usd_per_mtok"] / roof["usd_per_mtok"] == pytest.approx(growth)
