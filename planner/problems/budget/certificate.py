"""The proof of a budget: a geometric program with its dual bound, and SciPy on the conditions.

The first answer comes from Newton's steps on the first-order conditions; it stands only where a
geometric program solved by CVXPY and SciPy's solver of equations agree with it. Programs are
compiled once for each shape; every coefficient and exponent is put in as a number. Choices are
measured from a reference point, for well-scaled numbers.
"""

import math
import operator
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import sympy as sp

from formulas.nomenclature.symbols import auxiliary
from planner.problems.budget.plan import BudgetCertificate
from planner.programs.geometric import GeometricProgram, Program, ProgramSolution
from planner.text.errors import SolverError
from planner.token_costs.optimum import BudgetOptimum
from planner.token_costs.parameters import law_loss
from planner.token_costs.posynomial_form import Array, Budgets
from planner.token_costs.stationary_points import objective_and_constraint, start, stationary_point

LIMIT_CONSTRAINT = "limit"
MAX_REFERENCE_RATIO = 1e9  # maximum ratio of a choice to the reference point, or of its inverse


def solve_geometric_program(budgets: Budgets, reference: Array) -> tuple[Array, ProgramSolution]:
    """Solve a single budget as a geometric program of monomials, relative to a reference point.

    The point (J,) in logarithms, and the solution, whose value and bound are of what is made small:
    the cost, or the loss without its floor and outer power.

    Raises SolverError and Shortage as `Program.solve`.
    """
    powers = tuple(tuple(float(p) if p % 1 else int(p) for p in row) for row in budgets.cost_powers)
    used = tuple(tuple(bool(p) for p in row) for row in budgets.loss_powers[0])
    program, symbols = _compiled(budgets.aim, budgets.choices, powers, used)
    at = reference[0]
    cost = budgets.cost[0] + budgets.cost_powers @ at
    loss = budgets.loss[0] + budgets.loss_powers[0] @ at
    goal = cost if budgets.aim == "cost" else loss
    shift = float(np.max(goal))  # the objective is near one at the reference
    limit = float(budgets.limit[0])
    values: dict[sp.Symbol, float] = {}
    for name, logs in (("cost", cost), ("loss", loss)):
        over = shift if logs is goal else limit
        for k, height in enumerate(logs):
            values[symbols[f"{name}_{k}"]] = math.exp(height - over) if np.isfinite(height) else 0.0
    for k, row in enumerate(budgets.loss_powers[0]):
        for j, power in enumerate(row):
            if power:
                values[symbols[f"power_{k}_{j}"]] = -float(power)
    solution = program.solve({s: v for s, v in values.items() if s in set(program.givens)})
    point = np.array([math.log(solution.choices[symbols[each]]) for each in budgets.choices])
    value, bound = (each * math.exp(shift) for each in (solution.value, solution.lower_bound))
    return point + at, replace(solution, value=value, lower_bound=bound)


@lru_cache(maxsize=32)
def _compiled(
    aim: str,
    choices: tuple[str, ...],
    cost_powers: tuple[tuple[float, ...], ...],
    used: tuple[tuple[bool, ...], ...],
) -> tuple[Program, dict[str, sp.Symbol]]:
    """The program of a shape, and its symbols by name.

    The shape is the powers of the choices in the cost, and which of them each term of the loss has.
    """
    symbols = {name: auxiliary(name, positive=True) for name in choices}
    problem = GeometricProgram("budget")
    for name in choices:
        problem.choose(symbols[name], within=(1 / MAX_REFERENCE_RATIO, MAX_REFERENCE_RATIO))

    def input_symbol(name: str) -> sp.Symbol:
        symbols[name] = auxiliary(name, nonnegative=not name.startswith("power"))
        return symbols[name]

    def monomial(name: str, powers: Iterable[sp.Expr | float]) -> sp.Expr:
        bases = (symbols[choice] for choice in choices)
        return input_symbol(name) * sp.Mul(*map(operator.pow, bases, powers))

    cost = sp.Add(*(monomial(f"cost_{k}", row) for k, row in enumerate(cost_powers)))
    loss = sp.Add(*(
        monomial(f"loss_{k}", (-input_symbol(f"power_{k}_{j}") if here else 0
                               for j, here in enumerate(row)))
        for k, row in enumerate(used)
    ))  # fmt: skip
    small, limited = (cost, loss) if aim == "cost" else (loss, cost)
    problem.subject(LIMIT_CONSTRAINT, sp.Le(limited, 1), promise=True)
    problem.minimise(small)
    return problem.compile(), symbols


