"""First tokens of prefill pools that all requests reach at once, as a closed loop starts."""

import heapq
from dataclasses import replace

import numpy as np
import pytest

from formulas.numerics.evaluate import kernel
from formulas.serving.closed_loop import pools_loop_first_token
from planner.catalogue.profile import COEFFICIENTS, profile
from planner.measurements.prediction import RowStep, features
from planner.measurements.readers.engine_runs import run
from planner.problems.serving.step.engine_effects import RAMP, rounds_waited

POOLS = {
    "model_path": "deepseek-ai/DeepSeek-V3",
    "system": "gb200",
    "backend": "trtllm",
    "backend_version": "1.2.0",
    "mode": "disagg",
    "measured_on": "2026-01-15",
    "isl": "4096",
    "osl": "512",
    "concurrency": "64",
    "ttft_ms": "1000",
    "tpot_ms": "10",
    "precision": "fp4",
    "gemm_quant_mode": "nvfp4",
    "moe_quant_mode": "nvfp4",
    "prefill_num_workers": "2",
    "decode_num_workers": "1",
    **{f"{pool}_{name}": "4" for pool in ("prefill", "decode") for name in ("tp_size",)},
    **{f"{pool}_moe_tp_size": "4" for pool in ("prefill", "decode")},
}


def first_token(**changes):
    """TTFT of two prefill workers [s] at full efficiencies and overheads of a second."""
    row = next(r for r in run({**POOLS, **changes}, "2", "", []) if r.quantity == "ttft")
    return features([row]).matrix[0]


def test_the_first_requests_come_all_at_once():
    """Two workers: 0.05 prompts for each in flight; half a pass more where one is under way."""
    part = COEFFICIENTS.index("e_pf")
    counts = np.array([1, 2, 4, 64, 124])
    taken = np.array([first_token(concurrency=str(n))[part] for n in counts])
    prompt = taken[0] / (1 + RAMP / 2)
    under_way = np.array([0.0, 0.0, 0.5, 0.5, 0.5])
    assert taken == pytest.approx(prompt * (1 + RAMP / 2 * counts + under_way))


def test_a_burst_fills_its_passes_and_the_host_takes_up_one_behind_the_other():
    """Two prompts fill a pass of 8192 tokens; one of two requests in a burst has it to itself."""
    passes, requests = (COEFFICIENTS.index(name) for name in ("t_pf_chunk", "t_request"))
    burst = np.array([1, 2, 8, 32, 62])
    taken = np.array([first_token(concurrency=str(2 * n)) for n in burst])
    under_way = np.array([0.0, 0.5, 0.5, 0.5, 0.5])
    shared = np.maximum(0.5, 1 / burst)
    assert taken[:, passes] == pytest.approx(1 + under_way + RAMP * burst * shared)
    assert taken[:, requests] == pytest.approx(1 + RAMP * burst)


def test_a_token_goes_once_to_each_of_the_chips_that_hold_parts_of_all_its_experts():
    """Eight experts of a token are eight copies, whether on eight chips whole or in parts."""
    part = COEFFICIENTS.index("e_a2a")
    ranks = {"system": "b200_sxm", "prefill_tp_size": "1", "prefill_attention_dp_size": "8"}
    whole = first_token(**ranks, prefill_moe_tp_size="1", prefill_moe_ep_size="8")[part]
    parts = first_token(**ranks, prefill_moe_tp_size="8", prefill_moe_ep_size="1")[part]
    assert parts == pytest.approx(whole, rel=0.05)


def waits(requests: int, read: float, decode: float, rounds: int = 10, ranks: int = 1) -> float:
    """Mean wait of prompts read one by one in a closed loop whose requests all start at once.

    Each is dealt to one of the `ranks` at random, which reads a prompt in `read`.
    """
    draw = np.random.default_rng(7)
    events, free, found = [(0.0, i) for i in range(requests)], [0.0] * ranks, []
    sent = requests
    while events:
        now, _ = heapq.heappop(events)
        rank = int(draw.integers(ranks))
        free[rank] = max(now, free[rank]) + read * draw.uniform(0.8, 1.0) / 0.9
        found.append(free[rank] - now - read)
        if sent < requests * rounds:
            heapq.heappush(events, (free[rank] + decode * draw.uniform(0.8, 1.0) / 0.9, sent))
            sent += 1
    return float(np.mean(found))


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("each", [16, 64])
def test_ranks_to_which_prompts_are_dealt_at_random_keep_some_waiting_in_every_round(ranks, each):
    """An event simulation at 0.95 of the load, beside the surplus that the equation counts."""
    draws = kernel([pools_loop_first_token], ["T_loop"])
    symbols = dict.fromkeys(draws.names, 1.0) | {
        **dict.fromkeys(("T_ttft", "T_dec", "n_rounds", "t_tok", "t_request"), 0.0),
        "B": 1.0, "T_read": 1e-9, "T_tpot": 1e-9, "x_ramp": RAMP, "n_burst": float(ranks * each),
    }  # fmt: skip
    alone, dealt = (
        draws(**{**symbols, "dp": float(dp), "T_ahead": dp / ranks})["T_loop"] for dp in (1, ranks)
    )
    found = waits(ranks * each, 1.0, each / 0.95, ranks=ranks)
    assert alone == pytest.approx(RAMP * each)
    assert found == pytest.approx(dealt, rel=0.15)


