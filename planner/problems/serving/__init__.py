"""What should I run, and what does it cost? The serving problem: layouts, steps, search, proof."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.problems.serving.question import Scenario

__all__ = ["Scenario"]


def __getattr__(name: str) -> Any:
    if name in ("QUESTION", "Scenario"):
        from planner.problems.serving.question import Scenario

        return Scenario
    if name == "PROBLEM":
        from planner.problems.serving.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
