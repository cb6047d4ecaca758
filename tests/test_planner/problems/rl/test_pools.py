"""Pools of reinforcement learning: the split by brute force, the step by its pools, refusals."""

import numpy as np
import pytest

import planner
from planner.problems import serving, training
from planner.scenario.loading import load
from planner.text.errors import InputError
from tests.cases.rl_questions import question
from tests.loops import for_all


@pytest.fixture(scope="module")
def on():
    """All chips write, then learn."""
    return planner.solve(question())


@pytest.fixture(scope="module")
def off():
    """Two pools side by side."""
    return planner.solve(question(policy="off"))


def test_on_policy_times_add_up(on):
    """Writing, learning and sending weights one after the other."""
    point = on.answer.plan
    parts = point.rollouts.seconds + point.learning.seconds + point.weights_sent
    assert point.step_time == pytest.approx(parts, rel=1e-12)
    assert point.rollouts.chips == point.learning.chips == 32


def test_off_policy_waits_for_the_slower_pool(off):
    """The step is the slower pool's, and the other one idles."""
    point = off.answer.plan
    slower = max(point.rollouts.seconds, point.learning.seconds)
    assert point.step_time == pytest.approx(slower + point.weights_sent, rel=1e-12)
    assert point.rollouts.chips + point.learning.chips == 32
    assert 0 < point.idle < 1


def test_what_binds_is_what_the_step_waits_for(on, off):
    """On policy both pools, by their shares; off policy the slower one alone."""
    shares = {limit.name: limit.elasticity for limit in on.binding}
    point = on.answer.plan
    assert shares["rollouts"] == pytest.approx(point.rollouts.seconds / point.step_time)
    assert sum(shares.values()) == pytest.approx(1, abs=0.02)  # weights are sent too
    (limit,) = off.binding
    times = {name: getattr(off.answer.plan, name).seconds for name in ("rollouts", "learning")}
    assert limit.name == max(times, key=times.__getitem__)


def test_no_split_is_faster(off):
    """Brute force: every split asked for by itself."""
    times = []
    for writes in (8, 16, 24):
        try:
            alone = planner.solve(question(policy="off", split=writes))
        except InputError:
            continue
        if alone.feasible:
            times.append(alone.answer.plan.step_time)
    assert off.answer.plan.step_time == pytest.approx(min(times), rel=1e-12)


def test_the_training_pool_is_the_training_problems(on):
    """Two optimiser steps and two forward passes of the layout `problem: training` gives."""
    search = training.PROBLEM.search(load({
        "problem": "training", "model": "qwen3-32b", "system": "hgx-h100", "chips": 32,
        "work": {"global_batch": "128 sequences", "sequence": 1600},
        "choose": question()["training"]["choose"],
    }))  # fmt: skip
    terms = search.plan.time_per_step.terms
    apart = sum(terms.get(name, 0) for name in ("dp_exposed", "optimizer", "offload_exposed"))
    step = search.plan.step_time
    seconds = 2 * (step + 2 * (step - apart) / 3)
    assert on.answer.plan.learning.seconds == pytest.approx(seconds, rel=1e-9)


def test_a_decoding_step_is_the_serving_problems(on):
    """A full batch on one replica takes the TPOT of `problem: serving` with that batch."""
    pool = on.answer.plan.rollouts
    search = serving.PROBLEM.search(load({
        "problem": "serving", "model": "qwen3-32b", "system": "hgx-h100", "chips": 4,
        "workload": {"input_tokens": 100, "output_tokens": 1500},
        "choose": {"mode": "decode", "tp": 4, "pp": 1, "batch": pool.batch, "weights": "bf16"},
    }))  # fmt: skip
    assert pool.step_full == pytest.approx(search.outputs["tpot"], rel=1e-12)
    assert pool.answers == 256 // pool.replicas


def test_longer_limits_make_steps_longer(on):
    """The tail of the longest answer: the same mean with more spread takes longer."""
    short = planner.solve(question(work={"most": 1800}))
    assert short.answer.plan.rollouts.longest < on.answer.plan.rollouts.longest
    assert short.answer.plan.step_time < on.answer.plan.step_time


def test_steps_in_flight_hide_the_tail(off):
    """With answers of several steps in flight no replica runs empty."""
    flying = planner.solve(question(policy="off", lag=4))
    assert flying.answer.plan.rollouts.seconds < off.answer.plan.rollouts.seconds
    assert np.isfinite(flying.answer.plan.step_time)


@for_all(
    ("changes", "words"),
    [
        ({"split": 8}, "on policy every chip writes and learns"),
        ({"work": {"answer": 5000}}, "cut off at 4096"),
        ({"work": {"rollouts": 250}}, "no whole number of batches"),
        ({"system": ["hgx-h100", "hgx-h200"]}, "give one system"),
        ({"unit": 5}, "no multiple of 5"),
        ({"policy": "off", "split": 3}, "multiples of 8 chips"),
        ({"policy": "in-between"}, "policy"),
        ({"framework": "nemo"}, "framework"),
        ({"training": {"choose": {"tp": 3}}}, "training.choose.tp"),
    ],
)
def test_what_is_refused(changes, words):
    """Each mistake by its place."""
    with pytest.raises(InputError, match=words):
        planner.solve(question(**changes))
