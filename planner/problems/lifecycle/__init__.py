"""Which model, trained how, served how, over a whole life? The lifecycle problem."""


def __getattr__(name: str) -> object:
    if name == "QUESTION":
        from planner.problems.lifecycle.question import LifecycleScenario

        return LifecycleScenario
    if name == "PROBLEM":
        from planner.problems.lifecycle.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
