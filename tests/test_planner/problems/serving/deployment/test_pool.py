"""One evaluated pool: memory, limits, waits and its two evaluations, by hand and by the model."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.architecture import model_sizes
from planner.catalogue.models import load
from planner.problems.serving.deployment.candidate import (
    combined_coefficient_shares,
    plan_bands,
    pool_costs,
)
from planner.problems.serving.deployment.pool import (
    EvaluatedPool,
    agree,
    evaluate,
    min_output,
    per_mtok,
    recompute,
)
from planner.problems.serving.point import DraftedTokens, Roofs, StepTimes
from planner.problems.serving.step.drafting import break_even
from planner.problems.serving.step.kernels import STEP_PARTS
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import ClosedLoop, Task
from planner.text.errors import SolverError
from tests.cases.serving import all_layouts, columns, dense, product, question, sparse
from tests.loops import for_all

# tp, pp, cp, dp_attention, ep, tp_expert, replicas, chips, halves
ROW = (2, 2, 2, 3, 1, 1, 2, 50, 1)
ONE = (1, 1, 1, 1, 1, 1, 3, 4, 1)
MODEL = dense(5)
NEMOTRON = model_sizes(load("nemotron-3-nano-30b-a3b"))
WINDOWS = model_sizes(load("gpt-oss-120b"))  # half of its caches grow, half stop at a window


def pool(task: Task, row: tuple[int, ...] = ONE, batch: float = 8.0, **of: Any) -> EvaluatedPool:
    """A pool with these values of the estimate and of the bound, whatever the model says."""
    values, bound = of.get("values", {}), of.get("bound", {})
    return EvaluatedPool(task, columns([row]), batch, 1.0, values, bound, of.get("uniform", {}))


def modelled(task: Task, row: tuple[int, ...] = ONE, batch: float = 8.0) -> EvaluatedPool:
    """A pool as the model evaluates it."""
    return evaluate(task, columns([row]), batch)


def outputs(step: Step, batch: float, fill: float = 1.0) -> dict[str, float]:
    """Every output of one layout."""
    return {name: float(np.ravel(x)[0]) for name, x in step(np.array([batch]), fill).items()}


@pytest.mark.parametrize("batch", [13.0, 24.0, 25.0])
def test_recurrent_states_are_those_of_the_sequences_of_a_chip(batch):
    """Of 3 ranks each, of 2 parts of a context each, cut over 2 chips, on half the layers."""
    task = question(NEMOTRON, mode="decode", input_tokens=2000.0, context=2100.0)
    sequences = math.ceil(math.ceil(batch / 3) / 2)
    layers = math.ceil(NEMOTRON.n_layers / 2) / NEMOTRON.n_layers
    state = sequences * NEMOTRON.state_bytes_per_sequence / 2 * layers
    assert state > 0
    values = modelled(task, ROW, batch).estimate
    memory = pool(task, ROW, batch, values=values).planned(-1).memory_per_chip
    assert memory.state == pytest.approx(state)
    assert memory.kv + memory.state == pytest.approx(values["memory.kv"])
    assert memory.capacity == task.chip.memory
    parts = [memory.weights, memory.kv, memory.state, memory.activations, memory.reserved]
    assert sum(parts) + memory.free == pytest.approx(memory.capacity)


@for_all("mode", ["aggregated", "decode", "prefill"])
@for_all("model", [MODEL, NEMOTRON, WINDOWS], ids=lambda model: model.name)
def test_full_contexts_fit_where_their_caches_have_room(mode, model):
    """Caches grow from the mean context to the longest; states do not."""
    task = question(model, mode=mode, input_tokens=2000.0, output_tokens=1000.0, context=1500.0)
    state = pool(task, ROW, 24.0)._state()
    caches = 5e9
    longest = 2000 + 1000 * (mode != "prefill")
    grown = sum(c.stored_bytes(longest) for c in model.caches) / sum(
        c.stored_bytes(1500.0) for c in model.caches
    )
    assert grown > 1.2
    room = task.chip.memory - caches * (grown - 1)
    for need, fits in ((room - 1e3, True), (room + 1e3, False)):
        values = {"memory.kv": caches + state, "need": need}
        assert pool(task, ROW, 24.0, values=values).fits_at_full_context() is fits
    # A mean context beyond the longest is what the plan was sized by.
    long = replace(task, context=longest * 2.0)
    for need, fits in ((task.chip.memory, True), (task.chip.memory + 1, False)):
        values = {"memory.kv": caches + state, "need": need}
        assert pool(long, ROW, 24.0, values=values).fits_at_full_context() is fits


def test_a_model_without_caches_fits_at_any_context():
    """Its states are as large after one token as after many."""
    task = question(MODEL, mode="decode")
    bare = replace(task, sizes=replace(MODEL, caches=()))
    for need, fits in ((bare.chip.memory, True), (bare.chip.memory + 1, False)):
        values = {"memory.kv": 0.0, "need": need}
        assert pool(bare, values=values).fits_at_full_context() is fits


def test_the_limits_that_one_more_on_every_rank_exceeds():
    """Six more sequences of two stages and three ranks: named where they pass it, not where not."""
    task = question(MODEL, mode="decode", batch=500.0)
    row = (2, 2, 1, 3, 1, 1, 4, 50, 1)
    layouts = columns([row])
    tpot = [outputs(Step(task, layouts, bound=False), 25.0 + n)["tpot"] for n in (5, 6)]
    assert tpot[0] < tpot[1]
    for limit, names in [(sum(tpot) / 2, ("tpot",)), (tpot[1], ())]:
        tight = replace(task, promises={"tpot": limit})
        assert pool(tight, row, 25.0).exceeded_by_one_more() == names
        assert pool(replace(tight, batches=(48,)), row, 25.0).exceeded_by_one_more() == ()
    used = [outputs(Step(task, layouts, bound=False), 25.0 + n) for n in (0, 6)]
    need = [values["need"] - values["memory.reserved"] for values in used]
    # A tenth of the memory is in reserve.
    small = replace(task, chip=replace(task.chip, memory=sum(need) / 2 / 0.9))
    assert pool(small, row, 25.0).exceeded_by_one_more() == ("memory",)


def test_a_pool_is_told_as_its_layout_and_its_values_are():
    """Chips in use are those of whole replicas; prices are per hour; sequences are whole."""
    values = {
        "sequences": 6.6, "usd_per_s": 0.5, "need": 6e9, "memory.weights": 1e9, "memory.kv": 2e9,
        "memory.activations": 3e9, "memory.reserved": 4e9, "fill": 0.75,
    }  # fmt: skip
    task = question(MODEL)
    made = pool(task, ROW, 24.9, values=values).planned(-1)
    assert (made.chips, made.chips_used, made.batch, made.batch_per_replica) == (50, 48, 7, 24)
    assert (made.usd_per_hour, made.utilisation) == (1800.0, 0.75)
    assert (made.layout.replicas, made.layout.dp_attention, made.layout.overlap) == (2, 3, "none")
    assert made.memory_per_chip.free == pytest.approx(task.chip.memory - 6e9)
    assert (made.redundant_experts, made.drafts, made.weights) == (None, 0, "bf16")
    idle = pool(task, values={**values, "sequences": 0.2}).planned(-1)
    assert idle.batch == 1
    del values["fill"]
    assert replace(pool(task, values=values), fill=0.25).utilisation == 0.25
    mixed = replace(sparse(), weight_dtype={"routed": "fp4", "dense_ffn": "fp8"})
    choice = pool(question(mixed, redundant=2, mode="prefill")).choice
    assert (choice.weights, choice.redundant_experts, choice.drafts) == ("fp4", 2, None)
    plain = replace(MODEL, weight_dtype={"routed": "fp4", "dense_ffn": "fp8"})
    assert pool(question(plain)).choice.weights == "fp8"


def test_what_a_mode_or_a_bound_has_no_number_for_is_none():
    """Steps, roofs, drafts and an even router, by whether tokens are decoded and experts routed."""
    parts = {f"part.{part}": 1.0 + k for k, part in enumerate(STEP_PARTS)}
    roofs = {"roof.memory": 3.0, "roof.compute": 2.0, "roof.network": 1.0}
    even = {"usd_per_token": 2e-6, "tpot": 0.25}
    of: Any = {"values": parts, "bound": roofs, "uniform": even}
    decode, bound = pool(question(MODEL), **of), pool(question(MODEL, estimate="bound"), **of)
    assert decode.step_times() == StepTimes(**{n[5:]: x for n, x in parts.items()})
    assert decode.roofs() == bound.roofs() == Roofs(memory=3.0, compute=2.0, network=1.0)
    assert (decode.bottleneck(), bound.bottleneck()) == ("prefill", "memory")
    heavy = pool(question(MODEL), **{**of, "values": {**parts, "part.kv": 99.0}})
    assert heavy.bottleneck() == "kv"
    reader = pool(question(MODEL, mode="prefill"), **of)
    assert reader.bottleneck() == "prefill"
    assert (reader.step_times(), reader.roofs(), bound.step_times()) == (None, None, None)
    routed = pool(question(sparse()), **of).uniform_routing()
    assert routed is not None
    assert (routed.usd_per_mtok, routed.tpot) == (2.0, 0.25)
    assert decode.uniform_routing() is None
    assert pool(question(sparse(), mode="prefill"), **of).uniform_routing() is None
    assert [pool(question(MODEL, mode=mode)).prefills for mode in ("prefill", "decode")] == [
        True, False,
    ]  # fmt: skip


def test_drafts_are_told_where_tokens_are_decoded_by_an_estimate():
    """How many, what they bring, and up to which batch they pay."""
    drafts: dict[str, Any] = {"positions_per_step": 4.0, "tokens_per_step": 1.2}
    task = question(MODEL, mode="decode", slow="flops", **drafts)
    least, most = break_even(Step(task, columns([ONE]), bound=False), 8.0)
    assert 0 == least < most < np.inf
    assert pool(task).drafting() == DraftedTokens(3, 1.2, least, most)
    always = replace(task, tokens_per_step=3.99)
    assert pool(always).drafting() == DraftedTokens(3, 3.99, 0.0, None)
    for other in (replace(task, estimate="bound"), replace(task, mode="prefill"), question(MODEL)):
        assert pool(other).drafting() is None


def test_a_queue_that_nobody_counted_is_that_of_the_readers():
    """Busy as long as prompts take of the time; nothing where it is counted, or nobody waits."""
    task = question(MODEL, mode="prefill")
    reader = modelled(task, ONE, 1.0)
    busy = reader.chosen_by["busy"]
    told = [reader.unqueued(share * 3 / busy) for share in (0.3, 0.6, 0.9)]
    for share, late in zip((0.3, 0.6, 0.9), told, strict=True):
        assert late is not None
        assert late.readers_busy == pytest.approx(share)
    added = [late.added_p95 for late in told if late and late.added_p95]
    assert added == sorted(added)
    # One rank that reads one prompt after the other: so many requests of a load of that size.
    open_ = task.with_layout(arrivals=0.6 * 3 / busy)
    counted = modelled(open_, ONE, 1.0).chosen_by
    assert counted["readers"] == pytest.approx(0.6)
    assert counted["ttft_p95"] - counted["first"] == pytest.approx(added[1])
    for share in (1 - 1e-14, 1.0, 1.5):
        late = reader.unqueued(share * 3 / busy)
        assert late is not None
        assert (late.readers_busy, late.added_p95) == (pytest.approx(1.0), None)
    for other in (
        replace(task, estimate="bound"), replace(task, mode="decode"), open_,
        replace(task, loop=ClosedLoop()), replace(task, static=True),
    ):  # fmt: skip
        assert pool(other, values=reader.estimate, bound=reader.bound).unqueued(1.0) is None


@pytest.mark.parametrize("estimate", ["calibrated", "bound"])
def test_a_replica_decodes_those_that_arrive_while_their_tokens_last(estimate):
    """Little's law over the time of the other tokens; one that only reads decodes none."""
    task = question(MODEL, mode="decode", arrivals=60.0, estimate=estimate, batch=500.0)
    crowd = modelled(task, ONE, 40.0).crowding()
    values = modelled(task, ONE, 40.0).chosen_by
    assert crowd.decoding == pytest.approx(60.0 / 3 * 199 * values["tpot"], rel=0.02)
    assert crowd.crowded == values["crowded"]
    alone = task.with_layout(arrivals=None, promises={})
    held = [
        outputs(Step(alone, columns([ONE]), bound=task.uses_bound), crowd.room + n)["need"]
        for n in (0, 1)
    ]
    assert held[0] <= task.chip.memory < held[1]
    reader = pool(replace(task, mode="prefill", arrivals=None), ONE, 1.0)
    crowd = reader.crowding()
    assert (crowd.decoding, crowd.crowded) == (0.0, 0.0)
    assert crowd.room == int(reader.step.occupancy.room[0])


