"""Geometric programs over SymPy expressions: choose, define, roof, subject, minimise."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.programs.geometric.declaration import GeometricProgram
    from planner.programs.geometric.relaxation import ProgramShortfall, Shortage
    from planner.programs.geometric.solution import ProgramSolution
    from planner.programs.geometric.solver import Program
    from planner.programs.geometric.structure import ProblemError, ProgramStructure

_HOMES = {
    "GeometricProgram": "declaration", "ProblemError": "structure", "Program": "solver",
    "Shortage": "relaxation", "ProgramShortfall": "relaxation", "ProgramSolution": "solution",
    "ProgramStructure": "structure",
}  # fmt: skip
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Load a public name where it lives: solving a program that was kept needs no SymPy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
