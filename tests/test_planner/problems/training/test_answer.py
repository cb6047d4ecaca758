"""What a training answer says: utilisations as published, limits, ways out, the layout in use."""

from __future__ import annotations

import math

import pytest

import planner
from formulas.training import bubbles
from planner.catalogue.training.training_stacks import training_stack
from planner.problems.training.presentation import sections
from planner.problems.training.resolve import resolve_training
from planner.problems.training.step.step_times import step_times
from planner.problems.training.step.training_task import LayoutTable
from planner.scenario import load
from planner.text.wording import duration
from tests.cases.training import BASE, SMALL, asked, pipeline_time

SELECTIVE = asked(
    BASE, model="gpt-3-175b", system="hgx-a100", chips=64,
    work={"global_batch": "64 sequences", "sequence": 2048, "tokens": "300 B tokens"},
    choose={"recompute": "selective"}, current={"tp": 8, "pp": 8, "recompute": "selective"},
)  # fmt: skip


def test_utilisation_as_published():
    """Korthikanti et al., table 5: 13.75 s of GPT-3 on 64 A100 are 50.7 % with the causal half."""
    case = resolve_training(load(SELECTIVE)).cases[0]
    share = case.task.model_flop / (13.75 * 64 * 312e12)
    assert 100 * share == pytest.approx(50.7, abs=0.2)
    counts, batch, sequence = case.task.counts, 64, 2048
    pairs = counts.n_layers * counts.pair_flop(sequence) * sequence**2 / 2
    whole = case.task.model_flop + 3 * batch * pairs  # in the paper's convention all pairs count
    assert 100 * whole / (13.75 * 64 * 312e12) == pytest.approx(51.39, abs=0.2)


def test_hardware_utilisation_counts_what_runs_again():
    """Full recompute does a third more, less the head; selective a third of attention."""
    shares = {}
    for recompute in ("none", "selective", "full"):
        choose = {"recompute": recompute, "tp": 1, "pp": 1, "dp": 8, "offload": "none"}
        question = asked(SMALL, choose=choose)
        point = planner.solve(question).answer.plan
        shares[recompute] = point.hfu / point.mfu
    assert shares["none"] == 1
    assert 1 < shares["selective"] < shares["full"] < 4 / 3


def test_what_a_run_takes_follows_from_the_step():
    """Steps, days and dollars by hand."""
    point = planner.solve(asked(price="$2/hour")).answer.plan
    steps = 15e12 / (512 * 8192)
    assert point.steps == pytest.approx(steps)
    assert point.days == pytest.approx(steps * point.step_time / 86400)
    assert point.usd == pytest.approx(point.days * 24 * 512 * 2)
    assert point.tokens_per_s_per_chip == pytest.approx(512 * 8192 / point.step_time / 512)


def test_without_tokens_there_are_no_days():
    """The step, and a price of a token, are there all the same."""
    point = planner.solve(asked(SMALL, work__tokens=None)).answer.plan
    assert (point.days, point.usd, point.energy) == (None, None, None)
    assert point.usd_per_mtok > 0


@pytest.mark.parametrize("limit", ["days", "usd"])
def test_a_limit_of_the_run_is_kept_or_missed(limit):
    """With a list of chips another number is taken; where nothing keeps it, by how much."""
    objective = {"days": "cost", "usd": "time"}[limit]
    chips = [8, 16, 32]
    free = planner.solve(asked(SMALL, chips=chips, objective=objective)).answer.plan
    tighter = 0.9 * getattr(free, limit)
    question = asked(SMALL, chips=chips, objective=objective, limits={limit: tighter})
    plan = planner.solve(question)
    if plan.feasible:
        assert getattr(plan.answer.plan, limit) <= tighter
        assert f" ≤ {tighter:,g}" in str(plan)
        assert plan.answer.plan.chips != free.chips
        assert f"limits.{limit}" in {each.name for each in plan.binding}
    impossible = planner.solve(asked(question, limits={limit: tighter / 1e3}))
    (missed,) = impossible.infeasible
    assert missed.promise == f"limits.{limit}"
    assert missed.short_by > 100
    assert f"NO PLAN: llama-3.2-1b in bf16 cannot keep limits.{limit}" in str(impossible)


