"""A budget as a geometric program: cost and loss, one of them small, the other limited.

Programs are compiled once for each shape; every coefficient and exponent is a given, so that laws
and prices are numbers put in. Choices are measured from a reference point, for well-scaled numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import sympy as sp

from planner.problems.budget.posynomial_form import Array, Budgets
from planner.programs.geometric import Problem, Program, Solution

__all__ = ["LIMITED", "Programmed", "programmed"]

LIMITED = "limit"
WIDE = 1e9  # how far a choice may lie from the reference point
Shape = tuple[tuple[tuple[int, ...], ...], tuple[tuple[bool, ...], ...], str]


@dataclass(frozen=True)
class Programmed:
    """The optimum as the geometric program has it.

    `point` (J,) in logarithms, `value` and `lower_bound` of what is made small (cost, or loss
    without its floor and outer power), `multiplier` of the limit.
    """

    point: Array
    value: float
    lower_bound: float
    multiplier: float
    solution: Solution


def programmed(budgets: Budgets, reference: Array) -> Programmed:
    """Solve the one budget there is, its terms monomials, its choices measured from a reference.

    Raises SolverError and Shortage as `Program.solve`.
    """
    shape = _shape(budgets)
    program, symbols = _compiled(shape)
    at = reference[0]
    cost = budgets.cost[0] + budgets.cost_powers @ at
    loss = budgets.loss[0] + budgets.loss_powers[0] @ at
    goal = cost if budgets.aim == "cost" else loss
    shift = float(np.max(goal))  # the objective is near one at the reference
    scale = {"cost": cost, "loss": loss}
    limit = float(budgets.limit[0])
    given: dict[sp.Symbol, float] = {}
    for name, logs in scale.items():
        own = shift if (name == "cost") == (budgets.aim == "cost") else limit
        for k, height in enumerate(logs):
            given[symbols[f"{name}_{k}"]] = math.exp(height - own) if np.isfinite(height) else 0.0
    for k, row in enumerate(budgets.loss_powers[0]):
        for j, power in enumerate(row):
            if power:
                given[symbols[f"power_{k}_{j}"]] = -float(power)
    solution = program.solve({s: v for s, v in given.items() if s in set(program.givens)})
    point = np.array([math.log(solution.choices[symbols[each]]) for each in budgets.choices])
    return Programmed(
        point=point + at,
        value=solution.value * math.exp(shift),
        lower_bound=solution.lower_bound * math.exp(shift),
        multiplier=solution.multipliers[LIMITED],
        solution=solution,
    )


def _shape(budgets: Budgets) -> Shape:
    """Which monomials there are: the cost's powers, the choices in each term of the loss."""
    cost = tuple(tuple(int(p) for p in row) for row in budgets.cost_powers)
    used = tuple(tuple(bool(p) for p in row) for row in budgets.loss_powers[0])
    return cost, used, ",".join((budgets.aim, *budgets.choices))


@lru_cache(maxsize=32)
def _compiled(shape: Shape) -> tuple[Program, dict[str, sp.Symbol]]:
    """The program of a shape, and its symbols by name."""
    cost_powers, used, words = shape
    aim, *choices = words.split(",")
    symbols = {name: sp.Symbol(name, positive=True) for name in choices}
    problem = Problem("budget")
    for name in choices:
        problem.choose(symbols[name], within=(1 / WIDE, WIDE))

    def given(name: str) -> sp.Symbol:
        symbols[name] = sp.Symbol(name, nonnegative=not name.startswith("power"))
        return symbols[name]

    cost = sp.Add(
        *(
            given(f"cost_{k}")
            * sp.Mul(*(symbols[c] ** p for c, p in zip(choices, row, strict=True)))
            for k, row in enumerate(cost_powers)
        )
    )
    loss = sp.Add(
        *(
            given(f"loss_{k}")
            * sp.Mul(
                *(
                    symbols[c] ** -given(f"power_{k}_{j}")
                    for j, (c, here) in enumerate(zip(choices, row, strict=True))
                    if here
                )
            )
            for k, row in enumerate(used)
        )
    )
    small, limited = (cost, loss) if aim == "cost" else (loss, cost)
    problem.subject(LIMITED, sp.Le(limited, 1), promise=True)
    problem.minimise(small)
    return problem.compile(), symbols
