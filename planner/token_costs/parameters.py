"""Parameters of a budget or a lifecycle: how each quantity is varied, and its elasticity.

By the envelope theorem only what a quantity does at fixed choices counts: to the cost, to the loss
of the plan, and to the loss that is required. The multiplier of the limit turns one into the other.

Paths are those of the scenario; coefficients of the law and the peak of a chip stand under `law.`
and `phases.`, where a file would have to describe them in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel

from planner.protocol.elasticity import EVERYTHING_FOLLOWS, Elasticity, Method
from planner.protocol.parameter import Parameter, settable
from planner.token_costs.budget_task import BudgetTask, stack_budgets
from planner.token_costs.optimum import BudgetOptimum, lagrangian_slope
from planner.token_costs.phase_costs import SizedShare, rl_flop_needed, served_tokens
from planner.token_costs.phase_keys import Inference, Reinforcement

if TYPE_CHECKING:
    from planner.scenario.loading import Question


DELTA = 1e-5  # of a quantity, in logarithms; the functions are smooth and cheap
CURVE = {"rate": "token/s", "lifetime": "s", "growth": "1", "discount": "1", "obsolescence": "1"}
QUALITY = {"loss": ("quality.loss", "nat"), "n_active": ("quality.like.n_active", "param"),
           "tokens": ("quality.like.tokens", "token")}  # fmt: skip
FIXED = {"n_active": ("choose.n_active", "param"), "pretrain": ("choose.pretrain", "token"),
         "rl": ("rl.tokens", "token")}  # fmt: skip

R = TypeVar("R")
Slope = Callable[[BudgetOptimum], float]


@dataclass(frozen=True)
class BudgetParameter(Parameter):
    """One quantity of a budget; `to` gives the task with it times a factor.

    `slope` is d ln(what is made small) / d ln(quantity) at an optimum; where it is None it is
    taken by a difference at fixed choices. `phase` is the one whose cost it changes, if any.
    """

    slope: Slope | None = None
    phase: str | None = None


def scale_value(record: R, path: str, factor: float) -> R:
    """Copy of a record with a number, or a mapping of numbers, at a dotted path times a factor."""
    name, _, rest = path.partition(".")
    value: Any = record[name] if isinstance(record, Mapping) else getattr(record, name)
    if rest:
        value = scale_value(value, rest, factor)
    elif isinstance(value, Mapping):
        value = MappingProxyType({key: number * factor for key, number in value.items()})
    else:
        value = value and value * factor
    if isinstance(record, Mapping):
        return cast("R", {**record, name: value})
    if isinstance(record, BaseModel):
        return record.model_copy(update={name: value})
    return cast("R", replace(cast("Any", record), **{name: value}))


def parameters(
    task: BudgetTask, inference: Inference, rl: Reinforcement
) -> Iterator[BudgetParameter]:
    """Every quantity of a task that has an influence of its own."""
    yield from _of_phases(task)
    if task.served:
        yield from _of_demand(task, inference)
    if "rl" in task.phases:
        yield from _of_reinforcement(task, rl)
    yield from _of_quality(task)
    vary_data = partial(scale_value, task, "unique")
    data = BudgetParameter("data.unique", task.unique, "token", "quality", vary_data)
    if task.repeats:
        yield data
    for name, value in task.law.values.items():
        if value:
            vary = partial(scale_value, task, f"law.values.{name}")
            yield BudgetParameter(f"law.{name}", value, "", "law", vary)
    if task.limit is not None:
        unit, vary = "USD" if task.in_usd else "flop", partial(scale_value, task, "limit")
        yield BudgetParameter("cost", task.limit, unit, "quality", vary,
                              slope=lambda best: -1 / best.loss_price / best.loss)  # fmt: skip
    if task.unique is not None and not task.repeats:
        yield replace(data, slope=_of_unique)
    for name, value in task.fixed_choices.items():
        path, unit = FIXED[name]
        vary = partial(scale_value, task, f"fixed_choices.{name}")
        yield BudgetParameter(path, value, unit, "quality", vary, slope=partial(_of_fixed, name))


def elasticities(
    answer: BudgetOptimum, inference: Inference, rl: Reinforcement
) -> dict[str, float]:
    """{path in the scenario: d ln(objective) / d ln(quantity)}, the law's coefficients included."""
    slopes = {
        row.path: row.slope(answer) if row.slope else _by_difference(answer, row)
        for row in parameters(answer.task, inference, rl)
        if row.phase is None or answer.shares[row.phase]
    }
    return {path: slope for path, slope in slopes.items() if not math.isnan(slope)}


