"""A lifecycle looked up: what is asked of law, training and serving, for any model of a family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from planner.catalogue import models
from planner.catalogue.prices import Price
from planner.catalogue.systems import System
from planner.laws.laws import ScalingLaw, scaling_law
from planner.laws.model_family import ModelFamily
from planner.problems.budget.budget_task import BudgetTask, LossTerm, Required, assembled
from planner.problems.budget.phase_costs import (
    PhaseCost,
    ServedTokens,
    Trainer,
    rl_flop_needed,
    served,
    trainer,
)
from planner.problems.budget.phase_keys import Quality
from planner.problems.budget.posynomial_form import Array, Budgets
from planner.problems.lifecycle.members import FamilyRule, ScaledModel
from planner.problems.lifecycle.question import LifecycleScenario, TrainingPhase
from planner.problems.lifecycle.serving_cost import ServingQuestion, serving_question
from planner.scenario.keys.references import File
from planner.text.errors import CatalogueError, FieldError

INFERENCE = 2  # the column of serving in the costs of a budget
PRETRAIN = 6.0  # flop/(param*token)


@dataclass(frozen=True)
class Training:
    """One phase of training on the system where it is cheapest."""

    system: System
    price: Price
    by: Trainer
    duration: float | None

    def cost(self, name: str, arithmetic: float) -> PhaseCost:
        """The same as a budget counts it."""
        by = self.by
        return PhaseCost(name, arithmetic, by.mfu, by.usd_per_flop, self.system, self.price,
                         by.dtype)  # fmt: skip


@dataclass(frozen=True)
class LifecycleTask:
    """Everything that does not depend on the model.

    `sparsities` are the ratios of total to active parameters to try, `left_out` says which of
    those asked for lie outside the law's range.
    """

    scenario: LifecycleScenario
    law: ScalingLaw
    family: FamilyRule | ScaledModel
    serving: ServingQuestion
    demand: ServedTokens
    sparsities: tuple[float, ...]
    left_out: tuple[str, ...] = ()

    @property
    def bounds(self) -> tuple[float, float]:
        """Fewest and most active parameters [param]."""
        choose = self.scenario.choose
        return choose.smallest, choose.largest

    def training(self, sparsity: float) -> dict[str, Training]:
        """The phases of training of dense or sparse models, those that are used."""
        phases, rl = self.scenario.phases, self.scenario.rl
        found = {"pretrain": _training("pretrain", phases.pretrain, sparsity)}
        if rl.used and phases.rl is not None:
            found["rl"] = _training("rl", phases.rl, sparsity)
        return found

    def question(self, sparsity: float, law: ScalingLaw | None = None) -> BudgetTask:
        """The budget of a sparsity without its serving, in USD."""
        asked = self.scenario
        arithmetic = {"pretrain": PRETRAIN, "rl": asked.rl.k}
        costs = {
            name: each.cost(name, arithmetic[name])
            for name, each in self.training(sparsity).items()
        }
        rl, reward = asked.rl, asked.rl.reward
        return BudgetTask(
            law=law or self.law,
            phases=costs,
            in_usd=True,
            sparsity=_of_the_law(self.law, self.family, sparsity),
            served=self.demand.counted,
            rl_tokens=rl.tokens or 0.0,
            rl_flop=rl_flop_needed(reward) if reward is not None else 0.0,
            rl_term=LossTerm(rl.loss.coefficient, rl.loss.exponent) if rl.loss else None,
            unique=asked.data.unique,
            required=_required(asked.quality),
        )


def resolve_life(scenario: LifecycleScenario) -> LifecycleTask:
    """A scenario with everything looked up.

    Raises
    ------
    InputError
        For what is not known, or contradicts itself.
    """
    part, law = scenario.family, _law(scenario.law)
    family = ScaledModel(part.like) if part.like else FamilyRule(ModelFamily(part.attention))
    sparsities, left_out = _sparsities(scenario, law, family)
    return LifecycleTask(
        scenario=scenario,
        law=law,
        family=family,
        serving=serving_question(scenario.serving),
        demand=served(scenario.inference),
        sparsities=sparsities,
        left_out=left_out,
    )


def with_serving(
    budgets: Budgets, n_active: float, price: float, slope: float, tokens: float
) -> Budgets:
    """The budgets with serving as a monomial of the size: `price * (N / n_active)**slope`.

    `tokens` are those served as they weigh in the cost.
    """
    cost, powers = budgets.cost.copy(), budgets.cost_powers.copy()
    cost[:, INFERENCE] = math.log(tokens * price) - slope * math.log(n_active)
    powers[INFERENCE] = 0.0
    powers[INFERENCE, budgets.choices.index("n_active")] = slope
    return Budgets(
        cost, powers, budgets.loss, budgets.loss_powers, budgets.limit, budgets.aim,
        budgets.choices, budgets.worth,
    )  # fmt: skip


def at_sizes(question: BudgetTask, sizes: Sequence[float]) -> Budgets:
    """The budget of one question at each of many sizes; tokens alone are left to choose."""
    rows = assembled([question] * len(sizes))
    logs: Array = np.log(np.asarray(sizes, dtype=float))
    return rows.fixed("n_active", logs)


def _law(given: Any) -> ScalingLaw:
    """The law by name, from a file, or as described; one that gives a loss of a size."""
    found = scaling_law(given.path if isinstance(given, File) else given, folder=Path())
    for choice in ("loss", "size", "tokens"):
        found.need(choice)
    return found


def _sparsities(
    scenario: LifecycleScenario, law: ScalingLaw, family: FamilyRule | ScaledModel
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The sparsities to try, and sentences on those that the law was not fitted on.

    Raises FieldError where none is left: they are answered only with `extrapolate: true`.
    """
    wanted = scenario.choose.sparsity or (law.fixed_sparsity or 1.0,)
    path = "choose.sparsity"
    if isinstance(family, ScaledModel):
        wanted, path = (family.sparsity,), "family.like"
    if scenario.extrapolate is True:
        return wanted, ()
    beyond = {each: law.outside(sparsity=_of_the_law(law, family, each)) for each in wanted}
    known = tuple(each for each, told in beyond.items() if not told)
    told = [sentence for each in beyond.values() for sentence in each]
    if not known:
        raise FieldError((path, f"{'; '.join(told)}; extrapolate: true answers all the same"))
    return known, tuple(f"{each}; left out (extrapolate: true would try it)" for each in told)


