"""The search of training layouts: brute force, counts, fewer chips, speed and memory."""

from __future__ import annotations

import math
import time
import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import planner
from planner.problems.training.layout_lattice import layout_faults
from planner.problems.training.outputs import recheck, training_point
from planner.problems.training.resolve import resolve_training
from planner.problems.training.search import search_layouts
from planner.problems.training.step.step_times import step_times, usable
from planner.problems.training.step.training_task import LayoutTable
from planner.scenario import load
from planner.text.errors import SolverError
from tests.cases.training import BASE, SMALL, asked
from tests.machine import lasts_at_most
from tests.sizes import first

GPT3 = asked(
    BASE, model="gpt-3-175b", system="hgx-a100", chips=4096,
    work={"global_batch": "2048 sequences", "sequence": 2048},
)  # fmt: skip


def every_layout(of, chips, free):
    """Every layout of so many chips, one by one: all numbers up to the chips, and what they may."""
    numbers = range(1, chips + 1)
    for tp, pp, cp in product(numbers, repeat=3):
        if chips % (tp * pp * cp):
            continue
        dp = chips // (tp * pp * cp)
        for micro, v, schedule, recompute, zero, offload, along, overlap in product(
            range(1, of.batch + 1), range(1, of.layers + 1), *free.values()
        ):
            words = {
                "tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": 1, "tp_expert": tp,
                "micro_batch": micro, "virtual_stages": v, "schedule": schedule,
                "recompute": recompute, "zero": zero, "offload": offload,
                "sequence_parallel": along, "overlap": overlap,
            }  # fmt: skip
            plain = schedule == "1f1b" or pp > 1
            staged = (schedule == "interleaved") == (v > 1)
            if plain and staged and (along == 0 or tp > 1) and not [*layout_faults(of, words)]:
                yield words


