"""Optima against closed forms, a step of Newton's against its system, and curves by halving."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq

from planner.token_costs import stationary_points as module
from planner.token_costs.budget_task import BudgetTask, LossTarget
from planner.token_costs.phase_costs import PhaseCost, SizedShare
from planner.token_costs.phase_keys import RewardedLoss
from planner.token_costs.posynomial_form import Budgets, Saturation
from planner.token_costs.stationary_points import (
    _solved,
    _stepped,
    objective_and_constraint,
    start,
    stationary_point,
    stationary_points,
    training_curve,
)
from tests.cases.budget import phases, question

ALPHA, BETA, GAMMA = 0.34, 0.28, 0.5
A, B, C = 400.0, 2000.0, 30.0
LIMITS = {"cost": np.array([0.1, 0.5, 2.0]), "quality": np.array([1e19, 1e21, 1e24])}


def powers(aim: str, *, beside_cost: float = 0.0, beside_loss: float = 0.0) -> Budgets:
    """A N**-alpha + B D**-beta against 6 N D, with numbers beside them that no choice changes.

    They take nothing of what is left: the limits are larger by as much.
    """
    limits, beside = LIMITS[aim], beside_loss if aim == "cost" else beside_cost
    with np.errstate(divide="ignore"):
        return Budgets(
            cost=np.log([[6.0, beside_cost]] * 3),
            cost_powers=np.array([[1.0, 1.0], [0.0, 0.0]]),
            loss=np.log([[A, B, beside_loss]] * 3),
            loss_powers=np.array([[[-ALPHA, 0.0], [0.0, -BETA], [0.0, 0.0]]] * 3),
            limit=np.log(limits + beside), aim=aim, choices=("n_active", "pretrain"),
        )  # fmt: skip


def rollouts(aim: str) -> Budgets:
    """Three choices, N (6 D + 3 R) against A N**-alpha + B D**-beta + C R**-gamma."""
    return Budgets(
        cost=np.log([[6.0, 3.0]] * 3), cost_powers=np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
        loss=np.log([[A, B, C]] * 3),
        loss_powers=-np.array([np.diag([ALPHA, BETA, GAMMA])] * 3),
        limit=np.log(LIMITS[aim]), aim=aim, choices=("n_active", "pretrain", "rl"),
    )  # fmt: skip


def violations(budgets: Budgets, point: np.ndarray, multiplier: np.ndarray) -> np.ndarray:
    """The first-order conditions and the limit, one row a budget."""
    goal, limited = objective_and_constraint(budgets, point)
    stationary = goal.slope + multiplier[:, None] * limited.slope
    return np.column_stack([stationary, limited.value - budgets.limit])


# -- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [0.0, 0.7], ids=["alone", "with numbers beside"])
def test_the_least_cost_of_a_loss_is_that_in_closed_form(beside):
    """Both terms stand as the other's exponent; the cost falls as the loss to 1/alpha + 1/beta."""
    asked = powers("cost", beside_cost=1e20 * beside, beside_loss=beside)
    room = LIMITS["cost"]
    n = (A * (ALPHA + BETA) / (BETA * room)) ** (1 / ALPHA)
    d = (B * (ALPHA + BETA) / (ALPHA * room)) ** (1 / BETA)
    found = stationary_points(asked)
    assert found.converged.all()
    assert np.exp(found.point) == pytest.approx(np.stack([n, d], axis=1), rel=1e-9)
    # Of the whole cost and the whole loss: what stands beside them does not move.
    share = 6 * n * d / (6 * n * d + 1e20 * beside)
    expected = share * (1 / ALPHA + 1 / BETA) * (room + beside) / room
    assert found.multiplier == pytest.approx(expected, rel=1e-8)
    assert (found.gap < 1e-9).all()


@pytest.mark.parametrize("beside", [0.0, 3e20], ids=["alone", "with numbers beside"])
def test_the_least_loss_of_a_cost_is_that_in_closed_form(beside):
    """Sizes and tokens grow as the cost to b/(a+b) and a/(a+b); the loss falls to ab/(a+b)."""
    asked = powers("quality", beside_cost=beside, beside_loss=0.7 if beside else 0.0)
    room = LIMITS["quality"]
    ratio = (ALPHA * A / (BETA * B)) ** (1 / (ALPHA + BETA))
    n = ratio * (room / 6) ** (BETA / (ALPHA + BETA))
    d = (room / 6) ** (ALPHA / (ALPHA + BETA)) / ratio
    found = stationary_points(asked)
    assert found.converged.all()
    assert np.exp(found.point) == pytest.approx(np.stack([n, d], axis=1), rel=1e-9)
    loss = A * n**-ALPHA + B * d**-BETA
    share = loss / (loss + (0.7 if beside else 0.0))
    expected = share * ALPHA * BETA / (ALPHA + BETA) * (room + beside) / room
    assert found.multiplier == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("aim", ["cost", "quality"])