AGREE = 1e-4
ROUNDING = 1e-7  # tolerance on ln(objective) and ln(limit) of the geometric program
# Floor of the multiplier d ln(objective) / d ln(limit) in its relative difference.
MIN_MULTIPLIER = 1e-3
LOSS = 1e-8  # nat, of the plan's loss by the law's own equation
PROGRAM = "geometric program (CVXPY, {})"
TANGENT = "geometric program over the tangent monomials of a law convex in logarithms (CVXPY)"
NEWTON = "Newton on the first-order conditions"
SCIPY = "SciPy root on the first-order conditions without multipliers"


def proof(answer: BudgetOptimum, considered: int = 1) -> BudgetCertificate:
    """Solve the budget again, twice; `considered` is how many it was the best of.

    Raises SolverError where the answers differ by over 1e-4, in logarithms.
    """
    task = answer.task
    loss = law_loss(answer, task)
    if task.rl_term is None:
        loss = task.loss(answer.n_active, answer.pretrain, answer.rl)
    if not math.isclose(loss, answer.loss, abs_tol=LOSS, rel_tol=LOSS):
        raise SolverError(
            f"the plan's loss is {answer.loss:.10g}, but the law {task.law.name} itself says "
            f"{loss:.10g}"
        )
    if not answer.budgets.choices:
        method = "the given choices leave nothing to choose"
        return BudgetCertificate(method, answer.score, answer.score, 0.0, considered, None, {})
    tangent = answer.budgets.tangent(answer.point)
    point, program = solve_geometric_program(tangent, start(tangent))
    if _largest(point, answer.point[0]) > AGREE:
        # Numbers measured from near the optimum are better scaled; no constraint is moved by it.
        point, program = solve_geometric_program(tangent, answer.point)
    root = stationary_point(answer.budgets, answer.point[0])
    if root is None:
        raise SolverError("SciPy finds no point where the first-order conditions hold")
    multiplier = program.multipliers[LIMIT_CONSTRAINT]
    # Maximum difference of a choice between the program's point and the answer's. If the
    # program's point meets limit and objective to ROUNDING, the optimum is flat in the choice
    # and the violation of objective and limit is the difference.
    goal, limited = _logs(tangent, point[None, :])
    worse = max(abs(goal - _logs(tangent, answer.point)[0]), limited - float(tangent.limit[0]))
    differences = {
        "program": (max(worse, 0.0) if worse < ROUNDING else _largest(point, answer.point[0])),
        "value": abs(math.log(program.value) - _logs(tangent, answer.point)[0]),
        "multiplier": abs(multiplier - answer.multiplier) / max(answer.multiplier, MIN_MULTIPLIER),
        "scipy": _largest(root[0], answer.point[0]),
    }
    for name, difference in differences.items():
        if not difference <= AGREE:
            raise SolverError(
                f"the budget by {name} differs from that on the first-order conditions by "
                f"{difference:.2g} (in logarithms); at most {AGREE:g} is accepted"
            )
    bound = _of_answer(answer, program.lower_bound)
    form = TANGENT if answer.budgets.curved else PROGRAM.format(program.solver)
    return BudgetCertificate(
        method=f"{form}; {NEWTON}; {SCIPY}: they agree",
        objective=answer.score,
        relaxation=bound,
        gap=1 - bound / answer.score,
        points_considered=considered,
        multiplier=multiplier,
        differences=differences,
    )


def _largest(first: Array, second: Array) -> float:
    return float(np.abs(first - second).max())


def _logs(budgets: Budgets, point: Array) -> tuple[float, float]:
    goal, limited = objective_and_constraint(budgets, point)
    return float(goal.value[0]), float(limited.value[0])


def _of_answer(answer: BudgetOptimum, bound: float) -> float:
    if answer.task.aim == "cost":
        return min(bound + answer.task.constant_cost, answer.total)
    terms = answer.task.terms
    return min(terms.floor + bound**terms.power, answer.loss)