def test_a_promise_is_broken_by_more_than_a_rounding():
    """Half of 1e-9 above its limit a time is kept, twice of it is not."""
    task = question(MODEL)
    good = modelled(task)
    good.recheck()
    tpot = good.estimate["tpot"]
    replace(good, task=replace(task, promises={"tpot": tpot / (1 + 5e-10)})).recheck()
    with pytest.raises(SolverError, match="breaks the promise tpot"):
        replace(good, task=replace(task, promises={"tpot": tpot / (1 + 2e-9)})).recheck()


@pytest.mark.parametrize("second", [1e-3, -1e-3, 1e3, -1e3])
def test_two_evaluations_agree_to_a_rounding(second):
    """Relative to the second, whatever their size and sign."""
    for far, fine in ((0.0, True), (5e-10, True), (-5e-10, True), (2e-9, False), (-2e-9, False)):
        pair = {"a": 1.0, "tpot": second}, {"tpot": second * (1 + far), "a": 1.0}
        if fine:
            agree(*pair)
        else:
            with pytest.raises(SolverError, match="tpot: two evaluations differ"):
                agree(*pair)


def test_evaluations_without_a_number_do_not_agree():
    """Nothing, something beside nothing, and what is no number; the same infinity does."""
    agree({"a": 0.0, "b": math.inf}, {"a": 0.0, "b": math.inf})
    for first, second in ((1e-12, 0.0), (0.0, 1e-12), (math.nan, 1.0), (1.0, math.nan)):
        with pytest.raises(SolverError):
            agree({"a": second}, {"a": first})


