"""Typed costs of a model's life: intervals by their quantiles, totals in the unit asked for."""

from __future__ import annotations

import numpy as np
import pytest

from planner.token_costs.spending import (
    LawInterval,
    LifePoint,
    LifeSpending,
    PhaseShares,
    PhaseTokens,
    Spending,
)


def point(total: Spending, objective: str) -> LifePoint:
    """A point that costs this in all."""
    nothing = Spending(0.0, 0.0, 0.0, 0.0)
    return LifePoint(
        n_active=7e9, n_total=7e9, sparsity=1.0, tokens=PhaseTokens(1.25e12, 0.0, 0.0),
        epochs=None, cost=LifeSpending(nothing, nothing, nothing, total),
        share=PhaseShares(1.0, 0.0, 0.0), over_training=None, tokens_per_parameter=178.0, loss=2.0,
        law="a law", coefficients={}, objective=objective,
    )  # fmt: skip


@pytest.mark.parametrize("coverage", [0.8, 0.5])
def test_ends_hold_their_share_of_the_draws(coverage):
    """As much below as above; counted among equally spaced numbers, in no order."""
    draws = np.random.default_rng(5).permutation(1001) / 1000
    columns = {"n_active": 10 * draws, "pretrain": draws**2, "cost": draws}
    found = LawInterval.of(columns, "a law", 1001, coverage)
    tail = (1 - coverage) / 2
    assert found.cost == pytest.approx((tail, 1 - tail))
    assert found.n_active == pytest.approx((10 * tail, 10 * (1 - tail)))
    assert found.pretrain == pytest.approx((tail**2, (1 - tail) ** 2))
    assert (found.coverage, found.answered) == (coverage, 1.0)
    assert found.source == "1001 draws from the standard errors of a law"


def test_ends_of_too_little_are_none():
    """Of fewer than half of the draws, of fewer than two, and where one of them is no number."""

    def interval(answered: int, count: int) -> LawInterval:
        draws = np.arange(float(answered))
        missing = np.where(draws == 1, np.nan, draws)
        columns = {"n_active": missing, "pretrain": draws, "cost": draws}
        return LawInterval.of(columns, "a law", count, 0.9)

    half = interval(50, 100)
    assert half.answered == 0.5
    assert half.pretrain is not None
    assert half.n_active is None
    assert interval(49, 100).cost is None
    assert interval(49, 100).answered == 0.49
    assert interval(1, 1).cost is None
    assert interval(2, 2).cost is not None
    assert interval(0, 1).cost is None


def test_a_life_costs_what_its_objective_counts():
    """USD, nothing where no price is known; or FLOP of the peak."""
    total = Spending(5e6, 1e24, 2e24, 1e5)
    assert point(total, "usd").total == 5e6
    assert point(total, "flop").total == 2e24
    unpriced = Spending(None, 1e24, 2e24, None)
    assert point(unpriced, "usd").total == 0.0
