"""Mixed integer programs: declared by blocks, relaxed, cut, decomposed, proved (SciPy's HiGHS)."""

from typing import TYPE_CHECKING

from planner.text.faces import imported_for_types, lazy_module

if TYPE_CHECKING:
    from planner.programs.integer.branch_and_bound import (
        NO_NODE_LIMIT,
        Covers,
        TooManyWays,
        WholePoint,
        descend,
        filling_ways,
        minimum_covers,
        needs_ways,
        solved,
    )
    from planner.programs.integer.integer_program import (
        IntegerProgram,
        LinearPoint,
        MixedProgram,
        NoPoint,
        SparseRows,
        add_rounding_cuts,
        solve_lp_relaxation,
    )

_HOMES = imported_for_types(__name__)
__all__ = list(_HOMES)
__getattr__ = lazy_module(__name__, _HOMES)
