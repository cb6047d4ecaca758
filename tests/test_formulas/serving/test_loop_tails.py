"""Tails of first tokens in a closed loop against a simulation of every step.

A step takes 10 ms, 20 us per sequence and 20 us per prompt token; a request joins when the step
that runs when its user's last answer has ended is over.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from formulas.numerics.evaluate import scalar
from formulas.serving.closed_loop import LOOP_TAIL
from formulas.serving.prefill import chunk_count, new_tokens, time_to_first_token
from tests.cases.simulation import Replica, closed_loop

REPLICA = Replica(fixed=10e-3, each=2e-5, read=20e-6, chunk=8192)
SHORT, LONG = 10_000, 100_000  # requests
PER_USER = 10  # requests of a load test
TOLERANCE, SAMPLED = 0.06, 0.08  # beside a run of few requests its own error is seen
SHARES = (0.05, 0.01)

# Chunk, prompt, its spread, answer, its spread, users.
TESTS = [
    (8192, 500, 0.3, 100, 0.5, 256),
    (8192, 1000, 0.0, 128, 0.3, 512),
    (8192, 1000, 0.5, 200, 0.3, 256),
    (8192, 3000, 0.0, 800, 0.0, 50),
    (8192, 3000, 1.0, 800, 0.5, 200),
    (8192, 16_000, 0.5, 1000, 0.5, 16),
    (2048, 3000, 0.0, 800, 0.0, 50),
    (2048, 4000, 0.5, 800, 0.3, 32),
    (2048, 8000, 1.0, 1000, 0.5, 64),
    (2048, 16_000, 0.0, 1000, 0.3, 32),
]
SETTLED = [
    (8192, 200, 0.5, 500, 0.5, 256),
    (8192, 500, 0.3, 100, 0.5, 256),
    (8192, 1000, 0.0, 128, 0.3, 512),
    (8192, 1000, 0.0, 200, 0.0, 64),
    (8192, 1000, 0.5, 200, 0.3, 64),
    (8192, 3000, 0.0, 800, 0.0, 50),
    (8192, 3000, 1.0, 800, 0.5, 50),
    (8192, 16_000, 0.5, 1000, 0.5, 16),
    (2048, 8000, 0.5, 1000, 0.3, 32),
    (2048, 16_000, 0.0, 1000, 0.3, 32),
]


def lengths(mean: float, spread: float, count: int, draw: np.random.Generator) -> np.ndarray:
    """Log-normal lengths of this mean, whole ones."""
    if not spread:
        return np.full(count, int(mean))
    sigma = np.sqrt(np.log1p(spread**2))
    drawn = np.exp(draw.normal(np.log(mean) - sigma**2 / 2, sigma, count))
    return np.maximum(np.rint(drawn), 2).astype(int)


def seen(case: tuple, count: int, *, settled: bool) -> np.ndarray:
    """Times to first token [s] of load tests one after the other, or of one long run."""
    chunk, prompt, spread, answer, varied, users = case
    replica, draw = Replica(10e-3, 2e-5, 20e-6, chunk), np.random.default_rng(1)
    size = count if settled else PER_USER * users
    runs = [
        closed_loop(
            replica, users, lengths(prompt, spread, size, draw),
            lengths(answer, varied, size, draw),
            turnaround=1, whole=not settled,
        ).ttft
        for _ in range(-(-count // size))
    ]  # fmt: skip
    return np.concatenate(runs)


def predicted(
    case: tuple, share: float, *, settled: bool = True, turns: float = 0.0, slot: float = 1.0
) -> dict[str, float]:
    """The closed forms at the same loop; at its start no step runs that is waited for."""
    chunk, prompt, spread, answer, varied, users = case
    values = {
        "L_in": float(prompt), "x_hit": 0.0, "c_chunk": float(chunk), "v_in": spread,
        "n_others": users - 1.0, "one_seq": 1.0, "x_tail": share,
        "z_tail": NormalDist().inv_cdf(1 - share), "x_ramp": 0.5 / PER_USER,
        "T_dec": REPLICA.decode(users), "T_tpot": REPLICA.decode(users), "x_pf": 1.0,
        "T_read": prompt * REPLICA.read, "T_ahead": prompt * REPLICA.read, "f_stage": 1.0,
        "pp": 1.0, "t_tok": 0.0, "t_request": 0.0, "s_mixed": 1.0, "n_sched": float(settled),
        "n_meet": 2.0,
        "g": 1.0, "L_out": float(answer), "x_cohort": float(not spread and not varied),
        "n_back": 0.0, "n_turns": turns, "B": float(users), "T_slot": slot,
    }  # fmt: skip
    equations = (new_tokens, chunk_count, time_to_first_token, *LOOP_TAIL)
    return scalar(equations, ["T_late", "T_settled"], values)


def check(case: tuple, count: int, *, settled: bool, within: float) -> None:
    """Both quantiles of a run are what the closed forms say."""
    times = seen(case, count, settled=settled)
    for share in SHARES:
        found = predicted(case, share, settled=settled)["T_settled" if settled else "T_late"]
        assert found == pytest.approx(float(np.quantile(times, 1 - share)), rel=within)


@pytest.mark.parametrize("case", TESTS[1:5:2] + TESTS[6:8], ids=str)
def test_tails_of_a_load_test_are_those_of_its_start(case):
    """One in ten requests comes at the start, and stands in line behind the others."""
    check(case, SHORT, settled=False, within=SAMPLED)


@pytest.mark.parametrize("case", SETTLED[:3] + SETTLED[4:5] + SETTLED[8:9], ids=str)
def test_later_requests_collide(case):
    """After the start a request waits for those that come in the same steps."""
    check(case, SHORT, settled=True, within=SAMPLED)


def some(cases):
    """One in five among the slow tests, the others in the campaign."""
    marks = pytest.mark.slow, *4 * (pytest.mark.campaign,)
    return [pytest.param(x, marks=marks[place % 5], id=str(x)) for place, x in enumerate(cases)]


@pytest.mark.parametrize("case", some(TESTS))
def test_tails_of_long_load_tests(case):
    """The same over 100,000 requests."""
    check(case, LONG, settled=False, within=TOLERANCE)


@pytest.mark.parametrize("case", some(SETTLED))
def test_tails_of_long_loops(case):
    """The same of one long run, its start left out."""
    check(case, LONG, settled=True, within=TOLERANCE)


def test_one_user_waits_for_nobody():
    """Equal prompts of one user all take their own time; of unequal ones the longest tell."""
    alone = predicted((8192, 3000, 0.0, 800, 0.0, 1), 0.05)
    assert alone["T_late"] == alone["T_settled"] == pytest.approx(2 * 0.01002 + 3000 * 20e-6)
    spread = predicted((8192, 3000, 0.5, 800, 0.5, 1), 0.05)["T_settled"]
    sigma = np.sqrt(np.log1p(0.25))
    longest = 3000 * np.exp(NormalDist().inv_cdf(0.95) * sigma - sigma**2 / 2)
    assert spread == pytest.approx(longest * 20e-6 + 2 * 0.01002, rel=0.01)


@pytest.mark.parametrize("spread", [0.0, 0.3])
@pytest.mark.parametrize(("users", "places"), [(200, 100), (512, 128)])
def test_requests_without_a_place_wait_for_those_before_them(users, places, spread):
    """As long as it takes to serve as many as wait, and then as long as any other."""
    prompt, answer, draw = 1000, 200, np.random.default_rng(2)
    size = PER_USER * users
    times = closed_loop(
        REPLICA, users, lengths(prompt, spread, size, draw), lengths(answer, 0.3, size, draw),
        turnaround=1, whole=True, places=places,
    ).ttft  # fmt: skip
    slot = prompt * REPLICA.read + (answer - 1) * REPLICA.decode(places) / places
    turns = users / places - 1
    case = (REPLICA.chunk, prompt, spread, answer, 0.3, places)
    assert predicted(case, 0.05, turns=0.95 * turns, slot=slot)["T_late"] == pytest.approx(
        float(np.quantile(times, 0.95)), rel=0.06
    )
    assert 0.95 * turns * places * slot == pytest.approx(times.mean(), rel=0.06)