def law_loss(answer: BudgetOptimum, task: BudgetTask) -> float:
    """The loss [nat] of the choices of an answer as the law of a task has it."""
    n, d, term = answer.n_active, answer.pretrain, task.rl_term
    terms = None if task.curved else task.law.terms(task.sparsity)
    loss = task.loss(n, d) if terms is None else float(terms.loss(n, d, answer.rl))
    return loss + (term.coefficient * answer.rl**-term.exponent if term else 0.0)


def _by_difference(answer: BudgetOptimum, row: BudgetParameter) -> float:
    """Elasticity to a quantity at fixed choices, by a central difference [-]."""
    assert row.to is not None
    high, low = (row.to(math.exp(sign * DELTA)) for sign in (1, -1))

    def slope(first: float, second: float) -> float:
        return (math.log(first) - math.log(second)) / (2 * DELTA) if first and second else 0.0

    cost = answer.shares["inference"] * slope(high.served, low.served)
    cost += answer.shares["rl"] * slope(high.rl_flop, low.rl_flop)
    above, below = (
        law_loss(answer, task) - (task.required.value(task.law) if task.required else 0.0)
        for task in (high, low)
    )
    return _weighed(answer, cost, (above - below) / (2 * DELTA))


def _weighed(answer: BudgetOptimum, cost: float = 0.0, loss: float = 0.0) -> float:
    if answer.task.aim == "cost":
        return cost + answer.loss_price * loss
    return (loss + cost / answer.loss_price) / answer.loss


def _of_power(phase: str, exponent: float) -> Slope:
    return lambda answer: _weighed(answer, cost=exponent * answer.shares[phase])


def _of_goal(answer: BudgetOptimum) -> float:
    if answer.task.aim == "cost":
        return 1.0
    terms = answer.task.terms
    return terms.power * (answer.loss - terms.floor) / answer.loss


def _of_phases(task: BudgetTask) -> Iterator[BudgetParameter]:
    """Utilisation, price and peak of each phase: its cost is proportional to them."""
    for name, phase in task.phases.items():
        if phase.mfu is None:
            continue
        path, less, more = f"phases.{name}", _of_power(name, -1.0), _of_power(name, 1.0)
        if phase.sized is None:
            yield BudgetParameter(
                f"{path}.mfu", phase.mfu, "1", "phases", partial(_phase, task, name, mfu=True),
                slope=less, phase=name,
            )  # fmt: skip
        if task.in_usd and phase.system is not None:
            price = phase.price.value if phase.price else None
            yield BudgetParameter(f"{path}.price", price, "USD/(chip*s)", "prices",
                                  partial(_phase, task, name), slope=more, phase=name)  # fmt: skip
            if phase.sized is not None:
                yield from _of_layouts(task, name, phase.sized)
                continue
            peak = phase.system.chip.peak(phase.dtype)
            yield BudgetParameter(
                f"{path}.system.flops.{phase.dtype}", peak, "flop/s", "chip",
                partial(_phase, task, name, faster=True), slope=less, phase=name,
            )  # fmt: skip


def _of_layouts(task: BudgetTask, name: str, sized: SizedShare) -> Iterator[BudgetParameter]:
    for row in sized.slopes:

        def vary(factor: float, slope: float = row.slope) -> BudgetTask:
            return _phase(task, name, factor**slope)

        yield BudgetParameter(f"phases.{name}.{row.path}", row.value, row.unit, "chip", vary,
                              slope=_of_power(name, row.slope), phase=name)  # fmt: skip


