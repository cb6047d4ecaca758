"""Elasticities of random lifecycles are those of solving again, layouts held: 50, or a hundred."""

import math
import random
from dataclasses import replace
from types import MappingProxyType

import pytest

import planner
from planner.problems.lifecycle.elasticities import lifecycle_elasticities
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search.joint_program import joint_optimum
from planner.problems.lifecycle.search.optimal_size import cheapest_at, fixed_layout_optimum
from planner.scenario import load
from planner.text.errors import SolverError
from planner.token_costs.optimum import BudgetOptimum, solve_one
from tests.cases.lifecycle import drawn, scenario
from tests.sizes import first, seldom

STEP = 3e-4
PROMISES = ("tpot", "ttft")
SERVING = ("memory_bandwidth", "flops", "memory", "price", *PROMISES)
LAW = ("alpha_N", "beta_D", "A_N", "B_D")
ASKED = 6  # of the paths of a scenario; all of them hold, and take twice as long
TRIED = 60  # scenarios of one seed, until one has an answer


def found(seed):
    """The optimum on the layout that is cheapest at a size below that of least training cost."""
    rng = random.Random(seed)
    for _ in range(TRIED):
        life = resolve_life(load(drawn(rng)))
        sparsity = life.sparsities[0]
        question = life.budget(sparsity)
        alone = solve_one(replace(question, served=0.0))
        if not isinstance(alone, BudgetOptimum):
            continue
        size = max(alone.n_active * rng.uniform(0.3, 0.9), life.bounds[0])
        served = cheapest_at(life, size, sparsity)
        if served is None:
            continue
        try:
            return fixed_layout_optimum(life, question, served, sparsity)
        except SolverError:
            continue  # the layout of this size is no good one for the life: its optimum is far off
    raise AssertionError("no scenario of this seed has an answer")


def varied(settled, path, factor):
    """The cost at the optimum of the same layout, a given times a factor."""
    question, served = settled.answer.task, settled.served
    part, _, name = path.rpartition(".")
    if path == "inference.tokens":
        question = replace(question, served=question.served * factor)
    elif path == "quality.like.n_active":
        needed = question.required
        question = replace(question, required=replace(needed, n_active=needed.n_active * factor))
    elif part == "law":
        values = question.law.values
        law = replace(question.law, values={**values, name: values[name] * factor})
        question = replace(question, law=law)
    elif part == "phases.pretrain":
        phase = question.phases["pretrain"]
        price = replace(phase, usd_per_flop=phase.usd_per_flop * factor)
        question = replace(question, phases={**question.phases, "pretrain": price})
    else:
        served = served.changed(lambda task: faster(task, name, factor))
    start = settled.answer.n_active
    return fixed_layout_optimum(
        settled.life, question, served, settled.sparsity, start
    ).answer.total


def faster(task, name, factor):
    """The task on a machine with more of something, or with another price or promise."""
    if name == "flops":
        flops = {unit: rate * factor for unit, rate in task.chip.flops.items()}
        return replace(task, chip=replace(task.chip, flops=MappingProxyType(flops)))
    if name == "price":
        return replace(task, price=task.price * factor)
    if name in PROMISES:
        if name not in task.promises:
            return task  # a pool that the promise is none of
        return replace(task, promises={**task.promises, name: task.promises[name] * factor})
    return replace(task, chip=replace(task.chip, **{name: getattr(task.chip, name) * factor}))


def given(settled):
    """The paths whose elasticity is checked."""
    yield from ("phases.pretrain.price", "quality.like.n_active")
    yield from (f"law.{name}" for name in LAW)
    kept = settled.life.scenario.serving.promises
    for name in SERVING:
        if name not in PROMISES or getattr(kept, name) is not None:
            yield f"serving.{'promises.' * (name in PROMISES)}{name}"


@pytest.mark.parametrize("seed", [*first(0, range(50)), *seldom(range(50, 100))])
def test_elasticities_are_those_of_solving_again(seed):
    """To 1e-3, on machines, promises, prices, quality and every exponent, at kinks too."""
    settled = found(seed)
    worth = lifecycle_elasticities(settled)
    answer = settled.answer
    share = answer.cost[2] / answer.total
    assert worth["serving.price"] == pytest.approx(share, rel=1e-5, abs=1e-6)
    wrong = {}
    paths = list(given(settled))
    for path in random.Random(seed).sample(paths, ASKED):
        machine = path.startswith(("serving.m", "serving.f"))
        name = path.replace("serving.", "serving.system.") if machine else path
        # A smaller step where a kink lies within the first; a longer one at the largest size that
        # the layout serves, where programs are solved to parts in a million.
        steps = (30 * STEP, 10 * STEP) if settled.full else (STEP, STEP / 10, STEP / 100)
        slopes = (slope(settled, path, step) for step in steps)
        if not any(worth.get(name, 0.0) == pytest.approx(x, rel=1e-3, abs=1e-3) for x in slopes):
            wrong[name] = worth.get(name, 0.0)
    assert not wrong


