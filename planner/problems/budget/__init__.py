"""How large a model on how many tokens? The budget problem: laws, phases, optimum, proof."""


def __getattr__(name: str) -> object:
    if name == "QUESTION":
        from planner.problems.budget.question import BudgetScenario

        return BudgetScenario
    if name == "PROBLEM":
        from planner.problems.budget.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