def test_a_run_that_does_not_fit_says_by_how_much_and_what_repairs_it():
    """The shortage is that of the nearest layout; each repair by itself really fits."""
    question = asked(chips=16, choose={"offload": "none", "recompute": "none"})
    plan = planner.solve(question)
    answer = plan.answer
    assert plan.status == "infeasible"
    memory = answer.nearest.plan.memory_per_chip
    assert answer.nearest.short_by == pytest.approx(-memory.free)
    assert answer.infeasible[0].short_by == pytest.approx(1 - memory.free / memory.total)
    changes = {each.change: each for each in answer.nearest.repairs}
    assert {"choose.offload=null"} < changes.keys()
    for change, repair in changes.items():
        if change.startswith("chips="):
            repaired = asked(question, chips=int(change.removeprefix("chips=")))
        else:
            name = change.removeprefix("choose.").removesuffix("=null")
            choose = {k: v for k, v in question["choose"].items() if k != name}
            repaired = {**question, "choose": choose}
        fitting = planner.solve(repaired)
        assert fitting.feasible
        assert fitting.answer.plan.step_time == pytest.approx(repair.step_time)
        assert fitting.answer.plan.usd_per_mtok == pytest.approx(repair.usd_per_mtok)
        assert f"--set {change}" in str(plan)
    assert "does not fit 16 H100 (2 nodes)" in str(plan)
    prices = [repair.usd_per_mtok for repair in answer.repairs]
    assert prices == sorted(prices)


def test_what_was_never_measured_is_typed_and_refused_where_that_is_asked():
    """The chip and the format of a plan, which every face says once; no warning says it again."""
    strange = asked(SMALL, system="hgx-h800", price="$2/hour")
    plan = planner.solve(strange)
    assert ("chip", "h800") in {(part.what, part.value) for part in plan.outside}
    assert plan.answer.band.median_error is None
    assert not {part.words for part in plan.outside} & {*plan.warnings}
    assert str(plan).count("H800 never measured") == 2  # how sure, and the note
    with pytest.raises(planner.InputError, match="H800 never measured"):
        planner.solve(strange, strict=True)


def test_small_parts_of_a_step_stand_together():
    """Below three percent one sum; every other part by itself, and each in the full list."""
    plan = planner.solve(asked())
    step = plan.answer.plan.time_per_step
    numbers, _, bars, timed, *_ = sections(plan)
    shares = [value / sum(x for _, x in timed.parts) for _, value in timed.parts]
    small = [value for (_, value), share in zip(timed.parts, shares, strict=True) if share < 0.03]
    cells = {row[0]: row[1] for row in bars.cells if row[0]}
    assert cells[f"other ({len(small)})"] == duration(sum(small))
    assert len(cells) == len(shares) - len(small) + 1
    assert sum(value for _, value in timed.parts) == pytest.approx(
        sum(step.terms.values()), rel=1e-4
    )
    assert numbers.title.startswith("Train llama-3.1-70b on 512 H100 (64 nodes)")


