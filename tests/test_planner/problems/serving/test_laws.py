"""What holds of any serving model: result 12, identities, scaling, what more of a thing does."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from planner.catalogue.profile import EFFICIENCIES
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.pool import evaluate
from planner.problems.serving.pairs.pool_pairs import search_pools
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import search
from planner.problems.serving.step.kernels import STEP_PARTS
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.protocol.document import to_document
from tests.cases.serving import MODELS, question, questions, searched
from tests.loops import for_all
from tests.sizes import examples
from tests.test_planner.problems.serving.deployment.test_questions import pools_of

BATCHES = np.arange(1.0, 301.0)
ROUNDING = 1 + 1e-12
PROMISED = ("need", "ttft", "tpot", "latency", "mixed")


def over_batches(step: Step, row: int) -> dict[str, np.ndarray]:
    """One layout at every whole batch."""
    values = step.take(np.array([row]))(BATCHES)
    return {name: np.broadcast_to(value, BATCHES.shape) for name, value in values.items()}


@pytest.mark.slow
@examples(6, 20)
@given(questions())
def test_serving_promised_quantities_never_fall_with_the_batch(task: Task) -> None:
    """So a bisection finds the largest batch that keeps every promise, in either model.

    What a pass reads shrinks as decoding reads more, so that holds while no step carries more than
    one: as long as prefill keeps up, which no larger batch brings back.
    """
    for bound in (False, True):
        step = Step(task, searched(task).layouts, bound=bound)
        for row in range(len(step.layouts)):
            values = over_batches(step, row)
            assert (np.diff(values["mixed"]) >= 0).all()
            flows = values["mixed"][1:] <= 1
            for name in PROMISED:
                falls = np.diff(values[name]) < -1e-12 * values[name][1:]
                assert not falls[flows].any(), name


@examples(6, 20)
@given(questions())
def test_serving_price_never_rises_between_ceilings(task: Task) -> None:
    """T(B)/B falls while ceil(B/pp) stands, while a rank's number stands from one full number of
    the experts to the next, and from one full group to the next (the estimate; on-chip memory may
    bend the bound)."""
    step = Step(replace(task, batches=None), searched(task).layouts, bound=False)
    for row in range(len(step.layouts)):
        price = over_batches(step, row)["usd_per_request"]
        pp = int(step.layouts.pp[row])
        cell, full = pp * int(step.layouts.dp_attention[row]), pp * int(step.layouts.cp[row])
        group = int(step.layouts.group[row])
        same = np.diff(np.ceil(BATCHES / pp)) == 0
        assert (np.diff(price)[same] <= 1e-12 * price[1:][same]).all()
        stages, ranks = price[full - 1 :: full], np.ceil(BATCHES[full - 1 :: full] / cell)
        kept = np.diff(ranks) == 0
        assert (np.diff(stages)[kept] <= 1e-12 * stages[1:][kept]).all()
        groups = price[group - 1 :: group]
        assert (np.diff(groups) <= 1e-12 * groups[1:]).all()


@examples(6, 20)
@given(questions())
def test_serving_bound_lies_below_the_estimate(task: Task) -> None:
    """Of time per token, time to first token, and price, at every layout and batch."""
    layouts = searched(task).layouts
    bound, estimate = (Step(task, layouts, bound=b) for b in (True, False))
    for row in range(len(layouts)):
        low, high = over_batches(bound, row), over_batches(estimate, row)
        for name in ("tpot", "ttft", "latency", "usd_per_request", "usd_per_token"):
            assert (low[name] <= high[name] * ROUNDING).all(), name


@examples(10, 30)
@given(questions())
def test_serving_plan_adds_up(task: Task) -> None:
    """Parts of a step, of the memory, of the bill, and slots against requests per second."""
    step = searched(task)
    found = search(step)
    if not found.rows.size:
        return
    layouts = step.layouts.take(found.rows[:1])
    batch, fill = float(found.batch[0]), float(found.fill[0])
    point = evaluate(task, layouts, batch, fill)
    plan, values = to_document(Candidate((point,)).plan()), point.chosen_by
    memory = plan["memory_per_chip"]
    assert sum(memory[k] for k in memory if k != "capacity") == pytest.approx(memory["capacity"])
    if task.mode == "aggregated":
        bill = task.input_tokens * plan["usd_per_mtok_input"]
        bill += task.output_tokens * plan["usd_per_mtok_output"]
        both = task.input_tokens + task.output_tokens
        assert bill == pytest.approx(both * plan["usd_per_mtok"])
    spent = plan["usd_per_mtok"] * 1e-6 * plan["requests_per_s"] * 3600
    tokens = {"decode": task.output_tokens, "prefill": task.input_tokens}.get(
        task.mode, task.input_tokens + task.output_tokens
    )
    assert spent * tokens == pytest.approx(plan["usd_per_hour"])
    if not task.uses_bound and task.mode != "prefill":
        parts = sum(values[f"part.{part}"] for part in STEP_PARTS)
        assert parts == pytest.approx(task.tokens_per_step * plan["tpot"])
        emitted = task.output_tokens - (task.mode == "aggregated")
        # A slot is busy for its share of all prefill and for its own steps.
        busy = batch * values["busy"] + emitted * values["step"] / task.tokens_per_step
        slots = batch * plan["layout"]["replicas"] * fill
        assert plan["requests_per_s"] * busy == pytest.approx(slots)


def scaled(task: Task, by: float) -> Task:
    """Every rate `by` times faster, every overhead as much shorter."""
    chip = replace(
        task.chip,
        memory_bandwidth=task.chip.memory_bandwidth * by,
        flops=MappingProxyType({name: rate * by for name, rate in task.chip.flops.items()}),
    )
    wired = replace(
        task.machine,
        scale_up=task.machine.scale_up * by,
        scale_out=task.machine.scale_out * by,
        scale_up_latency=task.machine.scale_up_latency / by,
        scale_out_latency=task.machine.scale_out_latency / by,
    )
    counts = EFFICIENCIES | {"n_sched"}
    values = {k: v if k in counts else v / by for k, v in task.profile.values.items()}
    return replace(
        task,
        chip=chip,
        machine=wired,
        profile=replace(task.profile, values=values),
        promises={name: limit / by for name, limit in task.promises.items()},
        arrivals=task.arrivals and task.arrivals * by,
    )


@examples(6, 20)
@given(questions())
def test_serving_times_scale_with_rates(task: Task) -> None:
    """All rates times s and all overheads over s make all times s times shorter.

    Floors of collectives were measured and are overheads too: they are scaled by hand.
    """
    layouts = searched(task).layouts
    batch = np.full(len(layouts), 17.0)
    for bound in (False, True):
        step = Step(task, layouts, bound=bound)
        slow, fast = step(batch), hurried(step, 3.0)(batch)
        for name in ("tpot", "ttft", "latency", "usd_per_request"):
            np.testing.assert_allclose(slow[name], 3.0 * fast[name], rtol=1e-12)


def hurried(step: Step, by: float) -> Step:
    """The model of the same layouts where everything is `by` times faster."""
    fast = Step(scaled(step.task, by), step.layouts, bound=step.bound)
    for name, value in step._values.items():
        if name.startswith(("a_ar", "g_ar", "a_x", "g_x", "a_cp", "g_cp", "a_ring", "g_ring")):
            fast._values[name] = value / by
        if name.startswith(("w_ar", "w_x", "w_cp", "w_ring")):
            fast._values[name] = value * by
    return fast


@for_all("model", sorted(MODELS))
@for_all("load", [None, 0.3, math.inf])
@for_all("pooled", [False, True], ids=["one pool", "two pools"])
def test_serving_plan_scales_with_rates(model: str, load: float | None, *, pooled: bool) -> None:
    """Three times the rates, a third of the promises, three times the load: a third of the cost.

    Chips, replicas and batches stay, in one pool and in two, whoever arrives.
    """
    promises = {"ttft": 0.2, "tpot": 0.004}
    if pooled:
        pools = pools_of(MODELS[model], chips=(4, 8), promises=promises)
        if load is not None:
            waits = pools.prefill.with_layout(arrivals=math.inf)
            pools = replace(pools, prefill=waits, demand=None if math.isinf(load) else load * 10)
        steps = [
            Step(task, admissible_layouts(task), bound=False)
            for task in (pools.prefill, pools.decode)
        ]
        slow = search_pools(pools, *steps)[0][0]
        fast_steps = [hurried(step, 3.0) for step in steps]
        quick = replace(
            pools, prefill=fast_steps[0].task, decode=fast_steps[1].task, rate=3 * pools.rate,
            latency=pools.latency / 3, demand=pools.demand and 3 * pools.demand,
        )  # fmt: skip
        fast = search_pools(quick, *fast_steps)[0][0]
        assert (fast.rows, fast.replicas, fast.chips) == (slow.rows, slow.replicas, slow.chips)
        assert fast.batch == slow.batch
        assert fast.requests == pytest.approx(3 * slow.requests)
        assert fast.score == pytest.approx(slow.score / 3)
        return
    task = question(MODELS[model], chips=(8,), promises=promises, arrivals=load and load * 10)
    step = searched(task)
    slow_found, fast_found = (search(each) for each in (step, hurried(step, 3.0)))
    assert fast_found.score[0] == pytest.approx(slow_found.score[0] / 3)
    assert fast_found.batch[0] == slow_found.batch[0]


BETTER: dict[str, Any] = {
    "memory": lambda t: replace(t, chip=replace(t.chip, memory=t.chip.memory * 1.3)),
    "bandwidth": lambda t: replace(
        t, chip=replace(t.chip, memory_bandwidth=t.chip.memory_bandwidth * 1.3)
    ),
    "flops": lambda t: replace(
        t, chip=replace(t.chip, flops={k: v * 1.3 for k, v in t.chip.flops.items()})
    ),
    "network": lambda t: replace(t, machine=replace(t.machine, scale_up=t.machine.scale_up * 1.3)),
    "promises": lambda t: replace(t, promises={k: v * 1.3 for k, v in t.promises.items()}),
    "price": lambda t: replace(t, price=t.price / 1.3),
    "chips": lambda t: replace(t, chips=tuple(3 * n for n in t.chips)),
}


@examples(8, 25)
@given(questions())
def test_serving_more_of_anything_never_costs_more(task: Task) -> None:
    """A faster chip, a looser promise, a multiple of whole domains never raise the price."""
    task = replace(task, objective="cost", batches=None)
    found = search(searched(task))
    if not found.rows.size:
        return
    whole = all(n % task.machine.chips_per_domain == 0 for n in task.chips)
    for name, better in BETTER.items():
        if name == "chips" and not whole:
            continue  # three times 3 chips are a node of 8 and one chip: a third of them is idle
        score = search(searched(better(task))).score[0]
        assert score <= found.score[0] * ROUNDING, name
    assert search(searched(BETTER["price"](task))).score[0] == pytest.approx(found.score[0] / 1.3)


def test_serving_layout_is_worth_the_same_alone_and_in_company() -> None:
    """A layout that leaves its domain has the latency it has among others."""
    task = question(MODELS["sparse"], chips=(16,), domain=4)
    step = searched(task)
    whole = step(np.full(len(step.layouts), 5.0))
    for row in range(len(step.layouts)):
        alone = Step(task, step.layouts.take(np.array([row])), bound=False)(np.array([5.0]))
        for name in ("tpot", "ttft"):
            assert np.broadcast_to(whole[name], len(step.layouts))[row] == alone[name]


def test_serving_prefill_alone_needs_no_tokens_to_decode() -> None:
    """One output token, all of it from the prompt, is no obstacle where only prompts are read."""
    task = question(MODELS["dense"], mode="prefill", output_tokens=1.0, chips=(4,))
    assert search(searched(task)).rows.size