def places_awaited(requests: int, places: int, read: float, rounds: int = 10) -> float:
    """Mean time to first token where answers of a second are given in so many places."""
    draw = np.random.default_rng(7)
    events, free, found = [(0.0, i) for i in range(requests)], 0.0, []
    taken = [0.0] * places
    sent = requests
    while events:
        now, _ = heapq.heappop(events)
        free = max(now, free) + read
        begins = max(free, heapq.heappop(taken))
        ends = begins + draw.uniform(0.8, 1.0) / 0.9
        heapq.heappush(taken, ends)
        found.append(begins - now)
        if sent < requests * rounds:
            heapq.heappush(events, (ends, sent))
            sent += 1
    return float(np.mean(found))


@pytest.mark.parametrize(("requests", "places"), [(48, 32), (180, 128), (64, 64), (20, 10)])
def test_requests_beyond_the_places_of_the_pool_that_decodes_wait_for_answers(requests, places):
    """An event simulation, and the equation with rounds as the planner counts them."""
    read = 0.002
    rounds = float(rounds_waited(np.array([requests]), np.array([places]))[0])
    draws = kernel([pools_loop_first_token], ["T_loop"])
    symbols = dict.fromkeys(draws.names, 1.0) | {
        **dict.fromkeys(("T_dec", "t_tok", "t_request"), 0.0),
        "T_ttft": read, "T_read": read, "T_ahead": read, "x_ramp": RAMP, "n_rounds": rounds,
        "n_burst": float(requests),
    }  # fmt: skip
    found = places_awaited(requests, places, read)
    assert draws(**symbols)["T_loop"] == pytest.approx(found, rel=0.1, abs=2 * read)


def test_a_run_waits_for_places_of_its_own_pool_that_decodes():
    """Of 192 requests 128 decode at once by the script of the run: half an answer, times 0.95."""
    swept = {
        **POOLS, "concurrency": "192", "isl": "1024", "osl": "1024", "measured_on": "2026-03-23",
        "prefill_num_workers": "1", "decode_num_workers": "4", "prefill_attention_dp_size": "4",
        "prefill_tp_size": "1", "prefill_moe_tp_size": "1", "prefill_moe_ep_size": "4",
        "decode_tp_size": "8", "decode_moe_tp_size": "1", "decode_moe_ep_size": "8",
    }  # fmt: skip
    token, prompt = run(swept, "2", "", [])
    assert (token.batch, token.pools.decode.most) == (32, 32)
    at = profile("engines-2026").values
    answer = token.output * RowStep([token]).times(at)[0][0]
    first = RowStep([prompt]).times(at)[0][0]
    burst = RowStep([replace(prompt, pools=replace(prompt.pools, decode=replace(
        prompt.pools.decode, most=0.0)))]).times(at)[0][0]  # fmt: skip
    assert burst < 0.475 * answer < first < 0.475 * answer + burst


def test_what_a_prompt_meets_falls_with_what_the_pool_has_to_read():
    """Half a pass is still to come where one is under way: always, in one of ten, never."""
    draws = kernel([pools_loop_first_token], ["T_loop"])
    symbols = dict.fromkeys(draws.names, 1.0) | {
        **dict.fromkeys(("T_dec", "t_tok", "t_request", "n_rounds", "T_ahead"), 0.0),
        "n_burst": 11.0,
    }  # fmt: skip
    answers = np.array([0.5, 99.0, 1e9])
    taken = [draws(**{**symbols, "T_tpot": n})["T_loop"] for n in answers]
    assert np.ravel(taken) == pytest.approx([1.5, 1.05, 1.0])


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 1.3])
def test_a_closed_loop_waits_as_its_first_burst_and_what_the_pool_is_behind(load):
    """An event simulation: half a round in one of ten, and rounds less decoding in the others."""
    requests = 512
    expected = RAMP * requests + (1 - 2 * RAMP) * max(requests - requests / load, 0.0)
    found = waits(requests, 1.0, requests / load)
    assert found == pytest.approx(expected, abs=0.02 * requests)
