"""A plan of one pool or two: its bill, times, bands and elasticities by hand, and its recheck."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.catalogue.profile import Band
from planner.problems.serving.deployment import candidate
from planner.problems.serving.deployment.candidate import Candidate, JointPools
from planner.problems.serving.deployment.pool import EvaluatedPool, evaluate
from planner.problems.serving.pairs.evaluated_pairs import evaluate_pair, min_decode_batches
from planner.problems.serving.pairs.pool_matching import shards
from planner.problems.serving.pairs.pool_pairs import Pair
from planner.problems.serving.point import CacheTransfer, ServingBound
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task, TaskPair
from planner.protocol.plan import BindingLimit
from planner.text.errors import SolverError
from tests.cases.serving import columns, dense, product, question, sparse
from tests.cases.two_pools import NETWORK, pools_of, solved, steps_of
from tests.loops import for_all

MODEL = dense(2)
ONE = (1, 1, 1, 1, 1, 1, 3, 4, 1)
WIDE = (2, 1, 1, 1, 1, 1, 2, 5, 1)
LOADS: tuple[dict[str, Any], ...] = (
    {}, {"demand": 150.0}, {"demand": 150.0, "arrivals": np.inf}, {"arrivals": np.inf},
    {"batches": (12,)},
)  # fmt: skip


def asked(load: dict[str, Any], **changes: Any) -> TaskPair:
    """Two pools under a load: prompts wait where they come at random."""
    given = {"chips": (4,), "batch": 30.0, **changes}
    pools = pools_of(MODEL, demand=load.get("demand"), **given)
    prefill = pools.prefill.with_layout(arrivals=load.get("arrivals"))
    return replace(
        pools, prefill=prefill, decode=pools.decode.with_layout(batches=load.get("batches"))
    )


def planned(pools: TaskPair) -> Candidate:
    """The best pair in full."""
    steps, pairs = solved(pools)
    return evaluate_pair(pools, *steps, pairs[0])


def single(task: Task, row: tuple[int, ...] = ONE, batch: float = 6.0) -> Candidate:
    """One pool at a batch."""
    return Candidate((evaluate(task, columns([row]), batch),))


def outputs(step: Step, batch: float) -> dict[str, float]:
    """Every output of one layout."""
    return {name: float(np.ravel(x)[0]) for name, x in step(np.array([batch])).items()}


@for_all("load", LOADS)
@for_all("estimate", ["calibrated", "bound"])
def test_two_pools_together_are_what_each_gives(load, estimate):
    """Rates, times and money of the pair from two evaluations, one beside the other."""
    pools = asked(load, estimate=estimate, chips=(5,))
    (reading, decoding), pairs = solved(pools)
    pair = pairs[0]
    plan = evaluate_pair(pools, reading, decoding, pair)
    first, last = plan.pools
    bytes_ = pools.prefill.sizes.stored_bytes(1000.0)
    chips = min(shards(reading)[pair.rows[0]], shards(decoding)[pair.rows[1]])
    assert plan.transfer == pytest.approx(1e-5 + bytes_ / (chips * NETWORK))
    assert (plan.last, plan.joint and plan.joint.pair) == (last, pair)
    assert (first.replicas, last.replicas) == pair.replicas
    if not load and estimate == "calibrated":
        assert first.replicas != last.replicas  # or one could stand for the other below
    assert (int(first.layouts.chips[0]), int(last.layouts.chips[0])) == pair.chips
    assert first.task.arrivals == (pair.requests if "arrivals" in load else None)
    assert last.task.arrivals == pair.requests
    # Replicas at their most: a full batch, or as busy as their promise lets them be.
    rates = [n * fill / slot for n, fill, slot in
             zip(pair.replicas, pair.fills, pair.slots, strict=True)]  # fmt: skip
    served = load.get("demand") or min(rates)
    assert plan.outputs["requests"] == pytest.approx(served)
    assert pair.requests == pytest.approx(served)
    if "arrivals" not in load:
        assert first.fill == pytest.approx(served * pair.slots[0] / pair.replicas[0])
        assert first.batch == pair.reads
    late = first.chosen_by["first"] + first.chosen_by.get("wait", 0.0) + plan.transfer
    assert plan.outputs["ttft"] == pytest.approx(late)
    assert plan.outputs["latency"] == pytest.approx(late + 199 * last.chosen_by["tpot"])
    price = 3.5 / 3600
    assert plan.outputs["usd_per_s"] == pytest.approx(5 * price)
    assert plan.usd_per_mtok == pytest.approx(1e6 * 5 * price / served / 1200)
    floors = [pool.bound["slot"] for pool in plan.pools]
    most = [n / slot for n, slot in zip(pair.replicas, floors, strict=True)]
    if "batches" in load:
        most[1] *= pair.fills[1]
    floor = load.get("demand") or min(most)
    assert plan.bound["usd_per_token"] == pytest.approx(5 * price / floor / 1200)
    assert plan.demand == load.get("demand")
    plan.recheck()


@pytest.mark.parametrize("load", LOADS[:4])
def test_the_pool_that_decodes_has_the_least_batch_that_carries(load):
    """Every whole batch below it carries less than is served; of a given batch all is in flight."""
    pools = asked(load)
    steps, pairs = solved(pools)
    every = [(pools, steps[1], pair) for pair in pairs]
    for (_, step, pair), batch in zip(every, min_decode_batches(every), strict=True):
        row = np.array([pair.rows[1]])
        layouts = replace(step.layouts.take(row), replicas=np.array([pair.replicas[1]]))
        alone = Step(pools.decode.with_layout(arrivals=None), layouts, bound=False)
        most = int(pair.batch)
        rates = alone.take(np.zeros(most, int))(np.arange(1.0, most + 1))["requests"].tolist()
        enough = [n for n, rate in enumerate(rates, 1) if rate >= pair.requests * (1 - 1e-12)]
        assert batch == enough[0]
        more = replace(pair, requests=rates[-1] * 1.1)
        assert min_decode_batches([(pools, step, more)]) == [pair.batch]
    assert min_decode_batches([]) == []
    fixed = asked({"batches": (12,)})
    several = [(fixed, steps[1], replace(pairs[0], batch=batch)) for batch in (12.0, 6.0)]
    assert min_decode_batches(several) == [12.0, 6.0]
    plan = evaluate_pair(pools, *steps, pairs[0], lambda: pairs[0].batch + 1)
    assert plan.last.batch == pairs[0].batch + 1


def test_prompts_that_wait_are_read_in_the_quickest_pass():
    """Short prompts may share a pass: as many as make the first token come soonest, or are best."""
    pools = asked({"arrivals": np.inf}, input_tokens=100.0)
    steps, pairs = solved(pools)
    first = evaluate_pair(pools, *steps, pairs[0]).pools[0]
    most = int(first.step.prompts_of_a_pass[0])
    each = int(first.layouts.pp[0] * first.layouts.dp_attention[0])
    times = {n * each: outputs(first.step, float(n * each)) for n in range(1, most + 1)}
    keeps = {n: x["ttft"] for n, x in times.items() if x["readers"] <= first.task.busiest}
    assert len(keeps) > 1
    assert first.batch == min(keeps, key=keeps.__getitem__)
    free = asked({}, input_tokens=100.0)
    steps, pairs = solved(free)
    assert evaluate_pair(free, *steps, pairs[0]).pools[0].batch == pairs[0].reads > 1


@pytest.mark.parametrize("mode", ["aggregated", "decode", "prefill"])
def test_a_plan_of_one_pool_says_what_its_mode_has(mode):
    """Chips, prices and power of one pool; no first tokens where nothing is read, and so on."""
    task = question(MODEL, mode=mode, electricity=1e-5, carbon=2e-4, batch=40.0)
    made = single(task, ONE, 1.0 if mode == "prefill" else 6.0)
    plan, values = made.plan(), made.last.chosen_by
    assert (plan.mode, plan.chips, plan.chips_used, plan.chip) == (mode, 4, 3, "h200")
    assert (plan.prefill, plan.decode, plan.transfer, plan.marginal) == (None, None, None, None)
    assert plan.layout is not None
    assert plan.batch_per_replica == int(made.last.batch)
    reads, decodes = mode != "decode", mode != "prefill"
    assert plan.chunk == (512 if reads else None)
    assert plan.ttft == (values["ttft"] if reads else None)
    assert plan.tpot == (values["tpot"] if decodes else None)
    assert plan.e2e == (values["latency"] if mode == "aggregated" else None)
    assert plan.usd_per_hour == pytest.approx(4 * 3.5)
    assert plan.power_usd_per_hour == pytest.approx(4 * 3600e-5)
    rate = {"decode": 200.0, "prefill": 1000.0}.get(mode, 1200.0) * plan.requests_per_s
    assert plan.usd_per_mtok == pytest.approx(4 * 3.5 / 3600 / rate * 1e6)
    assert plan.joule_per_token == pytest.approx(4 * 1000.0 / rate)
    assert plan.grams_per_mtok == pytest.approx(4 * 1000.0 / rate * 2e-4 * 1e6)
    assert plan.grams_per_request == pytest.approx(4 * 1000.0 / plan.requests_per_s * 2e-4)
    bare = single(replace(task, carbon=None, electricity=0.0), ONE, made.last.batch).plan()
    assert bare.power_usd_per_hour is bare.grams_per_mtok is bare.grams_per_request is None
    assert made.transfer == 0.0
    assert made.demand is None
    assert made.task is task
    loaded = single(task.with_layout(arrivals=20.0), ONE, 6.0)
    assert (loaded.demand, loaded.choice.loaded, made.choice.loaded) == (20.0, True, False)


def test_a_plan_of_two_systems_has_the_chips_of_both():
    """Chips of two names have none together; power is paid where both pools pay it."""
    pools = pools_of(MODEL, chips=(4,), electricity=1e-5, second={"system": "hgx-h100"})
    plan = planned(pools).plan()
    assert plan.prefill is not None
    assert plan.decode is not None
    assert (plan.mode, plan.layout, plan.batch_per_replica) == ("disaggregated", None, None)
    assert (plan.chip, plan.prefill.chip, plan.decode.chip) == (None, "h200", "h100")
    assert plan.chips == plan.prefill.chips + plan.decode.chips == 4
    assert plan.chips_used == plan.prefill.chips_used + plan.decode.chips_used
    assert (plan.batch, plan.weights, plan.kv) == (plan.decode.batch, "bf16", "bf16")
    assert plan.memory_per_chip == plan.decode.memory_per_chip
    assert plan.power_usd_per_hour == pytest.approx(4 * 3600e-5)
    bytes_ = MODEL.stored_bytes(1000.0)
    assert plan.transfer == CacheTransfer(
        planned(pools).transfer, bytes_, pytest.approx(plan.requests_per_s * bytes_)
    )
    one = pools_of(MODEL, chips=(4,), electricity=1e-5, second={"electricity": 0.0})
    assert planned(one).plan().power_usd_per_hour is None
    assert planned(one).plan().chip == "h200"


def test_the_roofline_and_the_estimate_of_a_plan_stand_beside_it():
    """Each time of the phase that has it; a load that only the bound carries has no estimate."""
    two = planned(asked({}))
    first, last = two.pools
    assert two.floor().usd_per_mtok == pytest.approx(two.bound["usd_per_token"] * 1e6)
    floor = two.floor(0.5)
    assert (floor.usd_per_mtok, floor.tpot, floor.ttft) == (
        0.5, last.bound["tpot"], first.bound["ttft"],
    )  # fmt: skip
    assert floor.uniform_routing is None
    estimate = two.expected()
    assert estimate is not None
    assert estimate.usd_per_mtok == pytest.approx(two.usd_per_mtok)
    assert estimate.tpot == last.estimate["tpot"]
    assert estimate.ttft == pytest.approx(first.estimate["ttft"] + two.transfer)
    # A plan chosen on the bound, of which each pool takes as long as the profile has it.
    ideal = planned(asked({}, estimate="bound"))
    served = min(pool.replicas / pool.estimate["slot"] for pool in ideal.pools)
    estimate = ideal.expected()
    assert estimate is not None
    assert estimate.usd_per_mtok == pytest.approx(4 * 3.5 / 3600 / served / 1200 * 1e6)
    assert estimate.usd_per_mtok > ideal.usd_per_mtok
    for mode, read, decoded in [("decode", False, True), ("prefill", True, False)]:
        one = single(question(sparse(), mode=mode, estimate="bound"), ONE, 1.0)
        bound, estimate = one.floor(), one.expected()
        assert (bound.ttft is not None, bound.tpot is not None) == (read, decoded)
        assert (bound.uniform_routing is not None) is decoded
        assert estimate is not None
        assert (estimate.ttft is not None, estimate.tpot is not None) == (read, decoded)
        values = one.last.estimate
        assert estimate.usd_per_mtok == pytest.approx(values["usd_per_token"] * 1e6)
        assert estimate.usd_per_mtok > one.usd_per_mtok
    assert single(question(MODEL, lecture=True)).expected() is None
    task = question(MODEL, estimate="bound", arrivals=20.0, batch=40.0)
    pool = single(task).last
    values = {**pool.estimate, "load": 0.5, "readers": 0.5, "ttft": np.inf}
    light = Candidate((replace(pool, estimate=values),)).expected()
    assert light is not None
    assert light.ttft is None
    heavy = replace(pool, estimate={**values, "load": 1.5})
    assert Candidate((heavy,)).expected() is None


def test_a_band_ends_at_what_nothing_beats(monkeypatch):
    """Ratios times the plan's own numbers; throughput lacks what a request costs in time."""
    bands = {"tpot": Band(0.5, 2.0), "ttft": Band(0.8, 1.5), "usd_per_mtok": Band(0.4, 3.0)}
    monkeypatch.setattr(candidate, "plan_bands", lambda *_: bands)
    made = planned(asked({}))
    plan = replace(made.plan(), tpot=0.01, ttft=0.5, usd_per_mtok=2.0, tokens_per_s=600.0)
    free = made.band(plan)
    assert free is not None
    assert free.tpot == pytest.approx((0.005, 0.02))
    assert free.ttft == pytest.approx((0.4, 0.75))
    assert free.usd_per_mtok == pytest.approx((0.8, 6.0))
    assert free.tokens_per_s == pytest.approx((200.0, 1500.0))
    bound = ServingBound(1.0, 0.008, None, None, None)
    held = made.band(plan, bound)
    assert held is not None
    assert held.tpot == pytest.approx((0.008, 0.02))
    assert held.ttft == pytest.approx((0.4, 0.75))
    assert held.usd_per_mtok == pytest.approx((1.0, 6.0))
    assert held.tokens_per_s == pytest.approx((200.0, 1200.0))
    # A plan that is no dearer than the bound is as it is; a band below one stays above the bound.
    bands["usd_per_mtok"] = Band(0.4, 0.9)
    at = made.band(plan, replace(bound, usd_per_mtok=2.5))
    assert at is not None
    assert at.usd_per_mtok == (2.0, 2.0)
    low = made.band(plan, replace(bound, usd_per_mtok=1.9))
    assert low is not None
    assert low.usd_per_mtok == (1.9, 1.9)
    none = made.band(replace(plan, tpot=None, ttft=None, tokens_per_s=None))
    assert none is not None
    assert none.tpot is none.ttft is none.tokens_per_s is None
    profile = made.task.profile
    assert (none.profile, none.coverage) == (profile.name, profile.coverage)
    assert single(question(MODEL, estimate="bound")).band(plan) is None