@for_all(
    "case", product(
        mode=("aggregated", "decode", "prefill"), estimate=("calibrated", "bound"),
        load=({}, {"arrivals": 40.0}, {"arrivals": math.inf}, {"loop": ClosedLoop()}),
    ),
)  # fmt: skip
def test_every_output_is_walked_again(case):
    """All that a step says of a batch is what the trees give; unless said all slots are filled."""
    given, fill = case.pop("load"), 0.5
    task = question(MODEL, batch=40.0, **case, **given)
    if task.loop and task.mode == "prefill":
        return  # whose times per token are told by another pool
    step = Step(task, columns([ONE]), bound=task.uses_bound)
    batch = 1.0 if task.mode == "prefill" else 10.0
    for again, values in [
        (recompute(step, batch, fill), outputs(step, batch, fill)),
        *([(recompute(step, batch), outputs(step, batch))] if task.load == "none" else []),
    ]:
        assert {*again} == {*values}
        agree(again, values)


@pytest.mark.parametrize("lecture", [False, True])
def test_a_pool_is_evaluated_by_both_models_at_its_batch_and_fill(lecture):
    """The lecture knows its roofline only; even routing reads more experts than the least."""
    task = question(sparse(), lecture=lecture, mode="decode", batch=40.0)
    layouts = columns([ONE])
    roofline, profiled = (Step(task, layouts, bound=bound) for bound in (True, False))
    made = evaluate(task, layouts, 6, 0.5)
    assert (made.batch, made.fill) == (6.0, 0.5)
    assert {**made.bound} == outputs(roofline, 6.0, 0.5)
    assert {**made.estimate} == outputs(roofline if lecture else profiled, 6.0, 0.5)
    even = roofline if lecture else roofline.routed_uniformly(6.0)
    assert {**made.uniform} == outputs(even, 6.0, 0.5)
    assert lecture or made.uniform["tpot"] > made.bound["tpot"]
    assert evaluate(task, layouts, 6).fill == 1.0
    # A model that was sized for it is not made again, and one of the other kind is.
    for sized in (profiled.under({}), roofline.under({})):
        again = evaluate(task, layouts, 6, 0.5, sized=sized)
        assert ({**again.bound}, {**again.estimate}) == ({**made.bound}, {**made.estimate})
    slow = profiled.under(dict.fromkeys(task.profile.values, 0.5))
    changed = evaluate(task, layouts, 6, 0.5, sized=slow)
    assert {**changed.bound} == {**made.bound}
    assert lecture or changed.estimate["tpot"] != made.estimate["tpot"]


