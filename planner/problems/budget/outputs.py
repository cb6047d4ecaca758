"""The numbers of a budget's plan, each the value of one equation, and the check of all of them.

What stands beside the optimum: the compute-optimal model, equal pools, and over-training.

And how well a budget is known: the same by laws drawn from the standard errors.
"""

import math
from dataclasses import replace

from planner.catalogue.training.training_runs import public_text
from planner.problems.budget import plan as records
from planner.text.errors import SolverError
from planner.text.tolerances import AGREE
from planner.token_costs.budget_task import BudgetTask
from planner.token_costs.optimum import BudgetOptimum, NoBudget, solve_many, solve_one
from planner.token_costs.outputs import (
    life_point,
    overtraining_of_pools,
    recheck_shared,
    require,
    size_overtraining_ratio,
    traverse,
)
from planner.token_costs.phase_costs import HOUR, spending, symbol_values
from planner.token_costs.spending import OvertrainingCheck, PhaseTokens


def overtraining(answer: BudgetOptimum) -> OvertrainingCheck:
    """Over-training ratio, pre-training tokens over compute-optimal tokens; None if undefined.

    Raises SolverError where the identity of the pools should hold and does not.
    """
    task = answer.task
    ratio = size_overtraining_ratio(task, answer.n_active, answer.pretrain)
    # Tokens repeat, or parameters are more than the data feeds.
    worn = task.repeats and answer.pretrain > (task.unique or math.inf)
    fixed = task.fixed_choices.keys() & {"n_active", "pretrain"}
    from_pools = None if worn or fixed or answer.data_bound else overtraining_of_pools(answer)
    if ratio is None or from_pools is None:
        return OvertrainingCheck(ratio, None)
    if abs(from_pools / ratio - 1) > AGREE:
        raise SolverError(
            f"over-training is {ratio:.8g} by its definition and {from_pools:.8g} from the pools"
        )
    return OvertrainingCheck(ratio, from_pools)


def compute_optimal(answer: BudgetOptimum) -> records.Comparison | None:
    """The model of the same loss that is cheapest to pre-train, and what its life costs."""
    task = answer.task
    if task.required is None or task.fixed_choices or task.reinforced:
        return None
    training = {"pretrain": task.phases["pretrain"].smooth()}
    best = solve_one(replace(task, phases=training, served=0.0, rl_tokens=0.0, rl_flop=0.0))
    if isinstance(best, NoBudget):
        return None
    return _compared(answer, best.n_active, best.pretrain)


def equal_pools(answer: BudgetOptimum) -> records.RuleComparison | None:
    """Heuristic of the lecture: pre-training cost equals serving cost; None if not applicable.

    Without served tokens it is what reinforcement learning does. Given tokens stay as they are.
    """
    task = answer.task
    weights = task.weights()
    if task.reinforced or task.rl_flop or "pretrain" in task.fixed_choices:
        return None
    beside = weights.get("inference", 0.0) * task.served
    beside = beside or weights.get("rl", 0.0) * task.rl_tokens
    if not beside:
        return None
    tokens = beside / weights["pretrain"]
    best = solve_one(replace(task, fixed_choices={**task.fixed_choices, "pretrain": tokens}))
    if isinstance(best, NoBudget):
        pools = PhaseTokens(tokens, task.rl_tokens, task.served)
        return records.UnreachedRule(None, pools, None, None, None, None, best.reason)
    compared = _compared(answer, best.n_active, tokens)
    return records.RuleComparison(**vars(compared), why_not=None)


def _compared(answer: BudgetOptimum, n_active: float, tokens: float) -> records.Comparison:
    """Cost or loss of another size and tokens, and its relative excess over the answer."""
    task = answer.task
    total = life_cost(task, n_active, tokens)
    loss = answer.loss
    if task.aim == "quality":
        loss = float(task.terms.loss(n_active, tokens))
        if task.repeats:
            loss = task.loss(n_active, tokens)
    score = total if task.aim == "cost" else loss
    return records.Comparison(
        n_active=n_active,
        tokens=PhaseTokens(tokens, answer.rl, task.served),
        cost=total,
        loss=loss,
        worse_by=score / answer.score - 1,
        saving=1 - answer.score / score,
    )


