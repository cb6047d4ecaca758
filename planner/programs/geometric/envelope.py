"""The envelope theorem: how the optimum and every row answer to the logarithm of a given.

d ln objective / d ln p is the sum over the rows of multiplier times d (left over right) / d ln p at
the solution; nothing is solved again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.programs.geometric.cone import Array
from planner.programs.geometric.instance import Instance, Structure

__all__ = ["Envelope"]


@dataclass(frozen=True)
class Envelope:
    """One solved problem; `logs` are the variables' logarithms, `multipliers` one a row."""

    problem: Structure
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
        pull = self._pull(weights * self.bare, weights * self.sizes)
        places, givens, slopes = problem.coefficients.slopes(at.figures)
        count = len(problem.coefficients.givens)
        return np.bincount(givens, pull[places] * slopes, count).astype(np.float64)

    def rates(self, given: int) -> Array:
        """d (left over right) / d ln p of every row, for one given."""
        problem, at = self.problem, self.at
        places, givens, slopes = problem.coefficients.slopes(at.figures)
        here = givens == given
        rate = np.zeros(len(problem.coefficients.expressions))
        rate[places[here]] = slopes[here]
        sizes, rows = self.sizes, problem.table.rows
        moved = self.bare * rate[problem.numerator]
        moved -= sizes * (rate / _safe(at.values))[problem.divisor][rows]
        terms, columns = problem.table.terms, problem.table.variables
        np.add.at(moved, terms, sizes[terms] * self.logs[columns] * rate[problem.exponent])
        return np.bincount(rows, moved, len(problem.rows)).astype(np.float64)

    def _pull(self, bare: Array, sizes: Array) -> Array:
        """What one unit more of every coefficient's value adds to the objective's logarithm."""
        problem, at = self.problem, self.at
        pull = np.zeros(len(problem.coefficients.expressions))
        np.add.at(pull, problem.numerator, bare)
        bottoms = problem.divisor[problem.table.rows]
        np.add.at(pull, bottoms, -sizes / at.values[bottoms])
        terms, columns = problem.table.terms, problem.table.variables
        np.add.at(pull, problem.exponent, sizes[terms] * self.logs[columns])
        return pull


def _safe(values: Array) -> Array:
    """The values with zeros, which are never a divisor, made harmless."""
    return np.where(values == 0, 1.0, values)