def slope(settled, path, step):
    """d ln cost / d ln of a given, by settling again on both sides."""
    high, low = (varied(settled, path, 1 + part) for part in (step, -step))
    return math.log(high / low) / (math.log1p(step) - math.log1p(-step))


def kinked():
    """A sparse model whose cheapest size is the one at which memory begins to hold."""
    asked = {
        "problem": "lifecycle", "law": "besiroglu-2024 + clark-2022-s-base", "draws": 0,
        "quality": {"like": {"n_active": 41.5e9}}, "inference": {"tokens": 1.0514e13},
        "choose": {"sparsity": 16}, "family": {"attention": "mla"},
        "serving": {"system": "hgx-h200", "chips": 1,
                    "workload": {"input_tokens": 6506, "output_tokens": 33},
                    "choose": {"mode": "aggregated", "weights": "fp8"}},
        "phases": {"pretrain": {"system": "hgx-b200", "mfu": 0.26}},
    }  # fmt: skip
    life = resolve_life(load(asked))
    return fixed_layout_optimum(life, life.budget(16.0), cheapest_at(life, 7.1e9, 16.0), 16.0)


@pytest.mark.slow
def test_at_a_kink_both_sides_tell_what_memory_is_worth():
    """Between two slopes of the price, as the one program of size, tokens and batch has it."""
    settled = kinked()
    assert len(settled.sides) == 2
    program, worth = joint_optimum(settled), lifecycle_elasticities(settled)
    assert program.n_active == pytest.approx(settled.answer.n_active, rel=1e-6)
    assert program.cost == pytest.approx(settled.answer.total, rel=1e-7)
    assert worth["serving.system.memory"] < -0.01
    for path in ("serving.memory", "serving.flops"):
        high, low = (varied(settled, path, 1 + step) for step in (STEP, -STEP))
        measured = math.log(high / low) / (math.log1p(STEP) - math.log1p(-STEP))
        told = worth[path.replace("serving.", "serving.system.")]
        assert told == pytest.approx(measured, rel=1e-3)


@pytest.mark.slow
def test_a_layout_that_ends_where_memory_does_is_answered():
    """One chip holds so many parameters at most; sizes beyond are looked at and left."""
    asked = scenario(
        law="sardana-2024", quality={"like": {"n_active": 7e9}}, inference={"tokens": 1e11},
        family={"like": "deepseek-v3"}, draws=0,
    )  # fmt: skip
    asked["serving"] = {
        "system": "hgx-h100", "chips": 1, "choose": {"weights": "fp8", "mode": "aggregated"},
        "workload": {"input_tokens": 2000, "output_tokens": 400}, "promises": {"tpot": "20 ms"},
    }  # fmt: skip
    plan = planner.solve(asked)
    assert plan.status == "optimal"
    assert plan.chosen["n_total"] < 80e9


@pytest.mark.slow
def test_where_a_layout_ends_more_memory_is_room_for_a_larger_model():
    """Serving weighs little, so the largest model that fits is the best on this layout."""
    asked = scenario(
        law="hoffmann-2022-approach-3", quality={"like": {"n_active": 1.3e11}}, draws=0,
        inference={"tokens": 1e8},
    )  # fmt: skip
    asked["serving"] = {
        "system": "hgx-h100", "chips": 1, "choose": {"weights": "fp8", "mode": "aggregated"},
        "workload": {"input_tokens": 2000, "output_tokens": 400},
    }  # fmt: skip
    life = resolve_life(load(asked))
    settled = fixed_layout_optimum(life, life.budget(1.0), cheapest_at(life, 5e10, 1.0), 1.0)
    assert settled.size_bound < 0
    worth = lifecycle_elasticities(settled)
    assert settled.full
    assert worth["serving.largest"] < 0
    # A cost is solved to parts in a million, which a step as small as elsewhere would show.
    step = 30 * STEP
    high, low = (varied(settled, "serving.memory", 1 + by) for by in (step, -step))
    measured = math.log(high / low) / (math.log1p(step) - math.log1p(-step))
    assert worth["serving.system.memory"] == pytest.approx(measured, rel=1e-3)
    # Beside the edge the price is so steep that steps in all choices at once jump across it.
    costs = [varied(settled, "serving.memory", factor) for factor in (0.97, 0.99, 1.0, 1.01, 1.03)]
    assert costs == sorted(costs, reverse=True)
