"""The rows of a budget or a lifecycle: from its multipliers, or by solving again beside it.

What a given does to what is made small comes from the envelope theorem. What it does to anything
else moves the optimum: the question is solved again a little off on either side, its sparsity and
its serving layouts held, and the difference is taken to second order on each side. Where the sides
differ, a kink may lie within the step rather than at the point: ever smaller steps tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from planner.problems.budget.answer import plan_of
from planner.problems.budget.budget_task import BudgetTask
from planner.problems.budget.life_givens import LifeGiven, life_givens
from planner.problems.budget.optimum import BudgetOptimum, solve_many
from planner.problems.budget.parameters import elasticities
from planner.problems.budget.resolve import resolve_budget
from planner.protocol.output import values_of
from planner.scenario import BudgetScenario
from planner.sensitivity.elasticities import Row
from planner.text.errors import InputError

__all__ = ["AGAIN", "ENVELOPE", "budget_rows", "one_sided"]

ENVELOPE = "multipliers (envelope theorem)"
AGAIN = "solved again on either side, choices held"
STEP = 1e-3  # of a given, in logarithms
CLOSER = (1e-4, 1e-5)  # where the sides differ
OFFSETS = (-2, -1, 1, 2)  # steps at which it is solved again
ALIKE = 1e-3  # slopes of both sides, relative, that are one

Values = Mapping[str, float] | None


def budget_rows(scenario: BudgetScenario, name: str) -> list[Row]:
    """Every given of a budget that has an answer, and what it does to one output."""
    asked = resolve_budget(scenario)
    solved = [each for each in solve_many(asked.questions) if isinstance(each, BudgetOptimum)]
    if not solved:
        raise InputError("--of: a rule for an arithmetic has no optimum that could move")
    best = min(solved, key=lambda each: each.score)
    givens = life_givens(scenario, best.question)
    if _judged_by(best, name):
        worth = elasticities(best, scenario)
        return [_row(given, worth.get(given.path, 0.0), None, ENVELOPE) for given in givens]
    slopes = _again(best, givens, name)
    return [_row(given, *slopes[given.path], AGAIN) for given in givens]


def one_sided(
    at: float,
    values: Sequence[float | None],
    closer: Callable[[float], Sequence[float | None]] | None = None,
) -> tuple[float, float]:
    """Slopes to the left and to the right, to second order; `values` are those at the offsets.

    A side without values has the slope of the other. `closer` gives the values with a smaller step.
    """
    found = _sides(at, values, STEP)
    for step in CLOSER if closer is not None else ():
        if not abs(found[0] - found[1]) > ALIKE * max(1.0, *map(abs, found)):
            break
        found = _sides(at, closer(step), step)  # type: ignore[misc]
    return found


def _sides(at: float, values: Sequence[float | None], step: float) -> tuple[float, float]:
    far_left, left, right, far_right = values
    low = None if left is None or far_left is None else 3 * at - 4 * left + far_left
    high = None if right is None or far_right is None else 4 * right - far_right - 3 * at
    sides = [None if each is None else each / (2 * step) for each in (low, high)]
    first = sides[0] if sides[0] is not None else sides[1]
    second = sides[1] if sides[1] is not None else sides[0]
    return (math.nan if first is None else first, math.nan if second is None else second)


def _judged_by(best: BudgetOptimum, name: str) -> bool:
    """Whether the output is what is made small."""
    question = best.question
    if question.aim == "quality":
        return name == "loss"
    flop = all(phase.mfu is None for phase in question.phases.values())
    return name == "cost.total.usd" if question.in_usd else name == "cost.total.flop" and flop


def _again(
    best: BudgetOptimum, givens: Sequence[LifeGiven], name: str
) -> dict[str, tuple[float, float]]:
    def solved(varied: Sequence[LifeGiven], step: float) -> list[float | None]:
        """Logarithms of the output, of every given at every offset."""
        questions: list[BudgetTask] = [
            given.vary(best.question, math.exp(offset * step))
            for given in varied
            for offset in OFFSETS
        ]
        return [
            math.log(values_of("budget", plan_of(each))[name])
            if isinstance(each, BudgetOptimum)
            else None
            for each in solve_many(questions)
        ]

    found = solved(givens, STEP)
    at = math.log(values_of("budget", plan_of(best))[name])
    count = len(OFFSETS)
    sides = {}
    for i, given in enumerate(givens):
        closer = partial(solved, [given])
        sides[given.path] = one_sided(at, found[i * count : (i + 1) * count], closer)
    return sides


def _row(given: LifeGiven, left: float, right: float | None, method: str) -> Row:
    right = left if right is None else right
    return Row(given.path, given.value, given.unit, given.group, left, right, method)
