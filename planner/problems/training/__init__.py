"""Problem kind `training`: best layout for time, cost or energy; lattice, step, search, plan.

What another kind may use of it is listed here and loaded on first use: reading a file stays fast.
"""

from typing import TYPE_CHECKING

from planner.text.faces import imported_for_types, lazy_module

if TYPE_CHECKING:
    from planner.problems.training.planned_share import (
        PlannedStep,
        PlannedTraining,
        SizeLayouts,
        cost_with_mfu,
        fixed_cost,
        fixed_share,
        planned_cost,
        planned_training,
        search_size_grid,
        supporting_growth,
    )
    from planner.problems.training.problem import PROBLEM
    from planner.problems.training.question import (
        PRECISIONS,
        QUESTION,
        ParameterState,
        PlannedRun,
        PretrainPhase,
        StackField,
        TrainingChoose,
    )

_HOMES = imported_for_types(__name__)
__all__ = list(_HOMES)
__getattr__ = lazy_module(__name__, _HOMES)
