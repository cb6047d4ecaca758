"""One optimum, found four ways: Newton, a geometric program, SciPy, and trying many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.laws.laws import scaling_law
from planner.problems.budget.certificate import programmed, proof
from planner.problems.budget.comparisons import life_cost
from planner.text.errors import FieldError, SolverError
from planner.token_costs.budget_task import Required, assembled
from planner.token_costs.optimum import BudgetOptimum, NoBudget, solve_many, solve_one
from planner.token_costs.phase_keys import RewardedLoss
from planner.token_costs.stationary_points import start, stationary_point, stationary_points
from tests.cases.budget import brute_force, phases, question, solved

CASES = {
    "served": question(served=2e12),
    "not served": question(),
    "dear serving": question(served=2e12, phases=phases(inference=4.0)),
    "reinforcement": question(served=1e12, rl_tokens=3e11, phases=phases(rl=3.0, k=4.5)),
    "a loss": question(served=1e13, required=Required(loss=2.0)),
    "an over-trained model": question(served=1e13, required=Required(n_active=8e9, tokens=15e12)),
    "a cost": question(served=1e12, limit=1e24),
    "a small cost": question(limit=1e20),
    "sardana": question("sardana-2024", served=2e12),
    "abnar": question("abnar-2025", served=2e12, sparsity=8.0),
    "abnar at a cost": question("abnar-2025", served=2e12, sparsity=16.0, limit=1e23),
    "kaplan": question("kaplan-2020", served=1e12),
    "kaplan at a cost": question("kaplan-2020", served=1e11, limit=1e22),
    "a reward": question(served=2e12, rl_flop=3e22),
    "a reward at a cost": question(served=2e12, rl_flop=3e22, limit=1e24),
    "repeated": question("muennighoff-2023", served=2e12, unique=2e11),
    "much repeated": question("muennighoff-2023", served=1e11, unique=4e10, limit=5e22),
    "enough data": question("muennighoff-2023", served=2e12, unique=1e13),
    "routed": question("besiroglu-2024 + clark-2022-s-base", served=2e12, sparsity=8.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_four_ways_agree(name):
    """Sizes, tokens and what is made small agree to 1e-4; the program's bound lies below."""
    asked = CASES[name]
    best = solved(asked)
    size, tokens, score = brute_force(asked)
    assert best.score == pytest.approx(score, rel=1e-6)
    assert best.n_active == pytest.approx(size, rel=3e-3)  # a valley is flat: 1e-6 in the score
    assert best.pretrain == pytest.approx(tokens, rel=3e-3)
    assert best.score <= score * (1 + 1e-9)
    there, program = programmed(best.budgets.tangent(best.point), start(best.budgets))
    assert there == pytest.approx(best.point[0], abs=1e-4)
    assert program.multipliers["limit"] == pytest.approx(best.multiplier, rel=1e-4)
    point, error = stationary_point(best.budgets)
    assert point == pytest.approx(best.point[0], abs=1e-4)
    assert error < 1e-7
    proven = proof(best)
    assert proven.relaxation <= best.score
    assert proven.relaxation == pytest.approx(best.score, rel=1e-6)
    assert best.gap < 1e-9


def test_tokens_of_reinforcement_learning_are_chosen_where_the_loss_knows_them():
    """A term in RL tokens: three choices, and no neighbour on the limit is cheaper."""
    asked = question(
        served=1e12,
        rl_term=RewardedLoss(coefficient=5.0, exponent=0.2),
        required=Required(loss=2.3),
    )
    best = solved(asked)
    proof(best)
    cost = [best.cost[0] / best.total, best.cost[1] / best.total]
    terms = asked.terms.terms
    gain_tokens = -terms[1].tokens * terms[1](best.n_active, best.pretrain)
    gain_rl = 0.2 * 5.0 * best.rl**-0.2
    assert cost[0] / cost[1] == pytest.approx(float(gain_tokens) / gain_rl, rel=1e-9)
    assert best.loss == pytest.approx(2.3, abs=1e-9)


