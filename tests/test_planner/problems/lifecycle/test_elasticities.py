"""Elasticities of random lifecycles are those of solving again, layouts held: 50, or a hundred."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

import planner
from planner.problems.lifecycle import elasticities
from planner.problems.lifecycle.elasticities import (
    lifecycle_elasticities,
    lifecycle_rows,
    overtraining_from_pools,
    perturbed_outputs,
    serving_parameters,
    smooth_values,
)
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search.joint_program import joint_optimum
from planner.problems.lifecycle.search.optimal_size import (
    cheapest_plan_at_size,
    fixed_layout_optimum,
)
from planner.programs.geometric import InfeasibleProgram, ProgramShortfall
from planner.protocol.parameter import Parameter
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
        served = cheapest_plan_at_size(life, size, sparsity)
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


@pytest.mark.parametrize("seed", [*first(0, range(12)), *seldom(range(12, 100))])
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
    return fixed_layout_optimum(
        life, life.budget(16.0), cheapest_plan_at_size(life, 7.1e9, 16.0), 16.0
    )


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
    assert plan.feasible
    assert plan.chosen["n_total"] < 80e9


@pytest.mark.campaign
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
    settled = fixed_layout_optimum(
        life, life.budget(1.0), cheapest_plan_at_size(life, 5e10, 1.0), 1.0
    )
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


# -- by hand -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Chip:
    """What is read of a chip."""

    memory: float = 8.0
    flops: float = 1.0


@dataclass(frozen=True)
class Asked:
    """What is read of a task."""

    chip: Chip = Chip()
    promises: Mapping[str, float] = field(default_factory=lambda: {"ttft": 0.5})
    price: float = 3.0
    electricity: float = 1.0


@dataclass(frozen=True)
class Served:
    """A layout whose memory and promise end at a size of 8.

    Bytes grow with the size, times with its square root; memory counts by its square, so that twice
    as much is a quarter as short. A promise of no size is short by as much for all.
    """

    task: Asked = Asked()
    utilisation: float = 0.5
    machine: str = "h100"

    @property
    def plan(self) -> Any:
        return SimpleNamespace(chip=self.machine)

    @property
    def parts(self) -> list[Any]:
        return [(SimpleNamespace(task=self.task), None, None)]

    def tangent(self, size: float) -> tuple[float, float]:
        short = {"memory": size / 8 * (8 / self.task.chip.memory) ** 2, "tpot": 1.5,
                 "ttft": 0.5 * math.sqrt(size / 8) / self.task.promises["ttft"],
                 "prefill keeps up": 2.0}  # fmt: skip
        if short["memory"] <= 1:
            return 2e-6, 0.5
        rows = tuple(ProgramShortfall(name, "", each, each) for name, each in short.items())
        raise InfeasibleProgram("size", rows, None, ())

    def changed(self, change: Any) -> Served:
        return replace(self, task=change(self.task))


def settled_by_hand(**changes: Any) -> Any:
    """A life of 100 dollars, of which training takes 60, reinforcement 10 and serving 30."""
    phases = {"pretrain": "h100", "rl": "b200", "inference": None}
    systems = {
        name: SimpleNamespace(system=chip and SimpleNamespace(chip=SimpleNamespace(name=chip)))
        for name, chip in phases.items()
    }
    answer = SimpleNamespace(
        cost=(60.0, 10.0, 30.0), total=100.0, n_active=8.0, pretrain=160.0, loss=2.0,
        task=SimpleNamespace(phases=systems),
    )  # fmt: skip
    promises = SimpleNamespace(ttft=0.5, tpot=None, e2e=None)
    part = SimpleNamespace(utilisation=0.5, promises=promises)
    life = SimpleNamespace(scenario=SimpleNamespace(inference=None, rl=None, serving=part))
    given = {
        "life": life, "answer": answer, "served": Served(), "sparsity": 4.0, "size_bound": 0.0,
        "full": False, "size_limit": "choose.largest",
        "price_elasticities": {"price": 1.0, "system.flops": -0.4, "promises.tpot": 1e-6},
    }  # fmt: skip
    return SimpleNamespace(**given | changes)


TRAINED = {"phases.pretrain.price": 0.6, "phases.pretrain.system.flops": -0.6,
           "phases.rl.price": 0.1, "inference.tokens": 4e-7, "law.A": -6e-7}  # fmt: skip


@pytest.fixture
def trained(monkeypatch):
    """What a budget's own quantities do is known."""
    monkeypatch.setattr(elasticities, "elasticities", lambda *_: dict(TRAINED))


