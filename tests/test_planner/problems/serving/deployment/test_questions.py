"""Two pools against an exhaustive search over pairs, batches and splits of the chips."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.problems.serving.deployment.questions import double_pools
from planner.problems.serving.pairs.evaluated_pairs import evaluate_pair
from planner.problems.serving.pairs.pool_matching import prefill_layouts
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.step.packing import ChipSplit, max_replicas
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import TaskPair
from planner.protocol.document import to_document
from tests.cases.packing import laid_out
from tests.cases.serving import all_layouts, columns, dense, sparse
from tests.cases.two_pools import pools_of, solved
from tests.sizes import examples


def placed(chips: int, domain: int, first, n: int, second) -> int:
    """Replicas of the second pool beside n of the first, by laying stages out one by one."""
    left = laid_out(chips, domain, first[0], n * first[1], second[0])
    return left // second[1] if left >= 0 else -1


def exhaustive(pools: TaskPair, most: int) -> float:
    """The least objective over all pairs of layouts, batches, and numbers of replicas."""
    first, second = pools.prefill, pools.decode
    readers, decoders = [], []
    for row in all_layouts(first):
        values = Step(first, columns([row]), bound=first.uses_bound)(
            np.array([row[1] * row[3] * 1.0])
        )
        if values["need"][0] <= first.chip.memory:
            readers.append((row, float(values["busy"][0]), float(values["ttft"][0])))
    for row in all_layouts(second):
        step = Step(second, columns([row]), bound=second.uses_bound)
        batches = np.arange(1.0, most + 1)
        values = step(batches)
        fits = np.broadcast_to(values["need"] <= second.chip.memory, batches.shape)
        tpot = np.broadcast_to(values["tpot"], batches.shape)
        rates = batches / ((second.output_tokens - 1) * tpot)
        if fits.any() and second.batches is None:
            decoders.append((row, rates[fits], tpot[fits], 0))
        for total, count in itertools.product(second.batches or (), range(1, max(first.chips))):
            each = math.ceil(total / count)
            if fits[each - 1] and (row[8] == 1 or total > count * row[1] * row[2] * row[3]):
                # All that are given are in flight, as many on each replica but the last.
                rate = total / ((second.output_tokens - 1) * tpot[each - 1])
                decoders.append((row, np.array([rate / count]), tpot[each - 1 : each], count))
    best = math.inf
    heads = first.sizes.n_kv_heads
    for (r, busy, ttft), (d, rate, tpot, count) in itertools.product(readers, decoders):
        chips_sending = min(min(r[0], heads) * r[1], min(d[0], heads) * d[1])
        late = ttft + pools.latency + pools.prompt_bytes / (chips_sending * pools.rate)
        whole = late + (second.output_tokens - 1) * tpot
        made = {"ttft": np.full(tpot.shape, late), "tpot": tpot, "e2e": whole}
        promised = {**first.promises, **second.promises}
        kept = np.all([made[name] <= limit for name, limit in promised.items()], axis=0)
        kept = np.broadcast_to(kept, tpot.shape)
        if not kept.any():
            continue
        for chips in set(first.chips):
            for n in range(1, chips + 1):
                taken = n * r[0] * r[3] * r[1]
                if taken > chips:
                    break
                inside, sizes = first.machine.chips_per_domain, (r[0] * r[3], r[1])
                if pools.together:
                    m = placed(chips, inside, sizes, n, (d[0] * d[3], d[1]))
                    splits = [(taken, m)]
                else:
                    # Chips that no replica uses are of either system.
                    sizes_of = ChipSplit(np.array([d[0] * d[3]]), np.array([d[1]]),
                                         np.array([second.machine.chips_per_domain]))  # fmt: skip
                    splits = [
                        (read, int(max_replicas(np.array([chips - read]), sizes_of)[0]))
                        for read in range(taken, chips)
                        if placed(read, inside, sizes, n, (1, 1)) >= 0
                    ]
                for read, m in splits:
                    if m < max(count, 1) or (count and n / busy < count * rate * (1 - 1e-9)):
                        continue
                    served = np.minimum(n / busy, (count or m) * rate[kept])
                    spent = read * first.price + (chips - read) * second.price
                    score = {"cost": spent / served, "throughput": 1 / served,
                             "latency": whole[kept]}  # fmt: skip
                    best = min(best, float(np.min(score[first.objective])))
    return best


PROMISES = [{}, {"ttft": 0.05}, {"tpot": 0.0015}, {"e2e": 0.4}, {"ttft": 0.03, "tpot": 0.002}]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    experts=st.sampled_from([0, 4]),
    chips=st.sampled_from([(2,), (3,), (4,), (2, 5)]),
    domain=st.sampled_from([2, 4]),
    promises=st.sampled_from(PROMISES),
    objective=st.sampled_from(["cost", "throughput", "latency"]),
    estimate=st.sampled_from(["calibrated", "bound"]),
)
def test_two_pools_equal_exhaustive_search(experts, chips, domain, promises, objective, estimate):
    """No pair, batch and split beats the one found."""
    model = sparse(2, 4, experts) if experts else dense(2)
    pools = pools_of(
        model, chips=chips, domain=domain, promises=promises, objective=objective, estimate=estimate
    )
    _, pairs = solved(pools)
    best = pairs[0].score if pairs else math.inf
    assert best == pytest.approx(exhaustive(pools, 200), rel=1e-9)


@examples(12, 30)
@given(
    experts=st.sampled_from([0, 4]),
    chips=st.sampled_from([(2,), (3,), (5,), (3, 6)]),
    domain=st.sampled_from([2, 4]),
    promises=st.sampled_from(PROMISES),
    objective=st.sampled_from(["cost", "throughput", "latency"]),
    estimate=st.sampled_from(["calibrated", "calibrated", "bound"]),
    batches=st.sampled_from([(1,), (5,), (12,), (3, 40), (100,)]),
    lengths=st.sampled_from([(1000.0, 200.0), (4000.0, 20.0), (4000.0, 60.0)]),
    second=st.sampled_from([{}, {}, {"system": "hgx-h100", "price": 2.0 / 3600}]),
)
def test_a_batch_of_two_pools_equals_exhaustive_search(
    experts, chips, domain, promises, objective, estimate, batches, lengths, second
):
    """All sequences of a given batch are in flight, on as many replicas as is best."""
    tokens, output = lengths
    pools = pools_of(
        sparse(2, 4, experts) if experts else dense(2),
        chips=chips, domain=domain, promises=promises, objective=objective, estimate=estimate,
        input_tokens=tokens, output_tokens=output, second=second, batch=30.0,
    )  # fmt: skip
    pools = replace(pools, decode=replace(pools.decode, batches=batches))
    steps, pairs = solved(pools)
    best = pairs[0].score if pairs else math.inf
    assert best == pytest.approx(exhaustive(pools, 100), rel=1e-9)
    for pair in pairs:
        plan = evaluate_pair(pools, *steps, pair)
        plan.recheck()
        assert plan.plan().batch in batches
        assert plan.outputs["requests"] == pytest.approx(pair.requests, rel=1e-8)
    if pairs:
        (found,) = double_pools([pools])
        least = found.relaxation(pairs[0].score).value
        assert least <= pairs[0].score * (1 + 1e-9)


def test_two_pools_of_two_systems_equal_exhaustive_search():
    """The same where the pools have chips of their own kind and price."""
    for price in (2.0, 9.0):
        second = {"system": "hgx-h100", "price": price / 3600}
        pools = pools_of(dense(2), chips=(5,), second=second)
        _, pairs = solved(pools)
        assert pairs[0].score == pytest.approx(exhaustive(pools, 200), rel=1e-9)


@pytest.mark.parametrize("model", [dense(2), sparse(2, 4, 4)], ids=["dense", "sparse"])
def test_a_pair_evaluated_in_full_serves_what_the_search_said(model):
    """Rates, prices and times of the candidates are those of the pair, and survive a recheck."""
    pools = pools_of(model, chips=(6,), promises={"tpot": 0.002})
    steps, pairs = solved(pools)
    for pair in pairs:
        plan = evaluate_pair(pools, *steps, pair)
        plan.recheck()
        document = to_document(plan.plan())
        tokens = pools.decode.input_tokens + pools.decode.output_tokens
        assert document["usd_per_mtok"] * tokens / 1e6 == pytest.approx(pair.score, rel=1e-9)
        assert document["requests_per_s"] == pytest.approx(pair.requests)
        assert document["tpot"] <= 0.002
        assert document["ttft"] == pytest.approx(plan.pools[0].chosen_by["ttft"] + plan.transfer)
        assert max(document[pool]["utilisation"] for pool in ("prefill", "decode")) <= 1 + 1e-9


def test_more_load_never_needs_fewer_chips():
    """Chips that two pools need for a load, over a range of loads; each answer carries its load."""
    base = pools_of(sparse(2, 4, 4), chips=tuple(range(2, 25)), promises={"tpot": 0.002})
    waiting = replace(
        base, prefill=base.prefill.with_layout(arrivals=math.inf, promises={"ttft": 0.1})
    )
    _, free = solved(replace(base, prefill=base.prefill.with_layout(chips=(4,))))
    paid = []
    for load in np.geomspace(0.2, 3.0, 6) * free[0].requests:
        steps, pairs = solved(replace(waiting, demand=float(load)))
        paid.append(sum(pairs[0].chips))
        plan = evaluate_pair(replace(waiting, demand=float(load)), *steps, pairs[0])
        plan.recheck()
        assert plan.outputs["ttft"] <= 0.1
        assert plan.outputs["requests"] == pytest.approx(load)
        assert plan.pools[0].chosen_by["readers"] < 1
    for load in (1e20, 1e300):
        assert not solved(replace(waiting, demand=load))[1]
        assert plan.last.chosen_by["load"] <= 1 + 1e-9
    assert paid == sorted(paid)


def test_a_reader_is_as_busy_as_its_promise_lets_it_be():
    """The wait fills what the promise leaves beside reading and moving, and no more."""
    task = pools_of(dense(2), chips=(4,)).prefill
    alone = Step(task, admissible_layouts(task), bound=False)
    nothing = np.zeros(len(alone.layouts))
    quickest = prefill_layouts(alone, nothing).latency.min()
    promised = task.with_layout(arrivals=math.inf, promises={"ttft": 1.15 * quickest})
    side = prefill_layouts(alone.with_task(promised), nothing + 1e-5)
    assert len(side.rows) > 1
    np.testing.assert_allclose(side.latency, 1.15 * quickest, rtol=1e-6)
    assert (side.latency <= 1.15 * quickest).all()
    assert ((side.fill > 0) & (side.fill < 1)).all()


def test_a_given_batch_is_what_is_in_flight_in_one_pool_and_in_two():
    """Of two pools the one that decodes holds all of it, however few its chips are."""
    asked = {
        "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 8,
        "price": "$2.50/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
        "choose": {"batch": 200},
    }  # fmt: skip
    for mode in ("aggregated", "disaggregated"):
        plan = planner.solve(asked, [f"choose.mode={mode}"])
        pool = plan.point.decode or plan.point
        assert plan.batch == 200
        assert pool.batch_per_replica == math.ceil(200 / pool.layout.replicas)
    tight = ["choose.mode=disaggregated", "choose.decode.replicas=2"]
    short = planner.solve(asked, tight)
    (missed,) = short.infeasible
    most = round(200 / missed.short_by)
    assert (missed.promise, missed.expression.split(",")[0]) == ("batch", f"choose.batch <= {most}")
    assert {"choose.batch": most} in [way.sets for way in short.answer.ways_out]
    assert planner.solve(asked, [*tight, f"choose.batch={most}"]).batch == most
    assert planner.solve(asked, [*tight, f"choose.batch={most + 1}"]).status == "infeasible"