def test_a_price_of_a_million_tokens():
    """A million times that of one; none of a phase that is not there."""
    assert per_mtok({"usd_per_input_token": 2.5e-6}, "usd_per_input_token") == pytest.approx(2.5)
    assert per_mtok({}, "usd_per_input_token") is None


@for_all(
    "case", product(
        mode=("decode", "prefill"),
        load=({}, {"arrivals": 300.0}, {"arrivals": math.inf}, {"batches": (3, 12)},
              {"arrivals": 300.0, "limits_of": {"replicas": (1,)}}),
    ),
)  # fmt: skip
def test_the_least_time_is_that_of_the_smallest_batch(case):
    """Of every layout by itself: one sequence, a given batch, or the least that carries a load."""
    task = question(MODEL, chips=(2, 4), batch=40.0, domain=4, mode=case["mode"], **case["load"])
    name = "tpot" if task.mode == "decode" else "ttft"
    rows = all_layouts(task)
    # A load is carried on all chips, wherever a layout stands.
    small = [row for row in rows if row[7] == 2]
    if task.loaded:
        splits = [row[:6] for row in small]
        rows = [row for row in rows if row[7] == 4 and row[:6] in splits]
    if "limits_of" in case["load"]:
        rows = small = [row for row in all_layouts(task) if row[6:8] == (1, 4)]
    least = math.inf
    for row in rows:
        each, at = row[1] * row[3], columns([row])
        step = Step(task, at, bound=False)
        batches: list[float] = [1.0]
        if task.mode == "prefill":
            batches = [each * n for n in range(1, 1 + int(step.prompts_of_a_pass[0]))]
        elif task.loaded:
            batches = [*map(float, range(1, 200))]
        if task.batches and task.mode == "prefill":
            batches = [each * math.ceil(total / (row[6] * each)) for total in task.batches]
        elif task.batches:
            batches = [float(math.ceil(total / row[6])) for total in task.batches]
        alike = Step(task, columns([row] * len(batches)), bound=False)
        values = alike(np.array(batches), 1e-150 if task.load == "most" else 1.0)
        keeps = [
            np.broadcast_to(values[n] <= most, len(batches)) for n, most in task.limits.items()
        ]
        times = np.broadcast_to(values[name], len(batches))[np.all(keeps, axis=0)]
        least = min([least, *times])
    whole = Step(task, columns(small if task.loaded else rows), bound=False)
    assert least < math.inf
    assert min_output(whole, name) == pytest.approx(least)
    tight = whole.with_task(replace(task, promises={name: least / 2}))
    assert min_output(tight, name) == math.inf
    assert min_output(whole.take(np.arange(0)), name) == math.inf


