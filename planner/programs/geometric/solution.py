"""Solution of a program: choices, binding rows, elasticities of the optimum to parameters.

By the envelope theorem d ln objective / d ln p is the sum over the rows of multiplier times
d (left over right) / d ln p at the solution; nothing is solved again.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from planner.programs.geometric.cone import Array
from planner.programs.geometric.instance import Instance
from planner.programs.geometric.structure import AUXILIARY, OBJECTIVE, ProgramStructure


@dataclass(frozen=True)
class Envelope:
    """One solved problem; `logs` are the variables' logarithms, `multipliers` one a row."""

    problem: ProgramStructure
    at: Instance
    logs: Array
    multipliers: Array

    @property
    def bare(self) -> Array:
        """Every term over its row's right side, its coefficient left out."""
        problem, at = self.problem, self.at
        rows = problem.table.rows
        scaled: Array = np.exp(at.matrix @ self.logs - np.log(at.values[problem.divisor])[rows])
        return scaled

    @property
    def sizes(self) -> Array:
        """Every term over its row's right side; those of a binding row sum to one."""
        sizes: Array = self.bare * self.at.values[self.problem.numerator]
        return sizes

    def slopes(self) -> Array:
        """d ln objective / d ln p for all givens, in their order."""
        problem, at = self.problem, self.at
        weights = self.multipliers[problem.table.rows]
        sizes = weights * self.sizes
        # Derivative of ln(objective) with respect to the value of each coefficient.
        pull = np.zeros(len(problem.coefficients.texts))
        np.add.at(pull, problem.numerator, weights * self.bare)
        bottoms = problem.divisor[problem.table.rows]
        np.add.at(pull, bottoms, -sizes / at.values[bottoms])
        terms, columns = problem.table.terms, problem.table.variables
        np.add.at(pull, problem.exponent, sizes[terms] * self.logs[columns])
        places, givens, slopes = problem.coefficients.slopes(at.figures)
        count = len(problem.coefficients.givens)
        return np.bincount(givens, pull[places] * slopes, count).astype(np.float64)


FIRST = "Clarabel"  # the solver; another one is called where it gives up
BINDING = 1e-6
FALLBACK = 1e-6
ROUNDING = 1e-12
HIDDEN = (AUXILIARY, OBJECTIVE)


@dataclass(frozen=True)
class ProgramSolution:
    """The optimum of one problem at one set of givens.

    Attributes:
        value: The objective [unit of the objective].
        lower_bound: What no choice can beat, from the dual problem, so that it holds whatever the
            accuracy of the solver; value * (1 - 1e-6) in the rare case that the dual gives none.
        choices: The value of every chosen symbol.
        multipliers: Constraint name to -d ln value / d ln s, where the constraint is lhs <= s *
            rhs; never negative. Auxiliary variables, such as a maximum inside a sum, are not
            listed.
        binding: (name, multiplier) of those above 1e-6, largest first.
        shares: For every roof, branch to branch / roof at the solution: 1 where it binds.
        solver: Who found it: Clarabel, or the second solver where that gave up.
    """

    value: float
    lower_bound: float
    choices: dict[Hashable, float]
    multipliers: dict[str, float]
    binding: tuple[tuple[str, float], ...]
    shares: dict[Hashable, dict[str, float]]
    _solved: Envelope = field(repr=False, compare=False)
    solver: str = FIRST

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warning that the second solver had to find the solution; empty if the first did."""
        if self.solver == FIRST:
            return ()
        return (
            f"what binds and what each quantity is worth was solved by {self.solver}, since "
            f"{FIRST} gave up on it; its multipliers may be less accurate",
        )

    def elasticities(self) -> dict[Hashable, float]:
        """d ln value / d ln p for all givens.

        At a kink, where several sets of multipliers are optimal, it is one value between those of
        both sides.
        """
        givens = self._solved.problem.coefficients.givens
        return dict(zip(givens, self._solved.slopes().tolist(), strict=True))


def proven(value: float, bound: float) -> float:
    """Lower bound on the objective, from the optimum's value and the logarithm of a bound."""
    if not np.isfinite(bound):
        return value * (1 - FALLBACK)
    return min(value, float(np.exp(bound))) * (1 - ROUNDING)


def read(solved: Envelope, bound: float) -> ProgramSolution:
    """The solution in words the caller knows; `bound` is the logarithm of the lower bound."""
    problem, logs = solved.problem, solved.logs
    named = list(zip(problem.rows, solved.multipliers.tolist(), strict=True))
    binding = [
        (row.name, multiplier)
        for row, multiplier in named
        if multiplier > BINDING and row.kind not in HIDDEN
    ]
    value = float(np.exp(logs[-1]))
    filled = np.bincount(problem.table.rows, solved.sizes)
    shares: dict[Hashable, dict[str, float]] = {}
    for row, share in zip(problem.rows, filled.tolist(), strict=True):
        if row.roof is not None:
            symbol, branch = row.roof
            shares.setdefault(symbol, {})[branch] = share
    values = np.exp(logs[: problem.choices]).tolist()
    return ProgramSolution(
        value=value,
        lower_bound=proven(value, bound),
        choices=dict(zip(problem.variables[: problem.choices], values, strict=True)),
        multipliers={row.name: each for row, each in named if row.kind not in HIDDEN},
        binding=tuple(sorted(binding, key=lambda pair: -pair[1])),
        shares=shares,
        _solved=solved,
    )
