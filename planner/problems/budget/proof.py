"""The proof of a budget: the geometric program, its dual bound, and SciPy on the conditions.

The first answer comes from Newton's steps on the first-order conditions; it stands only where a
geometric program solved by CVXPY and SciPy's solver of equations agree with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.problems.budget.best import Answer
from planner.problems.budget.certificate import programmed
from planner.problems.budget.check import conditions
from planner.problems.budget.optimum import start
from planner.problems.budget.parameters import loss_at
from planner.problems.budget.posynomial_form import Array, Budgets
from planner.text.errors import SolverError

__all__ = ["Proof", "proof"]

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

    def document(self, answer: Answer, considered: int) -> dict[str, Any]:
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


def proof(answer: Answer) -> Proof:
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


def _of_answer(answer: Answer, bound: float) -> float:
    """A bound of the sum of monomials as one of the cost or of the loss."""
    if answer.question.aim == "cost":
        return min(bound + answer.question.fixed, answer.total)
    terms = answer.question.terms
    return min(terms.floor + bound**terms.power, answer.loss)


def _same_loss(answer: Answer) -> None:
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
