"""What a lifecycle gives: law, training and demand as in a budget, and the serving part.

A quantity of training gives a `BudgetTask` with it varied, one of serving a `ServedMember`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from planner.problems.lifecycle.search.fixed_layout_optimum import FixedLayoutOptimum
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.problems.serving import Task
from planner.protocol.parameter import Parameter
from planner.token_costs.parameters import parameters as budget_parameters

PROMISES = ("ttft", "tpot", "e2e")


def parameters(best: FixedLayoutOptimum) -> list[Parameter]:
    """Every quantity of a lifecycle that has an influence of its own."""
    scenario = best.life.scenario
    training = budget_parameters(best.answer.task, scenario.inference, scenario.rl)
    return [*training, *serving_parameters(best)]


def serving_parameters(best: FixedLayoutOptimum) -> Iterator[Parameter]:
    """What the serving part of a lifecycle gives; `to` is the member served so."""
    part, served = best.life.scenario.serving, best.served
    task = served.parts[-1][0].task

    def row(
        path: str, value: float | None, unit: str, group: str, vary: Callable[[Task, float], Task]
    ) -> Parameter:
        def to(factor: float) -> ServedMember:
            return served.changed(lambda task: vary(task, factor))

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
        if any(name in pool.task.promises for pool, _, _ in served.parts):
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
