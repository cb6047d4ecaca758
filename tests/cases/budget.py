"""Budgets for tests: questions as numbers, and the best choice by trying many."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.laws.laws import scaling_law
from planner.token_costs.budget_task import BudgetTask, LossTarget
from planner.token_costs.optimum import BudgetOptimum, solve_one
from planner.token_costs.phase_costs import PhaseCost

BESIROGLU = "besiroglu-2024"


def phases(pretrain: float = 1.0, rl: float = 1.0, inference: float = 1.0, k: float = 3.0):
    """The three phases with a price of a FLOP each."""
    return {
        "pretrain": PhaseCost("pretrain", 6.0, 1.0, pretrain),
        "rl": PhaseCost("rl", k, 1.0, rl),
        "inference": PhaseCost("inference", 2.0, 1.0, inference),
    }


def question(law: str = BESIROGLU, **given: Any) -> BudgetTask:
    """A question in USD at one USD a FLOP unless phases are given."""
    given = {"phases": phases(), "in_usd": True, **given}
    if "required" not in given and "limit" not in given:
        given["required"] = LossTarget(n_active=13e9)
    return BudgetTask(scaling_law(law), **given)


def solved(asked: BudgetTask) -> BudgetOptimum:
    """The answer, which must be there."""
    found = solve_one(asked)
    assert isinstance(found, BudgetOptimum), found
    return found


def brute_force(
    asked: BudgetTask, rounds: int = 6, points: int = 4001
) -> tuple[float, float, float]:
    """Size, tokens and score of the best of many points on the limit, by the law's own loss.

    For every size of a grid the tokens that just keep the limit are found by halving; the grid
    closes in on the best size.
    """
    weights = asked.weights()
    given = weights["rl"] * asked.rl_tokens + weights["inference"] * asked.served
    unique = asked.unique if asked.repeats else None

    def loss(n: np.ndarray, d: np.ndarray) -> np.ndarray:
        return asked.law.loss(n, d, sparsity=asked.sparsity, unique=unique)

    low, high, best = np.log(1e6), np.log(1e15), (np.nan, np.nan, np.inf)
    for _ in range(rounds):
        n = np.exp(np.linspace(low, high, points))
        if asked.required is not None:
            wanted = asked.required.value(asked.law)
            d, kept = _tokens(loss, n, wanted)
            score = np.where(
                kept, n * (weights["pretrain"] * d + given) + asked.constant_cost, np.inf
            )
        else:
            left = (asked.limit - asked.constant_cost) / n - given
            kept = left > 0
            d = np.where(kept, left, 1.0) / weights["pretrain"]
            score = np.where(kept, loss(n, d), np.inf)
        place = int(np.argmin(score))
        best = (float(n[place]), float(d[place]), float(score[place]))
        width = (high - low) / (points - 1) * 3
        low, high = np.log(n[place]) - width, np.log(n[place]) + width
    return best


def _tokens(loss: Any, n: np.ndarray, wanted: float) -> tuple[np.ndarray, np.ndarray]:
    """Tokens at which each size has the loss, and whether any have it."""
    low, high = np.full_like(n, np.log(1e4)), np.full_like(n, np.log(1e18))
    kept = loss(n, np.exp(high)) < wanted
    for _ in range(70):
        middle = (low + high) / 2
        short = loss(n, np.exp(middle)) > wanted
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.exp(high), kept
