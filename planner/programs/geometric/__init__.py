"""Geometric programs over SymPy expressions: choose, define, roof, subject, minimise."""

from typing import TYPE_CHECKING

from planner.text.faces import imported_for_types, lazy_module

if TYPE_CHECKING:
    from planner.programs.geometric.declaration import GeometricProgram
    from planner.programs.geometric.instance import InfeasibleProgram, ProgramShortfall
    from planner.programs.geometric.solution import ProgramSolution
    from planner.programs.geometric.solver import Program
    from planner.programs.geometric.structure import ProblemError, ProgramStructure

_HOMES = imported_for_types(__name__)
__all__ = list(_HOMES)


__getattr__ = lazy_module(__name__, _HOMES)  # a stored program is solved without SymPy
