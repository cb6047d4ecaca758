"""Budgets whose pre-training costs what the training planner's best layout of the model does."""

import math

import numpy as np
import pytest

import planner
from planner.text.errors import InputError
from tests.cases.planned_training import budget, member, usd_per_mtok
from tests.sizes import sized

LOSS_MIN, A, B, ALPHA, BETA = 1.8172, 482.01, 2085.43, 0.3478, 0.3658  # Besiroglu et al., table 1


def tokens_for(loss, size):
    """Tokens that bring a size to a loss, by the law turned round."""
    left = loss - LOSS_MIN - A / size**ALPHA
    return (B / left) ** (1 / BETA) if left > 0 else math.inf


@pytest.fixture(scope="module")
def plan():
    """The budget, solved once."""
    return planner.solve(budget())


def test_training_costs_what_the_training_problem_charges(plan, tmp_path):
    """Dollars of pre-training are tokens at the price that `problem: training` gives the model."""
    point = plan.answer.plan
    price = usd_per_mtok(point.n_active, tmp_path)
    assert plan.answer.training.usd_per_mtok == pytest.approx(price, rel=1e-9)
    assert point.cost.pretrain.usd == pytest.approx(price * point.tokens.pretrain / 1e6, rel=1e-9)
    size = member(point.n_active).n_active["all"]
    assert point.n_active == pytest.approx(size, rel=1e-12)


@pytest.mark.sized
def test_no_size_is_cheaper(plan, tmp_path):
    """Brute force: sizes off the ladder, each trained as `problem: training` says, cost more."""
    point = plan.answer.plan
    served = point.cost.inference.usd / point.n_active  # in proportion to the size
    for factor in np.geomspace(0.7, 1.5, sized(3, 24)):
        size = member(float(point.n_active * factor)).n_active["all"]
        tokens = tokens_for(point.loss, size)
        total = usd_per_mtok(size, tmp_path) * tokens / 1e6 + served * size
        assert total >= point.cost.total.usd * (1 - 2e-3)  # rungs are a percent apart


def test_a_fixed_share_stands_beside(plan):
    """The published MFU has a size of its own, which costs no less when its layout is paid."""
    fixed = plan.answer.training.fixed_mfu
    assert fixed.mfu == pytest.approx(0.42, abs=0.01)
    assert fixed.cost >= plan.cost * (1 - 1e-9)
    assert fixed.worse_by == pytest.approx(fixed.cost / plan.cost - 1)
    assert "had you assumed 42% MFU" in plan.text("more")


def test_a_given_share_is_the_one_compared_with():
    """`mfu` beside `training` does not move the plan."""
    given = planner.solve(budget(mfu=0.3)).answer
    assert given.training.fixed_mfu.mfu == 0.3
    assert given.training.fixed_mfu.source == "given"
    assert given.plan.cost.total.usd == pytest.approx(planner.solve(budget()).cost, rel=1e-12)


def test_dearer_chips_of_training_cost_their_share(plan):
    """One percent on the rent is its share of the cost; faster memory helps, by the layout."""
    slopes = plan.answer.elasticities
    share = plan.answer.plan.share.pretrain
    assert slopes["phases.pretrain.price"] == pytest.approx(share, rel=1e-9)
    assert -share < slopes["phases.pretrain.system.memory_bandwidth"] < 0
    assert "phases.pretrain.mfu" not in slopes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"system": None}, "give the system of the layouts"),
        ({"system": ["hgx-h100", "hgx-h200"]}, "give one system"),
        ({"dtype": "int8"}, "the training planner knows bf16"),
        ({"training": {"chips": 256, "sequence": 4096}}, "global_batch"),
        ({"training": {"chips": 8, "global_batch": "64 sequences", "sequence": 4096,
                       "choose": {"tp": 11}}}, "training.choose.tp"),
    ],
)  # fmt: skip
def test_what_is_refused(changes, words):
    """Each mistake by its place."""
    with pytest.raises(InputError, match=words):
        planner.solve(budget(**changes))


def test_a_rule_weighs_no_size():
    """A law that only splits an arithmetic takes a fixed share."""
    scenario = {**budget(), "law": "kaplan-2020-allocation", "cost": "1e24 FLOP"}
    del scenario["quality"]
    with pytest.raises(InputError):
        planner.solve(scenario)