def test_three_choices_bear_each_others_exponents(aim):
    """Every choice lowers the loss in proportion to what it costs; SciPy's solver agrees."""
    asked = rollouts(aim)
    found = stationary_points(asked)
    n, d, r = np.exp(found.point.T)
    gains = np.stack([ALPHA * A * n**-ALPHA, BETA * B * d**-BETA, GAMMA * C * r**-GAMMA])
    costs = np.stack([n * (6 * d + 3 * r), 6 * n * d, 3 * n * r])
    ratios = gains / costs
    assert ratios[1:] == pytest.approx(ratios[[0, 0]], rel=1e-9)
    loss, cost = A * n**-ALPHA + B * d**-BETA + C * r**-GAMMA, costs[0]
    assert (loss if aim == "cost" else cost) == pytest.approx(LIMITS[aim], rel=1e-9)
    in_shares = ratios[0] * cost / loss  # percent of the loss for a percent of the cost
    expected = 1 / in_shares if aim == "cost" else in_shares
    assert found.multiplier == pytest.approx(expected, rel=1e-8)
    for i in range(3):
        for near in (None, found.point[i] + 0.1):
            point, error = stationary_point(asked.row(i), near)
            assert point == pytest.approx(found.point[i], abs=1e-7)
            assert error < 1e-9


def test_what_no_choice_is_left_of_has_its_point():
    """No axis of choices, no multiplier; it holds where there is a limit at all."""
    asked = powers("cost")
    for choice, value in (("n_active", 20.0), ("pretrain", 24.0)):
        asked = asked.fixed(choice, np.full(3, value))
    found = stationary_points(replace(asked, limit=np.array([1.0, -np.inf, 2.0])))
    assert found.point.shape == (3, 0)
    assert found.converged.tolist() == [True, False, True]
    assert found.multiplier.tolist() == found.gap.tolist() == [0.0, 0.0, 0.0]
    assert found.steps == 0


def test_what_cannot_be_reached_does_not_converge_and_the_others_do():
    """Ten thousand budgets are one call: one that has no optimum spoils none."""
    asked = powers("cost", beside_loss=0.7)
    found = stationary_points(replace(asked, limit=np.log([0.8, 0.69, 2.7])))
    assert found.converged.tolist() == [True, False, True]
    alone = stationary_points(asked)
    assert found.point[[0, 2]] == pytest.approx(alone.point[[0, 2]], abs=1e-10)
    one = found.row(0)
    assert one.point.tolist() == found.point[:1].tolist()
    assert (one.multiplier, one.gap) == (found.multiplier[:1], found.gap[:1])
    assert (one.converged.tolist(), one.steps) == ([True], found.steps)


def test_numbers_beside_what_is_limited_take_no_steps():
    """However close to the limit: as many as without them, and to the same choices.

    What falls with one choice alone is no such number.
    """
    asked = replace(powers("cost", beside_loss=50.0), limit=np.log(50 + LIMITS["cost"]))
    plain = stationary_points(powers("cost"))
    among = stationary_points(asked)
    assert among.steps == plain.steps == stationary_points(asked.rows(np.array([0, 1, 2]))).steps
    assert among.point == pytest.approx(plain.point, abs=1e-9)
    first = asked.row(0)
    assert stationary_points(first).point == pytest.approx(plain.point[:1], abs=1e-9)
    half = replace(
        asked, loss=np.where(np.arange(3)[:, None] == 1, powers("cost").loss, asked.loss)
    )
    half = replace(half, limit=np.where(np.arange(3) == 1, powers("cost").limit, asked.limit))
    assert stationary_points(half).steps == plain.steps
    served = Budgets(
        cost=np.log([[6.0, 2e12, 1e21]]), cost_powers=np.array([[1.0, 1.0], [1.0, 0.0], [0, 0]]),
        loss=np.log([[A, B]]), loss_powers=np.array([[[-ALPHA, 0.0], [0.0, -BETA]]]),
        limit=np.log([4e21]), aim="quality", choices=("n_active", "pretrain"),
    )  # fmt: skip
    n, d = np.exp(stationary_points(served).point[0])
    assert 6 * n * d + 2e12 * n == pytest.approx(3e21, rel=1e-9)
    gains = ALPHA * A * n**-ALPHA, BETA * B * d**-BETA
    assert gains[0] / gains[1] == pytest.approx(1 + 2e12 / (6 * d), rel=1e-9)


