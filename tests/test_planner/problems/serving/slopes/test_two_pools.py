"""Elasticities of two pools, and of waiting, against evaluating and solving again."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

import planner
from planner.problems.serving.slopes.fixed_layout import elasticities
from planner.problems.serving.slopes.serving import serving_rows
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD, one_per_parameter
from planner.scenario import load
from tests.sizes import first, seldom
from tests.test_planner.problems.serving.slopes.test_fixed_layout import Again, found

STEP = 1e-4


def scenario(seed: int) -> dict:
    """A random question that has two pools."""
    rng = random.Random(seed)
    return {
        "problem": "serving",
        "units": "base",
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


def solved(bound, given, factor: float) -> dict[str, float]:
    """Price, times and throughput of both pools, from each evaluated again.

    Chips and replicas stay: the slower pool sets the rate, at which the other is not full.
    """
    asked = resolve(given.to(factor))
    first, second = bound.tasks(asked)
    reading, decoding = bound.pools
    read = stepped_values(first, reading, reading.batch)
    again = Again(second, decoding.layouts)
    most = again.solved()["batch"] if decoding.free else decoding.batch
    rates = [
        float(reading.layouts.replicas[0]) / read["busy"],
        float(decoding.layouts.replicas[0]) / slot_of(again, second, decoding, most)[0],
    ]
    served = second.arrivals or min(rates)
    batch = most
    if served < rates[1] * (1 - 1e-9) and decoding.free:
        low, high = 0.0, math.log(most)
        for _ in range(80):
            middle = (low + high) / 2
            slot = slot_of(again, second, decoding, math.exp(middle))[0]
            full = served * slot > float(decoding.layouts.replicas[0])
            low, high = (middle, high) if full else (low, middle)
        batch = math.exp(high)
    hourly = sum(
        task.price * float(pool.layouts.chips[0])
        for task, pool in zip((first, second), bound.pools, strict=True)
    )
    return {
        "usd_per_mtok": hourly / served / (second.input_tokens + second.output_tokens),
        "tpot": slot_of(again, second, decoding, batch)[1],
        "ttft": read["ttft"] + bound.transfer(asked),
        "tokens_per_s": served * second.output_tokens,
    }


def stepped_values(task, pool, batch: float) -> dict[str, float]:
    """The equations as they are, nobody waiting."""
    step = Step(task, pool.layouts, bound=task.uses_bound)
    return {name: float(np.ravel(v)[0]) for name, v in step(np.array([batch])).items()}


def slot_of(again, task, pool, batch: float) -> tuple[float, float]:
    """Time of a request in a slot and of a token, at a real batch or a held one."""
    if pool.free:
        values = again.at(batch)
        return values["T_slot"], values["T_tpot"]
    values = stepped_values(task, pool, batch)
    return values["slot"], values["tpot"]


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
        ends = [solved(bound, given, math.exp(sign * STEP)) for sign in (1, -1)]
        for name in ends[0]:
            left, right = slopes[name][:, i]
            if abs(left - right) < 1e-6:
                slope = math.log(ends[0][name] / ends[1][name]) / (2 * STEP)
                assert right == pytest.approx(slope, rel=1e-3, abs=1e-3), (given.path, name)
                count += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(1, [0, 1]))
def test_elasticities_of_two_pools_are_those_of_evaluating_again(seed):
    """Price, times and throughput to 1e-3; layouts, replicas and chips held."""
    assert compared(seed) > 20


@pytest.mark.parametrize("seed", [*first(0, range(2, 7)), *seldom(range(7, 40))])
def test_elasticities_of_many_pairs_of_pools_are_those_of_evaluating_again(seed):
    """The same of many more."""
    compared(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_load_on_given_chips_is_what_they_are_paid_for(seed):
    """Of one pool or two: more bandwidth is not cheaper, more load is, one for one."""
    modes = ["aggregated", "disaggregated", "decode"]
    given = {
        "problem": "serving", "units": "base",
        "model": "llama-3.1-70b", "system": "hgx-h200", "chips": 16,
        "workload": {"input_tokens": 3000, "output_tokens": 600, "demand": 3.0},
        "promises": {"tpot": 0.06}, "choose": {"mode": modes[seed]},
    }  # fmt: skip
    rows = {row.path: row for row in one_per_parameter(serving_rows(load(given), "usd_per_mtok"))}
    assert rows["workload.demand"].left == rows["workload.demand"].right == pytest.approx(-1)
    assert rows["system.memory_bandwidth"].elasticity == 0
    assert rows["price"].right == pytest.approx(1)
    first, then = (planner.solve(given, sets=sets).cost
                   for sets in ((), ("workload.demand=3.03",)))  # fmt: skip
    assert math.log(then / first) / math.log(1.01) == pytest.approx(-1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(2, (4, 2, 0, 1, 3, 5, 6, 7)))
def test_a_batch_follows_its_load(seed):
    """Elasticities of time are those of the batch that carries the load, found by bisection."""
    rng = random.Random(seed)
    given = {
        "problem": "serving", "units": "base",
        "model": rng.choice(["llama-3.1-70b", "gpt-oss-120b"]),
        "system": rng.choice(["hgx-h100", "hgx-h200"]), "chips": 8,
        "workload": {"input_tokens": rng.choice([500, 3000]), "output_tokens": 700,
                     "demand": rng.choice([2.0, 4.0, 8.0])},
        "promises": {"tpot": 0.08}, "choose": {"mode": rng.choice(["aggregated", "decode"])},
    }  # fmt: skip
    best = found(given)
    if best is None:
        return
    _, bound, givens = best
    varied = [each for each in givens if each.to is not None]
    _, slopes = elasticities(bound, varied)
    (pool,) = bound.pools
    if not pool.free:
        return

    def paced(asked) -> float:
        (task,) = bound.tasks(asked)
        again, replicas = Again(task, pool.layouts), float(pool.layouts.replicas[0])
        low, high = 0.0, math.log(10 * pool.batch)
        for _ in range(80):
            middle = (low + high) / 2
            full = task.arrivals * again.at(math.exp(middle))["T_slot"] > replicas
            low, high = (middle, high) if full else (low, middle)
        return again.at(math.exp(high))["T_tpot"]

    for i, each in enumerate(varied):
        ends = [paced(resolve(each.to(math.exp(sign * STEP)))) for sign in (1, -1)]
        slope = math.log(ends[0] / ends[1]) / (2 * STEP)
        assert slopes["tpot"][1, i] == pytest.approx(slope, rel=1e-3, abs=1e-3), each.path


@pytest.mark.slow
def test_a_large_fleet_follows_its_load():
    """Of fifty replicas one more or less is little: a faster chip needs fewer of them."""
    given = {
        "problem": "serving", "units": "base", "model": "llama-3.1-8b", "system": "hgx-h100",
        "chips": {"from": 1, "to": 200},
        "workload": {"input_tokens": 3000, "output_tokens": 600, "demand": 400.0},
        "promises": {"tpot": 0.03}, "choose": {"mode": "aggregated"},
    }  # fmt: skip
    _, bound, _ = found(given)
    assert bound.resized
    assert float(bound.pools[0].layouts.replicas[0]) > 20
    rows = {row.path: row for row in one_per_parameter(serving_rows(load(given), "usd_per_mtok"))}
    assert rows["workload.demand"].right == 0
    assert rows["price"].question == EVERYTHING_FOLLOWS
    assert {each.question for each in rows["price"].beside} == {LAYOUT_HELD}
    assert rows["system.memory_bandwidth"].right < -0.1
    sides = {sets: planner.solve(given, sets=(f"workload.demand={sets}",)).cost
             for sets in (200.0, 400.0)}  # fmt: skip
    assert sides[200.0] == pytest.approx(sides[400.0], rel=0.1)


def test_waiting_moves_the_time_to_first_token():
    """Under a load: the model evaluated again at the same batch and replicas."""
    given = {
        "problem": "serving", "units": "base",
        "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 16,
        "workload": {"input_tokens": 3000, "output_tokens": 300, "demand": 8.0},
        "promises": {"ttft": 4.0, "tpot": 0.06}, "choose": {"mode": "aggregated"},
    }  # fmt: skip
    _, bound, givens = found(given)
    varied = [each for each in givens if each.to is not None]
    (pool,) = bound.pools
    bound = replace(bound, pools=(replace(pool, free=False),))
    values, slopes = elasticities(bound, varied)

    def first(asked) -> float:
        (task,) = bound.tasks(asked)
        step = Step(task, pool.layouts, bound=False)
        return float(np.ravel(step(np.array([pool.batch]))["ttft"])[0])

    assert values["ttft"] == pytest.approx(first(resolve(load(given))), rel=1e-9)
    assert dict(zip([each.path for each in varied], slopes["ttft"][1], strict=True))[
        "workload.demand"
    ] > 0.01  # fmt: skip
    for i, each in enumerate(varied):
        ends = [first(resolve(each.to(math.exp(sign * STEP)))) for sign in (1, -1)]
        slope = math.log(ends[0] / ends[1]) / (2 * STEP)
        assert slopes["ttft"][1, i] == pytest.approx(slope, rel=1e-3, abs=1e-3), each.path


def test_a_closed_loop_is_varied_by_whole_requests():
    """A few more in flight: what solving with them gives, on either side."""
    given = {
        "problem": "serving", "units": "base",
        "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 1,
        "workload": {"input_tokens": 2000, "output_tokens": 500, "concurrency": 32},
    }  # fmt: skip
    rows = {row.path: row for row in one_per_parameter(serving_rows(load(given), "tokens_per_s"))}
    row = rows["workload.concurrency"]
    counts = {
        n: planner.solve(given, sets=[f"workload.concurrency={n}"]).chosen["tokens_per_s"]
        for n in (31, 32, 33)
    }
    assert row.right == pytest.approx(math.log(counts[33] / counts[32]) / math.log(33 / 32))
    assert row.left == pytest.approx(math.log(counts[32] / counts[31]) / math.log(32 / 31))