def test_a_law_with_a_term_of_its_own_is_as_one_with_a_term_given():
    """The same coefficients in the law, or beside it, have the same optimum."""
    beside = question(
        served=1e12,
        rl_term=RewardedLoss(coefficient=5.0, exponent=0.2),
        required=Required(loss=2.3),
    )
    values = {**beside.law.values, "B_rl": 5.0, "beta_rl": 0.2}
    law = scaling_law({"form": "reinforced", "coefficients": values})
    own = solved(replace(beside, law=law, rl_term=None))
    proof(own)
    expected = solved(beside)
    assert (own.n_active, own.pretrain, own.rl, own.total) == pytest.approx(
        (expected.n_active, expected.pretrain, expected.rl, expected.total), rel=1e-9
    )
    given = solved(replace(own.task, fixed_choices={"rl": own.rl}))
    proof(given)
    assert given.total == pytest.approx(own.total, rel=1e-9)
    with pytest.raises(FieldError, match=r"give quality\.loss"):
        solve_one(replace(own.task, required=Required(n_active=1e9)))


def test_arithmetic_that_a_reward_asks_for_moves_no_size():
    """The sigmoid's arithmetic does not grow with the model: the size is that without it."""
    plain = solved(question(served=2e12))
    rewarded = solved(question(served=2e12, rl_flop=1e22))
    assert rewarded.n_active == pytest.approx(plain.n_active, rel=1e-9)
    assert rewarded.cost[1] == pytest.approx(1e22)
    assert rewarded.rl == pytest.approx(1e22 / (3 * rewarded.n_active))


def test_data_that_runs_out_ends_the_training_where_the_law_knows_no_repetition():
    """All unique tokens are used, the size follows from the loss, and more data would be worth."""
    asked = question(served=2e12, unique=5e11)
    best = solved(asked)
    free = solved(replace(asked, unique=None))
    assert best.pretrain == pytest.approx(5e11)
    assert best.total > free.total
    assert best.loss == pytest.approx(free.loss, abs=1e-12)
    more = solved(replace(asked, unique=5e11 * 1.0001))
    slope = np.log(more.total / best.total) / np.log(1.0001)
    assert -best.data_bound == pytest.approx(slope, rel=1e-3)
    assert solved(replace(asked, unique=1e14)).total == pytest.approx(free.total)


def test_choices_that_are_given_are_kept():
    """A given size leaves the tokens to the loss; both given leave nothing."""
    asked = question(served=2e12, fixed_choices={"n_active": 7e9})
    best = solved(asked)
    assert best.n_active == pytest.approx(7e9)
    assert best.loss == pytest.approx(asked.required.value(asked.law), abs=1e-12)
    both = solved(question(served=2e12, fixed_choices={"n_active": 7e9, "pretrain": 1e12}))
    assert both.total == pytest.approx(life_cost(both.task, 7e9, 1e12))
    proof(best)
    proof(both)


def test_many_budgets_are_as_one_by_one():
    """Questions of several shapes in one call, each as if asked alone, in their order."""
    rng = np.random.default_rng(7)
    names = list(CASES)
    several = [
        replace(CASES[names[i % len(names)]], served=float(10 ** rng.uniform(10, 14)))
        for i in range(4 * len(names))
    ]
    together = solve_many(several)
    for asked, found in zip(several, together, strict=True):
        alone = solve_one(asked)
        assert type(alone) is type(found)
        if isinstance(found, BudgetOptimum):
            assert found.score == pytest.approx(alone.score, rel=1e-10)
            assert found.n_active == pytest.approx(alone.n_active, rel=1e-7)


def test_random_budgets_have_no_better_neighbour():
    """Sizes a little off, with the tokens that keep the loss, cost more; a thousand at once."""
    rng = np.random.default_rng(3)
    several = [
        question(served=float(10 ** rng.uniform(9, 15)), rl_tokens=float(10 ** rng.uniform(9, 12)),
                 phases=phases(*rng.uniform(0.3, 3, 3)),
                 required=Required(n_active=float(10 ** rng.uniform(8, 12))))
        for _ in range(300)
    ]  # fmt: skip
    best = solve_many(several)
    for factor in (0.99, 1.01):
        near = solve_many(
            [replace(q, fixed_choices={"n_active": a.n_active * factor})
             for q, a in zip(several, best, strict=True)]
        )  # fmt: skip
        for here, there in zip(best, near, strict=True):
            assert there.total > here.total