def test_the_published_layout_of_405b_fits_where_gradients_are_sharded():
    """16 stages by 16 micro-batches of 8,192 tokens in 80 GB, nothing run again.

    By hand, a layer and chip of tp 8: 0.399 billion parameters; 8 bytes of norms' and products'
    inputs a channel, 2 of queries, of what attention gives, of keys and values, and of 3 widths.
    """
    layout = {"tp": 8, "pp": 16, "dp": 128, "schedule": "interleaved", "virtual_stages": 8,
              "sequence_parallel": True}  # fmt: skip
    work = {"global_batch": "2048 sequences", "sequence": 8192}
    published = asked(model="llama-3.1-405b", chips=16384, work=work, choose={"zero": 1})
    whole = planner.solve(published | {"current": {**layout, "zero": 1}}).answer.current
    memory, stack = whole.plan.memory_per_chip, training_stack("megatron-bridge-2026")
    width, params = 16384, 16384 * (2 * 16384 + 2 * 1024 + 3 * 53248) / 8
    kept = (8 * width + 2 * (2 * 16384 + 2 * 1024 + 3 * 53248)) / 8 * 8192
    assert memory.gradients == pytest.approx(4 * 8 * params * stack.values["k_state"], rel=1e-4)
    assert memory.activations == pytest.approx(16 * 8 * kept * stack.values["k_act"], rel=1e-9)
    assert 0 < whole.short_by < memory.gradients  # sharded over 128 replicas they would not count
    sharded = published | {"profile": "torchtitan-2025", "choose": {"zero": 2, **PUBLISHED}}
    plan = planner.solve(sharded | {"current": {**layout, "zero": 2}}).answer
    assert plan.current.short_by is None
    assert plan.current.plan.memory_per_chip.gradients < memory.gradients / 100
    low, high = plan.band.step_time
    assert low < 2048 * 8192 * 6 * 405.85e9 / (16384 * 400e12) < high  # as published, of weights


PUBLISHED = {"tp": 8, "pp": 16, "cp": 1, "schedule": ["1f1b", "interleaved"]}


def test_the_layout_in_use_is_evaluated_beside():
    """Its step is not better than the plan's, and the saving is the difference."""
    current = {"tp": 8, "pp": 4, "micro_batch": 1, "zero": 1, "recompute": "full"}
    answer = planner.solve(asked(current=current)).answer
    beside = answer.current
    assert beside.plan.layout.dp == 16
    assert beside.short_by is None
    assert beside.saving == pytest.approx(1 - answer.plan.step_time / beside.plan.step_time)
    assert beside.saving > 0
    too_large = planner.solve(asked(SMALL, current={"micro_batch": 2, "dp": 8})).answer.current
    assert (too_large.short_by is None) == too_large.plan.fits


def test_fp8_and_reversible_layers():
    """fp8 doubles the peak; reversible layers hold one layer, and run forward again."""
    slow, fast = (planner.solve(asked(SMALL, precision=x)).answer for x in ("bf16", "fp8"))
    assert fast.bound.step_time == pytest.approx(slow.bound.step_time / 2, rel=1e-2)
    assert fast.plan.step_time < slow.plan.step_time
    choose = {"tp": 8, "pp": 4, "zero": 1, "micro_batch": 1, "cp": 1, "schedule": "1f1b"}
    points = {
        word: planner.solve(
            asked(reversible=True, choose={**choose, "recompute": word})
        ).answer.plan
        for word in ("full", "reversible")
    }
    held = {word: point.memory_per_chip.activations for word, point in points.items()}
    assert held["reversible"] < held["full"]
    assert points["reversible"].hfu > points["reversible"].mfu


def alternating(pp, n, s):
    """One forward, one backward: as many forward passes ahead as there are stages after."""
    warm = min(pp - 1 - s, n)
    order = [("F", 0, i) for i in range(warm)]
    for i in range(n):
        if warm + i < n:
            order.append(("F", 0, warm + i))
        order.append(("B", 0, i))
    return order


PASSES = ("t_fwd", "t_bwd", "t_wgt")
ORDERS = {
    "gpipe": lambda pp, n, s: [(kind, 0, i) for kind in "FB" for i in range(n)],
    "1f1b": alternating,
}


