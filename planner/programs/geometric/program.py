"""A compiled problem: solved again and again with other numbers for the same givens."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import sympy as sp

from planner.programs.geometric.cone import LogProgram
from planner.programs.geometric.envelope import Envelope
from planner.programs.geometric.instance import Structure, instance
from planner.programs.geometric.polish import polished
from planner.programs.geometric.relaxation import SOLVED, Stretching
from planner.programs.geometric.solution import Solution, read
from planner.programs.geometric.solver import lower_bound
from planner.text.errors import SolverError

__all__ = ["Program"]

WIDEST_GAP = 1e-4
RETRIES = 3  # solves from where the one before stopped early


class Program:
    """What `Problem.compile` returns. Not for several threads at once: it holds the parameters."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self._program = LogProgram(structure.table)

    @property
    def givens(self) -> tuple[sp.Symbol, ...]:
        """The symbols `solve` wants a value for."""
        return self.structure.coefficients.givens

    def solve(self, given: Mapping[sp.Symbol, float]) -> Solution:
        """The optimum at these values of the givens.

        Raises
        ------
        ProblemError
            A value is missing or cannot be taken, or a coefficient comes out negative.
        Shortage
            (an Infeasible) No choice satisfies every constraint; carries the shortfalls.
        SolverError
            The solver failed, or its answer is further than 1e-4 from the bound it proves.
        """
        at = instance(self.structure, given)
        point = self._program.solve(at.logs, at.exponents, at.centre)
        if point.status not in SOLVED:
            raise self._stretching.shortage(at)
        point = polished(self.structure, at, point)
        bound = lower_bound(self.structure, at, point)
        for _ in range(RETRIES):
            if point.status == "optimal" or float(point.logs[-1]) - bound <= WIDEST_GAP:
                break
            # Numbers measured from near the optimum are better scaled than from anywhere else.
            again = self._program.solve(at.logs, at.exponents, point.logs)
            if again.status not in SOLVED:
                break
            point = polished(self.structure, at, again)
            bound = lower_bound(self.structure, at, point)
        if point.status != "optimal" and float(point.logs[-1]) - bound > WIDEST_GAP:
            raise SolverError(
                f"{self.structure.title}: the solver stopped early; rescale the givens"
            )
        return read(Envelope(self.structure, at, point.logs, point.multipliers), bound)

    @cached_property
    def _stretching(self) -> Stretching:
        return Stretching(self.structure)
