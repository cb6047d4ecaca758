"""Budgets against published optima, to the digits they are printed with."""

from __future__ import annotations

import pytest

import planner
from planner.laws.laws import scaling_law
from planner.problems.budget.outputs import overtraining
from planner.token_costs.budget_task import BudgetTask, LossTarget, compute_optimal_tokens
from planner.token_costs.phase_costs import PhaseCost
from tests.cases.budget import question, solved

FLOP = {"pretrain": PhaseCost("pretrain", 6.0), "inference": PhaseCost("inference", 2.0)}


def test_a_13b_quality_for_two_trillion_served_tokens():
    """Sardana et al. 2024, figure 1: 7B, 1.7e22 FLOP saved, 17 %."""
    plan = planner.solve(
        {"problem": "budget", "law": "sardana-2024", "quality": {"like": {"n_active": 13e9}},
         "inference": {"tokens": 2e12}}
    )  # fmt: skip
    beside = plan.document["compute_optimal"]
    total = plan.chosen["cost"]["total"]["flop"]
    assert plan.chosen["n_active"] == pytest.approx(6.97e9, rel=1e-3)
    assert plan.chosen["tokens"]["pretrain"] == pytest.approx(1.25e12, rel=2e-3)
    assert beside["cost"] - total == pytest.approx(1.69e22, rel=2e-3)
    assert beside["saving"] == pytest.approx(0.174, abs=5e-4)
    assert beside["n_active"] == pytest.approx(13e9, rel=1e-9)


def test_a_7b_quality_for_a_hundred_billion_served_tokens():
    """Sardana et al. 2024: 6B on 1.18 times the data."""
    asked = BudgetTask(
        scaling_law("sardana-2024"), FLOP, served=1e11, required=LossTarget(n_active=7e9)
    )
    best = solved(asked)
    fresh = compute_optimal_tokens(asked.terms, 7e9)
    assert best.n_active == pytest.approx(6.00e9, rel=1e-3)
    assert best.pretrain / fresh == pytest.approx(1.176, abs=5e-4)


@pytest.mark.parametrize(
    ("law", "size", "ratio", "saving"),
    [("besiroglu-2024", 6.098e9, 2.833, 0.290),
     ("hoffmann-2022-approach-3", 7.120e9, 2.098, 0.163),
     ("sardana-2024", 6.97e9, 2.165, 0.174)],
)  # fmt: skip
def test_the_same_question_by_three_laws(law, size, ratio, saving):
    """13B quality and 2e12 served tokens: the exponents decide what is saved."""
    asked = BudgetTask(scaling_law(law), FLOP, served=2e12, required=LossTarget(n_active=13e9))
    best = solved(asked)
    fresh = compute_optimal_tokens(asked.terms, 13e9)
    before = 13e9 * (6 * fresh + 2 * 2e12)
    assert best.n_active == pytest.approx(size, rel=1e-3)
    assert best.pretrain / fresh == pytest.approx(ratio, rel=1e-3)
    assert 1 - best.total / before == pytest.approx(saving, abs=1e-3)


@pytest.mark.parametrize(
    ("flop", "size", "tokens", "loss"),
    [(1e20, 8.535e8, 1.953e10, None), (1e21, 2.778e9, 5.999e10, None),
     (5.76e23, 7.225e10, 1.329e12, 1.9744), (3.8e25, 6.187e11, 1.024e13, None)],
)  # fmt: skip
def test_the_optimum_of_besiroglu_at_an_arithmetic(flop, size, tokens, loss):
    """Besiroglu et al. 2024 at four arithmetics of training, nothing served."""
    best = solved(BudgetTask(scaling_law("besiroglu-2024"), FLOP, limit=flop))
    assert best.n_active == pytest.approx(size, rel=1e-3)
    assert best.pretrain == pytest.approx(tokens, rel=1e-3)
    assert loss is None or best.loss == pytest.approx(loss, abs=5e-5)


@pytest.mark.parametrize(
    ("size", "tokens", "loss"),
    [(6.34e9, 2.42e11, 2.2256440889984477), (8.67e9, 1.78e11, 2.2269634075087867)],
)
def test_the_loss_of_repeated_data(size, tokens, loss):
    """The two values in the README of datablations, on 25e9 unique tokens."""
    best = solved(
        BudgetTask(scaling_law("muennighoff-2023"), FLOP, unique=2.5e10, limit=1e30,
                 fixed_choices={"n_active": size, "pretrain": tokens})
    )  # fmt: skip
    assert best.loss == pytest.approx(loss, abs=1e-12)


def test_the_better_of_two_on_repeated_data_is_the_published_one():
    """Equal arithmetic: the smaller model on more epochs wins, and the optimum beats both."""
    law = scaling_law("muennighoff-2023")
    best = solved(BudgetTask(law, FLOP, unique=2.5e10, limit=6 * 6.34e9 * 2.42e11))
    assert best.loss < law.loss(6.34e9, 2.42e11, unique=2.5e10)
    assert best.loss < 2.2269634075087867


@pytest.mark.parametrize(
    ("law", "two", "three"),
    [("besiroglu-2024", 6.65, 20.15), ("hoffmann-2022-approach-3", 11.39, 47.28),
     ("hoffmann-2022-approach-3-rounded", 11.89, 50.58)],
)  # fmt: skip
def test_equal_pools_ask_for_twenty_to_fifty_times_not_a_hundred(law, two, three):
    """Over-training at an optimum whose pools are equal: (number of pools)**(1/beta)."""
    for pools, expected in ((2, two), (3, three)):
        served = 1e13
        for _ in range(60):  # the served tokens at which the pools come out equal
            best = solved(question(law, served=served))
            rest = best.total - best.cost[0]
            served *= ((pools - 1) * best.cost[0] / rest) ** 0.7
        ratio = overtraining(best)
        assert best.total / best.cost[0] == pytest.approx(pools, rel=1e-6)
        assert ratio.ratio == pytest.approx(expected, rel=1e-3)
        assert ratio.from_pools == pytest.approx(ratio.ratio, rel=1e-9)


def test_a_heavily_served_model_does_not_equalise_its_pools():
    """70B quality and 2e14 served tokens: serving costs 3.4 times pre-training (Besiroglu)."""
    best = solved(question(served=2e14, required=LossTarget(n_active=70e9)))
    assert best.cost[2] / best.cost[0] == pytest.approx(3.4, abs=0.05)
