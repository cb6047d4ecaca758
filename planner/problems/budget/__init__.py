"""How large a model on how many tokens? The budget problem: laws, phases, optimum, proof."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "QUESTION":
        from planner.problems.budget.question import BudgetScenario

        return BudgetScenario
    if name == "PROBLEM":
        from planner.problems.budget.problem import PROBLEM

        return PROBLEM
    if name in ("COLUMNS", "sections"):
        from planner.problems.budget import cost_sections

        return getattr(cost_sections, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
