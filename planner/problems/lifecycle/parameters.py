"""What one percent of anything is worth over a model's whole life.

What a quantity does to training and to the required loss is that of a budget; what it does to the
price of serving comes from the program of the serving layout, and counts as much as serving costs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from planner.problems.budget.parameters import elasticities
from planner.problems.budget.question import BudgetScenario
from planner.problems.lifecycle.fixed_layout_optimum import Settled
from planner.problems.lifecycle.serving_cost import Served
from planner.programs.geometric import Shortage

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task

__all__ = ["lifecycle_elasticities", "overtraining_identity"]

ROUNDING = 5e-7  # elasticities below are noise of the solver
BEYOND = 1e-3  # of the largest size that is served
ENDS = {"memory": "serving.system.memory"} | {
    name: f"serving.promises.{name}" for name in ("ttft", "tpot", "e2e")
}


def lifecycle_elasticities(settled: Settled) -> dict[str, float]:
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


def overtraining_identity(settled: Settled) -> float | None:
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


def _at_the_end(settled: Settled) -> dict[str, float]:
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


def _short(served: Served, n_active: float) -> dict[str, float]:
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


def _together(settled: Settled, found: dict[str, float]) -> dict[str, float]:
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
