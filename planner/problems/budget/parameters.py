"""What one percent of every given is worth: elasticities of the optimum, without solving again.

By the envelope theorem only what a given does at fixed choices counts: to the cost, to the loss of
the plan, and to the loss that is required. The multiplier of the limit turns one into the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.laws.scaling_law import ScalingLaw
from planner.problems.budget.budget_task import assembled
from planner.problems.budget.optimum import BudgetOptimum
from planner.problems.budget.phase_costs import PhaseCost, rl_flop_needed, served
from planner.problems.budget.phase_keys import Inference, Reward
from planner.scenario import BudgetScenario

STEP = 1e-5  # of a given, in logarithms; the functions are smooth and cheap
PHASES = ("pretrain", "rl", "inference")
CURVE = ("rate", "lifetime", "growth", "discount", "obsolescence")


@dataclass(frozen=True)
class _Effect:
    """Of one percent of a given at fixed choices: d ln(cost), and d(loss) less what is asked."""

    cost: float = 0.0
    loss: float = 0.0


def elasticities(answer: BudgetOptimum, scenario: BudgetScenario) -> dict[str, float]:
    """{path in the scenario: d ln(what is made small) / d ln(given)}, those of the law too."""
    effects = {
        **_of_phases(answer, scenario),
        **_of_demand(answer, scenario.inference),
        **_of_reinforcement(answer, scenario),
        **_of_quality(answer),
        **_of_data(answer),
        **_of_law(answer),
    }
    found = {path: _combined(answer, effect) for path, effect in effects.items()}
    question = answer.question
    if question.limit is not None:
        found["cost"] = -1 / answer.loss_price / answer.loss
    if question.unique is not None and not question.repeats and answer.data_bound:
        found["data.unique"] = -answer.data_bound * _of_goal(answer)
    found.update(_of_held(answer))
    return found


def _combined(answer: BudgetOptimum, effect: _Effect) -> float:
    """An effect on the cost, or on the loss, at the optimum."""
    if answer.question.aim == "cost":
        return effect.cost + answer.loss_price * effect.loss
    return (effect.loss + effect.cost / answer.loss_price) / answer.loss


def _of_goal(answer: BudgetOptimum) -> float:
    """d ln(what is made small) per d ln of its sum of monomials: the loss has a floor."""
    if answer.question.aim == "cost":
        return 1.0
    terms = answer.question.terms
    return terms.power * (answer.loss - terms.floor) / answer.loss


def _shares(answer: BudgetOptimum) -> dict[str, float]:
    return {name: each / answer.total for name, each in zip(PHASES, answer.cost, strict=True)}


def _of_phases(answer: BudgetOptimum, scenario: BudgetScenario) -> dict[str, _Effect]:
    """Price, utilisation and peak of each phase: its cost is proportional to them."""
    found = {}
    for name, share in _shares(answer).items():
        phase: PhaseCost | None = answer.question.phases.get(name)
        if phase is None or phase.mfu is None or not share:
            continue
        found[f"phases.{name}.mfu"] = _Effect(-share)
        if answer.question.in_usd and phase.system is not None:
            found[f"phases.{name}.price"] = _Effect(share)
            found[f"phases.{name}.system.flops.{phase.dtype}"] = _Effect(-share)
    return found


def _of_demand(answer: BudgetOptimum, demand: Inference) -> dict[str, _Effect]:
    share = _shares(answer)["inference"]
    if not share:
        return {}
    found = {}
    if demand.tokens is not None:
        found["inference.tokens"] = _Effect(share)
    for name in CURVE:
        value = getattr(demand, name)
        if not value or not math.isfinite(value):
            continue

        def counted(x: float, name: str = name) -> float:
            return math.log(served(demand.model_copy(update={name: x})).counted)

        found[f"inference.{name}"] = _Effect(share * _slope(counted, value))
    return found


def _of_reinforcement(answer: BudgetOptimum, scenario: BudgetScenario) -> dict[str, _Effect]:
    share, rl = _shares(answer)["rl"], scenario.rl
    if not share:
        return {}
    if rl.reward is None:
        found = {"rl.k": _Effect(share)}
        if rl.tokens and not answer.question.reinforced:
            found["rl.tokens"] = _Effect(share)
        if rl.loss is not None:
            left = rl.loss.coefficient * answer.rl**-rl.loss.exponent
            found["rl.loss.coefficient"] = _Effect(loss=left)
            steep = -rl.loss.exponent * math.log(answer.rl) * left
            found["rl.loss.exponent"] = _Effect(loss=steep)
        return found
    found, reward = {}, rl.reward
    for name, value in reward:
        if not value:
            continue

        def needed(x: float, name: str = name) -> float:
            changed: Reward = reward.model_copy(update={name: x})
            return math.log(rl_flop_needed(changed))

        found[f"rl.reward.{name}"] = _Effect(share * _slope(needed, value))
    return found


def _of_quality(answer: BudgetOptimum) -> dict[str, _Effect]:
    """The required loss, or the model it is that of."""
    required, law = answer.question.required, answer.question.law
    if required is None:
        return {}
    if required.n_active is None:
        return {"quality.loss": _Effect(loss=-answer.loss)}
    found = {
        "quality.like.n_active": _Effect(
            loss=-_slope(lambda n: replace(required, n_active=n).value(law), required.n_active)
        )
    }
    if required.tokens is not None:
        slope = _slope(lambda d: replace(required, tokens=d).value(law), required.tokens)
        found["quality.like.tokens"] = _Effect(loss=-slope)
    return found


def _of_data(answer: BudgetOptimum) -> dict[str, _Effect]:
    """Unique tokens, where the law knows what repeating them is worth."""
    question = answer.question
    if question.unique is None or not question.repeats:
        return {}
    slope = _slope(lambda unique: loss_at(answer, question.law, unique=unique), question.unique)
    return {"data.unique": _Effect(loss=slope)}


def _of_law(answer: BudgetOptimum) -> dict[str, _Effect]:
    """Every coefficient of the law: it moves the loss of the plan, and the loss asked for."""
    law, required = answer.question.law, answer.question.required

    def moved(name: str) -> Callable[[float], float]:
        def difference(x: float) -> float:
            changed = law.with_values(**{name: x})
            wanted = required.value(changed) if required is not None else 0.0
            return loss_at(answer, changed) - wanted

        return difference

    return {
        f"law.{name}": _Effect(loss=_slope(moved(name), value))
        for name, value in law.values.items()
        if value
    }


def _of_held(answer: BudgetOptimum) -> Mapping[str, float]:
    """Choices with one value alone: what the Lagrangian gains along them."""
    question = answer.question
    whole = replace(question, fixed_choices={})
    budgets = assembled([whole])
    values = {"n_active": answer.n_active, "pretrain": answer.pretrain, "rl": answer.rl}
    at = np.log([[values[name] for name in budgets.choices]])
    cost, loss = budgets.costs(at).slope[0], budgets.losses(at).slope[0]
    goal, limited = (cost, loss) if question.aim == "cost" else (loss, cost)
    along = goal + answer.multiplier * limited
    varied = (
        1 - question.constant_cost / answer.total if question.aim == "cost" else _of_goal(answer)
    )
    places = {name: j for j, name in enumerate(budgets.choices)}
    return {
        "rl.tokens" if name == "rl" else f"choose.{name}": float(along[places[name]]) * varied
        for name in question.fixed_choices
    }


def loss_at(answer: BudgetOptimum, law: ScalingLaw, *, unique: float | None = None) -> float:
    """The loss [nat] of the plan as a law has it, reinforcement learning included."""
    question = answer.question
    if question.curved:
        found = law.loss(
            answer.n_active, answer.pretrain, sparsity=question.sparsity,
            unique=unique or question.unique,
        )  # fmt: skip
    else:
        terms = law.terms(question.sparsity)
        if terms is None:
            found = law.loss(answer.n_active, answer.pretrain, sparsity=question.sparsity)
        else:
            found = terms.loss(answer.n_active, answer.pretrain, answer.rl)
    term = question.rl_term
    return float(found) + (term.coefficient * answer.rl**-term.exponent if term else 0.0)


def _slope(function: Callable[[float], float], at: float) -> float:
    """d function / d ln(given), by a central difference."""
    return (function(at * math.exp(STEP)) - function(at * math.exp(-STEP))) / (2 * STEP)
