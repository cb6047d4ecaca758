"""Why a budget has no answer: what falls short, by how much, and in which sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.problems.budget.budget_task import BudgetTask, assembled
from planner.problems.budget.search.posynomial_form import Array, Budgets

ENDLESS = 200.0  # logarithm of more than there is of anything
WORN = 8.0  # multiples of a reach beyond which exp(-8) of the worth of more is left
MOST = 1e25  # parameters, or tokens, beyond which nothing is one either
LEAST = 1e4  # parameters, or tokens, below which nothing is a language model


@dataclass(frozen=True)
class NoBudget:
    """Why a question has no answer: `promise` falls short by a factor, said in a sentence."""

    task: BudgetTask
    promise: str
    short_by: float
    reason: str


def best_possible(free: Budgets) -> Array:
    """Logarithm of the least that the limited sum can come to, at no matter what."""
    far = ENDLESS if free.aim == "cost" else -ENDLESS
    point = np.full((len(free), len(free.choices)), far)
    with np.errstate(all="ignore"):
        side = free.losses(point) if free.aim == "cost" else free.costs(point)
    return side.value


def least_loss(task: BudgetTask) -> float:
    """The loss [nat] that no cost goes below: floor, held choices, and worn-out data."""
    free = assembled([task])
    for name, value in task.fixed_choices.items():
        free = free.fixed(name, np.log([value]))
    with np.errstate(all="ignore"):
        side = free.losses(np.full((1, len(free.choices)), ENDLESS))
    terms = task.terms
    return terms.floor + math.exp(float(side.value[0])) ** terms.power


def nothing(task: BudgetTask, possible: float, row: Budgets) -> NoBudget:
    """Why nothing keeps the limit, with the factor by which it falls short."""
    if task.required is None:
        least = math.exp(possible)
        reason = "reinforcement learning and what is given alone cost more than that"
        return NoBudget(task, "cost", least / (task.limit or math.nan), reason)
    wanted = task.required.value(task.law)
    terms = task.terms
    if wanted <= terms.floor:
        reason = f"the law {task.law.name} has {terms.floor:.4g} that no size and no data removes"
        return NoBudget(task, "loss", terms.floor / wanted, reason)
    least = terms.floor + math.exp(possible) ** terms.power
    if task.fixed_choices:
        reason = f"at the values in choose no loss below {least:.4g} is reached"
    else:
        reason = (
            f"no size goes below {least:.4g} on {task.unique or math.nan:.3g} unique tokens"
            f"{', however often they are repeated' if task.repeats else ''}"
        )
    return NoBudget(task, "loss", least / wanted, reason)


def worn_out(task: BudgetTask, row: Budgets) -> NoBudget | None:
    """The answer where a cost buys more passes over the data than change anything."""
    if row.aim == "cost" or row.effective is None:
        return None
    curves = [row.effective.curved.get(each) for each in row.choices]
    if None in curves:
        return None
    most = [float(c.knee[0] + np.log1p(WORN * c.reach[0])) for c in curves if c is not None]
    spent = float(row.costs(np.array([most])).value[0])
    if not np.isfinite(spent) or spent > row.limit[0]:
        return None
    reason = (
        f"{task.unique or math.nan:.3g} unique tokens cannot make use of it: a cost of "
        f"{math.exp(spent):.3g} already repeats them until another pass changes nothing"
    )
    return NoBudget(task, "data", math.exp(float(row.limit[0]) - spent), reason)


def unsolved(task: BudgetTask) -> NoBudget:
    """The steps did not arrive: the limit can be kept in theory alone."""
    what = "loss" if task.required is not None else "cost"
    reason = f"this {what} is so close to what can be reached at all that no number describes it"
    return NoBudget(task, what, 1.0, reason)


def beyond(task: BudgetTask, values: Mapping[str, float]) -> NoBudget | None:
    """The answer where the best choices, in logarithms, are no model that anybody could train."""
    n_active, pretrain = (float(np.exp(values[name])) for name in ("n_active", "pretrain"))
    reason = f"a model of {n_active:.2g} parameters and {pretrain:.2g} tokens"
    if task.aim == "quality" and min(n_active, pretrain) < LEAST:
        return NoBudget(task, "cost", LEAST / min(n_active, pretrain), f"it buys {reason}")
    if max(values.values()) > math.log(MOST) or min(values.values()) < 0:
        return NoBudget(task, "loss", 1.0, f"it would take {reason}, which nobody can train")
    return None
