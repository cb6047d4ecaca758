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
    from planner.programs.integer.integer_program import (
        IntegerProgram,
        LinearPoint,
        MixedProgram,
        NoPoint,
        SparseRows,
        relaxed,
        tightened,
    )

_HOMES = {
    **dict.fromkeys(("UNLIMITED", "WholePoint", "descend", "solved"), "branch_and_bound"),
    **dict.fromkeys(
        ("Covers", "TooManyWays", "filling_ways", "least_covers", "needs_ways"), "covers"
    ),
    **dict.fromkeys(("IntegerProgram", "MixedProgram", "SparseRows"), "integer_program"),
    **dict.fromkeys(("LinearPoint", "NoPoint", "relaxed", "tightened"), "integer_program"),
}
__all__ = list(_HOMES)
__getattr__ = loaded_from(__name__, _HOMES)
