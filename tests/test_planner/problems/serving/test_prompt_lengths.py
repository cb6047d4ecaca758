"""Prompts of any length: prices and times change as little as the lengths do."""

import numpy as np
import pytest

import planner

LENGTHS = np.unique(np.geomspace(32, 8192, 65).astype(int))
NEXT = 1.5  # what a step of 9 % in length may change at most is a half of it more


def asked(model: str, tokens: int, **choose: object) -> dict:
    return {
        "problem": "serving", "model": model, "system": "hgx-h200", "chips": 8,
        "price": "$3.50/hour", "workload": {"input_tokens": int(tokens), "output_tokens": 200},
        "choose": {"weights": "fp8", "kv": "fp8", "ep": 8, "tp": 1, "dp_attention": 8, **choose},
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mixtral-8x7b", "qwen3-235b-a22b"])
def test_price_and_tpot_are_smooth_in_the_length_of_prompts(model):
    """One layout at 512 in flight: a request's price and a token's time rise with its prompt.

    Neither jumps: a length 9 % longer makes them at most 13 % larger.
    """
    plans = [
        planner.solve(asked(model, n, mode="aggregated", batch=512, overlap="none")).document[
            "plan"
        ]
        for n in LENGTHS
    ]
    whole = np.array([p["usd_per_mtok"] for p in plans]) * (LENGTHS + 200)
    tpot = np.array([p["tpot"] for p in plans])
    longer = np.diff(np.log(LENGTHS))
    for values in (whole, tpot):
        steps = np.diff(np.log(values))
        assert (steps > -1e-9).all()
        assert (steps <= NEXT * longer).all()


def test_short_prompts_are_about_as_cheap_to_read_as_long_ones():
    """Fifty tokens fill a pass with others, and cost what two thousand do within a half."""
    prices = {
        n: planner.solve(asked("deepseek-v3", n, mode="prefill")).chosen["usd_per_mtok"]
        for n in (50, 500, 2000, 4000)
    }
    assert max(prices.values()) <= 1.5 * min(prices.values())


@pytest.mark.parametrize("batch", [8, 64, 512])
def test_prompts_of_a_pass_are_as_many_as_asked(batch):
    """More of them cost less each, and wait for each other."""
    plan = planner.solve(asked("deepseek-v3", 50, mode="prefill", batch=batch)).chosen
    free = planner.solve(asked("deepseek-v3", 50, mode="prefill")).chosen
    assert plan["batch"] == batch < free["batch"]
    assert plan["usd_per_mtok"] > free["usd_per_mtok"]
    assert plan["ttft"] < free["ttft"]


def test_more_prompts_than_fit_a_pass_are_refused():
    """A rank has room for 163.84 of 50 tokens in 8,192: 2,048 over 8 ranks are too many."""
    missed = planner.solve(asked("deepseek-v3", 50, mode="prefill", batch=2048)).document
    assert missed["status"] == "infeasible"
    assert missed["infeasible"][0]["promise"] == "prompts fit a pass"


@pytest.mark.parametrize("model", ["mixtral-8x7b", "deepseek-v3", "llama-3.1-70b"])
def test_the_input_price_of_short_prompts_is_within_three_times_that_of_long_ones(model):
    """Whatever layout is best for each: 50 tokens a prompt against 2,000."""
    prices = []
    for tokens in (50, 2000):
        free = asked(model, tokens) | {"choose": {"weights": "fp8", "mode": "aggregated"}}
        prices.append(planner.solve(free).chosen["usd_per_mtok_input"])
    assert prices[0] <= 3 * prices[1]
