"""Geometric programs over SymPy expressions: choose, define, roof, subject, minimise."""

from planner.problem.approximation import Monomial, chord, tangent
from planner.problem.declaration import Problem
from planner.problem.posynomial import ProblemError
from planner.problem.program import Program
from planner.problem.solution import Solution
from planner.problem.stretch import Shortage, Shortfall

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
