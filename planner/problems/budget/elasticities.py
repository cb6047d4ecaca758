"""The rows of a budget or a lifecycle: from its multipliers, or by solving again beside it.

What a given does to what is made small comes from the envelope theorem. What it does to anything
else moves the optimum: the question is solved again a little off on either side, its sparsity and
its serving layouts held, and the difference is taken to second order on each side. Where the sides
differ, a kink may lie within the step rather than at the point: ever smaller steps tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from planner.problems.budget.answer import plan_of
from planner.problems.budget.budget_task import BudgetTask
from planner.problems.budget.life_givens import life_givens
from planner.problems.budget.optimum import BudgetOptimum, solve_many
from planner.problems.budget.parameters import elasticities
from planner.problems.budget.problem import OUTPUTS
from planner.problems.budget.resolve import resolve_budget
from planner.protocol.elasticity import (
    EVERYTHING_FOLLOWS,
    OFFSETS,
    STEP,
    Elasticity,
    Method,
    one_sided,
)
from planner.protocol.output import values_in
from planner.protocol.parameter import Parameter
from planner.scenario import BudgetScenario
from planner.text.errors import InputError

ENVELOPE = "multipliers (envelope theorem)"
AGAIN = "solved again on either side, choices held"


def budget_rows(scenario: BudgetScenario, name: str) -> list[Elasticity]:
    """Every given of a budget that has an answer, and what it does to one output."""
    asked = resolve_budget(scenario)
    solved = [each for each in solve_many(asked.questions) if isinstance(each, BudgetOptimum)]
    if not solved:
        raise InputError("--of: a rule for an arithmetic has no optimum that could move")
    best = min(solved, key=lambda each: each.score)
    givens = life_givens(scenario, best.question)
    if _judged_by(best, name):
        worth = elasticities(best, scenario)
        return [_row(given, worth.get(given.path, 0.0), None, "dual", ENVELOPE) for given in givens]
    slopes = _again(best, givens, name)
    return [_row(given, *slopes[given.path], "re-solve", AGAIN) for given in givens]


def _judged_by(best: BudgetOptimum, name: str) -> bool:
    """Whether the output is what is made small."""
    question = best.question
    if question.aim == "quality":
        return name == "loss"
    flop = all(phase.mfu is None for phase in question.phases.values())
    return name == "cost.total.usd" if question.in_usd else name == "cost.total.flop" and flop


def _again(
    best: BudgetOptimum, givens: Sequence[Parameter], name: str
) -> dict[str, tuple[float, float]]:
    def solved(varied: Sequence[Parameter], step: float) -> list[float | None]:
        """Logarithms of the output, of every given at every offset."""
        questions: list[BudgetTask] = [
            given.to(math.exp(offset * step))
            for given in varied
            if given.to is not None
            for offset in OFFSETS
        ]
        return [
            math.log(values_in(OUTPUTS, plan_of(each))[name])
            if isinstance(each, BudgetOptimum)
            else None
            for each in solve_many(questions)
        ]

    found = solved(givens, STEP)
    at = math.log(values_in(OUTPUTS, plan_of(best))[name])
    count = len(OFFSETS)
    sides = {}
    for i, given in enumerate(givens):
        closer = partial(solved, [given])
        sides[given.path] = one_sided(at, found[i * count : (i + 1) * count], closer)
    return sides


def _row(
    given: Parameter, left: float, right: float | None, method: Method, basis: str
) -> Elasticity:
    right = left if right is None else right
    return Elasticity(
        given.path,
        given.value,
        given.unit,
        given.group,
        left,
        right,
        method,
        basis,
        EVERYTHING_FOLLOWS,
    )
