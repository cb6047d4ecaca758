"""Mixed integer programs: declared by blocks, relaxed, cut, decomposed, proved (SciPy's HiGHS)."""

from typing import TYPE_CHECKING

from planner.text.faces import loaded_from

if TYPE_CHECKING:
    from planner.programs.integer.branch_and_bound import UNLIMITED, WholePoint, descend, solved
    from planner.programs.integer.covers import (
        Covers,
        TooManyWays,
        filling_ways,
        least_covers,
        needs_ways,
    )
    from planner.programs.integer.integer_program import IntegerProgram, MixedProgram, SparseRows
    from planner.programs.integer.linear_relaxation import LinearPoint, NoPoint, relaxed, tightened

_HOMES = {
    "IntegerProgram": "integer_program", "MixedProgram": "integer_program",
    "SparseRows": "integer_program", "Covers": "covers", "least_covers": "covers",
    "descend": "branch_and_bound", "TooManyWays": "covers", "filling_ways": "covers",
    "needs_ways": "covers",
    "LinearPoint": "linear_relaxation", "NoPoint": "linear_relaxation",
    "relaxed": "linear_relaxation", "tightened": "linear_relaxation",
    "UNLIMITED": "branch_and_bound", "WholePoint": "branch_and_bound",
    "solved": "branch_and_bound",
}  # fmt: skip
__all__ = list(_HOMES)


__getattr__ = loaded_from(__name__, _HOMES)