def of_two(objective: str, demand: float | None = None, **latencies: float) -> Candidate:
    """Two pools of which what a request costs, how they are used and their chips count."""
    pools = pools_of(MODEL, objective=objective, demand=demand)
    made = []
    for task, row, cost, fill in [
        (pools.prefill, ONE, 3.0, 0.5), (pools.decode, WIDE, 4.0, 0.75),
    ]:  # fmt: skip
        values = {"usd_per_request": cost, "joule_per_request": 2 * cost + 1, "fill": fill,
                  "latency": 1 / cost}  # fmt: skip
        pool = EvaluatedPool(
            task.with_layout(arrivals=1.0), columns([row]), 8.0, fill, values, values, values
        )
        made.append(pool)
    pair = Pair(1.0, 1.0, (0, 0), (3, 2), (4, 5), 1.0, 48.0, 1.0, (1.0, 1.0), (1.0, 1.0))
    none: dict[str, float] = {}
    return Candidate(tuple(made), JointPools(pools, pair, 0.0, none, none, none, none))


@pytest.mark.parametrize("objective", ["cost", "energy", "latency", "throughput"])
def test_elasticities_of_two_pools_are_weighted_with_what_their_work_costs(objective, monkeypatch):
    """Three of four chips work half of their time, four of five three quarters of it."""
    slopes = {"prefill": {"a": 1.0, "b": 2.0}, "decode": {"b": -1.0, "c": 3.0}}
    limits = {"prefill": [BindingLimit("ttft", -0.2)], "decode": [BindingLimit("tpot", -0.9)]}
    seen = []

    def elastic(step: Step, batch: float) -> Any:
        seen.append((step.task.mode, batch))
        return SimpleNamespace(mode=step.task.mode, warnings=("close", step.task.mode))

    monkeypatch.setattr(candidate, "optimum", elastic)
    monkeypatch.setattr(candidate, "parameter_elasticities", lambda solved, _: slopes[solved.mode])
    monkeypatch.setattr(candidate, "binding", lambda solved: limits[solved.mode])
    first, second = {
        "cost": (3.0 * 0.5 * 3 / 4, 4.0 * 0.75 * 4 / 5),
        "throughput": (3.0 * 0.5 * 3 / 4, 4.0 * 0.75 * 4 / 5),
        "energy": (7.0 * 0.5 * 3 / 4, 9.0 * 0.75 * 4 / 5), "latency": (1 / 3, 1 / 4),
    }[objective]  # fmt: skip
    whole = first + second
    found, total, warnings = of_two(objective).multipliers()
    assert total == pytest.approx(
        {"a": first / whole, "b": (2 * first - second) / whole, "c": 3 * second / whole}
    )
    assert [limit.name for limit in found] == ["decode: tpot", "prefill: ttft"]
    assert [limit.elasticity for limit in found] == pytest.approx(
        [-0.9 * second / whole, -0.2 * first / whole]
    )
    assert warnings == ("close", "prefill", "decode")
    assert seen == [("prefill", 8.0), ("decode", 48.0)]
    of_two(objective, 2.0).multipliers()
    assert seen[2:] == [("prefill", 8.0), ("decode", 8.0)]
    alone = Candidate(of_two(objective).pools[1:])
    found, total, _ = alone.multipliers()
    assert total == slopes["decode"]
    assert found == (BindingLimit("tpot", -0.9),)


