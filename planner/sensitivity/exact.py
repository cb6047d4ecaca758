"""A scenario solved exactly, and nothing else: outputs, the choice, no certificate, no reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.errors import InputError
from planner.scenario import BudgetScenario, LifecycleScenario, Scenario
from planner.sensitivity.outputs import chosen, values_of

__all__ = ["Exact", "Nowhere", "exact"]


@dataclass(frozen=True)
class Exact:
    """The best plan of a scenario: its outputs in base units, its choice, what it is judged by."""

    values: Mapping[str, float]
    choice: str
    score: float
    plan: Mapping[str, Any] = field(repr=False, compare=False)


Nowhere = Exact({}, "no plan", math.inf, {})
"""What is found where nothing keeps the promises."""


def exact(scenario: Any) -> Exact:
    """The best plan; `Nowhere` if there is none.

    Raises
    ------
    InputError
        For a question that contradicts itself or that this version does not answer.
    """
    if isinstance(scenario, Scenario):
        return _serving(scenario)
    if isinstance(scenario, BudgetScenario):
        return _budget(scenario)
    if isinstance(scenario, LifecycleScenario):
        return _lifecycle(scenario)
    raise InputError(f"problem: {scenario.problem} has no sensitivity in this version")


def _serving(scenario: Scenario) -> Exact:
    from planner.serving.asking import ask
    from planner.serving.questions import questions_of, ranked

    points = ranked(questions_of(ask(scenario)))
    if not points:
        return Nowhere
    plan = points[0].candidate.plan()
    return Exact(values_of("serving", plan), chosen("serving", plan), points[0].score, plan)


def _budget(scenario: BudgetScenario) -> Exact:
    from planner.budgets.answer import answer, planned
    from planner.budgets.asking import ask
    from planner.budgets.best import Answer, solve_many

    asked = ask(scenario)
    if not asked.questions:
        plan: Mapping[str, Any] = answer(scenario).chosen
        return Exact(values_of("budget", plan), "by rule", math.nan, plan) if plan else Nowhere
    solved = [each for each in solve_many(asked.questions) if isinstance(each, Answer)]
    if not solved:
        return Nowhere
    best = min(solved, key=lambda each: each.score)
    plan = planned(best)
    return Exact(values_of("budget", plan), chosen("budget", plan), best.score, plan)


def _lifecycle(scenario: LifecycleScenario) -> Exact:
    from planner.budgets.life import life_of
    from planner.budgets.lifecycle_plan import planned
    from planner.budgets.lifecycle_search import searched
    from planner.budgets.lifecycle_settled import Settled

    life = life_of(scenario)
    found = [searched(life, sparsity) for sparsity in life.sparsities]
    settled = [each for each in found if isinstance(each, Settled)]
    if not settled:
        return Nowhere
    best = min(settled, key=lambda each: each.whole.total)
    plan = planned(best)
    return Exact(values_of("lifecycle", plan), chosen("lifecycle", plan), best.whole.total, plan)