# -- the way there ------------------------------------------------------------------------------


def test_the_first_point_gives_every_term_of_the_loss_its_share():
    """As much of the limit to each; where a knee cannot give it, two percent below its ceiling."""
    asked = powers("cost")
    n, d = np.exp(start(asked).T)
    assert A * n**-ALPHA == pytest.approx(LIMITS["cost"] / 3)  # a share for what is absent too
    assert B * d**-BETA == pytest.approx(LIMITS["cost"] / 3)
    knee = Saturation(np.log([1e9, 1e3, 1e20]), np.full(3, 10.0))
    bent = start(replace(asked, curved={"pretrain": knee}))
    assert np.exp(bent[:, 0]) == pytest.approx(n)
    worth = knee.at(bent[:, 1])[0]
    wanted = np.minimum(np.log(d), np.log([11e9, 11e3, 11e20]) - 0.02)
    assert worth == pytest.approx(wanted, abs=1e-9)
    mixed = replace(asked, loss_powers=np.array([[[-ALPHA, 0.0], [-0.1, 0.0], [0, 0]]] * 3))
    assert np.exp(start(mixed)[:, 0]) == pytest.approx((3 * B / LIMITS["cost"]) ** 10)
    assert start(mixed)[:, 1].tolist() == [0.0, 0.0, 0.0]


def test_the_first_point_of_a_cost_is_where_equal_choices_cost_it():
    """From less than a token to as many as no model ever sees."""
    asked = replace(powers("quality"), limit=np.log([7.0, 6e20, 6e60]))
    expected = np.log([7 / 6, 1e20, 1e60])[:, None] / 2
    assert start(asked) == pytest.approx(np.tile(expected, 2), rel=1e-12)


@pytest.mark.parametrize("aim", ["cost", "quality"])
@pytest.mark.parametrize("longest", [0.05, 2.0, 50.0])
def test_a_step_is_that_of_newton_on_the_first_order_conditions(aim, longest):
    """Of choices and multiplier together, no choice by more than `longest`; slopes by differences.

    The multiplier begins where the slopes answer each other best, and falls to no less than a tenth
    at once.
    """
    asked = rollouts(aim)
    first = np.array([[18.0, 25.0, 15.0], [30.8, 1.1, 2.0], [28.0, 28.5, 20.0]])
    begun = first.tolist()
    goal, limited = objective_and_constraint(asked, first)
    along = (goal.slope * limited.slope).sum(axis=1)
    multiplier = np.clip(-along / (limited.slope**2).sum(axis=1), 1e-3, 1e6)
    whole = np.column_stack([first, multiplier])
    system, step = np.zeros((3, 4, 4)), 1e-5
    for j in range(4):
        ends = [whole + side * step * np.eye(4)[j] for side in (1, -1)]
        more, less = (violations(asked, end[:, :3], end[:, 3]) for end in ends)
        system[:, :, j] = (more - less) / (2 * step)
    here = violations(asked, first, multiplier)
    change = np.linalg.solve(system, -here[:, :, None])[:, :, 0]
    share = np.minimum(1.0, longest / np.abs(change[:, :3]).max(axis=1))
    fall = np.maximum(change[:, 3], multiplier / 10 - multiplier)
    point, found, error, taken = _stepped(asked, first, longest, 1)
    assert taken == 1
    assert (change[:, 3] < -0.9 * multiplier).any() == (aim == "quality")
    assert point == pytest.approx(first + share[:, None] * change[:, :3], abs=1e-6)
    assert found == pytest.approx(multiplier + share * fall, rel=1e-5)
    there = violations(asked, point, found)
    heights = np.abs(objective_and_constraint(asked, point)[0].slope).max(axis=1)
    expected = np.maximum(np.abs(there[:, :3]).max(axis=1) / heights, np.abs(there[:, 3]))
    assert error == pytest.approx(expected, rel=1e-9)
    assert first.tolist() == begun


