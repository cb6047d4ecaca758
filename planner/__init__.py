"""Planner of LLM serving and training: scenario in, certified plan with its cost out.

>>> import planner
>>> plan = planner.solve("examples/serve-deepseek-v3-h200.yaml")   # doctest: +SKIP
>>> plan.cost, plan.layout, plan.why()                             # doctest: +SKIP

Names are loaded when they are first used, so that `planner --help` imports no solver.
"""

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

# At once, for they are called like their modules, which would take their place when first imported.
try:
    from planner.library import (
        sensitivity as sensitivity,  # after the module of that name, which it imports
    )
    from planner.sweep import sweep as sweep
    from planner.text.faces import imported_for_types, lazy_module
except KeyboardInterrupt:
    if PurePath(sys.argv[0]).stem not in ("-m", "planner"):  # the command line, not yet begun
        raise
    print("planner: interrupted", file=sys.stderr)
    sys.exit(130)

if TYPE_CHECKING:  # `as` makes a name public to strict type checkers
    from planner.engines import export as export
    from planner.library import calibrate as calibrate
    from planner.library import topology as topology
    from planner.library import validate as validate
    from planner.problems.budget.plan import BudgetPlan as BudgetPlan
    from planner.problems.cache.plan import CachePlan as CachePlan
    from planner.problems.fleet.plan import FleetPlan as FleetPlan
    from planner.problems.lifecycle.plan import LifecyclePlan as LifecyclePlan
    from planner.problems.prices.plan import PricesPlan as PricesPlan
    from planner.problems.rl.plan import RlPlan as RlPlan
    from planner.problems.schedule.problem import SchedulePlan as SchedulePlan
    from planner.problems.serving.plan import ServingPlan as ServingPlan
    from planner.problems.serving.question import Scenario as Scenario
    from planner.problems.training.plan import TrainingPlan as TrainingPlan
    from planner.protocol.plan import Plan as Plan
    from planner.protocol.solve import check as check
    from planner.protocol.solve import pareto as pareto
    from planner.protocol.solve import solve as solve
    from planner.report.text.catalog import catalog as catalog
    from planner.report.text.catalog import model as model
    from planner.scenario.loading import load as load
    from planner.text.errors import Infeasible as Infeasible
    from planner.text.errors import InputError as InputError
    from planner.text.errors import PlannerError as PlannerError
    from planner.text.errors import SolverError as SolverError

_HOMES = imported_for_types(__name__)
__all__ = list(_HOMES)
__all__ += ["sensitivity", "sweep"]
__getattr__ = lazy_module(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
