"""The rows of a budget: from its multipliers, or by solving again beside it.

What a quantity does to what is made small comes from the envelope theorem. What it does to
anything else moves the optimum: the budget is solved again a little off on either side, its
sparsity held, and the difference is taken to second order on each side. Where the sides differ, a
kink may lie within the step rather than at the point: ever smaller steps tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from planner.problems.budget.outputs import point_of
from planner.problems.budget.question import BudgetScenario
from planner.problems.budget.resolve import resolve_budget
from planner.protocol.document import document_of
from planner.protocol.elasticity import OFFSETS, STEP, Elasticity, one_sided
from planner.protocol.output import values_in
from planner.text.errors import InputError
from planner.token_costs.optimum import BudgetOptimum, best_of, solve_many
from planner.token_costs.outputs import OUTPUTS
from planner.token_costs.parameters import BudgetParameter, elasticities, parameters, row_of


def budget_rows(scenario: BudgetScenario, name: str) -> list[Elasticity]:
    """Every parameter of a budget that has an answer, and what it does to one output."""
    tasks = resolve_budget(scenario).tasks
    best = best_of(solve_many(tasks)) if tasks else None
    if not isinstance(best, BudgetOptimum):
        raise InputError("--of: a rule for an arithmetic has no optimum that could move")
    rows = list(parameters(best.task, scenario.inference, scenario.rl))
    if _judged_by(best, name):
        slopes = elasticities(best, scenario.inference, scenario.rl)
        pairs = [(slopes.get(row.path, 0.0),) * 2 for row in rows]
        return [row_of(*each, "dual") for each in zip(rows, pairs, strict=True)]
    pairs = _again(best, rows, name)
    return [row_of(*each, "re-solve") for each in zip(rows, pairs, strict=True)]


def _judged_by(best: BudgetOptimum, name: str) -> bool:
    """Whether the output is what is made small."""
    task = best.task
    if task.aim == "quality":
        return name == "loss"
    flop = all(phase.mfu is None for phase in task.phases.values())
    return name == "cost.total.usd" if task.in_usd else name == "cost.total.flop" and flop


def _again(
    best: BudgetOptimum, rows: Sequence[BudgetParameter], name: str
) -> list[tuple[float, float]]:
    """Slopes of the logarithm of an output to the left and to the right of every parameter."""

    def log(optimum: BudgetOptimum) -> float:
        return math.log(values_in(OUTPUTS, document_of(point_of(optimum)))[name])

    def solved(varied: Sequence[BudgetParameter], step: float) -> list[float | None]:
        """Logarithms of the output, of every parameter at every offset."""
        tasks = [row.to(math.exp(offset * step)) for row in varied if row.to for offset in OFFSETS]
        answers = solve_many(tasks)
        return [log(each) if isinstance(each, BudgetOptimum) else None for each in answers]

    beside, at, count = solved(rows, STEP), log(best), len(OFFSETS)
    return [
        one_sided(at, beside[i * count : (i + 1) * count], partial(solved, [row]))
        for i, row in enumerate(rows)
    ]
