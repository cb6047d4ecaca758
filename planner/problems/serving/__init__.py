"""Plan and price the serving of a model: layouts, step times, search, proof of optimality.

What another kind may use of it is listed here and loaded on first use: reading a file stays fast.
"""

from typing import TYPE_CHECKING

from planner.text.faces import imported_for_types, lazy_module

if TYPE_CHECKING:
    from planner.problems.serving.bounds.binding_limits import (
        parameter_elasticities,
        propagate_slopes,
    )
    from planner.problems.serving.bounds.lower_bound import declare, layout_given, optimum
    from planner.problems.serving.bounds.programs import CHORDS, LIMITS, layout
    from planner.problems.serving.deployment.beyond_fit import benchmark_commands, extrapolations
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.pool import EvaluatedPool
    from planner.problems.serving.deployment.questions import Question, double_pools, single_pools
    from planner.problems.serving.deployment.scored_points import PlanPoint, ranked_points
    from planner.problems.serving.point import ServingBand, ServingPoint
    from planner.problems.serving.problem import PROBLEM
    from planner.problems.serving.question import ESTIMATES, QUESTION, Scenario
    from planner.problems.serving.step.binding import shared_values
    from planner.problems.serving.step.step import Step
    from planner.problems.serving.task.drafter import depths
    from planner.problems.serving.task.requests import modes
    from planner.problems.serving.task.resolve import resolve
    from planner.problems.serving.task.task import Task, TaskPair
    from planner.problems.serving.task.task_builder import Hardware, TaskBuilder

_HOMES = imported_for_types(__name__)
__all__ = list(_HOMES)
__getattr__ = lazy_module(__name__, _HOMES)
