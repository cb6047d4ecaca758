"""What a solved problem says: the choices, what binds, how the optimum answers to the givens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import sympy as sp

from planner.programs.geometric.envelope import Envelope
from planner.programs.geometric.lowering import AUXILIARY, OBJECTIVE
from planner.programs.geometric.posynomial import ProblemError
from planner.programs.geometric.ties import extremes

__all__ = ["Solution", "read"]

BINDING = 1e-6
FALLBACK = 1e-6
ROUNDING = 1e-12
HIDDEN = (AUXILIARY, OBJECTIVE)


@dataclass(frozen=True)
class Solution:
    """The optimum of one problem at one set of givens.

    Attributes
    ----------
    status : str
        Always ``"optimal"``: anything else is raised.
    value : float
        The objective. [unit of the objective]
    lower_bound : float
        What no choice can beat, from the dual problem, so that it holds whatever the accuracy of
        the solver; value * (1 - 1e-6) in the rare case that the dual gives none.
    choices : dict
        The value of every chosen symbol.
    multipliers : dict
        Constraint name to -d ln value / d ln s, where the constraint is lhs <= s * rhs; never
        negative. Auxiliary variables, such as a maximum inside a sum, are not listed.
    binding : tuple of (name, multiplier)
        Those above 1e-6, largest first.
    shares : dict
        For every roof, branch to branch / roof at the solution: 1 where it binds.
    """

    status: str
    value: float
    lower_bound: float
    choices: dict[sp.Symbol, float]
    multipliers: dict[str, float]
    binding: tuple[tuple[str, float], ...]
    shares: dict[sp.Symbol, dict[str, float]]
    _solved: Envelope = field(repr=False, compare=False)

    def elasticities(self, symbols: Iterable[sp.Symbol] | None = None) -> dict[sp.Symbol, float]:
        """d ln value / d ln p for these givens, or for all of them.

        Where several sets of multipliers are optimal this is one value between the two of
        `one_sided`. Raises ProblemError for a symbol that is not a given.
        """
        found = self._solved.slopes()
        givens = self._solved.problem.coefficients.givens
        if symbols is None:
            return dict(zip(givens, found.tolist(), strict=True))
        return {symbol: float(found[self._place(symbol)]) for symbol in symbols}

    def one_sided(self, symbol: sp.Symbol) -> tuple[float, float]:
        """d ln value / d ln p to the left and to the right of the given's present figure.

        They differ at a kink, where constraints tie and the multipliers are not unique; the values
        are the extremes over all optimal multipliers. Infinite on a side where the problem has no
        solution. Assumes that the choices are unique.
        """
        return extremes(self._solved, self._place(symbol))

    def _place(self, symbol: sp.Symbol) -> int:
        problem = self._solved.problem
        if symbol not in problem.coefficients.givens:
            raise ProblemError(f"{problem.title}: {symbol} is not a given of this problem")
        return problem.coefficients.givens.index(symbol)


def read(solved: Envelope, bound: float) -> Solution:
    """The solution in words the caller knows; `bound` is the logarithm of the lower bound."""
    problem, logs = solved.problem, solved.logs
    named = list(zip(problem.rows, solved.multipliers.tolist(), strict=True))
    binding = [
        (row.name, multiplier)
        for row, multiplier in named
        if multiplier > BINDING and row.kind not in HIDDEN
    ]
    value = float(np.exp(logs[-1]))
    proven = value * (1 - FALLBACK)
    if np.isfinite(bound):
        proven = min(value, float(np.exp(bound))) * (1 - ROUNDING)
    filled = np.bincount(problem.table.rows, solved.sizes)
    shares: dict[sp.Symbol, dict[str, float]] = {}
    for row, share in zip(problem.rows, filled.tolist(), strict=True):
        if row.roof is not None:
            symbol, branch = row.roof
            shares.setdefault(symbol, {})[branch] = share
    found = np.exp(logs[: problem.choices]).tolist()
    return Solution(
        status="optimal",
        value=value,
        lower_bound=proven,
        choices=dict(zip(problem.variables[: problem.choices], found, strict=True)),
        multipliers={row.name: each for row, each in named if row.kind not in HIDDEN},
        binding=tuple(sorted(binding, key=lambda pair: -pair[1])),
        shares=shares,
        _solved=solved,
    )
