"""Reinforcement learning as a problem kind: split of chips between rollouts and training.

What a reader of measurements may use of it is listed here and loaded on first use.
"""

from typing import TYPE_CHECKING

from planner.text.faces import imported_for_types, lazy_module

if TYPE_CHECKING:
    from planner.problems.rl.problem import PROBLEM
    from planner.problems.rl.question import QUESTION
    from planner.problems.rl.search import min_step_seconds, search_pools, step_function

_HOMES = imported_for_types(__name__)
__all__ = list(_HOMES)
__getattr__ = lazy_module(__name__, _HOMES)