def test_serving_counts_by_its_share_of_a_life(trained):
    """Three tenths of what its price does; a chip that trains and serves counts once more."""
    worth = lifecycle_elasticities(settled_by_hand())
    assert worth == pytest.approx({
        "phases.pretrain.price": 0.6, "phases.pretrain.system.flops": -0.6,
        "phases.rl.price": 0.1, "law.A": -6e-7, "serving.price": 0.3,
        "serving.system.flops": -0.12, "serving.utilisation": -0.3,
        "together.h100.price": 0.9, "together.h100.flops": -0.72,
    })  # fmt: skip
    alone = Served(machine="mi300x")
    others = lifecycle_elasticities(settled_by_hand(served=alone))
    assert not [name for name in others if name.startswith("together")]
    rent = lifecycle_elasticities(settled_by_hand(price_elasticities={"price": 1.0}))
    assert rent["together.h100.flops"] == -0.6
    held = lifecycle_elasticities(settled_by_hand(size_bound=-0.2))
    assert held["choose.largest"] == -0.2
    assert "serving.system.memory" not in held


def test_more_of_what_ends_the_sizes_is_room_for_larger_ones(trained):
    """By twice as many percent of memory, and of time, which grows with the root of the size."""
    worth = lifecycle_elasticities(
        settled_by_hand(size_bound=-0.2, full=True, price_elasticities={"system.memory": -0.1})
    )
    assert worth["serving.system.memory"] == pytest.approx(-0.4 - 0.03, rel=1e-6)
    assert "serving.promises.tpot" not in worth
    assert worth["serving.promises.ttft"] == pytest.approx(-0.4, rel=1e-6)
    assert worth["choose.largest"] == -0.2
    fits = settled_by_hand(size_bound=-0.2, full=True)
    fits.answer.n_active = 2.0
    assert "serving.promises.ttft" not in lifecycle_elasticities(fits)


def test_outputs_of_a_life_where_its_size_is_a_real_number():
    """In the words of a plan, what is nothing left out."""
    best = settled_by_hand()
    best.answer.n_active = 4.0
    best.answer.cost = (60.0, 0.0, 30.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            elasticities, "size_overtraining_ratio", lambda task, size, tokens: tokens / size
        )
        values = smooth_values(best)
    assert values == pytest.approx({
        "n_active": 4.0, "n_total": 16.0, "tokens.pretrain": 160.0, "tokens_per_parameter": 40.0,
        "loss": 2.0, "usd_per_mtok": 2.0, "cost.total.usd": 100.0, "over_training": 40.0,
        "cost.pretrain.usd": 60.0, "cost.inference.usd": 30.0,
    })  # fmt: skip


def test_rows_of_a_life_are_multipliers_or_settled_again(trained, monkeypatch):
    """The cost has multipliers, of what is no parameter too; a size's cube is settled again."""
    best = settled_by_hand()
    rows = [Parameter("serving.price", 2.0, "USD", "prices"), Parameter("a", 3.0, "s", "quality")]
    monkeypatch.setattr(elasticities, "cheapest_life", lambda life: best)
    monkeypatch.setattr(elasticities, "resolve_life", lambda scenario: scenario)
    monkeypatch.setattr(elasticities, "parameters", lambda best: rows)
    monkeypatch.setattr(elasticities, "smooth_values", lambda best: {"loss": 5.0})
    table = {row.path: row for row in lifecycle_rows(None, "cost.total.usd")}
    assert list(table)[:2] == ["serving.price", "a"]
    assert (table["serving.price"].left, table["serving.price"].right) == pytest.approx((0.3, 0.3))
    assert (table["a"].left, table["a"].right, table["a"].unit) == (0, 0, "s")
    assert {row.method for row in table.values()} == {"dual"}
    groups = {path: row.group for path, row in table.items()}
    assert groups["serving.utilisation"] == "prices"
    assert groups["serving.system.flops"] == groups["together.h100.price"] == "chip"
    assert (groups["phases.rl.price"], groups["law.A"], groups["a"]) == ("phases", "law", "quality")

    def settled(best, row, factor):
        return {"loss": 5 * factor**3} if row.path == "a" or factor > 1 else None

    monkeypatch.setattr(elasticities, "perturbed_outputs", settled)
    cubes = lifecycle_rows(None, "loss")
    assert [row.path for row in cubes] == ["serving.price", "a"]
    for row in cubes:
        assert (row.left, row.right) == pytest.approx((3, 3), abs=1e-5)
        assert row.method == "re-solve"
    monkeypatch.setattr(elasticities, "cheapest_life", lambda life: None)
    with pytest.raises(planner.InputError, match="no life"):
        lifecycle_rows(None, "loss")


