"""A budget as a geometric program: cost and loss, one of them small, the other limited.

Programs are compiled once for each shape; every coefficient and exponent is a given, so that laws
and prices are numbers put in. Choices are measured from a reference point, for well-scaled numbers.

The proof of a budget: the geometric program, its dual bound, and SciPy on the conditions.

The first answer comes from Newton's steps on the first-order conditions; it stands only where a
geometric program solved by CVXPY and SciPy's solver of equations agree with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from formulas.nomenclature.symbols import auxiliary
from planner.problems.budget.check import conditions
from planner.problems.budget.optimum import BudgetOptimum, start
from planner.problems.budget.parameters import loss_at
from planner.problems.budget.posynomial_form import Array, Budgets
from planner.programs.geometric import GeometricProgram, Program, ProgramSolution
from planner.text.errors import SolverError

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
    solution: ProgramSolution


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
    symbols = {name: auxiliary(name, positive=True) for name in choices}
    problem = GeometricProgram("budget")
    for name in choices:
        problem.choose(symbols[name], within=(1 / WIDE, WIDE))

    def given(name: str) -> sp.Symbol:
        symbols[name] = auxiliary(name, nonnegative=not name.startswith("power"))
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


AGREE = 1e-4
ROUNDING = 1e-7  # of what is made small and of the limit, as the program is solved
LEAST = 1e-3  # d ln(what is made small) / d ln(limit) below which the program's is rounding
LOSS = 1e-8  # nat, of the plan's loss by the law's own equation
PROGRAM = "geometric program (CVXPY, Clarabel)"
TANGENT = "geometric program over the tangent monomials of a law convex in logarithms (CVXPY)"
NEWTON = "Newton on the first-order conditions"
SCIPY = "SciPy root on the first-order conditions without multipliers"


@dataclass(frozen=True)
class Proof:
    """What agrees with an answer, and how well.

    `lower_bound` is of what is made small [USD, flop or nat]: no choice goes below it.
    """

    method: str
    lower_bound: float
    multiplier: float | None
    differences: dict[str, float]

    def document(self, answer: BudgetOptimum, considered: int) -> dict[str, Any]:
        """The certificate of the answer's document."""
        return {
            "method": self.method,
            "objective": answer.score,
            "relaxation": self.lower_bound,
            "gap": 1 - self.lower_bound / answer.score,
            "points_considered": considered,
            "multiplier": self.multiplier,
            "differences": self.differences,
        }


def proof(answer: BudgetOptimum) -> Proof:
    """Solve the question again, twice; raises SolverError where the answers differ by over 1e-4."""
    _same_loss(answer)
    if not answer.budgets.choices:
        return Proof("the given choices leave nothing to choose", answer.score, None, {})
    tangent = answer.budgets.tangent(answer.point)
    program = programmed(tangent, start(tangent))
    if _largest(program.point, answer.point[0]) > AGREE:
        # Numbers measured from near the optimum are better scaled; no constraint is moved by it.
        program = programmed(tangent, answer.point)
    found = conditions(answer.budgets, answer.point[0])
    if found is None:
        raise SolverError("SciPy finds no point where the first-order conditions hold")
    apart = abs(program.multiplier - answer.multiplier)
    differences = {
        "program": _apart(tangent, program.point, answer.point),
        "value": abs(math.log(program.value) - _sides(tangent, answer.point)[0]),
        "multiplier": apart / max(answer.multiplier, LEAST),
        "scipy": _largest(found[0], answer.point[0]),
    }
    for name, difference in differences.items():
        if not difference <= AGREE:
            raise SolverError(
                f"the budget by {name} differs from that on the first-order conditions by "
                f"{difference:.2g} (in logarithms); at most {AGREE:g} is accepted"
            )
    told = PROGRAM if answer.budgets.worth is None else TANGENT
    return Proof(
        method=f"{told}; {NEWTON}; {SCIPY}: they agree",
        lower_bound=_of_answer(answer, program.lower_bound),
        multiplier=program.multiplier,
        differences=differences,
    )


def _largest(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())


def _sides(budgets: Budgets, point: Array) -> tuple[float, float]:
    """Logarithms of what is made small and of what is limited, at a point (1, J)."""
    cost, loss = float(budgets.costs(point).value[0]), float(budgets.losses(point).value[0])
    return (cost, loss) if budgets.aim == "cost" else (loss, cost)


def _apart(budgets: Budgets, found: Array, here: Array) -> float:
    """The largest difference of a choice between the program's point and the answer's.

    Where the program's point keeps the limit and is as good, to what the program is solved to,
    a choice hardly matters and its values cannot be told apart: what they change is the difference.
    """
    goal, limited = _sides(budgets, found[None, :])
    worse = max(abs(goal - _sides(budgets, here)[0]), limited - float(budgets.limit[0]))
    return max(worse, 0.0) if worse < ROUNDING else _largest(found, here[0])


def _of_answer(answer: BudgetOptimum, bound: float) -> float:
    """A bound of the sum of monomials as one of the cost or of the loss."""
    if answer.question.aim == "cost":
        return min(bound + answer.question.constant_cost, answer.total)
    terms = answer.question.terms
    return min(terms.floor + bound**terms.power, answer.loss)


def _same_loss(answer: BudgetOptimum) -> None:
    """The plan's loss by the law's own equation, which knows nothing of monomials."""
    question = answer.question
    term = question.rl_term
    found = loss_at(answer, question.law)
    if term is None:
        repeated = question.unique if question.repeats else None
        found = float(
            question.law.loss(
                answer.n_active,
                answer.pretrain,
                sparsity=question.sparsity,
                unique=repeated,
                d_rl=answer.rl,
            )
        )
    if not math.isclose(found, answer.loss, abs_tol=LOSS, rel_tol=LOSS):
        raise SolverError(
            f"the plan's loss is {answer.loss:.10g}, but the law {question.law.name} itself says "
            f"{found:.10g}"
        )
