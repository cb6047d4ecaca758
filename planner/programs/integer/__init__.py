"""Mixed integer programs: declared by blocks, relaxed, cut, decomposed, proved (SciPy's HiGHS)."""

from typing import TYPE_CHECKING

from planner.text.faces import loaded_from

if TYPE_CHECKING:
    from planner.programs.integer.declaration import IntegerProgram, Rows
    from planner.programs.integer.descent import descend
    from planner.programs.integer.filling_ways import TooManyWays, filling_ways, needs_ways
    from planner.programs.integer.lagrangian import SHARED, lagrangian_bound
    from planner.programs.integer.relaxation import LinearPoint, NoPoint, relaxed, tightened
    from planner.programs.integer.solver import WholePoint, solved

_HOMES = {
    "IntegerProgram": "declaration", "Rows": "declaration", "descend": "descent",
    "LinearPoint": "relaxation", "NoPoint": "relaxation", "relaxed": "relaxation",
    "tightened": "relaxation", "lagrangian_bound": "lagrangian", "SHARED": "lagrangian",
    "TooManyWays": "filling_ways", "filling_ways": "filling_ways", "needs_ways": "filling_ways", "WholePoint": "solver", "solved": "solver",
}  # fmt: skip
__all__ = list(_HOMES)


__getattr__ = loaded_from(__name__, _HOMES)