def _of_the_law(law: ScalingLaw, family: FamilyRule | ScaledModel, sparsity: float) -> float:
    """The sparsity as the law is asked; dense where it knows no other and one model is meant.

    Raises FieldError for a list of sparsities of which the law knows nothing.
    """
    if sparsity == 1.0 or "sparsity" not in law.lacks:
        return sparsity
    if isinstance(family, ScaledModel):
        return 1.0
    told = (
        f"{law.name}: {law.lacks['sparsity']}; put a routed law on it, such as "
        "besiroglu-2024 + clark-2022-s-base"
    )
    raise FieldError(("choose.sparsity", told))


def _training(name: str, phase: TrainingPhase, sparsity: float) -> Training:
    """The phase on the system whose FLOP cost least."""
    found = []
    for system in phase.systems():
        try:
            price = phase.price_of(system)
        except CatalogueError as error:
            raise FieldError((f"phases.{name}.price", str(error))) from error
        try:
            by = trainer(system.chip, price.value, phase.dtype, phase.mfu, sparse=sparsity > 1.0)
        except CatalogueError as error:
            raise FieldError((f"phases.{name}.mfu", str(error))) from error
        found.append(Training(system, price, by, phase.duration))
    return min(found, key=lambda each: each.by.usd_per_flop)


def _required(quality: Quality) -> Required:
    """The loss to reach, as a budget asks for it."""
    like = quality.like
    if like is None:
        return Required(loss=quality.loss)
    n_active = like.n_active
    if like.model is not None:
        from planner.architecture.counts import sizes

        n_active = float(sizes(models.load(like.model)).n_active["all"])
    return Required(n_active=n_active, tokens=like.tokens, sparsity=like.sparsity)


def training_data(phases: dict[str, Training]) -> list[dict[str, Any]]:
    """Where prices and shares of the peak come from, with their dates."""
    found = []
    for name, each in phases.items():
        rate, chip = each.by.rate, each.system.chip.name
        found.append({"what": f"{name}: price of {chip}", "source": each.price.source,
                      "as_of": each.price.as_of})  # fmt: skip
        if rate is None:
            found.append({"what": f"{name}: mfu", "source": "given", "as_of": ""})
            continue
        told = f"{rate.source}; {rate.model}"
        found.append({"what": f"{name}: mfu of {chip}", "source": told, "as_of": rate.as_of})
    return found


def training_warnings(phases: dict[str, Training], today: date) -> list[str]:
    """What the user should know of prices and shares of the peak."""
    found = []
    for name, each in phases.items():
        told = each.price.warning(today)
        if told:
            found.append(f"{name}: {told}")
        if each.by.borrowed:
            found.append(
                f"{name}: {each.system.chip.name} is taken to use the share of its peak that "
                f"{each.by.borrowed} does; give mfu if you know better"
            )
    return found
