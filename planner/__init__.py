"""What should it cost, and what should I run? Scenario in, certified plan out.

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
    from planner.library import sensitivity  # after the module of that name, which it imports
    from planner.sweep import sweep
    from planner.text.faces import loaded_from
except KeyboardInterrupt:
    if PurePath(sys.argv[0]).stem not in ("-m", "planner"):  # the command line, not yet begun
        raise
    print("planner: interrupted", file=sys.stderr)
    sys.exit(130)

if TYPE_CHECKING:
    from planner.engines import export
    from planner.library import calibrate, topology, validate
    from planner.problems.serving.question import Scenario
    from planner.protocol.plan import Plan
    from planner.protocol.solve import check, pareto, solve
    from planner.report.text.catalog import catalog, model
    from planner.scenario.loading import load
    from planner.text.errors import Infeasible, InputError, PlannerError, SolverError

_HOMES = {
    "engines": ("export",),
    "library": ("calibrate", "topology", "validate"),
    "protocol.plan": ("Plan",),
    "protocol.solve": ("check", "pareto", "solve"),
    "problems.serving.question": ("Scenario",),
    "report.text.catalog": ("catalog", "model"),
    "scenario.loading": ("load",),
    "text.errors": ("Infeasible", "InputError", "PlannerError", "SolverError"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = list(_HOME_OF)
__all__ += ["sensitivity", "sweep"]
__getattr__ = loaded_from(__name__, _HOME_OF)


def __dir__() -> list[str]:
    return sorted(__all__)
