"""The numbers of a budget's plan, each the value of one equation, and the check of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from planner.laws.law_forms import form_equation
from planner.problems.budget.budget_task import BudgetTask
from planner.problems.budget.comparisons import overtraining
from planner.problems.budget.phase_costs import HOUR, PHASES, spending, symbol_values
from planner.problems.budget.plan import BudgetPoint, PhaseShares, PhaseTokens
from planner.problems.budget.search.optimum import BudgetOptimum
from planner.text.errors import SolverError

if TYPE_CHECKING:
    from formulas.algebra.equation import Equation

AGREE = 1e-9  # of a number by its equation and by another way, relative


def point_of(best: BudgetOptimum) -> BudgetPoint:
    """The plan of an optimum: every number by its equation."""
    from formulas.scaling import budget_outputs as outputs

    task, ratio = best.task, overtraining(best)
    size, tokens = best.n_active, PhaseTokens(best.pretrain, best.rl, task.served)
    unique = None if best.data_bound else task.unique
    cost = spending(symbol_values(task.phases, size, tokens))
    column = "usd" if task.in_usd else "flop_paid"
    paid = [getattr(getattr(cost, name), column) for name in (*PHASES, "total")]
    shares = outputs.phase_share.numpy()(K_phase=paid[:-1], K_life=paid[-1])
    epochs = 1.0
    if unique:
        epochs = value_of(outputs.passes_over_data, D_pt=best.pretrain, D_unique=unique)
    return BudgetPoint(
        n_active=size,
        n_total=value_of(outputs.sparse_parameters, sigma=task.sparsity, N_active=size),
        sparsity=task.sparsity,
        tokens=tokens,
        epochs=epochs,
        cost=cost,
        share=PhaseShares(*np.asarray(shares).tolist()),
        over_training=None if ratio is None else ratio.ratio,
        over_training_from_pools=None if ratio is None else ratio.from_pools,
        tokens_per_parameter=value_of(
            outputs.tokens_per_parameter, D_pt=best.pretrain, N_active=size
        ),
        loss=loss_of(task, size, tokens),
        law=task.law.name,
        coefficients=dict(task.law.values),
        objective="usd" if task.in_usd else "flop",
        phases={name: phase.machine() for name, phase in task.phases.items()},
    )


def loss_equations(
    task: BudgetTask, size: float, tokens: PhaseTokens
) -> Iterator[tuple[Equation, Mapping[str, float]]]:
    """The equations whose sum is the loss, with the values of their symbols."""
    from formulas.scaling.budget_outputs import reinforcement_loss

    law, term = task.law, task.rl_term
    law.need("loss")
    equation = form_equation(law.form)
    assert equation is not None  # a law without one lacks the loss
    unique = task.unique if task.repeats else None
    values = law.symbols(
        size, tokens.pretrain, sparsity=task.sparsity, unique=unique, d_rl=tokens.rl
    )
    yield equation, {name: float(value) for name, value in values.items()}
    if term is not None:
        yield reinforcement_loss, {
            "B_rl": term.coefficient, "beta_rl": term.exponent, "D_rl": tokens.rl, "one_token": 1.0,
        }  # fmt: skip


def loss_of(task: BudgetTask, size: float, tokens: PhaseTokens, *, walk: bool = False) -> float:
    """The loss [nat] by the law's equation, compiled or, to check it, walked."""
    evaluate = walked if walk else put
    return sum(evaluate(*pair) for pair in loss_equations(task, size, tokens))


def recheck(point: BudgetPoint, best: BudgetOptimum) -> None:
    """Every number of a plan again, the objective first, by walking its equation.

    The kernels that computed the plan have no part in it; the objective is compared with the
    program's own sum of monomials too.

    Raises
    ------
    SolverError
        For a number that its equation does not give.
    """
    from formulas.scaling import budget_outputs as outputs

    task, cost, tokens, size = best.task, point.cost, point.tokens, point.n_active
    refuse("the objective", point.loss if task.aim == "quality" else point.total, best.score)
    values = symbol_values(task.phases, size, tokens)
    columns = {
        "usd": (outputs.life_cost, 1.0), "flop": (outputs.done_arithmetic, 1.0),
        "flop_paid": (outputs.paid_arithmetic, 1.0), "chip_hours": (outputs.chip_time, HOUR),
    }  # fmt: skip
    for column, (equation, unit) in columns.items():
        whole = getattr(cost.total, column)
        if whole is not None:
            refuse(f"cost.total.{column}", whole, walked(equation, values) / unit)
            parts = [getattr(getattr(cost, name), column) for name in PHASES]
            refuse(f"the sum of cost.*.{column}", math.fsum(parts), whole)
    refuse("loss", point.loss, loss_of(task, size, tokens, walk=True))
    refuse("n_total", point.n_total, point.sparsity * size)
    refuse("tokens_per_parameter", point.tokens_per_parameter, tokens.pretrain / size)
    for name, share in best.shares.items():
        refuse(f"share.{name}", getattr(point.share, name), share)


def refuse(name: str, number: float | None, again: float) -> None:
    """SolverError unless a number is there, and is that of another way to within 1e-9."""
    if number is None or not math.isclose(number, again, rel_tol=AGREE, abs_tol=1e-300):
        raise SolverError(f"{name} is {number} in the plan, but {again:.10g} by its equation")


def put(equation: Equation, values: Mapping[str, float]) -> float:
    """An equation's kernel at the values of its symbols."""
    function = equation.numpy()
    return float(function(**{name: values[name] for name in function.kernel.names}))


def walked(equation: Equation, values: Mapping[str, float]) -> float:
    """An equation at the values of its symbols without a kernel, by walking its expression."""
    from formulas.numerics.evaluate import scalar

    case = {str(symbol): values[str(symbol)] for symbol in equation.givens}
    return scalar([equation], [equation.symbol], case)[equation.symbol.name]


def value_of(equation: Equation, **values: float) -> float:
    """The same, the values of the symbols by name."""
    return put(equation, values)
