"""Elasticities of a budget against solving again with the given a little off."""

from __future__ import annotations

import copy
import math

import pytest

from planner.laws.laws import scaling_law
from planner.problems.budget.outputs import overtraining
from planner.problems.budget.resolve import resolve_budget
from planner.scenario import load
from planner.token_costs.optimum import BudgetOptimum, solve_many
from planner.token_costs.parameters import elasticities
from tests.loops import for_all

STEP = 1e-4
PHASES = {
    "pretrain": {"system": "hgx-h100", "mfu": 0.4, "price": 2.5 / 3600},
    "rl": {"system": "hgx-h100", "mfu": 0.2, "price": 2.0 / 3600},
    "inference": {"system": "hgx-h200", "mfu": 0.15, "price": 3.0 / 3600},
}
CURVE = {"rate": 1e6, "lifetime": 6e7, "growth": 0.4, "discount": 0.1, "obsolescence": 0.3}
LAW = {"form": "chinchilla", "coefficients": dict(scaling_law("besiroglu-2024").values)}
REPEATED = {"form": "repetition", "coefficients": dict(scaling_law("muennighoff-2023").values)}
REINFORCED = {"form": "reinforced",
              "coefficients": {**LAW["coefficients"], "B_rl": 5.0, "beta_rl": 0.2}}  # fmt: skip
REWARD = {"needed": 0.5, "start": 0.2, "middle": 1e21, "steepness": 1.5, "most": 0.61}

CASES = {
    "dollars": {"objective": "cost", "phases": PHASES, "quality": {"like": {"n_active": 13e9}},
                "inference": {"tokens": 2e12}, "rl": {"tokens": 2e11, "k": 4.0}},
    "flop": {"quality": {"loss": 2.05}, "inference": {"tokens": 2e13}},
    "a curve": {"objective": "cost", "phases": PHASES, "inference": CURVE,
                "quality": {"like": {"n_active": 8e9, "tokens": 15e12}}},
    "a reward": {"objective": "cost", "phases": PHASES, "quality": {"loss": 2.1},
                 "inference": {"tokens": 1e12}, "rl": {"reward": REWARD}},
    "a term": {"objective": "cost", "phases": PHASES, "quality": {"loss": 2.3},
               "inference": {"tokens": 1e12},
               "rl": {"k": 4, "loss": {"coefficient": 5.0, "exponent": 0.2}}},
    "a law's own term": {"law": REINFORCED, "objective": "cost", "phases": PHASES, "rl": {"k": 4},
                         "quality": {"loss": 2.3}, "inference": {"tokens": 1e12}},
    "a law's own term, its tokens given": {
        "law": REINFORCED, "cost": "5e6 USD", "phases": PHASES, "inference": {"tokens": 1e12},
        "rl": {"k": 4, "tokens": 1e12}},
    "money": {"cost": "5e6 USD", "phases": PHASES, "inference": {"tokens": 2e12}},
    "money, reinforced": {"cost": "5e6 USD", "phases": PHASES, "rl": {"tokens": 1e12, "k": 2.5}},
    "arithmetic": {"cost": "1e24 FLOP", "inference": {"tokens": 2e12}},
    "repeated": {"law": REPEATED, "quality": {"like": {"n_active": 13e9}},
                 "inference": {"tokens": 2e12}, "data": {"unique": 2e11}},
    "repeated at a cost": {"law": REPEATED, "cost": 5e22, "data": {"unique": 5e10}},
    "the end of the data": {"quality": {"like": {"n_active": 13e9}},
                            "inference": {"tokens": 2e12}, "data": {"unique": 5e11}},
    "the end of the data at a cost": {"cost": "1e24 FLOP", "inference": {"tokens": 2e12},
                                      "data": {"unique": 1e12}},
    "a given size": {"quality": {"like": {"n_active": 13e9}}, "inference": {"tokens": 2e12},
                     "choose": {"n_active": 7e9}},
    "a given size at a cost": {"cost": 1e24, "inference": {"tokens": 2e12},
                               "choose": {"n_active": 7e9}},
    "a given size and a reward": {
        "objective": "cost", "phases": PHASES, "quality": {"loss": 2.1},
        "inference": {"tokens": 1e12}, "rl": {"reward": REWARD}, "choose": {"n_active": 7e9}},
    "given tokens": {"quality": {"loss": 2.05}, "inference": {"tokens": 2e12},
                     "choose": {"pretrain": 1e12}},
    "all given": {"quality": {"loss": 2.5}, "inference": {"tokens": 2e12},
                  "choose": {"pretrain": 1e12, "n_active": 7e9}},
    "all given at a cost": {"cost": 1e28, "inference": {"tokens": 2e12},
                            "choose": {"pretrain": 1e12, "n_active": 7e9}},
}  # fmt: skip


