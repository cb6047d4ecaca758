"""Prompts that share passes, against a simulation of the steps in which a pass costs something."""

import math

import numpy as np
import pytest

from formulas.numerics.evaluate import scalar
from formulas.serving.passes import full_passes, mixed_passes, step_prompts
from formulas.serving.prefill import chunk_count
from formulas.serving.throughput import (
    decode_share,
    prefill_share,
    slot_time,
    time_per_output_token,
)
from tests.cases.simulation import Replica, closed_loop
from tests.loops import for_all

OUTPUT, ONCE = 200, 15e-3
EQUATIONS = (
    step_prompts, mixed_passes, decode_share, slot_time, prefill_share, time_per_output_token
)  # fmt: skip


def drawn(mean, spread, seed, count):
    """Whole numbers of this mean and coefficient of variation."""
    if not spread:
        return np.full(count, int(mean))
    draw = np.random.default_rng(seed)
    return np.maximum(np.rint(draw.gamma(1 / spread**2, mean * spread**2, count)), 2).astype(int)


def seen_and_said(prompt, concurrency, spread, chunk, *, first=False):
    """A closed loop of requests in flight, and the closed forms of its passes and times."""
    replica = Replica(10e-3, 2e-5, 20e-6, chunk, prompts_first=first, once=ONCE)
    count = 12 * concurrency + 1500
    seen = closed_loop(
        replica, concurrency, drawn(prompt, 0, 1, count), drawn(OUTPUT, spread, 2, count)
    )
    values = {
        "B": float(concurrency), "g": 1.0, "L_dec": OUTPUT - 1.0, "dp": 1.0, "pp": 1.0,
        "one_seq": 1.0, "L_new": float(prompt), "c_chunk": float(chunk), "x_pf": 1.0,
        "n_chunks": float(np.ceil(prompt / chunk)), "x_cohort": float(not spread), "x_own": 1.0,
        "T_dec": replica.decode(concurrency), "kappa": 1.0 if spread else 0.5,
    }  # fmt: skip
    passes = scalar(EQUATIONS, ["n_shared"], values)["n_shared"]
    values["T_pf_busy"] = prompt * replica.read + passes * ONCE
    return seen, values | scalar(EQUATIONS, ["T_slot", "T_tpot", "n_new"], values) | {
        "n_shared": passes
    }  # fmt: skip


LOOPS = [(50, 64), (50, 512), (400, 64), (400, 256), (2000, 16), (2000, 64), (6000, 32)]


@pytest.mark.parametrize(("prompt", "concurrency"), LOOPS)
def test_prompts_out_of_step_share_passes_as_a_poisson_number_would(prompt, concurrency):
    """Passes a prompt, rate and time per token, with outputs of many lengths."""
    seen, said = seen_and_said(prompt, concurrency, 0.5, 8192)
    assert seen.mixed == pytest.approx(said["n_shared"] * said["n_new"], rel=0.1)
    assert 1 / seen.rate == pytest.approx(said["T_slot"], rel=0.04)
    assert seen.tpot.mean() == pytest.approx(said["T_tpot"], rel=0.04)


@pytest.mark.parametrize(("prompt", "concurrency"), LOOPS)
def test_prompts_in_step_share_whole_passes(prompt, concurrency):
    """With outputs of one length all end together, and fill pass after pass."""
    seen, said = seen_and_said(prompt, concurrency, 0.0, 8192, first=True)
    assert 1 / seen.rate == pytest.approx(said["T_slot"], rel=0.04)
    assert seen.tpot.mean() == pytest.approx(said["T_tpot"], rel=0.04)


@pytest.mark.parametrize("cohort", [0.0, 1.0])
def test_a_prompt_shares_no_more_than_there_is_room_for(cohort):
    """From all its passes, alone, down to the share of them that its tokens fill."""
    values = {"g": 1.0, "L_dec": 100.0, "dp": 2.0, "pp": 2.0, "one_seq": 1.0, "x_cohort": cohort}
    equations = (step_prompts, mixed_passes)
    for prompt, chunk in ((100.0, 8192.0), (5000.0, 2048.0)):
        values |= {"L_new": prompt, "c_chunk": chunk, "n_chunks": np.ceil(prompt / chunk)}
        passes = [
            scalar(equations, ["n_shared"], {**values, "B": b})["n_shared"]
            for b in np.geomspace(1e-3, 1e6, 40)
        ]
        assert passes[0] == pytest.approx(values["n_chunks"], rel=1e-4)
        assert passes[-1] == pytest.approx(prompt / chunk)
        assert (np.diff(passes) <= 1e-9).all()


def test_a_full_pass_holds_as_many_prompts_as_fit():
    """163.84 prompts of 50 tokens fill a pass of 8,192, whoever else is in flight."""
    values = {"L_new": 50.0, "c_chunk": 8192.0, "n_chunks": 1.0, "dp": 4.0, "pp": 1.0,
              "one_seq": 1.0}  # fmt: skip
    said = [scalar([full_passes], ["n_shared"], {**values, "B": b})["n_shared"]
            for b in (4.0, 8.0, 4 * 163.0, 4 * 164.0, 1e6)]  # fmt: skip
    assert said == pytest.approx([1, 1 / 2, 1 / 163, 50 / 8192, 50 / 8192])


@for_all("mean", [0.1, 0.5, 0.9, 1.0, 1.05, 2.2, 4.0, 8.3])
@for_all("spread", [0.0, 0.25, 0.5, 1.0, 1.5])
def test_prompts_that_differ_take_the_passes_of_each(mean, spread):
    """E[ceil(L/c)] of log-normal lengths by their distribution; one length takes its own."""
    at = {"L_new": mean, "c_chunk": 1.0, "v_in": spread}
    passes = scalar([chunk_count], ["n_chunks"], at)["n_chunks"]
    if not spread:
        assert passes == math.ceil(mean)
        return
    sigma = math.sqrt(math.log1p(spread**2))
    longer = [math.erfc((math.log(k / mean) / sigma + sigma / 2) / math.sqrt(2)) / 2
              for k in range(1, 4000)]  # fmt: skip
    assert passes == pytest.approx(1 + sum(longer), rel=0.13)
