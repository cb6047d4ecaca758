"""Budgets as sums of powers: values by hand, derivatives by differences, tangents from below."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from formulas.scaling.power_laws import excess_worth, passes_for_worth, repetition_worth
from planner.token_costs.budget_task import stack_budgets
from planner.token_costs.posynomial_form import Budgets, Saturation
from tests.cases.budget import question

UNIQUE = 2.5e10
# Two budgets of three choices: coefficients of a cost, of a loss, and the exponents in them.
COST, LOSS = np.array([[6.0, 2.0], [3.0, 5.0]]), np.array([[400.0, 900.0, 7.0], [50.0, 80.0, 9.0]])
COST_POWERS = np.array([[1.0, 1.0, 0.0], [0.7, 0.0, 1.0]])
LOSS_POWERS = -np.array(
    [[[0.3, 0, 0], [0, 0.4, 0], [0.1, 0.2, 0.5]], [[0.35, 0, 0], [0, 0.25, 0], [0, 0.3, 0.2]]]
)
VALUES = np.array([[11.0, 30.0, 5.0], [40.0, 90.0, 3.0]])  # of the choices


def budgets(curved: bool = False) -> Budgets:
    """Both budgets; `curved`: with knees of the first two choices, both sides of VALUES."""
    knees = {
        "pretrain": Saturation(np.log([20.0, 100.0]), np.array([3.0, 4.0])),
        "n_active": Saturation(np.log([20.0, 16.0]), np.array([2.0, 5.0])),
    }
    return Budgets(
        cost=np.log(COST), cost_powers=COST_POWERS, loss=np.log(LOSS), loss_powers=LOSS_POWERS,
        limit=np.log([1e3, 2e3]), aim="cost", choices=("n_active", "pretrain", "rl"),
        curved=knees if curved else {},
    )  # fmt: skip


def worth(x: float, knee: float, reach: float) -> float:
    """What counts of a choice with a knee, by the equation of repeated tokens."""
    if x <= knee:
        return x
    return float(repetition_worth.numpy()(D_pt=x, D_unique=knee, R_half=reach))


def by_hand(which: int, values: np.ndarray, curved: bool) -> tuple[float, float]:
    """Cost and reducible loss of one budget at the values of its choices."""
    counted = values.copy()
    if curved:
        counted[0] = worth(values[0], (20.0, 16.0)[which], (2.0, 5.0)[which])
        counted[1] = worth(values[1], (20.0, 100.0)[which], (3.0, 4.0)[which])
    terms = zip(LOSS[which], LOSS_POWERS[which], strict=True)
    cost = sum(
        c * math.prod(values**powers) for c, powers in zip(COST[which], COST_POWERS, strict=True)
    )
    return cost, sum(c * math.prod(counted**powers) for c, powers in terms)


@pytest.mark.parametrize("curved", [False, True], ids=["powers", "knees"])
def test_sums_of_powers_are_those_by_hand(curved):
    """Value and shares of cost and loss, and their slopes and curvature by central differences."""
    asked, point, step = budgets(curved), np.log(VALUES), 1e-4
    for name, column in (("costs", 0), ("losses", 1)):
        found = getattr(asked, name)(point)
        expected = [by_hand(i, VALUES[i], curved)[column] for i in range(2)]
        assert np.exp(found.value) == pytest.approx(np.array(expected), rel=1e-12)
        assert found.shares.sum(axis=1) == pytest.approx(1.0, rel=1e-12)
        for j in range(3):
            moved = np.eye(3)[j] * step
            more, less = (getattr(asked, name)(point + side * moved) for side in (1, -1))
            slope = (more.value - less.value) / (2 * step)
            assert found.slope[:, j] == pytest.approx(slope, abs=1e-8)
            curvature = (more.slope - less.slope) / (2 * step)
            assert found.curvature[:, j] == pytest.approx(curvature, abs=1e-7)
    paid = asked.costs(point)
    whole = 6 * 11 * 30 + 2 * 11**0.7 * 5
    assert paid.shares[0, 0] == pytest.approx(6 * 11 * 30 / whole, rel=1e-12)


def test_a_sum_of_no_terms_is_zero():
    """Its logarithm is minus infinity, and nothing of it is not a number."""
    absent = replace(budgets(), cost=np.full((2, 2), -np.inf))
    found = absent.costs(np.log(VALUES))
    assert found.value.tolist() == [-np.inf, -np.inf]
    assert not found.shares.any()
    assert not found.slope.any()


def test_terms_of_any_height_are_added():
    """Whose logarithms no number has: the higher is the sum, the other nothing of it."""
    high = replace(budgets(), cost=np.array([[1500.0, -1500.0], [-1500.0, 1500.0]]))
    found = high.costs(np.zeros((2, 3)))
    assert found.value.tolist() == [1500.0, 1500.0]
    assert found.shares.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("choice", ["n_active", "pretrain", "rl"])
def test_a_choice_that_is_held_leaves_the_sums_as_they_are(choice):
    """At its value both sums are those with the choice, knees included; its column is gone."""
    asked, point = budgets(curved=True), np.log(VALUES)
    column = asked.choices.index(choice)
    rest = [j for j in range(3) if j != column]
    held = asked.fixed(choice, point[:, column])
    assert held.choices == tuple(asked.choices[j] for j in rest)
    assert set(held.curved) == {"n_active", "pretrain"} - {choice}
    for name in ("costs", "losses"):
        whole, part = getattr(asked, name)(point), getattr(held, name)(point[:, rest])
        assert part.value == pytest.approx(whole.value, rel=1e-13)
        assert part.slope == pytest.approx(whole.slope[:, rest], rel=1e-12)
    assert held.fixed(choice, point[:, column]) is held


def test_rows_are_the_budgets_of_their_numbers():
    """Repeated, or one alone: coefficients, exponents, limits and knees go together."""
    asked, point = budgets(curved=True), np.log(VALUES)
    assert len(asked) == 2
    again = asked.rows(np.array([1, 0, 1]))
    whole = asked.losses(point).value
    assert again.losses(point[[1, 0, 1]]).value == pytest.approx(whole[[1, 0, 1]], rel=1e-15)
    assert again.limit.tolist() == asked.limit[[1, 0, 1]].tolist()
    alone = asked.row(1)
    assert len(alone) == 1
    assert alone.losses(point[1:]).value == pytest.approx(whole[1:], rel=1e-15)
    assert alone.costs(point[1:]).value == pytest.approx(asked.costs(point).value[1:], rel=1e-15)


def test_a_knee_counts_as_the_equations_of_repetition_say():
    """Tokens and parameters, in full below the knee, and back again by the inverse."""
    knee, reach = 20.0, 1.7
    curve = Saturation(np.log([knee]), np.array([reach]))
    for x in (0.5, 20.0, 21.0, 60.0, 150.0):
        expected = worth(x, knee, reach)
        if x > knee:
            excess = excess_worth.numpy()(N_active=x, N_fed=knee, R_excess=reach)
            assert expected == pytest.approx(float(excess), rel=1e-14)
            back = passes_for_worth.numpy()(D_eff=expected, D_unique=knee, R_half=reach)
            assert float(back) == pytest.approx(x, rel=1e-9)
        log = np.log([x])
        value, slope, bend = curve.at(log)
        assert np.exp(value) == pytest.approx(expected, rel=1e-13)
        assert curve.inverse(value) == pytest.approx(log, abs=1e-9)
        if x == knee:
            assert (slope, bend) == (1.0, 0.0)  # the side on which tokens count in full
            continue
        step = 1e-4
        (more, steeper, _), (less, flatter, _) = curve.at(log + step), curve.at(log - step)
        assert slope == pytest.approx((more - less) / (2 * step), abs=1e-7)
        assert bend == pytest.approx((steeper - flatter) / (2 * step), abs=1e-6)
    assert np.exp(curve.ceiling) == pytest.approx(knee * (1 + reach))
    assert curve.at(np.log([1e9]))[0] == pytest.approx(curve.ceiling, rel=1e-14)
    assert np.isinf(curve.inverse(curve.ceiling + 1e-9)).all()


def test_without_knees_a_choice_is_worth_itself():
    """Beside choices with a knee those without count in full, with slope one and no bend."""
    asked, point = budgets(curved=True), np.log(VALUES)
    value, rate, bend = asked._worths(point)
    assert value[:, 2].tolist() == point[:, 2].tolist()
    assert rate[:, 2].tolist() == [1.0, 1.0]
    assert bend[:, 2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("n", "d"), [(2e9, 1e11), (6e9, 3e11), (1e9, 1e10), (5e9, 1e12)])
def test_tangents_touch_from_below(n, d):
    """Equal at the point, nowhere above, and of the same slopes: what a geometric program needs."""
    grid = [np.log(x * np.geomspace(0.01, 30, 41)) for x in (n, d)]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*grid)], axis=1)
    at = np.log([[n, d]])
    budgets = stack_budgets([question("muennighoff-2023", unique=UNIQUE, served=1e12)])
    tangent = budgets.tangent(at)
    here, there = budgets.losses(at), tangent.losses(at)
    assert there.value == pytest.approx(here.value, rel=1e-12)
    assert there.slope == pytest.approx(here.slope, rel=1e-12)
    rows = np.zeros(len(points), dtype=int)
    true, below = (each.rows(rows).losses(points).value for each in (budgets, tangent))
    assert (below <= true + 1e-12).all()
    law = budgets.losses(at).value
    excess = question("muennighoff-2023").law.loss(n, d, unique=UNIQUE)
    floor = question("muennighoff-2023").terms.floor
    if d > UNIQUE:
        assert floor + np.exp(law) == pytest.approx(float(excess), rel=1e-9)


def test_without_repetition_the_tangent_is_the_law():
    """Monomials are their own tangents."""
    budgets = stack_budgets([question("besiroglu-2024", served=1e12)])
    assert budgets.tangent(np.log([[1e9, 1e10]])) is budgets
