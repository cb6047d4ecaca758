"""Training at many sizes at once: tokens and cost that reach the quality asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.problems.budget.budget_task import BudgetTask, assembled
from planner.problems.budget.search.posynomial_form import Array, Budgets
from planner.problems.budget.search.stationary_points import stationary_points

RL = 1  # the column of reinforcement learning in the costs of a budget


@dataclass(frozen=True)
class TrainingCurve:
    """Tokens and the cost of training by size, at the quality asked for, infinite where none is.

    All (P,): active parameters, tokens of pre-training and of reinforcement learning, USD of both
    phases together and of the latter.
    """

    sizes: Array
    tokens: Array
    rl: Array
    training: Array
    rl_cost: Array


def training_curve(budget: BudgetTask, sizes: Sequence[float] | Array) -> TrainingCurve:
    """Training at each size, to the quality asked for."""
    rows = at_sizes(budget, list(sizes))
    points = stationary_points(rows)
    with np.errstate(all="ignore"):
        costs, choices = rows.costs(points.point), np.exp(points.point)
        total = np.exp(costs.value) + budget.constant_cost
        rl_cost = costs.shares[:, RL] * np.exp(costs.value) + budget.constant_cost
    chosen = rows.choices.index("rl") if "rl" in rows.choices else None
    rl = choices[:, chosen] if chosen is not None else np.full(len(rows), budget.rl_tokens)
    if budget.rl_flop:
        rl = budget.rl_flop / (budget.phases["rl"].arithmetic * np.asarray(sizes))
    possible = points.converged & np.isfinite(total)
    tokens = choices[:, rows.choices.index("pretrain")]
    if budget.unique is not None and not budget.repeats:
        possible &= tokens <= budget.unique
    return TrainingCurve(
        sizes=np.asarray(sizes, dtype=float),
        tokens=np.where(possible, tokens, np.inf),
        rl=np.where(possible, rl, np.inf),
        training=np.where(possible, total, np.inf),
        rl_cost=np.where(possible, rl_cost, 0.0),
    )


def at_sizes(budget: BudgetTask, sizes: Sequence[float]) -> Budgets:
    """The budget of one question at each of many sizes; tokens alone are left to choose."""
    rows = assembled([budget] * len(sizes))
    logs: Array = np.log(np.asarray(sizes, dtype=float))
    return rows.fixed("n_active", logs)