def _phase(
    task: BudgetTask, name: str, factor: float, *, mfu: bool = False, faster: bool = False
) -> BudgetTask:
    """Task with the FLOP price of a phase times `factor`, or over it for `mfu` and `faster`."""
    phase = task.phases[name]
    rate = phase.usd_per_flop
    dearer = rate and (rate / factor if mfu or faster else rate * factor)
    used = phase.mfu * factor if mfu and phase.mfu else phase.mfu
    changed = replace(phase, usd_per_flop=dearer, mfu=used)
    return replace(task, phases={**task.phases, name: changed})


def _of_demand(task: BudgetTask, demand: Inference) -> Iterator[BudgetParameter]:
    if demand.tokens is not None:
        yield BudgetParameter("inference.tokens", demand.tokens, "token", "demand",
                              partial(scale_value, task, "served"),
                              slope=_of_power("inference", 1.0))  # fmt: skip
    for name, unit in CURVE.items():
        value = getattr(demand, name)
        if value and math.isfinite(value):

            def vary(f: float, name: str = name) -> BudgetTask:
                return replace(task, served=served_tokens(scale_value(demand, name, f)).counted)

            yield BudgetParameter(f"inference.{name}", value, unit, "demand", vary)


def _of_reinforcement(task: BudgetTask, rl: Reinforcement) -> Iterator[BudgetParameter]:
    reward, cost = rl.reward, _of_power("rl", 1.0)
    if reward is not None:
        for name, value in reward:
            if value:

                def need(f: float, name: str = name) -> BudgetTask:
                    return replace(task, rl_flop=rl_flop_needed(scale_value(reward, name, f)))

                unit = "flop" if name == "middle" else "1"
                yield BudgetParameter(f"rl.reward.{name}", value, unit, "demand", need, phase="rl")
        return
    yield BudgetParameter("rl.k", rl.k, "flop/(param*token)", "phases",
                          partial(scale_value, task, "phases.rl.arithmetic"),
                          slope=cost, phase="rl")  # fmt: skip
    if rl.tokens and not task.reinforced:
        yield BudgetParameter("rl.tokens", rl.tokens, "token", "demand",
                              partial(scale_value, task, "rl_tokens"),
                              slope=cost, phase="rl")  # fmt: skip
    for name, value in rl.loss or ():
        vary = partial(scale_value, task, f"rl_term.{name}")
        yield BudgetParameter(f"rl.loss.{name}", value, "1", "law", vary, phase="rl")


def _of_quality(task: BudgetTask) -> Iterator[BudgetParameter]:
    for name, (path, unit) in QUALITY.items():
        value = getattr(task.required, name, None)
        if value is not None:
            exact = (lambda x: _weighed(x, loss=-x.loss)) if name == "loss" else None
            vary = partial(scale_value, task, f"required.{name}")
            yield BudgetParameter(path, value, unit, "quality", vary, slope=exact)


def _of_unique(answer: BudgetOptimum) -> float:
    return -answer.data_bound * _of_goal(answer) if answer.data_bound else math.nan


def _of_fixed(name: str, answer: BudgetOptimum) -> float:
    task = answer.task
    budgets = stack_budgets([replace(task, fixed_choices={})])
    varied = 1 - task.constant_cost / answer.total if task.aim == "cost" else _of_goal(answer)
    slope = lagrangian_slope(budgets, answer.at(budgets.choices), name, answer.multiplier)
    return slope * varied


def scenario_rows(question: Question, rows: Iterable[Parameter]) -> list[Parameter]:
    """Rows that a scenario file may set; a law's coefficients are excluded."""
    return settable(question, (row for row in rows if row.group != "law"))


BASIS: Mapping[Method, str] = {
    "dual": "multipliers (envelope theorem)",
    "re-solve": "solved again on either side, choices held",
}


def elasticity_row(parameter: Parameter, sides: tuple[float, float], method: Method) -> Elasticity:
    """A row of the table, with its slopes to the left and to the right; everything follows."""
    path, value, unit, group = parameter.path, parameter.value, parameter.unit, parameter.group
    basis = BASIS[method]
    return Elasticity(path, value, unit, group, *sides, method, basis, EVERYTHING_FOLLOWS)