def test_a_start_from_before_leads_to_the_same_optimum():
    """A warm start saves steps and moves nothing."""
    budgets = assembled([CASES["served"]])
    cold = stationary_points(budgets)
    warm = stationary_points(budgets, cold.point + 1e-3)
    assert warm.steps < cold.steps
    assert warm.point == pytest.approx(cold.point, abs=1e-9)


@pytest.mark.parametrize(
    ("asked", "promise", "told"),
    [(question(required=Required(loss=1.8)), "loss", "no size and no data removes"),
     (question("muennighoff-2023", unique=2e10), "loss", "however often they are repeated"),
     (question(unique=1e9), "loss", "unique tokens"),
     (question(fixed_choices={"n_active": 1e8}), "loss", "at the values in choose"),
     (question(limit=1e3), "cost", "it buys a model of"),
     (question("muennighoff-2023", limit=1e26, unique=1e10), "data", "cannot make use of it"),
     (question(limit=1e20, rl_flop=1e21), "cost", "alone cost more")],
)  # fmt: skip
def test_why_there_is_no_budget(asked, promise, told):
    """A sentence and the factor by which it falls short."""
    found = solve_one(asked)
    assert isinstance(found, NoBudget)
    assert found.promise == promise
    assert found.short_by > 1
    assert told in found.reason


def test_more_parameters_than_the_data_feeds_count_for_less():
    """Given few tokens the size follows from the law's own loss, excess parameters included."""
    for unique in (None, 1e11):
        asked = question("muennighoff-2023", fixed_choices={"pretrain": 1.8e11}, unique=unique,
                         required=Required(n_active=11e9))  # fmt: skip
        best = solved(asked)
        proof(best)
        assert best.n_active > asked.law.fed(min(1.8e11, unique or 1.8e11))
        assert asked.law.loss(best.n_active, 1.8e11, unique=unique) == pytest.approx(best.loss)
    with pytest.raises(FieldError, match="counts them for less"):
        solve_one(question("muennighoff-2023", fixed_choices={"n_active": 1e12}))


def test_an_answer_that_does_not_hold_is_refused():
    """A plan whose loss the law itself denies, or whose point is off, raises a fault of ours."""
    best = solved(CASES["served"])
    with pytest.raises(SolverError, match="the law besiroglu-2024 itself says"):
        proof(replace(best, loss=best.loss + 1e-3))
    with pytest.raises(SolverError, match="differs from that on the first-order conditions"):
        proof(replace(best, point=best.point + 1e-3))


IDLE = {  # what a percent of one choice changes is far below what a program is solved to
    "little training": question(served=1e24, fixed_choices={"n_active": 1e12},
                                required=Required(n_active=1e12, tokens=1e13)),
    "hardly any rollouts": question(served=1e12,
                                    rl_term=RewardedLoss(coefficient=1e-3, exponent=5.0)),
    "rollouts at a cost": question(limit=1e25,
                                   rl_term=RewardedLoss(coefficient=1e-3, exponent=3.0)),
    "kaplan on little data": question("kaplan-2020", limit=2e27, unique=4e4, served=8e7),
    "repeated as good as for ever": question("muennighoff-2023", served=4e18, unique=9e5,
                                             required=Required(n_active=2e8, tokens=3e6)),
}  # fmt: skip


@pytest.mark.parametrize("name", IDLE)
def test_a_choice_that_hardly_matters_is_found_as_closely(name):
    """Its own first-order condition holds: SciPy, on ratios, agrees to 1e-8; so does the proof."""
    best = solved(IDLE[name])
    found = stationary_point(best.budgets, best.point[0])
    assert found is not None
    assert found[0] == pytest.approx(best.point[0], abs=1e-8)
    proven = proof(best)
    assert max(proven.differences.values()) < 1e-4
    assert proven.relaxation == pytest.approx(best.score, rel=1e-6)


def test_a_budget_of_more_passes_than_anything_changes_is_no_fault():
    """A singular system of equations, at a few dozen tokens, is told as a budget without answer."""
    asked = question("muennighoff-2023", served=3.5e18, unique=83.65, limit=3.3e25)
    assert isinstance(solve_one(asked), NoBudget)
