"""The picture of a budget."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from planner.problems.budget.plan import BudgetPlan, BudgetPoint
from planner.problems.budget.resolve import resolve_budget
from planner.text.errors import InputError
from planner.token_costs.budget_task import BudgetTask, Required
from planner.token_costs.optimum import BudgetOptimum, solve_one
from planner.token_costs.picture import TALLEST, CostCurve, LifePicture, shown, unique_of
from planner.token_costs.stationary_points import training_curve

WIDEST = 60.0  # factor of sizes beside the plan that is looked at
POINTS = 193


def picture_of(plan: BudgetPlan) -> LifePicture:
    """The picture of an answered budget."""
    answer, question = plan.answer, plan.question
    point = answer.plan
    if point is None:
        raise InputError("there is no plan to draw")
    tasks = [task for task in resolve_budget(question).tasks if task.sparsity == point.sparsity]
    task = min(tasks, key=_score, default=None)
    if task is None:
        raise InputError("nothing is left to choose, so there is no curve to draw")
    band, rule = answer.band, answer.heuristic
    return LifePicture(
        plan=point,
        law=task.law,
        curve=shown(_by_size(task, point)),
        unique=unique_of(task.law, question.data.unique),
        rewarded=question.rl.reward is not None,
        band=(band.n_active, band.coverage) if band and band.n_active else None,
        rule=(rule.n_active, rule.cost or 0.0, rule.worse_by or 0.0)
        if rule and rule.n_active
        else None,
    )


def _by_size(task: BudgetTask, point: BudgetPoint) -> CostCurve:
    """Each phase of a budget at sizes around the plan's, at the plan's loss."""
    wanted = replace(task, required=Required(loss=point.loss), limit=None, fixed_choices={})
    size, serving = point.n_active, task.weights().get("inference", 0.0) * task.served
    curve = training_curve(wanted, np.geomspace(size / WIDEST, size * WIDEST, POINTS))
    cheap = curve.sizes[curve.training <= TALLEST * np.min(curve.training)]
    if cheap.size:  # once more, as finely over what is shown
        curve = training_curve(wanted, np.geomspace(cheap[0], cheap[-1], POINTS))
    served = serving * curve.sizes
    costs = CostCurve(curve.sizes, curve.tokens, curve.training - served, served)
    return costs.where(np.isfinite(curve.training))


def _score(task: BudgetTask) -> float:
    solved = solve_one(task)
    return solved.score if isinstance(solved, BudgetOptimum) else math.inf