def test_the_first_multiplier_stays_between_its_bounds():
    """A millionfold, or a thousandth, even where the slopes ask for more."""
    steep = replace(powers("cost"), loss_powers=np.array([[[-1e-9, 0], [0, -1e-9], [0, 0]]] * 3))
    assert (_stepped(steep, np.full((3, 2), 20.0), 2.0, 0)[1] == 1e6).all()
    level = replace(powers("cost"), loss_powers=np.array([[[-1e5, 0], [0, -1e5], [0, 0]]] * 3))
    assert (_stepped(level, np.full((3, 2), 1e-3), 2.0, 0)[1] == 1e-3).all()


def test_who_has_arrived_stays_while_others_go_on():
    """At the optimum no step is taken; beside a budget that is on its way nothing moves."""
    asked = powers("cost")
    best = stationary_points(asked)
    point, _, error, taken = _stepped(asked, best.point, 2.0, 60)
    assert taken <= 1
    assert point == pytest.approx(best.point, abs=1e-12)
    assert (error < 1e-12).all()
    away = best.point.copy()
    away[1] += 1.0
    moved, _, error, taken = _stepped(asked, away, 2.0, 60)
    assert 2 < taken < 20
    assert moved[[0, 2]].tolist() == point[[0, 2]].tolist()
    assert moved == pytest.approx(best.point, abs=1e-10)
    assert (error < 1e-12).all()


def test_how_closely_the_conditions_are_to_hold(monkeypatch):
    """A budget moves while they fail by over 1e-12, and has converged where by less than 1e-9.

    At the choices of a closed form the limit alone is off, by as much as it was moved.
    """
    asked, room = powers("cost"), LIMITS["cost"]
    n = (A * (ALPHA + BETA) / (BETA * room)) ** (1 / ALPHA)
    d = (B * (ALPHA + BETA) / (ALPHA * room)) ** (1 / BETA)
    best = np.log(np.stack([n, d], axis=1))
    for off, steps in ((0.7e-12, 0), (1.5e-12, 1)):
        moved = replace(asked, limit=asked.limit + off)
        assert _stepped(moved, best, 2.0, 60)[3] == steps
    monkeypatch.setattr(module, "STEPS", 0)
    monkeypatch.setattr(module, "MAX_SHORT_STEPS", 0)
    moved = replace(asked, limit=asked.limit + np.array([0.7e-9, 0.99e-9, 1.5e-9]))
    assert stationary_points(moved, best).converged.tolist() == [True, True, False]


def test_what_overflows_is_infinitely_far_from_its_conditions():
    """Not a number is no small violation."""
    with np.errstate(all="ignore"):
        error = _stepped(powers("cost"), np.full((3, 2), np.nan), 2.0, 2)[2]
    assert np.isinf(error).all()


def test_a_singular_system_is_made_regular_and_spoils_no_other():
    """Ones are added for the choices, minus one for the multiplier; what is infinite counts 0."""
    good = np.array([[2.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 0.0]])
    flat = np.zeros((3, 3))
    endless = np.array([[np.inf, 0.0, 1.0], [0.0, np.nan, 1.0], [1.0, 1.0, 0.0]])
    huge = np.diag([1e200, 1e200, 1e200])
    right = np.tile([3.0, 5.0, 7.0], (4, 1))
    with np.errstate(all="ignore"):  # as its caller has it
        found = _solved(np.array([good, flat, endless, huge]), right)
    assert good @ found[0] == pytest.approx(right[0])
    assert found[1] == pytest.approx([3.0, 5.0, -7.0])
    eased = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
    assert eased @ found[2] == pytest.approx(right[2])
    assert found[3] == pytest.approx(right[3])


@pytest.mark.parametrize("aim", ["cost", "quality"])
def test_a_gap_is_how_far_the_tangent_falls_within_its_box(aim, monkeypatch):
    """At points short of the optimum: the Lagrangian's tangent at its lowest corner, by hand."""
    monkeypatch.setattr(module, "STEPS", 4)
    monkeypatch.setattr(module, "MAX_SHORT_STEPS", 4)
    asked = rollouts(aim)
    found = stationary_points(asked)
    far = ~found.converged
    assert far.any()
    left = violations(asked, found.point, found.multiplier)
    lowest = -np.abs(left[:, :3]).sum(axis=1) * np.log(1e9)
    expected = -lowest + np.abs(found.multiplier * left[:, 3])
    assert found.gap == pytest.approx(expected, rel=1e-9)
    monkeypatch.undo()
    true = objective_and_constraint(asked, stationary_points(asked).point)[0].value
    reached = objective_and_constraint(asked, found.point)[0].value
    assert (reached - found.gap <= true + 1e-9).all()


