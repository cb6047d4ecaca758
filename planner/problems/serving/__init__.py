"""What should I run, and what does it cost? The serving problem: layouts, steps, search, proof."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "QUESTION":
        from planner.problems.serving.question import Scenario

        return Scenario
    if name == "PROBLEM":
        from planner.problems.serving.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