def of_pool(**values: Any) -> Any:
    """A pool of which a few values count."""
    return SimpleNamespace(**values)


def test_pools_count_for_what_their_work_costs():
    """Idle time of the one that waits apart; a time counts whole, one pool for all."""
    two = [
        of_pool(chosen_by={"usd_per_request": 3.0, "latency": 5.0}, utilisation=0.5),
        of_pool(chosen_by={"usd_per_request": 2.0, "latency": 7.0}, utilisation=0.75),
    ]
    assert pool_costs(two, "usd_per_request") == [1.5, 1.5]
    assert pool_costs(two, "latency") == [5.0, 7.0]
    assert pool_costs(two[:1], "usd_per_request") == [1.0]


def test_a_price_rests_on_what_each_pool_rests_on_by_its_cost():
    """On tokens where it decodes, on prompts where it only reads; times are those of one pool."""
    rows = [{"tpot": {"a": 0.1, "b": 0.9}, "ttft": {"a": 0.2, "b": 0.8}},
            {"tpot": {"a": 0.6, "b": 0.4}, "ttft": {"a": 0.7, "b": 0.3}}]  # fmt: skip
    two = [
        of_pool(rests_on=rows[k], decodes=k == 1, utilisation=1.0,
                chosen_by={"usd_per_request": [1.0, 3.0][k]}) for k in (0, 1)
    ]  # fmt: skip
    shares = combined_coefficient_shares(two)
    assert shares["tpot"] == rows[1]["tpot"]
    assert shares["ttft"] == rows[0]["ttft"]
    assert shares["usd_per_mtok"] == pytest.approx({"a": (0.2 + 3 * 0.6) / 4, "b": 0.5})


@pytest.mark.parametrize("drafts", [0, 3])
def test_bands_hold_the_accepted_drafts_too(drafts):
    """Both are off independently: logarithms add as squares, of the price by decoding's share."""
    task = question(
        MODEL, positions_per_step=drafts + 1.0, tokens_per_step=1 + drafts / 2,
        accepted_range=(0.8, 1.25),
    )  # fmt: skip
    made = modelled(task)
    plan: Any = SimpleNamespace(usd_per_mtok_input=2.0, usd_per_mtok_output=5.0)
    bands = plan_bands([made], plan, {})
    shares = {"tpot": 1.0, "ttft": 0.0, "usd_per_mtok": 1000 / 3000}
    for name, share in shares.items():
        plain = task.profile.band(name, combined_coefficient_shares([made])[name], {})
        low, high = math.log(plain.low), math.log(plain.high)
        if drafts:
            low = -math.hypot(low, share * math.log(1.25))
            high = math.hypot(high, share * math.log(0.8))
        assert (bands[name].low, bands[name].high) == pytest.approx((math.exp(low), math.exp(high)))
