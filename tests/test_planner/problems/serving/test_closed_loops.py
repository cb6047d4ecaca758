"""Plans for requests that are kept in flight: tails of their first tokens."""

from __future__ import annotations

import numpy as np
import pytest

import planner
from planner.catalogue.profile import profile
from planner.problems.serving.arrays import build_vectorized_model
from planner.problems.serving.problem import PROBLEM
from planner.scenario import load
from tests.cases.simulation import Replica, closed_loop
from tests.paths import shared

PER_USER = 10  # requests of a load test
HOST = profile("engines-2026").values


def question(users: int, **changes):
    """A small model on one chip, answers of many lengths, so that prompts come at any time."""
    return {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 1,
        "workload": {"input_tokens": 1000, "output_tokens": {"mean": 200, "cv": 0.3},
                     "concurrency": users},
        "choose": {"mode": "aggregated"}, **changes,
    }  # fmt: skip


def replayed(plan, users: int) -> np.ndarray:
    """Times to first token [s] of load tests at the plan's own times of steps and prompts."""
    step = plan.answer.plan.time_per_step
    alone = planner.solve(question(1)).answer.plan
    fixed = sum(vars(alone.time_per_step).values())
    decode = sum(vars(step).values()) - step.prefill
    # In cohorts a token awaits half of the others' prompts; the host takes up one after the other.
    reading = step.prefill / (0.5 * (users - 1) / 199)
    host = HOST["t_request"] + 1000 * HOST["t_tok"]
    replica = Replica(fixed, (decode - fixed) / users, (reading + host) / 1000, 8192)
    draw, runs = np.random.default_rng(1), []
    for _ in range(20):
        count = PER_USER * users
        answers = np.maximum(np.rint(draw.normal(200, 60, count)), 2).astype(int)
        prompts = np.full(count, 1000)
        runs.append(closed_loop(replica, users, prompts, answers, turnaround=1, whole=True).ttft)
    return np.concatenate(runs)


@pytest.mark.parametrize("users", [64, 200])
def test_tails_of_a_plan_are_those_of_its_steps_played_through(users):
    """Within a tenth: a plan takes the decode steps of its start for full ones."""
    plan = planner.solve(question(users))
    times = replayed(plan, users)
    for name, share in (("ttft_p95", 0.95), ("ttft_p99", 0.99)):
        assert getattr(plan.answer.plan.loop, name) == pytest.approx(
            float(np.quantile(times, share)), rel=0.1
        )


def test_a_promised_tail_chooses_and_is_judged():
    """What is kept is printed; what no layout keeps is refused; more chips leave fewer before."""
    free = planner.solve(question(64)).answer.plan
    late = free.loop.ttft_p95
    assert free.ttft < late < free.loop.ttft_p99
    kept = planner.solve(question(64, promises={"ttft_p95": f"{1.5 * late} s"}))
    promise = next(x for x in kept.answer.promises if x.promise == "ttft_p95")
    assert promise.value == kept.answer.plan.loop.ttft_p95 == pytest.approx(late)
    assert promise.chance > 0.5
    refused = planner.solve(question(64, promises={"ttft_p95": f"{0.9 * late} s"}))
    assert refused.answer.status == "infeasible"
    assert [x.promise for x in refused.answer.infeasible] == ["ttft_p95"]
    more = planner.solve(question(64, promises={"ttft_p95": f"{0.9 * late} s"}, chips=2))
    assert more.answer.plan.loop.ttft_p95 < 0.9 * late


def test_no_loop_has_no_tails_of_one():
    """Neither without requests kept in flight, nor on the bound, which knows no waiting."""
    plain = question(64)
    plain["workload"] = {"input_tokens": 1000, "output_tokens": 200}
    assert planner.solve(plain).answer.plan.loop is None
    assert planner.solve(question(64, estimate="bound")).answer.plan.loop is None


def crowd(users: int, **changes):
    """More requests in flight than two chips have room for."""
    workload = {"input_tokens": 1000, "output_tokens": 128, "concurrency": users}
    return {"problem": "serving", "model": "qwen3-32b", "system": "hgx-h100", "chips": 2,
            "choose": {"tp": 2}, "workload": workload, **changes}  # fmt: skip


