"""Elasticities of budgets and lifecycles against solving again with a value changed."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

import planner
from planner.problems.budget.problem import budget_rows
from planner.problems.lifecycle.elasticities import (
    lifecycle_elasticities,
    parameters,
    perturbed_outputs,
    smooth_values,
)
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum
from planner.protocol.elasticity import one_sided
from planner.protocol.parameter import Parameter, settable
from planner.protocol.problem import search
from planner.scenario import load
from tests.cases.lifecycle import scenario as life_scenario
from tests.sizes import first, seldom

STEP = 2e-3
PHASES = {
    "pretrain": {"system": "hgx-h100", "mfu": 0.4, "price": 2.5 / 3600},
    "rl": {"system": "hgx-h100", "mfu": 0.2, "price": 2.0 / 3600},
    "inference": {"system": "hgx-h200", "mfu": 0.15, "price": 3.0 / 3600},
}
OUTPUTS = ("n_active", "tokens.pretrain", "over_training", "loss", "cost.total.flop")


def budget(seed: int) -> dict:
    """A random budget."""
    rng = random.Random(seed)
    given: dict = {
        "problem": "budget",
        "units": "base",
        "draws": 0,
        "inference": {"tokens": 10 ** rng.uniform(11, 14)},
    }
    law = rng.choice(["besiroglu-2024", "hoffmann-2022-3", "muennighoff-2023"])
    given["law"] = "besiroglu-2024" if law == "hoffmann-2022-3" else law
    if rng.random() < 0.6:
        given["objective"] = "cost"
        given["phases"] = PHASES
    if rng.random() < 0.5:
        given["rl"] = {"tokens": 10 ** rng.uniform(10, 12), "k": rng.choice([2.5, 3.0, 4.0])}
    if rng.random() < 0.7:
        given["quality"] = {"like": {"n_active": 10 ** rng.uniform(9.5, 11)}}
    else:
        in_usd = given.get("objective") == "cost"
        amount = 10 ** (rng.uniform(6, 7) if in_usd else rng.uniform(23, 25))
        given["cost"] = f"{amount!r} {'USD' if in_usd else 'FLOP'}"
    if law == "muennighoff-2023" or rng.random() < 0.2:
        given["data"] = {"unique": 10 ** rng.uniform(11.5, 13)}
    if rng.random() < 0.3:
        del given["inference"]["tokens"]
        given["inference"] |= {"rate": 10 ** rng.uniform(5, 7), "lifetime": "2 years",
                               "growth": 0.4, "discount": 0.1, "obsolescence": 0.2}  # fmt: skip
    return given


def compared(given: dict) -> int:
    """How many elasticities of one budget were compared."""
    scenario = load(given)
    best = search(scenario)
    if not best.feasible:
        return 0
    count = 0
    for name in OUTPUTS:
        if name not in best.outputs:
            continue
        for row in budget_rows(scenario, name):
            parameter = Parameter(row.path, row.value, row.unit, row.group)
            varied, *_ = settable(scenario, [parameter] * (row.group != "law")) or (None,)
            if varied is None or varied.to is None or abs(row.left - row.right) > 1e-4:
                continue
            ends = [search(varied.to(math.exp(sign * STEP))).outputs[name] for sign in (1, -1)]
            slope = math.log(ends[0] / ends[1]) / (2 * STEP)
            assert row.right == pytest.approx(slope, rel=1e-3, abs=1e-3), (name, row.path)
            count += 1
    return count


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_elasticities_of_a_budget_are_those_of_solving_again(seed):
    """Size, tokens, over-training, loss and cost, to 1e-3, the sparsity held."""
    assert compared(budget(seed)) > 10


@pytest.mark.parametrize("seed", [*first(0, range(4, 8)), *seldom(range(8, 100))])
def test_elasticities_of_a_hundred_budgets_are_those_of_solving_again(seed):
    """The same of many more."""
    compared(budget(seed))


def test_a_budget_has_another_slope_on_either_side_of_the_end_of_its_data():
    """Where unique data just suffices, more of it changes nothing and less does."""
    free = {"problem": "budget", "units": "base",
            "draws": 0, "quality": {"like": {"n_active": 13e9}},
            "inference": {"tokens": 2e12}}  # fmt: skip
    tokens = search(load(free)).outputs["tokens.pretrain"]
    given = {**free, "data": {"unique": tokens * (1 + 1e-9)}}
    rows = {row.path: row for row in budget_rows(load(given), "tokens.pretrain")}
    unique = rows["data.unique"]
    assert unique.right == pytest.approx(0, abs=1e-4)
    assert unique.left == pytest.approx(1, abs=1e-3)


def test_one_sided_slopes_are_of_second_order():
    """A parabola has exactly its own; a side without values takes the other's."""
    step = 1e-3
    values = [(1 + offset * step) ** 2 for offset in (-2, -1, 1, 2)]
    assert one_sided(1.0, values) == pytest.approx((2, 2), abs=1e-9)
    left, right = one_sided(1.0, [None, None, *values[2:]])
    assert left == right == pytest.approx(2, abs=1e-9)


