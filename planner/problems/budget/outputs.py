"""The numbers of a budget's plan, each the value of one equation, and the check of all of them."""

from __future__ import annotations

import math

import numpy as np

from planner.problems.budget.comparisons import overtraining
from planner.problems.budget.plan import BudgetPoint
from planner.token_costs.optimum import BudgetOptimum
from planner.token_costs.outputs import loss_of, recheck_shared, refuse, value_of, walked
from planner.token_costs.phase_costs import HOUR, PHASES, spending, symbol_values
from planner.token_costs.spending import PhaseShares, PhaseTokens


def point_of(best: BudgetOptimum) -> BudgetPoint:
    """The plan of an optimum: every number by its equation."""
    from formulas.scaling import budget_outputs as outputs

    task, trained = best.task, overtraining(best)
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
        over_training=trained.ratio,
        over_training_from_pools=trained.from_pools,
        tokens_per_parameter=value_of(
            outputs.tokens_per_parameter, D_pt=best.pretrain, N_active=size
        ),
        loss=loss_of(task, size, tokens),
        law=task.law.name,
        coefficients=dict(task.law.values),
        objective="usd" if task.in_usd else "flop",
        phases={name: phase.machine() for name, phase in task.phases.items()},
    )


def recheck(point: BudgetPoint, best: BudgetOptimum) -> None:
    """Every number of a plan again, the objective first, by walking its equation.

    The kernels that computed the plan have no part in it; the objective is compared with the
    program's own sum of monomials too.

    Raises SolverError for a number that its equation does not give.
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
    recheck_shared(point, task)
    for name, share in best.shares.items():
        refuse(f"share.{name}", getattr(point.share, name), share)
