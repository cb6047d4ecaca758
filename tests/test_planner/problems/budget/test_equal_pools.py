"""When equal pools are the optimum, when they are not, and what stands beside a budget."""

from __future__ import annotations

import numpy as np
import pytest

from formulas.scaling.token_budgets import equalisation
from planner.laws.laws import scaling_law
from planner.problems.budget.outputs import compute_optimal, equal_pools, interval, overtraining
from planner.token_costs.budget_task import LossTarget
from planner.token_costs.phase_keys import RewardedLoss
from tests.cases.budget import phases, question, solved

BESIROGLU = scaling_law("besiroglu-2024").values


@pytest.mark.parametrize("price", [1.0, 7.0])
def test_pools_that_gain_alike_are_equal_whatever_a_token_costs(price):
    """A dollar of either phase takes the same off the loss: half of it goes to each."""
    cost = 3 * price / 6  # of a token of reinforcement learning, over one of pre-training
    term = RewardedLoss(
        coefficient=BESIROGLU["B_D"] * cost ** -BESIROGLU["beta_D"], exponent=BESIROGLU["beta_D"]
    )
    best = solved(question(rl_term=term, phases=phases(rl=price), required=LossTarget(loss=2.2)))
    assert best.cost[1] == pytest.approx(best.cost[0], rel=1e-9)
    assert best.pretrain == pytest.approx(best.rl * cost, rel=1e-9)


@pytest.mark.parametrize("exponent", [0.2, 0.5])
def test_pools_are_as_their_quality_elasticities(exponent):
    """A counter-example to equal pools: other exponents, other pools, by the derivation's ratio."""
    best = solved(
        question(
            rl_term=RewardedLoss(coefficient=5.0, exponent=exponent), required=LossTarget(loss=2.3)
        )
    )
    terms = best.task.terms.terms
    of_tokens = float(BESIROGLU["beta_D"] * terms[1](best.n_active, best.pretrain))
    of_rl = exponent * 5.0 * best.rl**-exponent
    expected = equalisation.numpy("C_pt", "q_rl", "q_pt")(best.cost[0], of_rl, of_tokens)
    assert best.cost[1] == pytest.approx(float(expected), rel=1e-9)
    assert abs(best.cost[1] / best.cost[0] - 1) > 0.2


def test_terms_stand_as_the_exponents_the_other_way_round_at_fixed_arithmetic():
    """A/N^alpha over B/D^beta is beta over alpha at a compute optimum: 1.05 for Besiroglu."""
    best = solved(question(limit=1e23))
    sizes, tokens = (term(best.n_active, best.pretrain) for term in best.task.terms.terms)
    ratio = BESIROGLU["beta_D"] / BESIROGLU["alpha_N"]
    assert sizes / tokens == pytest.approx(ratio, rel=1e-9)
    assert ratio == pytest.approx(1.05, abs=5e-3)


def test_equal_exponents_make_the_terms_equal_and_the_ratio_one_number():
    """Muennighoff's law: 19.6 tokens per parameter at any arithmetic."""
    for limit in (1e20, 1e23, 1e26):
        best = solved(question("muennighoff-2023", limit=limit))
        sizes, tokens = (term(best.n_active, best.pretrain) for term in best.task.terms.terms)
        assert sizes == pytest.approx(tokens, rel=1e-8)
        assert best.pretrain / best.n_active == pytest.approx(19.61, abs=5e-3)


@pytest.mark.parametrize("served", [1e12, 2e12, 1e14])
def test_what_it_costs_to_follow_equal_pools(served):
    """Equal pools cost as much each, reach the same loss, and are never cheaper."""
    best = solved(question(served=served))
    beside = equal_pools(best)
    tokens = served / 3  # 6 * N * D = 2 * N * served
    assert beside.tokens.pretrain == pytest.approx(tokens)
    assert beside.loss == best.loss
    assert beside.cost == pytest.approx(beside.n_active * (6 * tokens + 2 * served))
    loss = best.task.law.loss(beside.n_active, tokens)
    assert loss == pytest.approx(best.loss, abs=1e-9)
    assert beside.worse_by >= 0
    assert beside.saving == pytest.approx(1 - best.total / beside.cost)


def test_equal_pools_may_be_too_few_tokens_for_the_loss():
    """Hardly anything is served: so few tokens reach the loss at no size."""
    beside = equal_pools(solved(question(served=1e9)))
    assert beside.n_active is None
    assert "no loss below" in beside.why_not


def test_nothing_stands_beside_a_model_that_is_not_served():
    """The compute-optimal model is the answer itself, and there is no second pool."""
    best = solved(question())
    assert equal_pools(best) is None
    assert compute_optimal(best).worse_by == pytest.approx(0, abs=1e-9)
    assert overtraining(best).ratio == pytest.approx(1, rel=1e-9)


def test_equal_pools_at_a_cost_lose_quality():
    """The same money in equal pools ends at a higher loss."""
    best = solved(question(served=2e12, limit=1e24))
    beside = equal_pools(best)
    assert beside.cost == pytest.approx(1e24)
    assert beside.loss > best.loss


def test_an_interval_holds_the_answer_and_widens_with_its_coverage():
    """Ends from the law's standard errors, larger for more coverage; seeds repeat."""
    best = solved(question(served=2e12))
    narrow, wide = (interval(best, 200, coverage) for coverage in (0.5, 0.9))
    for name, value in (("n_active", best.n_active), ("cost", best.total), ("loss", best.loss)):
        low, high = getattr(wide, name), getattr(narrow, name)
        assert low[0] < high[0] < value < high[1] < low[1]
    assert narrow == interval(best, 200, 0.5)
    assert narrow.answered == 1


def test_a_law_without_standard_errors_has_no_interval():
    """Nothing is made up where nothing is known."""
    assert interval(solved(question("sardana-2024", served=2e12)), 100, 0.8) is None
    assert interval(solved(question(served=2e12)), 0, 0.8) is None


def test_a_fixed_loss_near_the_floor_leaves_some_drawn_laws_without_answer():
    """The share that answers is told; drawn floors lie above the loss that is asked for."""
    band = interval(solved(question(served=2e12, required=LossTarget(loss=1.84))), 200, 0.8)
    assert 0.3 < band.answered < 1
    if band.answered < 0.5:
        assert band.cost is None


def test_over_training_at_a_kink_is_told_without_the_identity():
    """Where data ends the training the identity does not hold, and is not claimed."""
    ratio = overtraining(solved(question(served=2e12, unique=5e11)))
    assert ratio.from_pools is None
    assert np.isfinite(ratio.ratio)