@pytest.mark.parametrize(
    ("memory", "chips", "batch"), first(1, [("20 GB", 4, 2), ("10 GB", 8, 4), ("80 GB", 8, 4)])
)  # fmt: skip
def test_brute_force_finds_nothing_better(memory, chips, batch):
    """Of all layouts, timed one by one, the best and their number are the same."""
    free = {
        "schedule": ("1f1b", "interleaved", "zero-bubble"), "recompute": ("none", "full"),
        "zero": (0, 3), "offload": ("none",), "sequence_parallel": (0, 1), "overlap": (1,),
    }  # fmt: skip
    choose = {key: [*values] for key, values in free.items()}
    choose["sequence_parallel"], choose["overlap"] = [False, True], True
    question = load(asked(
        SMALL, chips=chips, choose=choose, system={"like": "hgx-h100", "memory": memory},
        work={"global_batch": f"{batch} sequences", "sequence": 4096},
    ))  # fmt: skip
    resolution = resolve_training(question)
    case, tally = resolution.cases[0], search_layouts(resolution)
    steps, seen = [], 0
    for words in every_layout(case.divisions, chips, free):
        if words["zero"] == 3 and words["pp"] > 1:
            continue
        times = step_times(case.task, LayoutTable.of(**words), ("step", "used"))
        seen += 1
        if times.used <= usable(case.task):
            steps.append(float(times.step))
    (best,) = tally.ranked(1)
    assert (tally.seen, tally.fitting) == (seen, len(steps))
    assert tally.fitting > 0
    assert best.step == pytest.approx(min(steps), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "layouts"),
    [
        ({}, 500_000),
        pytest.param(
            {"work__global_batch": "36864 sequences", "profile": "torchtitan-2025"}, 5_980_000,
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_the_lattice_of_a_large_model_is_searched_within_two_units(changes, layouts):
    """GPT-3 on 4,096 chips, all choices free: six million layouts, in little memory.

    Counted is every whole (tp, pp, dp, cp, micro-batch, virtual stages) that divides chips, heads,
    layers, sequence and batch, with every schedule, recomputation, ZeRO stage, offload, sequence
    parallelism and overlap that goes with it; none is left out as worse. How many there are hangs
    on the divisors of the batch and on the stack: 2,048 sequences have 1.9 million where ZeRO ends
    at 1 under a pipeline, 36,864 with ZeRO to 3 what is asked for.
    """
    resolution = resolve_training(load(asked(GPT3, **changes)))
    search_layouts(resolution)
    begun = time.process_time()
    tally = search_layouts(resolution)
    took = time.process_time() - begun
    tracemalloc.start()  # which slows what it watches: memory is that of another search
    search_layouts(resolution)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tally.seen > layouts
    assert lasts_at_most(2, took)
    assert most < 300e6


def test_the_certificate_counts_what_was_seen():
    """Layouts fit or do not, the gap is that of the relaxation, and the recheck agrees."""
    proof = planner.solve(asked(chips=64)).certificate
    assert proof.layouts_seen > proof.layouts_fitting >= proof.layouts_within > 0
    assert proof.gap == pytest.approx(1 - proof.relaxation / proof.objective)
    assert 0 < proof.gap < 1
    assert proof.recheck < 1e-9


@pytest.mark.parametrize("objective", ["time", "cost", "energy"])
def test_no_layout_is_better_than_the_plan(objective):
    """The plan's score is the least of the alternatives, which lose what they say."""
    plan = planner.solve(asked(SMALL, objective=objective, power_price="$0.1/kWh"))
    losses = [other.loses for other in plan.alternatives]
    assert losses == sorted(losses)
    assert losses[0] >= 0
    shapes = {(x.layout.tp, x.layout.pp, x.layout.dp, x.layout.cp) for x in plan.alternatives}
    assert len(shapes) == len(losses)


def test_a_relaxation_lies_below_every_layout_that_fits():
    """The bound holds on the whole lattice, not just at the plan."""
    plan = planner.solve(asked(chips=128))
    assert plan.bound.step_time <= plan.bound.with_traffic <= plan.answer.plan.step_time


@pytest.mark.parametrize(
    ("key", "values"),
    [("memory", ("12 GB", "20 GB", "80 GB")), ("scale_up", ("200 GB/s", "400 GB/s")),
     ("scale_out", ("20 GB/s", "40 GB/s")), ("memory_bandwidth", ("2 TB/s", "3 TB/s"))],
)  # fmt: skip
def test_a_better_machine_is_never_slower(key, values):
    """It has every layout of the worse one, each at least as fast."""
    best = math.inf
    for value in values:
        system = {"like": "hgx-h100", key: value}
        plan = planner.solve(asked(SMALL, chips=16, system=system))
        assert plan.answer.plan.step_time <= best * (1 + 1e-12)
        best = plan.answer.plan.step_time


@pytest.mark.slow
def test_chips_that_no_layout_uses_are_idle_and_paid():
    """Of 13 chips fewer are used; no number of chips above half of them does better."""
    free = {"pp": [1, 2, 3]}
    plan = planner.solve(asked(SMALL, chips=13, choose=free, price="$2/hour"))
    point = plan.answer.plan
    assert point.chips == 13 > point.chips_used
    assert any("idle" in sentence for sentence in plan.warnings)
    steps = []
    for chips in range(7, 13):
        try:
            steps.append(planner.solve(asked(SMALL, chips=chips, choose=free)).answer.plan)
        except planner.InputError:
            continue
    used = {each.chips for each in steps if each.chips == each.chips_used}
    assert len(used) > 1
    assert point.step_time == pytest.approx(min(each.step_time for each in steps), rel=1e-12)
    paid = 13 * 2 / 3600 / point.tokens_per_s * 1e6
    assert point.usd_per_mtok == pytest.approx(paid, rel=1e-12)


def test_a_plan_that_is_not_its_equation_is_refused():
    """A mutant of the step or of a number that follows from it does not pass the recheck."""
    resolution = resolve_training(load(asked(SMALL)))
    (best,) = search_layouts(resolution).ranked(1)
    point = training_point(best)
    recheck(best, point)
    for name in ("step_time", "mfu", "hfu", "tokens_per_s", "days", "usd", "usd_per_mtok"):
        mutant = replace(point, **{name: getattr(point, name) * 1.0001})
        with pytest.raises(SolverError, match="computed anew"):
            recheck(best, mutant)


def test_terms_and_memory_add_up():
    """The terms are the step, the parts and what is free the memory that may be filled."""
    point = planner.solve(asked(chips=64)).answer.plan
    step, memory = point.time_per_step, point.memory_per_chip
    assert sum(step.terms.values()) == pytest.approx(point.step_time, rel=1e-12)
    parts = ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "free")
    assert sum(getattr(memory, part) for part in parts) == pytest.approx(memory.total, rel=1e-12)
    exposed = [step.terms.get(x, 0.0) for x in ("tp", "cp", "ep", "pp", "dp_exposed")]
    assert step.exposed_communication == pytest.approx(sum(exposed))
    assert 1 <= memory.worst_stage <= memory.stages == point.layout.pp


def test_arrays_and_single_layouts_are_the_same():
    """A hundred layouts at random out of the lattice, each by itself."""
    resolution = resolve_training(load(asked(SMALL, chips=32)))
    tally, rng = search_layouts(resolution), np.random.default_rng(1)
    for rows in tally.best[:4]:
        for row in rng.choice(len(rows.score), min(25, len(rows.score)), replace=False):
            rated = rows.at(int(row))
            times = step_times(rated.chips.case.task, rated.layout, ("step", "used"))
            assert float(times.step) == pytest.approx(rated.step, rel=1e-12)
            assert float(times.used) == pytest.approx(rated.used, rel=1e-12)


@pytest.mark.slow
def test_a_range_of_chips_is_searched_number_by_number():
    """Numbers that no layout uses are no plan where smaller ones are asked about as well."""
    plan = planner.solve(asked(SMALL, chips={"from": 8, "to": 15}, objective="cost"))
    best = min(planner.solve(asked(SMALL, chips=chips)).answer.plan.usd for chips in range(8, 16))
    assert plan.answer.plan.usd == pytest.approx(best)
    assert plan.answer.plan.chips == plan.answer.plan.chips_used
