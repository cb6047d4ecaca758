"""Elasticities of the lifecycle cost of a model in the quantities of its scenario.

What a quantity does to training and to the required loss is that of a budget; what it does to the
price of serving comes from the program of the serving layout, and counts as much as serving costs.

The size is a real number on the layout that serves it. What is made small answers by its
multipliers; anything else by settling again, the layout held, with a quantity a little off.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from planner.problems.lifecycle.question import LifecycleScenario
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search.best_size import cheapest_life
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum, fixed_layout_optimum
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.problems.serving import Task
from planner.programs.geometric import InfeasibleProgram
from planner.protocol.elasticity import OFFSETS, STEP, Elasticity, one_sided
from planner.protocol.parameter import Parameter
from planner.text.errors import InputError, SolverError
from planner.token_costs.budget_task import BudgetTask
from planner.token_costs.outputs import overtraining_of_pools, size_overtraining_ratio
from planner.token_costs.parameters import elasticities, elasticity_row, scale_value
from planner.token_costs.parameters import parameters as budget_parameters
from planner.token_costs.phase_costs import PHASES

ROUNDING = 5e-7  # elasticities below are noise of the solver
SIZE_LIMIT_MARGIN = 1e-3  # of the largest size that is served
PROMISES = ("ttft", "tpot", "e2e")
# Limits that cap the size a layout serves: (path in `serving`, path in a task).
LIMIT_PATHS = {"memory": ("system.memory", "chip.memory")} | {
    name: (f"promises.{name}", f"promises.{name}") for name in PROMISES
}


def lifecycle_elasticities(best: FixedLayoutOptimum) -> dict[str, float]:
    """{path in the scenario: d ln(cost of the whole life) / d ln(quantity)}, layouts held.

    A chip that trains and serves stands twice; `together` adds what is the same thing.
    """
    answer, scenario = best.answer, best.life.scenario
    slopes = elasticities(answer, scenario.inference, scenario.rl)
    share = answer.cost[2] / answer.total
    for name, slope in best.price_elasticities.items():
        slopes[f"serving.{name}"] = share * slope
    slopes["serving.utilisation"] = -share
    slopes.update(_together(best, slopes))
    if best.size_bound:
        slopes[best.size_limit] = best.size_bound
    if best.full:
        for path, slope in _at_the_end(best).items():
            slopes[path] = slopes.get(path, 0.0) + slope
    return {name: slope for name, slope in slopes.items() if abs(slope) > ROUNDING}


def overtraining_from_pools(best: FixedLayoutOptimum) -> float | None:
    """Over-training ratio (tokens over compute-optimal ones) at the optimum, from the phase costs.

    None where a limit holds the size, or the law is not additive.
    """
    answer, task = best.answer, best.answer.task
    if task.repeats or task.rl_term is not None:
        return None
    free = len(answer.budgets.choices) == len(task.choices)
    return overtraining_of_pools(answer, best.slope) if free else None


def _at_the_end(best: FixedLayoutOptimum) -> dict[str, float]:
    """Elasticities of the cost in the limits that cap the served size: memory and promises.

    Sizes a little beyond fall short of it by a factor, which grows with the size and falls with
    what there is; the largest size grows as the one over the other.
    """
    served, size = best.served, best.answer.n_active
    near, far = (1 + k * SIZE_LIMIT_MARGIN for k in (2, 4))
    first, second = (_short(served, size * factor) for factor in (near, far))
    slopes = {}
    for name in LIMIT_PATHS.keys() & first.keys() & second.keys():
        path, where = LIMIT_PATHS[name]
        eased = _short(served.changed(partial(_eased, where, 1 + SIZE_LIMIT_MARGIN)), size * far)
        used = math.log(second[name] / first[name]) / math.log(far / near)
        gained = -math.log(eased.get(name, 1.0) / second[name]) / math.log1p(SIZE_LIMIT_MARGIN)
        if used > 0:
            slopes[f"serving.{path}"] = best.size_bound * gained / used
    return slopes


def _short(served: ServedMember, n_active: float) -> dict[str, float]:
    try:
        with np.errstate(over="ignore"):  # of a bound where next to nothing fits
            served.tangent(n_active)
    except InfeasibleProgram as error:
        return {each.name: each.factor for each in error.shortfalls}
    return {}


def _together(best: FixedLayoutOptimum, slopes: Mapping[str, float]) -> dict[str, float]:
    """Price and arithmetic of a chip that both trains and serves."""
    served, sums = best.served.plan.chip, {}
    same = [
        name for name, phase in best.answer.task.phases.items()
        if phase.system is not None and phase.system.chip.name == served
    ]  # fmt: skip
    for what, key in (("price", "price"), ("flops", "system.flops")) if same else ():
        starts = tuple(f"phases.{name}.{key}" for name in same)
        trained = sum(slope for path, slope in slopes.items() if path.startswith(starts))
        sums[f"together.{served}.{what}"] = trained + slopes.get(f"serving.{key}", 0.0)
    return sums


def lifecycle_rows(question: LifecycleScenario, output: str) -> list[Elasticity]:
    """Elasticities of an output in every parameter; raises InputError if no life exists."""
    best = cheapest_life(resolve_life(question))
    if best is None:
        raise InputError("--of: there is no life that could move")
    rows = parameters(best)
    if output == "cost.total.usd":
        return list(_by_multipliers(best, rows))
    at = math.log(smooth_values(best)[output])

    def logs(row: Parameter, step: float) -> list[float | None]:
        beside = (perturbed_outputs(best, row, math.exp(offset * step)) for offset in OFFSETS)
        return [math.log(each[output]) if each and output in each else None for each in beside]

    sides = (one_sided(at, logs(row, STEP), partial(logs, row)) for row in rows)
    return [elasticity_row(*each, "re-solve") for each in zip(rows, sides, strict=True)]


def smooth_values(best: FixedLayoutOptimum) -> dict[str, float]:
    """The outputs where the size is a real number, in the words of a plan."""
    answer = best.answer
    price, _ = best.served.tangent(answer.n_active)
    values = {
        "n_active": answer.n_active,
        "n_total": answer.n_active * best.sparsity,
        "tokens.pretrain": answer.pretrain,
        "tokens_per_parameter": answer.pretrain / answer.n_active,
        "loss": answer.loss,
        "usd_per_mtok": price * 1e6,
        "cost.total.usd": answer.total,
        "over_training": size_overtraining_ratio(answer.task, answer.n_active, answer.pretrain),
        **{f"cost.{name}.usd": cost for name, cost in zip(PHASES, answer.cost, strict=True)},
    }
    return {name: value for name, value in values.items() if value}


def _by_multipliers(best: FixedLayoutOptimum, rows: list[Parameter]) -> Iterator[Elasticity]:
    slopes, known_rows = lifecycle_elasticities(best), {row.path: row for row in rows}
    for path in dict.fromkeys([*known_rows, *slopes]):
        row, slope = known_rows.get(path), slopes.get(path, 0.0)
        yield elasticity_row(row or Parameter(path, None, "", _group(path)), (slope,) * 2, "dual")


def _group(path: str) -> str:
    last = path.removeprefix("serving.").partition(".")[0]
    return {"system": "chip", "together": "chip", "utilisation": "prices"}.get(last, last)


def perturbed_outputs(
    best: FixedLayoutOptimum, row: Parameter, factor: float
) -> dict[str, float] | None:
    """Outputs with one quantity scaled by `factor`, layouts fixed; None if the solver fails."""
    served, budget = best.served, best.answer.task
    varied = row.to(factor) if row.to else budget
    if isinstance(varied, BudgetTask):
        budget = varied
    else:
        served = varied
    try:
        return smooth_values(fixed_layout_optimum(best.life, budget, served, best.sparsity))
    except SolverError:
        return None


def parameters(best: FixedLayoutOptimum) -> list[Parameter]:
    """Every quantity of a lifecycle that has an influence of its own."""
    scenario = best.life.scenario
    training = budget_parameters(best.answer.task, scenario.inference, scenario.rl)
    return [*training, *serving_parameters(best)]


def serving_parameters(best: FixedLayoutOptimum) -> Iterator[Parameter]:
    """Parameters of the serving part of a lifecycle; `to(factor)` gives the changed member."""
    part, served = best.life.scenario.serving, best.served
    task = served.parts[-1][0].task

    def row(path: str, value: float | None, unit: str, group: str, where: str) -> Parameter:
        def to(factor: float) -> ServedMember:
            return served.changed(partial(_eased, where, factor))

        return Parameter(f"serving.{path}", value, unit, group, to)

    utilised = partial(scale_value, served, "utilisation")
    yield Parameter("serving.utilisation", part.utilisation, "1", "prices", utilised)
    yield row("price", task.price - task.electricity, "USD/(chip*s)", "prices", "price")
    for name, unit in (("memory_bandwidth", "byte/s"), ("memory", "byte")):
        yield row(f"system.{name}", getattr(task.chip, name), unit, "chip", f"chip.{name}")
    yield row("system.flops", None, "flop/s", "chip", "chip.flops")
    for name in PROMISES:
        if any(name in pool.task.promises for pool, _, _ in served.parts):
            value = getattr(part.promises, name)
            yield row(f"promises.{name}", value, "s", "promises", f"promises.{name}")


def _eased(where: str, factor: float, task: Task) -> Task:
    part, _, name = where.partition(".")
    moves = part != "promises" or task.promises.get(name)
    return scale_value(task, where, factor) if moves else task