PATHS = {
    ("inference", "tokens"): "inference.tokens",
    ("quality", "like", "n_active"): "quality.like.n_active",
    ("serving", "price"): "serving.price",
    ("serving", "promises", "tpot"): "serving.promises.tpot",
}


def lifecycle(seed: int) -> dict:
    """A random lifecycle; the first is that of the other tests."""
    given = life_scenario(draws=0)
    given["serving"] = {**given["serving"], "price": 2.5 / 3600}
    given["serving"]["promises"] = {"ttft": 2.0, "tpot": 0.04}
    if seed:
        rng = random.Random(seed)
        given["quality"] = {"like": {"n_active": 10 ** rng.uniform(9.8, 11)}}
        given["inference"] = {"tokens": 10 ** rng.uniform(11.5, 14)}
        given["serving"]["system"] = rng.choice(["hgx-h100", "hgx-h200", "hgx-b200"])
        given["serving"]["promises"]["tpot"] = rng.choice([0.02, 0.05, 0.1])
        lengths = {"input_tokens": rng.choice([500, 3000, 8000]), "output_tokens": 600}
        given["serving"]["workload"] = lengths
    return given


def resettled(best, changed: dict, path: str) -> dict[str, float]:
    """The lifecycle of a changed scenario on the layouts of the first one."""
    from planner.problems.lifecycle.resolve import resolve_life
    from planner.problems.lifecycle.search.optimal_size import fixed_layout_optimum

    life = resolve_life(load(changed))
    served = best.served
    if path == "serving.price":
        served = served.changed(lambda task: replace(task, price=life.serving.hardware[0].price))
    if path == "serving.promises.tpot":
        promised = life.scenario.serving.promises.tpot
        served = served.changed(
            lambda task: task.with_layout(promises={**task.promises, "tpot": promised})
        )
    question = life.budget(best.sparsity)
    return smooth_values(fixed_layout_optimum(life, question, served, best.sparsity))