def life_cost(task: BudgetTask, n_active: float, tokens: float) -> float:
    """Cost of a life [USD or flop] at a size and tokens, given pools as they are given."""
    weights = task.weights()
    pools = weights.get("rl", 0.0) * task.rl_tokens
    pools += weights.get("inference", 0.0) * task.served
    trained = weights["pretrain"] * float(task.phases["pretrain"].dearer(n_active)) * tokens
    return n_active * (trained + pools) + task.constant_cost


def interval(answer: BudgetOptimum, count: int, coverage: float) -> records.BudgetInterval | None:
    """Ends that hold `coverage` of the draws, of size, tokens, cost, loss and over-training.

    None where the law has no standard errors or nothing is drawn. `answered` is the share of the
    drawn laws in which the question has an answer: a fixed loss may lie below a drawn floor.
    """
    task = answer.task.smooth
    if not count or "interval" in task.law.lacks:
        return None
    solved = solve_many([replace(task, law=law) for law in task.law.draws(count)])
    answers = [each for each in solved if isinstance(each, BudgetOptimum)]
    ratios = (overtraining(each).ratio for each in answers)
    columns = {
        "n_active": [each.n_active for each in answers],
        "pretrain": [each.pretrain for each in answers],
        "cost": [each.total for each in answers],
        "loss": [each.loss for each in answers],
        "over_training": [math.nan if ratio is None else ratio for ratio in ratios],
    }
    return records.BudgetInterval.of(columns, task.law.name, count, coverage)


def unique_data(answer: BudgetOptimum) -> records.UniqueData | None:
    """Fresh tokens of a plan and the stock of public text; None if the question states them."""
    if answer.task.unique is not None:
        return None
    stock = public_text()
    ends = (stock.tokens, stock.low, stock.high, stock.coverage)
    return records.UniqueData(answer.pretrain, *ends, f"{stock.source}, {stock.as_of}")


def budget_point(best: BudgetOptimum) -> records.BudgetPoint:
    """The plan of an optimum: every number by its equation."""
    task, tokens = best.task, PhaseTokens(best.pretrain, best.rl, best.task.served)
    cost = spending(symbol_values(task.phases, best.n_active, tokens))
    unique = None if best.data_bound else task.unique
    alike = life_point(task, best.n_active, tokens, cost, unique)
    return records.BudgetPoint(
        **vars(alike if unique else replace(alike, epochs=1.0)),
        over_training_from_pools=overtraining(best).from_pools,
        phases={name: phase.machine() for name, phase in task.phases.items()},
    )


def recheck(point: records.BudgetPoint, best: BudgetOptimum) -> None:
    """Every number of a plan again, the objective first, by walking its equation.

    The kernels that computed the plan have no part in it; the objective is compared with the
    program's own sum of monomials too.

    Raises SolverError for a number that its equation does not give.
    """
    from formulas.scaling import budget_outputs as outputs

    task, cost, tokens, size = best.task, point.cost, point.tokens, point.n_active
    require("the objective", point.loss if task.aim == "quality" else point.total, best.score)
    values = symbol_values(task.phases, size, tokens)
    columns = {
        "usd": (outputs.life_cost, 1.0), "flop": (outputs.done_arithmetic, 1.0),
        "flop_paid": (outputs.paid_arithmetic, 1.0), "chip_hours": (outputs.chip_time, HOUR),
    }  # fmt: skip
    for column, (equation, unit) in columns.items():
        whole = getattr(cost.total, column)
        if whole is not None:
            require(f"cost.total.{column}", whole, traverse(equation, values) / unit)
    recheck_shared(point, task)
    for name, share in best.shares.items():
        require(f"share.{name}", getattr(point.share, name), share)
