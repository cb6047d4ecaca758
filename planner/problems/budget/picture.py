"""What a picture of a budget or lifecycle shows: cost by size, and loss and cost on a plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.laws.scaling import ScalingLaw
from planner.problems.budget.best import solve_one
from planner.problems.budget.budget_task import Question, Required
from planner.problems.budget.posynomial_form import Array
from planner.problems.budget.question import BudgetScenario
from planner.problems.budget.resolve import ask
from planner.problems.lifecycle.fixed_layout_optimum import curve
from planner.problems.lifecycle.question import LifecycleScenario
from planner.scenario import load
from planner.text.errors import InputError

__all__ = ["Costs", "Plane", "costs", "plane"]

POINTS = 193
WIDEST = 60.0  # factor of sizes beside the plan that is looked at
TALLEST = 8.0  # factor of the least cost up to which sizes are shown
MESH = 141
SIDE = (4.0, 12.0)  # factors of size and tokens beside the plan on the plane


@dataclass(frozen=True)
class Costs:
    """Cost by size at the quality of the plan, all (P,), in the unit of the plan's objective."""

    sizes: Array
    tokens: Array
    training: Array
    serving: Array

    @property
    def total(self) -> Array:
        """Cost of the whole life."""
        return self.training + self.serving


@dataclass(frozen=True)
class Plane:
    """Loss [nat] and cost at every size (P,) and number of tokens (Q,): shape (Q, P)."""

    sizes: Array
    tokens: Array
    loss: Array
    cost: Array


def costs(document: Mapping[str, Any]) -> Costs:
    """The curve of an answered budget or lifecycle, cut where it costs many times the least.

    Raises InputError for a plan whose size or tokens were given: there is no curve.
    """
    if document["problem"] == "lifecycle":
        rows = document["curve"]
        keys = ("n_active", "pretrain", "training_usd", "serving_usd")
        found = Costs(*(np.array([row[key] for row in rows]) for key in keys))
    else:
        found = _of_budget(document)
    if found.sizes.size < 2:
        raise InputError("nothing is left to choose, so there is no curve to draw")
    kept = found.total <= TALLEST * found.total.min()
    return Costs(*(each[kept] for each in
                   (found.sizes, found.tokens, found.training, found.serving)))  # fmt: skip


def plane(document: Mapping[str, Any], along: Costs) -> Plane:
    """Loss and cost around the plan, what is served and reinforced as in the plan."""
    plan, law = document["plan"], _law(document)
    size, trained = plan["n_active"], plan["tokens"]["pretrain"]
    sizes = np.geomspace(size / SIDE[0], size * SIDE[0], MESH)
    tokens = np.geomspace(trained / SIDE[1], trained * SIDE[1], MESH)
    n, d = np.meshgrid(sizes, tokens)
    asked = document["scenario"]
    unique = asked["data"]["unique"] if "repetition" not in law.lacks else None
    routed = plan["sparsity"] if "sparsity" not in law.lacks else 1.0
    loss = law.loss(n, d, sparsity=routed, unique=unique)
    key = "usd" if plan["objective"] == "usd" else "flop_paid"
    each = plan["cost"]["pretrain"][key] / (size * trained)
    rl = plan["cost"]["rl"][key] * (1.0 if asked["rl"]["reward"] else n / size)
    # Beyond the sizes that are known serving is taken to cost in proportion to the size.
    known = np.clip(sizes, along.sizes[0], along.sizes[-1])
    serving = np.interp(np.log(known), np.log(along.sizes), along.serving) * sizes / known
    return Plane(sizes, tokens, np.asarray(loss), each * n * d + rl + serving[None, :])


def _of_budget(document: Mapping[str, Any]) -> Costs:
    """Each phase of a budget at sizes around the plan's, at the plan's loss."""
    question, plan = _question(document), document["plan"]
    asked = replace(question, required=Required(loss=plan["loss"]), limit=None, held={})
    size, serving = plan["n_active"], question.weights().get("inference", 0.0) * question.served
    found = curve(asked, np.geomspace(size / WIDEST, size * WIDEST, POINTS))
    shown = found.sizes[found.training <= TALLEST * np.min(found.training)]
    if shown.size:  # once more, as finely over what is shown
        found = curve(asked, np.geomspace(shown[0], shown[-1], POINTS))
    known = np.isfinite(found.training)
    return Costs(
        found.sizes[known],
        found.tokens[known],
        (found.training - serving * found.sizes)[known],
        serving * found.sizes[known],
    )


def _question(document: Mapping[str, Any]) -> Question:
    """The question that the plan answers, asked once more."""
    read = load(document["scenario"])
    if not isinstance(read, BudgetScenario):
        raise InputError("a curve of cost by size is of a budget")
    sparsity = document["plan"]["sparsity"]
    questions = [each for each in ask(read).questions if each.sparsity == sparsity]
    return min(questions, key=_score)


def _score(question: Question) -> float:
    found = solve_one(question)
    return getattr(found, "score", np.inf)


def _law(document: Mapping[str, Any]) -> ScalingLaw:
    read = load(document["scenario"])
    if isinstance(read, LifecycleScenario):
        from planner.problems.lifecycle.resolve import life_of

        return life_of(read).law
    return _question(document).law