def test_requests_that_memory_does_not_hold_wait():
    """As many run as fit, the throughput is theirs, and Little's law gives the wait of the rest."""
    plan = planner.solve(crowd(2000)).answer.plan
    running, loop = plan.batch, plan.loop
    assert (loop.users, loop.waiting) == (2000, 2000 - running)
    alone = planner.solve(crowd(running)).answer.plan
    assert alone.loop.waiting == alone.loop.wait == 0
    more = planner.solve(crowd(running + 1)).answer.plan
    assert (more.batch, more.loop.waiting) == (running, 1)
    for name in ("tokens_per_s", "tpot", "usd_per_mtok"):
        assert getattr(plan, name) == pytest.approx(getattr(alone, name))
    # Those that wait = rate times wait, but for the first of ten, of whom half do.
    assert plan.requests_per_s * loop.wait == pytest.approx(0.95 * loop.waiting)
    assert plan.ttft == pytest.approx(loop.wait + alone.ttft, rel=1e-3)
    assert loop.wait < loop.settled_p95 < loop.ttft_p95 * (1 + 1e-12)


def test_what_waits_is_certified_and_bound_by_memory():
    """The bound holds for any number that runs, and memory is what more would be worth."""
    answer = planner.solve(crowd(2000)).answer
    assert answer.status == "optimal"
    assert 0 <= answer.certificate.gap < 0.01
    assert [limit.name for limit in answer.binding] == ["kv and weights fit"]
    assert answer.elasticities["system.memory"] < 0


def test_a_promise_on_first_tokens_keeps_requests_from_waiting():
    """Then the nearest plan misses that promise, and memory is no promise that it misses."""
    answer = planner.solve(crowd(2000, promises={"ttft": "3 s"})).answer
    assert answer.status == "infeasible"
    assert [x.promise for x in answer.infeasible] == ["ttft"]
    assert any("chips" in way.sets for way in answer.ways_out)


def test_points_of_a_sweep_wait_as_an_answer_does():
    """Where some find no place at one of the values, no closed form stands for all of them."""
    scenario = load(crowd(2000))
    fitting, waiting = ({"workload.concurrency": np.array([100.0, n])} for n in (250.0, 2000.0))
    assert build_vectorized_model(scenario, fitting) is not None
    assert build_vectorized_model(scenario, waiting) is None
    point = PROBLEM.search(scenario)
    assert point.outputs["ttft"] == planner.solve(crowd(2000)).answer.plan.ttft


def test_a_model_that_does_not_fit_has_no_place_for_anybody():
    """Weights alone are too much: nobody runs, and nobody waits."""
    answer = planner.solve(crowd(2000, model="qwen3-235b-a22b", choose=None)).answer
    assert answer.status == "infeasible"
    assert [x.promise for x in answer.infeasible] == ["memory"]


def test_a_saturated_loop_runs_as_one_was_measured():
    """512 requests of 1,024 in and 128 out at a 32B on two H20 were served at 456 tokens/s."""
    case = shared("cases/14-closed-loop-beyond-memory.yaml")
    plan = planner.solve(case, ["profile=engines-2026"])  # that of SGLang alone reads 117 to 387
    low, high = plan.answer.band.tokens_per_s
    assert low < 456 < high
    assert plan.answer.plan.loop.waiting > 0


def test_a_frontier_of_a_loop_trades_chips_for_speed():
    """Every plan is the cheapest of its speed on any number of whole machines, tried one by one."""
    expected = {"ttft": "5 s", "chance": 0.01}  # what is expected holds
    asked = question(200, chips=24, promises=expected)
    front = planner.pareto(asked)
    counts = [plan["chips"] for plan in front.plans]
    assert len(counts) > 1
    assert {*counts} <= {8, 16, 24}
    assert str(front).count(" chips\n") >= len({*counts})
    assert "the number of requests in flight is given" in str(front)
    for plan in front.plans:
        promise = {**expected, "tpot": f"{plan['tpot'] * 1.0001} s"}
        each = [planner.solve({**asked, "chips": n, "promises": promise}) for n in (8, 16, 24)]
        least = min(one.cost for one in each if one.status == "optimal")
        assert plan["usd_per_mtok"] == pytest.approx(least, rel=1e-6)
