"""What one percent of anything is worth over a model's whole life.

What a quantity does to training and to the required loss is that of a budget; what it does to the
price of serving comes from the program of the serving layout, and counts as much as serving costs.
"""

from __future__ import annotations

import math
from typing import cast

from planner.budgets.lifecycle_settled import Settled
from planner.budgets.worth import elasticities
from planner.scenario.budget import BudgetScenario

__all__ = ["lifecycle_elasticities", "overtraining_identity"]

ROUNDING = 5e-7  # elasticities below are noise of the solver


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
