"""Mixed integer programs: declared by blocks, relaxed, cut, decomposed, proved (SciPy's HiGHS)."""

from typing import TYPE_CHECKING

from planner.text.faces import imported_for_types, loaded_from

if TYPE_CHECKING:
    from planner.programs.integer.branch_and_bound import (
        UNLIMITED,
        Covers,
        TooManyWays,
        WholePoint,
        descend,
        filling_ways,
        least_covers,
        needs_ways,
        solved,
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

_HOMES = imported_for_types(__name__)
__all__ = list(_HOMES)
__getattr__ = loaded_from(__name__, _HOMES)