def test_short_steps_arrive_where_long_ones_do_not(monkeypatch):
    """Where a few long ones fail the budget is begun again, with more and shorter ones."""
    asked = rollouts("cost")
    expected = stationary_points(asked)
    monkeypatch.setattr(module, "STEPS", 1)
    monkeypatch.setattr(module, "MAX_SHORT_STEPS", 900)
    found = stationary_points(asked, expected.point + np.array([[0.0], [0.0], [9.0]]))
    assert found.converged.all()
    assert found.point == pytest.approx(expected.point, abs=1e-9)
    assert found.multiplier == pytest.approx(expected.multiplier, rel=1e-9)
    assert found.steps > 20


def test_a_short_step_is_at_most_a_quarter_long(monkeypatch):
    """Of the choice that moves most, in logarithms: one step alone, from where they begin."""
    monkeypatch.setattr(module, "STEPS", 0)
    monkeypatch.setattr(module, "MAX_SHORT_STEPS", 1)
    asked = rollouts("cost")
    found = stationary_points(asked)
    moved = np.abs(found.point - start(asked)).max(axis=1)
    assert not found.converged.any()
    assert moved == pytest.approx(0.25, rel=1e-12)


def test_a_point_to_be_checked_is_looked_for_from_elsewhere(monkeypatch):
    """Two ways from a start of its own, then from beside the answer; none is no answer."""
    asked, starts = rollouts("cost").row(0), []
    best, off = stationary_points(asked).point[0], [9.0]

    def solver(violated, first, *, method, tol):
        starts.append((first.tolist(), method, tol))
        return SimpleNamespace(x=best + np.array([0.0, 0.0, off[0]]))

    monkeypatch.setattr(module, "solve_equations", solver)
    assert stationary_point(asked, best) is None
    places = [start(asked)[0].tolist()] * 2 + [(best - 0.3).tolist()] * 2
    assert starts == [
        (place, method, 1e-12) for place, method in zip(places, ("hybr", "lm") * 2, strict=True)
    ]
    moved = best + np.array([0.0, 0.0, 1e-7])
    worst = float(np.abs(violated_ratios(asked, moved)).max())  # for a part in ten million
    for share, there in ((0.98e-7, True), (1.02e-7, False)):
        off[0] = 1e-7 * share / worst
        checked = stationary_point(asked, best)
        assert (checked is not None) == there
        if checked is not None:
            assert checked[1] == pytest.approx(share, rel=1e-3)


def violated_ratios(asked: Budgets, point: np.ndarray) -> np.ndarray:
    """By how much every choice's gain over its cost differs from the last one's, in logarithms."""
    n, d, r = np.exp(point)
    gains = ALPHA * A * n**-ALPHA, BETA * B * d**-BETA, GAMMA * C * r**-GAMMA
    costs = n * (6 * d + 3 * r), 6 * n * d, 3 * n * r
    ratios = np.log(np.array(gains) / costs)
    return ratios[:2] - ratios[2]


# -- the curve of training ----------------------------------------------------------------------

SIZES = (2e8, 3e9, 4e10)
LOSS = 2.2


def tokens_needed(task: BudgetTask, size: float) -> float:
    """Tokens at which a model of this size has the loss, by halving; infinite where none do."""

    def short(log_d: float) -> float:
        return task.loss(size, float(np.exp(log_d))) - LOSS

    return float(np.exp(brentq(short, 1, 90, xtol=1e-13))) if short(90) < 0 else np.inf


def wanted(law: str = "besiroglu-2024", **given: object) -> BudgetTask:
    """A budget that asks for the loss."""
    return question(law, required=LossTarget(loss=LOSS), **given)


