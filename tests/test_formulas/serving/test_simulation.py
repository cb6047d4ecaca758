"""The closed forms of serving under load against a simulation of the steps.

All times are those of a replica whose step takes 10 ms, 20 us per sequence and 20 us per prompt
token. Seeds are fixed, so that a failure is a change of a formula or of the simulation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from formulas.numerics.evaluate import scalar
from formulas.serving.closed_loop import prompts_before
from formulas.serving.prefill import chunk_count, new_tokens, time_to_first_token
from formulas.serving.queues import (
    QUEUE,
    flight_spread,
    loop_waiting_time,
    requests_in_flight,
    waiting_quantile,
)
from formulas.serving.throughput import (
    decode_share,
    mixed_steps,
    prefill_share,
    slot_time,
    time_per_output_token,
)
from tests.cases.simulation import Replica, Seen, closed_loop, open_arrivals
from tests.loops import for_all
from tests.sizes import sized

REPLICA = Replica(fixed=10e-3, each=2e-5, read=20e-6, chunk=8192)
OUTPUT = 200
REQUESTS = 12_000
WAITED = ("T_wait", "T_line", "T_join", "rho_pf", "S_occ", "x_heavy", "r_both")
EQUATIONS = (
    new_tokens, chunk_count, time_to_first_token, decode_share, slot_time, prefill_share,
    time_per_output_token, mixed_steps, *QUEUE, requests_in_flight,
)  # fmt: skip


def lengths(mean: float, spread: float, seed: int, count: int = REQUESTS) -> np.ndarray:
    """Whole numbers of this mean and coefficient of variation, of a gamma distribution."""
    if not spread:
        return np.full(count, int(mean))
    draw = np.random.default_rng(seed)
    drawn = draw.gamma(1 / spread**2, mean * spread**2, count)
    return np.maximum(np.rint(drawn * mean / drawn.mean()), 2).astype(int)


def given(replica: Replica, batch: float, prompt: float, *, kappa: float = 1.0, own: float = 0.0,
          spread: float = 0.0, load: float = 1.0) -> dict[str, float]:  # fmt: skip
    """The symbols of the closed forms for `batch` sequences over all ranks."""
    return {
        "B": batch, "L_in": prompt, "x_hit": 0.0, "c_chunk": float(replica.chunk),
        "dp": float(replica.ranks), "pp": 1.0, "f_stage": 1.0, "t_request": 0.0, "t_tok": 0.0,
        "n_sched": 0.0,
        "T_pf": prompt * replica.read, "T_read": prompt * replica.read,
        "T_pf_busy": prompt * replica.read / replica.ranks,
        "T_dec": replica.decode(batch / replica.ranks), "L_dec": OUTPUT - 1.0, "g": 1.0,
        "one_seq": 1.0, "x_pf": 1.0, "s_mixed": 1.0, "kappa": kappa, "x_own": own,
        "v_occ": spread, "v_in": spread, "x_load": load,
    }  # fmt: skip


def predicted(names: list[str], values: dict[str, float]) -> dict[str, float]:
    """The closed forms, one float after the other."""
    return scalar(EQUATIONS, names, values)


def root(replica: Replica, load: float, prompt: float) -> float:
    """The mean batch that carries `load` requests per second, of 1/X = t_pf + (O - 1) t(B)/B."""
    left = (1 / load - prompt * replica.read / replica.ranks) / (OUTPUT - 1)
    free = left - replica.each / replica.ranks
    return replica.fixed / free if free > 0 else math.inf


def load_of(replica: Replica, busy: float, prompt: float) -> float:
    """Requests per second at which readers are busy for this share of the time, by halving."""
    low, high = 0.0, replica.ranks / (prompt * replica.read)
    for _ in range(60):
        middle = (low + high) / 2
        batch = root(replica, middle, prompt)
        kept = math.isfinite(batch) and batch > 0
        rho = predicted(["rho_pf"], given(replica, batch, prompt, load=middle))["rho_pf"] if kept \
            else math.inf  # fmt: skip
        low, high = (middle, high) if rho < busy else (low, middle)
    return low


@cache
def opened(
    chunk: int, prompt: int, spread: float, busy: float, ranks: int = 1
) -> tuple[Seen, dict[str, float]]:
    """A simulation of open arrivals, and the values that the closed forms need for it."""
    replica = replace(REPLICA, chunk=chunk, ranks=ranks)
    load = load_of(replica, busy, prompt)
    seen = open_arrivals(replica, load, lengths(prompt, spread, 1), lengths(OUTPUT, 0.3, 2), seed=3)
    batch = root(replica, load, prompt)
    return seen, given(replica, batch, prompt, spread=spread, load=load)


def looped(
    replica: Replica, concurrency: int, prompt: int, spread: float = 0.0
) -> tuple[Seen, dict[str, float]]:
    """A simulation of a closed loop, outputs of this spread, and its values."""
    count = 12 * concurrency + 1500
    seen = closed_loop(
        replica, concurrency, lengths(prompt, 0, 1, count), lengths(OUTPUT, spread, 2, count)
    )
    return seen, given(replica, concurrency, prompt, own=1.0)


LOADS = [
    (chunk, prompt, spread, busy)
    for chunk, prompt in ((8192, 1000), (2048, 1000), (2048, 4000))
    for spread, busy in ((0.0, 0.6), (0.5, 0.3), (0.5, 0.6), (0.5, 0.8), (1.0, 0.6))
][:: sized(4, 1)]

# Readers mostly idle: one in twenty waits for most of a prompt, or for two.
LIGHT = [(2048, 4000, 0.0, 0.08), (2048, 4000, 0.5, 0.08), (8192, 8000, 0.0, 0.08),
         (8192, 8000, 1.0, 0.15)][:: sized(2, 1)]  # fmt: skip


@for_all("prompt", [1000, 8192])
@for_all("concurrency", [16, 64])
@for_all("spread", [0.0, 0.5])
def test_a_closed_loop_serves_what_the_identity_says(prompt, concurrency, spread):
    """1/X = t_prefill + (O - 1) t_decode(B)/B, whatever the lengths, with B the requests sent."""
    seen, values = looped(REPLICA, concurrency, prompt, spread)
    assert 1 / seen.rate == pytest.approx(predicted(["T_slot"], values)["T_slot"], rel=0.02)


@pytest.mark.parametrize("concurrency", [16, 64])
def test_cohorts_wait_for_half_of_the_prompts_before_and_half_after(concurrency):
    """Prompts first, fixed lengths: all march in step, kappa = 1/2 for tokens and for the wait."""
    replica = replace(REPLICA, chunk=1000, prompts_first=True)
    seen, values = looped(replica, concurrency, 1000)
    values["kappa"] = 0.5
    wait = scalar([loop_waiting_time], ["T_wait"], values)["T_wait"]
    found = predicted(["T_tpot", "T_slot"], values)
    assert seen.tpot.mean() == pytest.approx(found["T_tpot"], rel=0.005)
    assert seen.ttft.mean() == pytest.approx(wait + values["T_pf"], rel=0.01)
    assert 1 / seen.rate == pytest.approx(found["T_slot"], rel=0.02)


@pytest.mark.parametrize(("chunk", "together"), [(1000, 1), (8192, 8)])
def test_a_loop_with_chunks_beside_decode_waits_for_the_prompts_of_its_chunk(chunk, together):
    """Read as they come, only those that share a chunk keep in step: kappa = (B - k)/(B - 1)."""
    seen, values = looped(replace(REPLICA, chunk=chunk), 64, 1000)
    values["kappa"] = (64 - together) / 63
    wait = scalar([loop_waiting_time], ["T_wait"], values)["T_wait"]
    found = predicted(["T_tpot", "T_ttft"], values)
    assert seen.tpot.mean() == pytest.approx(found["T_tpot"], rel=0.01)
    assert seen.ttft.mean() == pytest.approx(wait + found["T_ttft"], rel=0.03)


@pytest.mark.parametrize("chunk", [1000, 4000, 8000])
def test_prompts_of_one_length_come_back_with_those_of_their_pass(chunk):
    """Beside decoding, in rounds after the first, one reads what shares its pass and no more."""
    seen, values = looped(replace(REPLICA, chunk=chunk), 64, 1000)
    loop = {**values, "n_others": 63.0, "x_cohort": 1.0, "x_ramp": 0.0, "n_meet": 2.0, "L_new": 1e3,
            "L_out": float(OUTPUT)}  # fmt: skip
    ahead = scalar([prompts_before], ["n_ahead"], loop)["n_ahead"]
    found = predicted(["T_ttft"], values)["T_ttft"] + ahead * values["T_pf"]
    assert seen.ttft.mean() == pytest.approx(found, rel=0.03)


def test_outputs_of_many_lengths_leave_requests_out_of_step():
    """With spread outputs a closed loop has kappa = 1, whichever comes first."""
    for first in (False, True):
        seen, values = looped(replace(REPLICA, chunk=1000, prompts_first=first), 64, 1000, 0.5)
        assert seen.tpot.mean() == pytest.approx(predicted(["T_tpot"], values)["T_tpot"], rel=0.03)


@pytest.mark.sized
@for_all("case", LOADS)
def test_tokens_of_open_arrivals_wait_for_every_prompt(case):
    """kappa = 1 and the mean batch in place of B - 1; the batch is the root of the identity.

    With long prompts and busy readers tokens take 6 % longer: more sequences than on average are
    there in the steps that are long.
    """
    seen, values = opened(*case)
    mean, _ = seen.moments()
    assert mean == pytest.approx(values["B"], rel=0.07)
    assert seen.tpot.mean() == pytest.approx(predicted(["T_tpot"], values)["T_tpot"], rel=0.07)


@pytest.mark.sized
@for_all("case", LOADS)
def test_chunks_are_filled_as_far_as_the_share_of_mixed_steps_says(case):
    """phi = B I/((O - 1) c) is the share of the room in chunks that holds prompts."""
    seen, values = opened(*case)
    found = predicted(["phi_mixed"], values)["phi_mixed"]
    assert seen.filled == pytest.approx(found, rel=0.03)


@pytest.mark.sized
@for_all("case", LOADS)
def test_the_first_token_waits_as_long_as_the_queue_says(case):
    """Mean TTFT of open arrivals: own prompt, line, steps shared with others."""
    seen, values = opened(*case)
    found = predicted(["T_ttft", "T_wait"], values)
    assert seen.ttft.mean() == pytest.approx(found["T_ttft"] + found["T_wait"], rel=0.12)


@pytest.mark.sized
@for_all("case", LOADS + LIGHT)
@for_all("share", [0.05, 0.01])
def test_quantiles_of_the_first_token(case, share):
    """95th and 99th percentile of TTFT: never much too short, at most a quarter too long."""
    seen, values = opened(*case)
    found = predicted(["T_ttft", *WAITED], values)
    given_ = {**values, **found, "x_tail": share, "rho_pf": max(found["rho_pf"], share)}
    tail = scalar([waiting_quantile], ["T_tail"], given_)["T_tail"]
    assert 0.94 < (found["T_ttft"] + tail) / float(np.quantile(seen.ttft, 1 - share)) < 1.27


def test_ranks_have_queues_of_their_own():
    """Four ranks with four times the load wait as one does."""
    one, _ = opened(2048, 4000, 0.0, 0.6)
    four, values = opened(2048, 4000, 0.0, 0.6, ranks=4)
    found = predicted(["T_ttft", "T_wait", "T_tpot"], values)
    assert four.ttft.mean() == pytest.approx(one.ttft.mean(), rel=0.05)
    assert four.ttft.mean() == pytest.approx(found["T_ttft"] + found["T_wait"], rel=0.1)
    assert four.tpot.mean() == pytest.approx(found["T_tpot"], rel=0.05)


@pytest.mark.sized
@for_all("case", LOADS[::2])
def test_requests_in_flight_are_arrivals_times_time_inside(case):
    """Little's law, with the times of the closed forms and the requests of the simulation."""
    seen, values = opened(*case)
    found = predicted(["n_inside"], values)["n_inside"]
    assert seen.in_flight == pytest.approx(found, rel=0.07)


@pytest.mark.parametrize("each", [0.0, 1e-4, 2e-4])
def test_requests_in_flight_vary_more_where_steps_grow(each):
    """Variance over mean is 1/(1 - elasticity of the time per token): Poisson where steps do not
    grow."""
    replica = replace(REPLICA, each=each, read=0.0)
    load = 50.0 / (replica.decode(50) * (OUTPUT - 1))
    seen = open_arrivals(
        replica, load, lengths(1000, 0, 1, 25_000), lengths(OUTPUT, 0.5, 2, 25_000), seed=3
    )
    mean, variance = seen.moments()
    grows = each * 50 / replica.decode(50)
    found = scalar([flight_spread], ["x_var"], {"e_T": grows})["x_var"]
    assert mean == pytest.approx(50, rel=0.05)
    assert variance / mean == pytest.approx(found, rel=0.15)