def best(given: dict) -> tuple[BudgetOptimum, object]:
    scenario = load({"problem": "budget", "units": "base", "law": LAW, "draws": 0, **given})
    (found,) = solve_many(resolve_budget(scenario).tasks)
    assert isinstance(found, BudgetOptimum), found
    return found, scenario


def moved(given: dict, path: str, factor: float) -> dict:
    """The scenario with the value at a path multiplied."""
    changed = copy.deepcopy({"law": LAW, **given})
    *above, last = path.split(".")
    if above and above[0] == "law":
        above = ["law", "coefficients"]
    holder = changed
    for part in above:
        holder = holder[part]
    value = holder[last]
    if isinstance(value, str):
        number, unit = value.split()
        holder[last] = f"{float(number) * factor!r} {unit}"
    else:
        holder[last] = value * factor
    return changed


def peak(given: dict, path: str, factor: float) -> dict:
    """The scenario with the peak of a phase's chip multiplied."""
    changed = copy.deepcopy(given)
    _, phase, _, _, dtype = path.split(".")
    name = changed["phases"][phase]["system"]
    flops = {"hgx-h100": 989e12, "hgx-h200": 989e12}[name]
    changed["phases"][phase]["system"] = {"like": name, "flops": {dtype: flops * factor}}
    return changed


@for_all("name", CASES)
def test_elasticities_are_those_of_solving_again(name):
    """Every given of every kind of budget, to 1e-3 of itself or 1e-5."""
    given = CASES[name]
    answer, scenario = best(given)
    found = elasticities(answer, scenario.inference, scenario.rl)
    assert found
    for path, elasticity in found.items():
        change = peak if ".flops." in path else moved
        ends = [best(change(given, path, math.exp(sign * STEP)))[0].score for sign in (1, -1)]
        slope = math.log(ends[0] / ends[1]) / (2 * STEP)
        assert elasticity == pytest.approx(slope, rel=1e-3, abs=1e-5), path


def test_prices_and_utilisations_are_worth_the_shares_of_their_phases():
    """Cost is homogeneous in prices: their elasticities add up to one."""
    answer, scenario = best(CASES["dollars"])
    found = elasticities(answer, scenario.inference, scenario.rl)
    prices = [found[f"phases.{name}.price"] for name in PHASES]
    assert sum(prices) == pytest.approx(1, abs=1e-12)
    for name in PHASES:
        assert found[f"phases.{name}.mfu"] == pytest.approx(-found[f"phases.{name}.price"])


def test_the_price_of_quality_is_the_multiplier_of_the_program():
    """d ln cost / d ln(loss) is minus loss times the multiplier over the reducible loss."""
    answer, scenario = best(CASES["flop"])
    reducible = answer.loss - answer.task.terms.floor
    expected = -answer.loss * answer.multiplier / reducible
    assert elasticities(answer, scenario.inference, scenario.rl)["quality.loss"] == pytest.approx(
        expected, rel=1e-6
    )


def test_served_tokens_move_the_tokens_of_training_as_the_formula_says():
    """`serving_shift` of formulas: training tokens per served tokens at equal quality."""
    from formulas.scaling.overtraining import serving_shift

    given = {"quality": {"like": {"n_active": 13e9}}, "inference": {"tokens": 2e12}}
    answer, _ = best(given)
    ends = [best(moved(given, "inference.tokens", math.exp(s * STEP)))[0] for s in (1, -1)]
    slope = math.log(ends[0].pretrain / ends[1].pretrain) / (2 * STEP)
    law = answer.task.law.values
    shift = serving_shift.numpy("r_all", "alpha_N", "beta_D")
    expected = float(shift(answer.total / answer.cost[0], law["alpha_N"], law["beta_D"]))
    assert slope == pytest.approx(expected, rel=1e-5)


def test_the_identity_of_over_training_holds_with_pools_that_do_not_grow():
    """A reward's arithmetic is fixed: its pool counts in the cost, not in the over-training."""
    answer, _ = best(CASES["a reward"])
    ratio = overtraining(answer)
    beta = answer.task.law.values["beta_D"]
    without = ((answer.cost[0] + answer.cost[2]) / answer.cost[0]) ** (1 / beta)
    with_it = (answer.total / answer.cost[0]) ** (1 / beta)
    assert ratio.ratio == pytest.approx(without, rel=1e-9)
    assert with_it > 1.01 * without