def test_training_at_every_size_costs_what_its_tokens_do():
    """Six FLOP a parameter and token and three a rollout; nothing where no tokens suffice."""
    task = wanted(rl_tokens=3e11, phases=phases(2.0, 5.0))
    curve = training_curve(task, SIZES)
    tokens = np.array([tokens_needed(task, size) for size in SIZES])
    assert np.isfinite(tokens).tolist() == [False, True, True]
    assert curve.sizes.tolist() == list(SIZES)
    assert curve.tokens == pytest.approx(tokens, rel=1e-9)
    assert curve.rl.tolist() == [np.inf, 3e11, 3e11]
    paid = np.array(SIZES) * (6 * tokens * 2.0 + 3 * 3e11 * 5.0)
    assert curve.training == pytest.approx(paid, rel=1e-9)


def test_a_reward_is_paid_whatever_the_size():
    """Its arithmetic buys fewer rollouts of a larger model."""
    task = wanted(rl_flop=6e22, phases=phases(rl=5.0, k=4.0))
    curve = training_curve(task, SIZES)
    plain = training_curve(wanted(), SIZES)
    assert curve.training == pytest.approx(plain.training + 5 * 6e22)
    assert curve.rl[1:] == pytest.approx(6e22 / (4 * np.array(SIZES[1:])))
    assert curve.tokens == pytest.approx(plain.tokens)


def test_chosen_rollouts_are_those_of_least_cost():
    """At a size both kinds of tokens lower the loss as their costs ask for."""
    task = wanted(rl_term=RewardedLoss(coefficient=5.0, exponent=0.2), phases=phases(rl=2.0))
    curve = training_curve(task, SIZES[1:])
    law, size = task.law.values, np.array(SIZES[1:])
    of_tokens = law["B_D"] * curve.tokens ** -law["beta_D"]
    of_rollouts = 5.0 * curve.rl**-0.2
    of_size = law["A_N"] * size ** -law["alpha_N"]
    assert law["loss_min"] + of_size + of_tokens + of_rollouts == pytest.approx(LOSS, abs=1e-9)
    costs = 6 * size * curve.tokens, 3 * size * curve.rl * 2.0
    assert curve.training == pytest.approx(costs[0] + costs[1], rel=1e-9)
    gains = law["beta_D"] * of_tokens, 0.2 * of_rollouts
    assert gains[0] / gains[1] == pytest.approx(costs[0] / costs[1], rel=1e-8)


@pytest.mark.parametrize("law", ["besiroglu-2024", "muennighoff-2023"])
def test_data_that_runs_out_bounds_the_sizes(law):
    """Where the law knows no repetition; where it does the passes are more."""
    free = training_curve(wanted(law), SIZES[1:])
    unique = float(free.tokens[1]) * 1.0001
    task = wanted(law, unique=unique)
    curve = training_curve(task, SIZES[1:])
    assert free.tokens[0] > unique
    if law == "besiroglu-2024":
        assert np.isinf(curve.tokens).tolist() == [True, False]
        assert np.isinf(curve.training).tolist() == [True, False]
        assert curve.tokens[1] == pytest.approx(free.tokens[1])
        return
    # What the data does not feed of a larger model is made up for by more tokens too.
    expected = [tokens_needed(task, size) for size in SIZES[1:]]
    assert curve.tokens == pytest.approx(np.array(expected), rel=1e-8)
    assert (curve.tokens > free.tokens).all()


def test_drawn_laws_have_an_axis_before_that_of_the_sizes():
    """Each row as if its law had been asked for alone."""
    names = ("besiroglu-2024", "sardana-2024")
    drawn = [wanted(law, rl_tokens=1e11) for law in names]
    curve = training_curve(drawn[0], SIZES, drawn)
    assert curve.tokens.shape == curve.rl.shape == curve.training.shape == (2, 3)
    for i, task in enumerate(drawn):
        alone = training_curve(task, SIZES)
        assert curve.tokens[i] == pytest.approx(alone.tokens)
        assert curve.rl[i].tolist() == alone.rl.tolist()
        assert curve.training[i] == pytest.approx(alone.training)


def test_sizes_pay_for_the_share_of_the_peak_that_they_reach():
    """Training at half the share costs twice as much; the power of the size is taken once."""
    shares = SizedShare(3e9, np.array(SIZES), np.array([0.1, 0.2, 0.4]), growth=0.25)
    given = {**phases(), "pretrain": PhaseCost("pretrain", 6.0, 0.2, 1.0, sized=shares)}
    curve = training_curve(wanted(phases=given), SIZES)
    plain = training_curve(wanted(), SIZES)
    assert curve.training[1:] == pytest.approx(plain.training[1:] * [1.0, 0.5])
    assert curve.tokens == pytest.approx(plain.tokens)
