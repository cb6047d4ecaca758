"""Mixed integer programs: declared by blocks, relaxed, cut, decomposed, proved (SciPy's HiGHS)."""

from typing import TYPE_CHECKING

from planner.text.faces import loaded_from

if TYPE_CHECKING:
    from planner.programs.integer.bins import TooManyWays, filling_ways, needs_ways
    from planner.programs.integer.declaration import IntegerProgram, Rows, Whole
    from planner.programs.integer.descent import descend
    from planner.programs.integer.lagrangian import SHARED, lagrangian_bound
    from planner.programs.integer.relaxation import LinearPoint, NoPoint, relaxed, tightened
    from planner.programs.integer.solver import WholePoint, solved

_HOMES = {
    "IntegerProgram": "declaration", "Rows": "declaration", "Whole": "declaration",
    "descend": "descent", "TooManyWays": "bins", "filling_ways": "bins",
    "needs_ways": "bins", "SHARED": "lagrangian", "lagrangian_bound": "lagrangian",
    "LinearPoint": "relaxation", "NoPoint": "relaxation", "relaxed": "relaxation",
    "tightened": "relaxation", "WholePoint": "solver", "solved": "solver",
}  # fmt: skip
__all__ = list(_HOMES)


__getattr__ = loaded_from(__name__, _HOMES)