def test_pools_are_at_their_most_where_no_load_is_to_be_carried():
    """Without arrivals, and the second at the batch that its pair was sized by."""
    two = of_two("cost")
    first, last = two.resized()
    assert (first.task.arrivals, last.task.arrivals) == (None, None)
    assert (first.batch, last.batch) == (8.0, 48.0)
    loaded = of_two("cost", 2.0)
    assert loaded.resized() == loaded.pools
    alone = Candidate(two.pools[:1])
    assert alone.resized() == alone.pools


@pytest.mark.parametrize("word", ["ttft", "e2e"])
def test_two_pools_that_break_a_promise_by_more_than_a_rounding_are_refused(word):
    """Half of 1e-9 above its limit a time is kept, twice of it is not."""
    plan = planned(asked({}))
    assert plan.joint is not None
    pools, time = plan.joint.tasks, plan.outputs["ttft" if word == "ttft" else "latency"]

    def promising(limit: float) -> Candidate:
        role = "prefill" if word == "ttft" else "decode"
        task = getattr(pools, role).with_layout(promises={word: limit})
        return replace(plan, joint=replace(plan.joint, tasks=replace(pools, **{role: task})))

    promising(time / (1 + 5e-10)).recheck()
    with pytest.raises(SolverError, match=f"breaks the promise {word}"):
        promising(time / (1 + 2e-9)).recheck()