@pytest.mark.parametrize(("pp", "micro"), [(2, 8), (4, 8), (8, 16)])
@pytest.mark.parametrize("schedule", ORDERS)
def test_a_bubble_is_that_of_the_simulated_schedule(schedule, pp, micro):
    """Every pass of every stage, of the times that the plan has of a micro-batch."""
    case = resolve_training(load(asked(work__global_batch="64 sequences"))).cases[0]
    layout = LayoutTable.of(
        tp=8, pp=pp, dp=64 // micro, micro_batch=1, tp_expert=8, schedule=schedule
    )
    terms = {x: float(y) for x, y in step_times(case.task, layout).terms.items()}
    once = ("bubble", "dp_exposed", "optimizer", "offload_exposed", "constant")
    busy = sum(value for name, value in terms.items() if name not in once) / micro
    stages = [busy - terms["head"] / micro] * (pp - 1) + [busy]  # the head is in the last one
    takes = [{"F": stage / 3, "B": 2 * stage / 3} for stage in stages]
    orders = [ORDERS[schedule](pp, micro, s) for s in range(pp)]
    wait = pipeline_time(orders, takes) - micro * busy
    assert terms["bubble"] == pytest.approx(wait, rel=1e-9)
    alike = pipeline_time(orders, takes[:1] * pp) - micro * stages[0]
    closed = bubbles.bubble_time.numpy()(n_stages=float(pp), **dict.fromkeys(PASSES, stages[0] / 3))
    assert alike == pytest.approx(float(closed), rel=1e-9)


def test_schedules_rank_as_their_formulas():
    """Of one layout: zero-bubble waits a third of 1F1B, interleaving the share of its stages."""
    case = resolve_training(load(asked(work__global_batch="64 sequences"))).cases[0]

    def wait(schedule, v=1):
        layout = LayoutTable.of(
            tp=8, pp=4, dp=4, micro_batch=1, tp_expert=8, schedule=schedule, virtual_stages=v
        )
        return float(step_times(case.task, layout).terms["bubble"])

    plain = wait("1f1b")
    assert wait("gpipe") == pytest.approx(plain)
    assert wait("interleaved", 5) == pytest.approx(plain / 5, rel=0.2)
    assert wait("zero-bubble") == pytest.approx(plain / 3, rel=0.1)
    assert math.isfinite(plain)


def test_adapters_are_counted_by_hand():
    """Llama 3.1 70B, rank 16: q and o of 8192 x 8192, k and v of 8192 x 1024, three of 28672."""
    counts = resolve_training(load(asked())).cases[0].task.counts
    case = resolve_training(load(asked(train={"lora": 16}))).cases[0]
    edges = 2 * (8192 + 8192) + 2 * (8192 + 1024) + 3 * (8192 + 28672)
    assert case.task.trained * counts.n_total == pytest.approx(80 * 16 * edges, rel=1e-3)


def test_frozen_weights_have_no_gradients():
    """Two passes of three, gradients and optimiser states of the adapters alone."""
    layout = LayoutTable.of(tp=8, dp=2, zero=1, sequence_parallel=1)
    low = {"chips": 16, "precision": "fp8"}
    full, lora = (
        step_times(resolve_training(load(asked(**low, train=train))).cases[0].task, layout)
        for train in ("all", {"lora": 16})
    )
    share = resolve_training(load(asked(train={"lora": 16}))).cases[0].task.trained
    for term in ("matrix", "quantisation"):  # of what multiplies gradients of weights none is cast
        assert lora.terms[term] == pytest.approx((2 + share) / 3 * full.terms[term])
    assert lora.terms["attention"] == pytest.approx(full.terms["attention"])
    for part in ("gradients", "optimizer"):
        assert lora.memory[part] == pytest.approx(share * full.memory[part])
    assert lora.memory["weights"] == pytest.approx(full.memory["weights"])
    assert lora.bound == pytest.approx(full.bound * (2 + share) / 3, rel=0.05)
    assert lora.bound < lora.step < full.step


def test_a_larger_rank_is_never_cheaper():
    costs = [
        planner.solve(asked(SMALL, train={"lora": rank})).answer.plan.usd for rank in (4, 64, 256)
    ]
    assert costs == sorted(costs)
    assert costs[-1] < planner.solve(asked(SMALL)).answer.plan.usd