def compared_life(given: dict, paths: dict = PATHS) -> int:
    """How many elasticities of one lifecycle were compared."""
    from planner.problems.lifecycle.resolve import resolve_life
    from planner.problems.lifecycle.search.optimal_size import optimal_size

    best = optimal_size(resolve_life(load(given)), 1.0)
    if not isinstance(best, FixedLayoutOptimum):
        return 0
    givens = {row.path: row for row in parameters(best)}
    worth, count = lifecycle_elasticities(best), 0
    for path, dotted in paths.items():
        # Not every layout has an optimum beside the one it was chosen for.
        try:
            other = [
                resettled(best, scaled(given, path, math.exp(sign * 5e-3)), dotted)
                for sign in (1, -1)
            ]
        except planner.SolverError:
            continue
        own = [perturbed_outputs(best, givens[dotted], math.exp(sign * 1e-3)) for sign in (1, -1)]
        for name in ("n_active", "tokens.pretrain", "over_training", "cost.total.usd"):
            slope = math.log(other[0][name] / other[1][name]) / 1e-2
            mine = math.log(own[0][name] / own[1][name]) / 2e-3
            if mine != pytest.approx(slope, rel=2e-3, abs=1e-3):  # a kink lies between the steps
                far = [
                    perturbed_outputs(best, givens[dotted], math.exp(sign * 5e-3))
                    for sign in (1, -1)
                ]
                mine = math.log(far[0][name] / far[1][name]) / 1e-2
            assert mine == pytest.approx(slope, rel=2e-3, abs=1e-3), (name, dotted)
            count += 1
        if worth.get(dotted, 0.0) != pytest.approx(mine, rel=2e-3, abs=1e-3):
            ends = [
                perturbed_outputs(best, givens[dotted], math.exp(sign * 1e-4)) for sign in (1, -1)
            ]
            mine = math.log(ends[0][name] / ends[1][name]) / 2e-4  # within the kink
        if abs(mine) > 1e-3:
            assert worth[dotted] == pytest.approx(mine, rel=2e-3, abs=1e-3), dotted
    return count


@pytest.mark.slow
def test_elasticities_of_a_lifecycle_are_those_of_settling_again():
    """Size, tokens, over-training and cost, to 1e-3, the serving layout held."""
    few = {path: PATHS[path] for path in [("inference", "tokens"), ("serving", "promises", "tpot")]}
    given = lifecycle(0)
    given["serving"]["promises"]["tpot"] = 0.025  # which binds
    assert compared_life(given, few) == 8


@pytest.mark.parametrize("seed", [*first(0, range(1, 4)), *seldom(range(4, 100))])
def test_elasticities_of_a_hundred_lifecycles_are_those_of_settling_again(seed):
    """The same of many more."""
    compared_life(lifecycle(seed))


def scaled(given: dict, path: tuple[str, ...], factor: float) -> dict:
    """The mapping with one value multiplied."""
    key, *rest = path
    value = scaled(given[key], tuple(rest), factor) if rest else given[key] * factor
    return {**given, key: value}


def test_the_table_of_a_budget_is_that_of_its_plan():
    """What its cost hangs on, from its own multipliers."""
    given = budget(0) | {"quality": {"like": {"n_active": 13e9}}}
    given.pop("cost", None)
    plan = planner.solve(given)
    found = planner.sensitivity(given)
    for path, value in found.items():
        assert value == pytest.approx(plan.elasticities.get(path, 0.0)), path


def test_an_output_that_is_not_there_is_refused():
    """With the nearest, or with what there is."""
    with pytest.raises(planner.InputError, match="did you mean 'over_training'"):
        planner.sensitivity(budget(1), output="over_trainin")
    with pytest.raises(planner.InputError, match="tpot"):
        planner.sensitivity(budget(1), output="tpot")


def test_a_kink_beside_a_budget_is_no_kink_of_it():
    """Unique data run out 0.07 % below the required loss: nearer than the first step."""
    scenario = {
        "problem": "budget", "units": "base", "law": "sardana-2024", "quality": {"loss": 2.1},
        "inference": {"tokens": "0.5 T tokens"}, "data": {"unique": "1 T tokens"},
        "phases": {"pretrain": {"system": "hgx-h200", "mfu": 0.45},
                   "inference": {"system": "hgx-h100", "mfu": 0.1}},
    }  # fmt: skip
    rows = {row.path: row for row in planner.sensitivity(scenario, output="tokens").rows}
    step = 1e-5
    ends = [
        planner.solve(scenario, sets=[f"quality.loss={2.1 * math.exp(x)!r}"]).chosen["tokens"]
        for x in (-step, step)
    ]
    slope = math.log(ends[1]["pretrain"] / ends[0]["pretrain"]) / (2 * step)
    row = rows["quality.loss"]
    assert (row.left, row.right) == pytest.approx((slope, slope), rel=1e-3)