@for_all("case", product(load=LOADS, estimate=("calibrated", "bound")))
def test_a_wrong_number_of_two_pools_is_refused(case):
    """Of their outputs, and of their roofline, under every load."""
    plan = planned(asked(case["load"], estimate=case["estimate"]))
    joint: Any = plan.joint
    for field in ("outputs", "bound"):
        for name in ("usd_per_token", "requests", "ttft"):
            values = getattr(joint, field)
            wrong = replace(joint, **{field: {**values, name: values[name] * 1.001}})
            with pytest.raises(SolverError, match=name):
                replace(plan, joint=wrong).recheck()
    for number in (0, 1):
        pool = plan.pools[number]
        wrong_pool = replace(pool, bound={**pool.bound, "need": pool.bound["need"] * 1.001})
        pools = (*plan.pools[:number], wrong_pool, *plan.pools[number + 1 :])
        with pytest.raises(SolverError, match="need"):
            replace(plan, pools=pools).recheck()


def test_the_best_pairs_of_many_questions_share_their_batches():
    """Worked out together they are those worked out alone."""
    several = [asked({}), asked({"demand": 100.0}), asked({})]
    questions = [(pools, steps_of(pools)[1], solved(pools)[1][0]) for pools in several]
    assert min_decode_batches(questions) == [min_decode_batches([one])[0] for one in questions]
