"""Elasticities of two pools, and of waiting, against evaluating and solving again."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from test_sensitivity_local import Again, found

import planner
from planner.scenario import load
from planner.sensitivity.held import elasticities
from planner.sensitivity.serving import serving_rows
from planner.serving.asking import ask
from planner.serving.step import Step

STEP = 1e-4


def scenario(seed: int) -> dict:
    """A random question that has two pools."""
    rng = random.Random(seed)
    return {
        "problem": "serving",
        "model": rng.choice(["llama-3.1-70b", "deepseek-v3", "gpt-oss-120b"]),
        "system": rng.choice(["hgx-h100", "hgx-h200", "hgx-b200"]),
        "chips": rng.choice([16, 32]),
        "price": 3.0 / 3600,
        "workload": {
            "input_tokens": rng.choice([1000, 4000, 12_000]),
            "output_tokens": rng.choice([200, 1000]),
        },
        "promises": {"tpot": rng.choice([0.03, 0.06])} if rng.random() < 0.8 else {},
        "choose": {"mode": "disaggregated"},
    }


def balanced(bound, given, factor: float) -> dict[str, float]:
    """Price, times and throughput of both pools in balance, from each evaluated again."""
    asked = ask(given.to(factor))
    first, second = bound.tasks(asked)
    reading, decoding = bound.pools
    step = Step(first, reading.layouts, bound=first.uses_bound)
    read = {name: float(np.ravel(v)[0]) for name, v in step(np.array([reading.batch])).items()}
    decode = Again(second, decoding.layouts).solved()
    chips = [float(pool.layouts.replica_chips[0]) for pool in bound.pools]
    slot = second.output_tokens / decode["tokens_per_s"]
    seconds = [chips[0] * read["busy"], chips[1] * slot]
    tokens = second.input_tokens + second.output_tokens
    price = (first.price * seconds[0] + second.price * seconds[1]) / tokens
    return {
        "usd_per_mtok": price,
        "tpot": decode["tpot"],
        "ttft": read["ttft"] + bound.transfer(asked),
        "tokens_per_s": second.output_tokens / sum(seconds),
    }


def compared(seed: int) -> int:
    """How many elasticities of one random scenario were compared."""
    best = found(scenario(seed))
    if best is None:
        return 0
    _, bound, givens = best
    varied = [given for given in givens if given.to is not None]
    _, slopes = elasticities(bound, varied)
    count = 0
    for i, given in enumerate(varied):
        ends = [balanced(bound, given, math.exp(sign * STEP)) for sign in (1, -1)]
        for name in ends[0]:
            left, right = slopes[name][:, i]
            if abs(left - right) < 1e-6:
                slope = math.log(ends[0][name] / ends[1][name]) / (2 * STEP)
                assert right == pytest.approx(slope, rel=1e-3, abs=1e-3), (given.path, name)
                count += 1
    return count


@pytest.mark.parametrize("seed", [0, 1])
def test_elasticities_of_two_pools_are_those_of_evaluating_again(seed):
    """Price, times and throughput to 1e-3, layouts held and pools in balance."""
    assert compared(seed) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 40))
def test_elasticities_of_many_pairs_of_pools_are_those_of_evaluating_again(seed):
    """The same of many more."""
    compared(seed)


def test_the_price_of_two_pools_has_the_multipliers_of_their_programs():
    """Two ways to the same numbers, but for whole batches in the one."""
    given = scenario(1)
    plan = planner.solve(given)
    rows = {row.path: row for row in serving_rows(load(given), "usd_per_mtok")[1]}
    for path, value in plan.elasticities.items():
        if path in rows:
            assert rows[path].right == pytest.approx(value, abs=0.03), path


def test_waiting_moves_the_time_to_first_token():
    """Under a load: the model evaluated again at the same batch and replicas."""
    given = {
        "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 16,
        "workload": {"input_tokens": 3000, "output_tokens": 300, "demand": 8.0},
        "promises": {"ttft": 4.0, "tpot": 0.06}, "choose": {"mode": "aggregated"},
    }  # fmt: skip
    _, bound, givens = found(given)
    varied = [each for each in givens if each.to is not None]
    values, slopes = elasticities(bound, varied)
    (pool,) = bound.pools

    def first(asked) -> float:
        (task,) = bound.tasks(asked)
        step = Step(task, pool.layouts, bound=False)
        return float(np.ravel(step(np.array([pool.batch]))["ttft"])[0])

    assert values["ttft"] == pytest.approx(first(ask(load(given))), rel=1e-9)
    assert dict(zip([each.path for each in varied], slopes["ttft"][1], strict=True))[
        "workload.demand"
    ] > 0.01  # fmt: skip
    for i, each in enumerate(varied):
        ends = [first(ask(each.to(math.exp(sign * STEP)))) for sign in (1, -1)]
        slope = math.log(ends[0] / ends[1]) / (2 * STEP)
        assert slopes["ttft"][1, i] == pytest.approx(slope, rel=1e-3, abs=1e-3), each.path


def test_a_closed_loop_is_varied_by_whole_requests():
    """A few more in flight: what solving with them gives, on either side."""
    given = {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 1,
        "workload": {"input_tokens": 2000, "output_tokens": 500, "concurrency": 32},
    }  # fmt: skip
    rows = {row.path: row for row in serving_rows(load(given), "tokens_per_s")[1]}
    row = rows["workload.concurrency"]
    counts = {
        n: planner.solve(given, sets=[f"workload.concurrency={n}"]).chosen["tokens_per_s"]
        for n in (31, 32, 33)
    }
    assert row.right == pytest.approx(math.log(counts[33] / counts[32]) / math.log(33 / 32))
    assert row.left == pytest.approx(math.log(counts[32] / counts[31]) / math.log(32 / 31))
