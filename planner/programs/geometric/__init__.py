"""Geometric programs over SymPy expressions: choose, define, roof, subject, minimise."""

from planner.programs.geometric.approximation import Monomial, chord, tangent
from planner.programs.geometric.declaration import Problem
from planner.programs.geometric.posynomial import ProblemError
from planner.programs.geometric.relaxation import Shortage, Shortfall
from planner.programs.geometric.solution import Solution
from planner.programs.geometric.solver import Program

__all__ = [
    "Monomial",
    "Problem",
    "ProblemError",
    "Program",
    "Shortage",
    "Shortfall",
    "Solution",
    "chord",
    "tangent",
]