def test_a_quantity_moves_the_budget_or_what_serves(monkeypatch):
    """Whichever its parameter gives; nothing where nothing settles."""
    best = settled_by_hand()
    asked = []

    def settles(life, budget, served, sparsity):
        asked.append((budget, served, sparsity))
        if served == "none":
            raise SolverError("no optimum")
        return "settled"

    monkeypatch.setattr(elasticities, "fixed_layout_optimum", settles)
    monkeypatch.setattr(elasticities, "smooth_values", lambda best: {"loss": best})
    monkeypatch.setattr(elasticities, "BudgetTask", float)
    budget = best.answer.task = 7.0
    assert perturbed_outputs(
        best, Parameter("a", 1.0, "", "", lambda factor: 7.0 * factor), 2.0
    ) == {"loss": "settled"}
    assert (
        perturbed_outputs(best, Parameter("a", 1.0, "", "", lambda factor: "faster"), 2.0)
        is not None
    )
    assert perturbed_outputs(best, Parameter("a", 1.0, "", ""), 2.0) is not None
    assert perturbed_outputs(best, Parameter("a", 1.0, "", "", lambda factor: "none"), 2.0) is None
    assert asked == [(14.0, best.served, 4.0), (budget, "faster", 4.0), (budget, best.served, 4.0),
                     (budget, "none", 4.0)]  # fmt: skip


def test_parameters_of_serving_are_eased_one_by_one():
    """The rent without electricity; only promises that were made."""
    rows = {row.path: row for row in serving_parameters(settled_by_hand(served=ServedAlso()))}
    assert list(rows) == [
        "serving.utilisation", "serving.price", "serving.system.memory_bandwidth",
        "serving.system.memory", "serving.system.flops", "serving.promises.ttft",
    ]  # fmt: skip
    values = {path.removeprefix("serving."): row.value for path, row in rows.items()}
    assert values == {"utilisation": 0.5, "price": 2.0, "system.memory_bandwidth": 3e12,
                      "system.memory": 8.0, "system.flops": None, "promises.ttft": 0.5}  # fmt: skip
    assert rows["serving.utilisation"].to(1.5).utilisation == 0.75
    assert rows["serving.price"].to(2.0).task.price == 6.0
    assert rows["serving.system.memory"].to(2.0).task.chip.memory == 16.0
    assert rows["serving.system.flops"].to(3.0).task.chip.flops == 3.0
    assert rows["serving.promises.ttft"].to(2.0).task.promises == {"ttft": 1.0}
    without = ServedAlso(task=Asked(chip=WideChip(), promises={}))
    eased = rows["serving.promises.ttft"]
    # Of two pools the one that reads has promised it.
    both = SimpleNamespace(parts=[*ServedAlso().parts, *without.parts], changed=without.changed)
    paths = {row.path for row in serving_parameters(settled_by_hand(served=both))}
    assert "serving.promises.ttft" in paths
    assert "serving.promises.ttft" not in {
        row.path for row in serving_parameters(settled_by_hand(served=without))
    }
    assert eased.unit == "s"


@dataclass(frozen=True)
class WideChip(Chip):
    """A chip that reads its memory."""

    memory_bandwidth: float = 3e12


@dataclass(frozen=True)
class ServedAlso(Served):
    """The same on a chip that reads its memory."""

    task: Asked = Asked(chip=WideChip())


def test_overtraining_is_read_off_the_pools_of_an_additive_law(monkeypatch):
    """Where nothing holds the size, nor a token is read twice."""
    monkeypatch.setattr(elasticities, "overtraining_of_pools", lambda answer, slope: 10 * slope)
    task = {"repeats": False, "rl_term": None, "choices": (1, 2)}
    for changes, expected in (
        ({}, 5.0), ({"repeats": True}, None), ({"rl_term": "term"}, None),
        ({"choices": (1, 2, 3)}, None),
    ):  # fmt: skip
        answer = SimpleNamespace(
            task=SimpleNamespace(**{**task, **changes}), budgets=SimpleNamespace(choices=(4, 5))
        )
        assert overtraining_from_pools(SimpleNamespace(answer=answer, slope=0.5)) == expected
