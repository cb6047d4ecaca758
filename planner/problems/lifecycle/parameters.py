"""What one percent of anything is worth over a model's whole life.

What a quantity does to training and to the required loss is that of a budget; what it does to the
price of serving comes from the program of the serving layout, and counts as much as serving costs.

The rows of a lifecycle: training and law as in a budget, serving as its layout answers.

The size is a real number on the layout that serves it. What is made small answers by its
multipliers; anything else by settling again, the layout held, with a given a little off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from planner.problems.budget.budget_task import BudgetTask, compute_optimal_tokens
from planner.problems.budget.elasticities import AGAIN, ENVELOPE
from planner.problems.budget.life_givens import life_givens
from planner.problems.budget.parameters import elasticities
from planner.problems.budget.question import BudgetScenario
from planner.problems.lifecycle.fixed_layout_optimum import FixedLayoutOptimum, fixed_layout_optimum
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search import optimal_size
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.problems.serving.task.task import Task
from planner.programs.geometric import Shortage
from planner.protocol.elasticity import OFFSETS, STEP, Elasticity, one_sided
from planner.protocol.parameter import Parameter
from planner.scenario import LifecycleScenario
from planner.text.errors import FieldError, SolverError

ROUNDING = 5e-7  # elasticities below are noise of the solver
BEYOND = 1e-3  # of the largest size that is served
ENDS = {"memory": "serving.system.memory"} | {
    name: f"serving.promises.{name}" for name in ("ttft", "tpot", "e2e")
}


def lifecycle_elasticities(settled: FixedLayoutOptimum) -> dict[str, float]:
    """{path in the scenario: d ln(cost of the whole life) / d ln(given)}, layouts held.

    A chip that trains and serves stands twice; `together` adds what is the same thing.
    """
    answer, life = settled.answer, settled.life
    # The parts of a budget's scenario that are read are all there.
    found = elasticities(answer, cast(BudgetScenario, life.scenario))
    share = answer.cost[2] / answer.total
    for name, slope in settled.worth.items():
        found[_path(name)] = share * slope
    found["serving.utilisation"] = -share
    found.update(_together(settled, found))
    if settled.size_bound:
        side = "choose.smallest" if settled.size_bound > 0 else "choose.largest"
        found["serving.largest" if settled.full else side] = settled.size_bound
    if settled.full:
        for path, slope in _at_the_end(settled).items():
            found[path] = found.get(path, 0.0) + slope
    return {name: value for name, value in found.items() if abs(value) > ROUNDING}


def overtraining_from_pools(settled: FixedLayoutOptimum) -> float | None:
    """Tokens over compute-optimal ones at the optimum, from what the phases cost.

    (sum of eps_i * C_i / C_pretrain)**(1/beta), eps_i = d ln C_i / d ln N: 1 for training, the
    slope of the price for serving. None where a limit holds the size, or the law is not additive.
    """
    answer, question = settled.answer, settled.answer.question
    tokens = [each for each in question.terms.terms if each.tokens]
    if len(tokens) != 1 or tokens[0].size or question.repeats or question.rl_term is not None:
        return None
    if len(answer.budgets.choices) != len(question.choices):
        return None
    pretrain, rl, serving = answer.cost
    grows = pretrain + settled.slope * serving + (0.0 if question.rl_flop else rl)
    return math.pow(grows / pretrain, -1 / tokens[0].tokens)


def _path(name: str) -> str:
    return f"serving.{name}"


def _at_the_end(settled: FixedLayoutOptimum) -> dict[str, float]:
    """What more of that which ends the sizes that a layout serves is worth: room for larger ones.

    Sizes a little beyond fall short of it by a factor, which grows with the size and falls with
    what there is; the largest size grows as the one over the other.
    """
    served, size = settled.served, settled.answer.n_active
    near, far = (1 + k * BEYOND for k in (2, 4))
    first, second = (_short(served, size * factor) for factor in (near, far))
    found = {}
    for name in ENDS.keys() & first.keys() & second.keys():
        eased = _short(served.changed(partial(_eased, name)), size * far)
        used = math.log(second[name] / first[name]) / math.log(far / near)
        given = -math.log(eased.get(name, 1.0) / second[name]) / math.log1p(BEYOND)
        if used > 0:
            found[ENDS[name]] = settled.size_bound * given / used
    return found


def _short(served: ServedMember, n_active: float) -> dict[str, float]:
    """The factors by which promises fall short at a size that the layout does not serve."""
    try:
        with np.errstate(over="ignore"):  # of a bound where next to nothing fits
            served.tangent(n_active)
    except Shortage as error:
        return {each.name: each.factor for each in error.shortfalls}
    return {}


def _eased(name: str, task: Task) -> Task:
    """The task with a little more memory, or a little more time."""
    if name == "memory":
        return replace(task, chip=replace(task.chip, memory=task.chip.memory * (1 + BEYOND)))
    promises = {k: v * (1 + BEYOND) if k == name and v else v for k, v in task.promises.items()}
    return replace(task, promises=promises)


def _together(settled: FixedLayoutOptimum, found: dict[str, float]) -> dict[str, float]:
    """Price and arithmetic of a chip that both trains and serves."""
    phases = settled.answer.question.phases
    served = settled.served.plan["chip"]
    same = [
        name for name, phase in phases.items()
        if phase.system is not None and phase.system.chip.name == served
    ]  # fmt: skip
    if not same:
        return {}
    sums = {}
    for what, own in (("price", "price"), ("flops", "system.flops")):
        trained = sum(
            value for path, value in found.items()
            if any(path.startswith(f"phases.{name}.{own}") for name in same)
        )  # fmt: skip
        serving = found.get("serving.price" if what == "price" else "serving.system.flops", 0.0)
        sums[f"together.{served}.{what}"] = trained + serving
    return sums


PROMISES = ("ttft", "tpot", "e2e")
PHASES = ("pretrain", "rl", "inference")


def lifecycle_rows(scenario: LifecycleScenario, name: str) -> list[Elasticity]:
    """Every given of a lifecycle that has an answer, and what it does to one output."""
    life = resolve_life(scenario)
    found = [optimal_size(life, sparsity) for sparsity in life.sparsities]
    best = min(
        (each for each in found if isinstance(each, FixedLayoutOptimum)),
        key=lambda s: s.whole.total,
    )
    law = life_givens(scenario, best.answer.question)
    serving = serving_givens(best)
    if name == "cost.total.usd":
        return list(_by_multipliers(best, [*law, *serving]))
    at = math.log(smooth_values(best)[name])
    rows = []
    for given in (*law, *serving):

        def logs(step: float, given: Parameter = given) -> list[float | None]:
            ends = [moved(best, given, math.exp(offset * step)) for offset in OFFSETS]
            return [math.log(each[name]) if each and name in each else None for each in ends]

        left, right = one_sided(at, logs(STEP), logs)
        rows.append(
            Elasticity(
                given.path, given.value, given.unit, given.group, left, right, "re-solve", AGAIN
            )
        )
    return rows


def smooth_values(settled: FixedLayoutOptimum) -> dict[str, float]:
    """The outputs where the size is a real number, in the words of a plan."""
    answer = settled.answer
    question = answer.question
    price, _ = settled.served.tangent(answer.n_active)
    found = {
        "n_active": answer.n_active,
        "n_total": answer.n_active * settled.sparsity,
        "tokens.pretrain": answer.pretrain,
        "tokens_per_parameter": answer.pretrain / answer.n_active,
        "loss": answer.loss,
        "usd_per_mtok": price * 1e6,
        "cost.total.usd": answer.total,
        **{f"cost.{name}.usd": cost for name, cost in zip(PHASES, answer.cost, strict=True)},
    }
    try:
        tokens = compute_optimal_tokens(question.terms, answer.n_active)
        found["over_training"] = answer.pretrain / tokens
    except FieldError:
        pass  # a law without a term in tokens has no compute-optimal ones
    return {name: value for name, value in found.items() if value}


def _by_multipliers(best: FixedLayoutOptimum, givens: list[Any]) -> Iterator[Elasticity]:
    worth = lifecycle_elasticities(best)
    values = {given.path: given for given in givens}
    for path in dict.fromkeys([*values, *worth]):
        given, slope = values.get(path), worth.get(path, 0.0)
        group = given.group if given else _group(path)
        value, unit = (given.value, given.unit) if given else (None, "")
        yield Elasticity(path, value, unit, group, slope, slope, "dual", ENVELOPE)


def _group(path: str) -> str:
    last = path.removeprefix("serving.").partition(".")[0]
    return {"system": "chip", "together": "chip", "utilisation": "prices"}.get(last, last)


def moved(best: FixedLayoutOptimum, given: Parameter, factor: float) -> dict[str, float] | None:
    """The outputs with a given times a factor, the layouts held; None where nothing settles."""
    served, question = best.served, best.answer.question
    varied = given.to(factor) if given.to else question
    if isinstance(varied, BudgetTask):
        question = varied
    else:
        served = varied
    try:
        return smooth_values(fixed_layout_optimum(best.life, question, served, best.sparsity))
    except SolverError:
        return None


def serving_givens(best: FixedLayoutOptimum) -> list[Parameter]:
    """What the serving part of a lifecycle gives."""
    return list(_of_serving(best))


def _of_serving(best: FixedLayoutOptimum) -> Iterator[Parameter]:
    part, served = best.life.scenario.serving, best.served
    task = served.parts[-1][0].task

    def row(
        path: str, value: float | None, unit: str, group: str, vary: Callable[[Task, float], Task]
    ) -> Parameter:
        def to(factor: float) -> ServedMember:
            return served.changed(partial(vary, factor=factor))

        return Parameter(path, value, unit, group, to)

    def utilised(factor: float) -> ServedMember:
        return replace(served, utilisation=served.utilisation * factor)

    yield Parameter("serving.utilisation", part.utilisation, "1", "prices", utilised)
    yield row("serving.price", task.price - task.electricity, "USD/(chip*s)", "prices", _priced)
    chip = task.chip
    for name, unit in (("memory_bandwidth", "byte/s"), ("memory", "byte")):
        path, value = f"serving.system.{name}", getattr(chip, name)
        yield row(path, value, unit, "chip", partial(_figure, name))
    yield row("serving.system.flops", None, "flop/s", "chip", _faster)
    for name in PROMISES:
        if any(name in one.task.promises for one, _, _ in served.parts):
            path, value = f"serving.promises.{name}", getattr(part.promises, name)
            yield row(path, value, "s", "promises", partial(_promising, name))


def _priced(task: Task, factor: float) -> Task:
    return replace(task, price=task.price * factor)


def _figure(name: str, task: Task, factor: float) -> Task:
    return _chip(task, {name: getattr(task.chip, name) * factor})


def _chip(task: Task, figures: dict[str, Any]) -> Task:
    return replace(task, chip=replace(task.chip, **figures))


def _faster(task: Task, factor: float) -> Task:
    rates = {unit: rate * factor for unit, rate in task.chip.flops.items()}
    return _chip(task, {"flops": MappingProxyType(rates)})


def _promising(name: str, task: Task, factor: float) -> Task:
    if name not in task.promises:
        return task
    return task.with_layout(promises={**task.promises, name: task.promises[name] * factor})
