"""The numbers of a budget's plan, each the value of one equation, and the check of all of them."""

from dataclasses import replace

from planner.problems.budget.comparisons import overtraining
from planner.problems.budget.plan import BudgetPoint
from planner.token_costs.optimum import BudgetOptimum
from planner.token_costs.outputs import life_point, recheck_shared, refuse, walked
from planner.token_costs.phase_costs import HOUR, spending, symbol_values
from planner.token_costs.spending import PhaseTokens


def point_of(best: BudgetOptimum) -> BudgetPoint:
    """The plan of an optimum: every number by its equation."""
    task, tokens = best.task, PhaseTokens(best.pretrain, best.rl, best.task.served)
    cost = spending(symbol_values(task.phases, best.n_active, tokens))
    unique = None if best.data_bound else task.unique
    alike = life_point(task, best.n_active, tokens, cost, unique)
    return BudgetPoint(
        **vars(alike if unique else replace(alike, epochs=1.0)),
        over_training_from_pools=overtraining(best).from_pools,
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
    recheck_shared(point, task)
    for name, share in best.shares.items():
        refuse(f"share.{name}", getattr(point.share, name), share)
