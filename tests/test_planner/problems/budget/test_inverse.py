"""The load that makes a model optimal, the spread over laws, and the public text there is."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import pytest
from scipy.optimize import minimize_scalar

import planner
from planner.text.errors import InputError


def _budget(size: float, tokens: float, **more: Any) -> dict[str, Any]:
    like = {"n_active": size, "tokens": tokens}
    return {
        "problem": "budget",
        "quality": {"like": like},
        "inference": {"tokens": "optimal"},
    } | more


@pytest.mark.parametrize(
    ("law", "size", "tokens"),
    [("besiroglu-2024", 8e9, 15e12), ("hoffmann-2022-approach-3", 70e9, 15e12),
     ("sardana-2024", 13e9, 2e12)],
)  # fmt: skip
def test_the_served_tokens_make_the_model_the_cheapest_of_its_quality(
    law: str, size: float, tokens: float
) -> None:
    plan = planner.solve(_budget(size, tokens, law=law))
    point = plan.answer.plan
    assert point.n_active == pytest.approx(size, rel=1e-6)
    assert point.tokens.pretrain == pytest.approx(tokens, rel=1e-6)
    # By another method: the least of 6 N D + 2 N served along the curve of equal loss.
    x = point.coefficients
    served, loss = plan.answer.demand.tokens, point.loss

    def cost(log_size: float) -> float:
        n = math.exp(log_size)
        rest = loss - x["loss_min"] - x["A_N"] * n ** -x["alpha_N"]
        return 6 * n * (rest / x["B_D"]) ** (-1 / x["beta_D"]) + 2 * n * served

    least = minimize_scalar(
        cost, bounds=(math.log(size / 1.5), math.log(size * 1.5)), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    assert math.exp(least.x) == pytest.approx(size, rel=1e-3)


def test_the_tokens_that_were_sought_stand_in_the_scenario_and_answer_the_same() -> None:
    sought = planner.solve(_budget(8e9, 15e12))
    served = sought.answer.scenario["inference"]["tokens"]
    given = planner.solve(_budget(8e9, 15e12, inference={"tokens": served}))
    assert given.answer.plan.total == pytest.approx(sought.answer.plan.total, rel=1e-9)
    late = _budget(8e9, 15e12, inference={"tokens": "optimal", "obsolescence": 0.5})
    assert planner.solve(late).answer.demand.tokens == pytest.approx(2 * served)
    spread, by_law = sought.answer.over_laws, []
    for law in spread.laws:
        with suppress(InputError):  # a law by which no number makes the model optimal
            by_law.append(planner.solve(_budget(8e9, 15e12, law=law)).answer.demand.tokens)
    assert spread.served == pytest.approx((min(by_law), max(by_law)))
    assert "! other laws: optimal with" in sought.text("more")


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (_budget(8e9, 10e9), "fewer than the"),
        (_budget(8e9, 15e12, rl={"tokens": 1e12}), "leave rl out"),
        (_budget(8e9, 15e12, quality={"loss": 2.0}), "give quality"),
        (_budget(8e9, 15e12, inference={"tokens": math.inf}), "inference.tokens"),
    ],
)
def test_where_no_load_makes_a_model_optimal_it_says_so(scenario: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        planner.solve(scenario)


def test_a_spread_over_laws_holds_each_of_them() -> None:
    scenario = _budget(70e9, 15e12, inference={"tokens": 1e14})
    spread = planner.solve(scenario).answer.over_laws
    for law in ("hoffmann-2022-approach-3", "kaplan-2020"):
        assert law in spread.laws
        point = planner.solve(scenario | {"law": law}).answer.plan
        assert spread.n_active[0] <= point.n_active * (1 + 1e-9)
        assert point.n_active <= spread.n_active[1] * (1 + 1e-9)
        assert spread.cost[0] * (1 - 1e-9) <= point.total <= spread.cost[1] * (1 + 1e-9)


def test_a_loss_is_a_number_of_one_law() -> None:
    scenario = {"problem": "budget", "quality": {"loss": 2.1}}
    assert planner.solve(scenario).answer.over_laws is None


def test_more_fresh_tokens_than_there_are_are_named_with_the_stock() -> None:
    modest = planner.solve(_budget(8e9, 15e12))
    assert not any("public text" in warning for warning in modest.warnings)
    assert modest.answer.unique_data.stock == 3e14
    assert "5% of the public text there is" in modest.text("more")
    greedy = planner.solve(_budget(100e9, 150e12, inference={"tokens": 1e18}))
    assert greedy.answer.plan.tokens.pretrain > 3e14
    (said,) = (warning for warning in greedy.warnings if "public text" in warning)
    assert "is more than" in said
    assert "Villalobos" in said
    own = _budget(100e9, 150e12, inference={"tokens": 1e16}, data={"unique": 1e16})
    assert planner.solve(own).answer.unique_data is None
