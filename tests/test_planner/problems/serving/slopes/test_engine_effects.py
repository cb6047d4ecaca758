"""Elasticities of plans whose engine or closed loop changes the step: those of solving again."""

import copy
import math

import pytest

import planner

OLD = {
    "problem": "serving", "model": "llama-2-70b", "system": "hgx-h100", "chips": 8,
    "price": "$2/hour", "profile": "trtllm-2024",
    "workload": {"input_tokens": 512, "output_tokens": 200}, "choose": {"tp": [8], "replicas": 1},
}  # fmt: skip
LOOP = {
    **OLD, "profile": "vllm-2026", "objective": "latency", "model": "llama-3.1-70b",
    "workload": {"input_tokens": 2000, "output_tokens": 500, "concurrency": 64},
}  # fmt: skip
CASES = {
    "unsplit caches": (OLD, {"mode": "decode", "batch": 4}, "usd_per_mtok"),
    "weights beside products": (OLD, {"mode": "prefill"}, "usd_per_mtok"),
    "closed loop": (LOOP, {"mode": "aggregated"}, "e2e"),
}
STEP = 1e-3
BANDWIDTH = 3350.0  # GB/s of an H100


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_elasticity_to_bandwidth_is_that_of_solving_again(case):
    """One percent more bandwidth does what a plan on such a chip says it does."""
    scenario, choose, quantity = CASES[case]
    scenario = copy.deepcopy(scenario)
    scenario["choose"] |= choose

    def solved(factor):
        system = {"like": "hgx-h100", "memory_bandwidth": f"{BANDWIDTH * factor:.8f} GB/s"}
        return planner.solve({**scenario, "system": system}).to_json()

    ends = [math.log(solved(1 + sign * STEP)["plan"][quantity]) for sign in (1, -1)]
    expected = (ends[0] - ends[1]) / math.log((1 + STEP) / (1 - STEP))
    told = solved(1.0)["elasticities"]["system.memory_bandwidth"]
    assert told == pytest.approx(expected, abs=2e-4)
