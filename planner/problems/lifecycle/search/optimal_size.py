"""The best size of a model over its whole life, at one sparsity: a scan, then tangent monomials.

Training costs least at some size, and serving costs less below it, so the optimum lies between
that size and the one whose training alone costs as much. There serving is planned at a
few sizes. From the best of them the price is replaced by its tangent monomial on the layout it
found, the budget with that monomial is solved, and both are repeated until the size stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.problems.lifecycle.resolve import LifecycleTask
from planner.problems.lifecycle.search.fixed_layout_optimum import (
    FixedLayoutOptimum,
    fixed_layout_optimum,
)
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.text.errors import Infeasible, ModelError
from planner.token_costs.budget_task import BudgetTask
from planner.token_costs.optimum import NoBudget, least_loss, solve_one
from planner.token_costs.stationary_points import training_curve

FINE = 241  # sizes at which training alone is computed
ABOVE = (1.0, 1.003, 1.02)  # factors of that size at which serving is planned too
DEEPEST = 1e4  # factor below the size of least training cost at which the search begins
SCANNED = 9  # sizes at which serving is planned
BEST = 2  # of them are refined
ROUNDS = 8  # of asking the planner again at a better size
BESIDE = (0.98, 1.0, 1.02)  # sizes over the optimum at which whole members are compared
CLOSE = 2e-3  # change of ln N below which serving is not planned again


@dataclass(frozen=True)
class Unserved:
    """Why a sparsity has no answer: the law's reason, or that no unit serves any of the sizes."""

    sparsity: float
    law: NoBudget | None
    sizes: tuple[float, ...] = ()


def optimal_size(life: LifecycleTask, sparsity: float) -> FixedLayoutOptimum | Unserved:
    """The best size at one sparsity.

    Raises FieldError where a choice contradicts itself, or the law cannot say that.
    """
    budget = life.budget(sparsity)
    alone = solve_one(replace(budget, served=0.0))
    if isinstance(alone, NoBudget):
        return Unserved(sparsity, alone)
    evaluated = _scan(life, budget, sparsity, alone.n_active)
    priced = [(_total(life, budget, each), each) for each in evaluated.values() if each is not None]
    priced = sorted((pair for pair in priced if math.isfinite(pair[0])), key=lambda pair: pair[0])
    if not priced:
        served = [size for size, each in evaluated.items() if each is not None]
        return Unserved(sparsity, _untrained(budget, served), tuple(evaluated))
    refined = [_refined(life, budget, sparsity, each, evaluated) for _, each in priced[:BEST]]
    return min(refined, key=lambda row: row.whole.total)


def cheapest_life(life: LifecycleTask) -> FixedLayoutOptimum | None:
    """The cheapest life over all sparsities; None where nothing keeps the promises."""
    sought = (optimal_size(life, sparsity) for sparsity in life.sparsities)
    optima = [each for each in sought if isinstance(each, FixedLayoutOptimum)]
    return min(optima, key=lambda row: row.whole.total) if optima else None


def _untrained(budget: BudgetTask, sizes: Sequence[float]) -> NoBudget | None:
    """That none of the sizes that can be served is ever as good; None where none is served."""
    if not sizes:
        return None
    fixed = replace(budget, fixed_choices={"n_active": max(sizes)})
    least, wanted = least_loss(fixed), fixed.required.value(fixed.law) if fixed.required else 1.0
    data = f" on {budget.unique:.3g} unique tokens" if budget.unique else ""
    reason = f"no model of at most {max(sizes):.4g} active parameters gets below {least:.4g}{data}"
    return NoBudget(budget, "loss", least / wanted, reason)


def _scan(
    life: LifecycleTask, budget: BudgetTask, sparsity: float, trained: float
) -> dict[float, ServedMember | None]:
    """The serving planner at sizes from the one of least training cost downwards."""
    least, most_active = life.bounds
    top = min(max(trained, least), most_active)
    fine = training_curve(budget, np.geomspace(max(top / DEEPEST, least), top, FINE))
    # A member in whole numbers may be a little smaller than asked for, and just not good enough.
    ends = [top * factor for factor in ABOVE if top * factor <= most_active]
    evaluated = {size: cheapest_at(life, size, sparsity) for size in ends}
    most = min(_total(life, budget, each) if each else math.inf for each in evaluated.values())
    worthwhile = fine.sizes[fine.training < most]
    if not worthwhile.size or worthwhile[0] >= top:
        return evaluated
    for size in np.geomspace(worthwhile[0], top, SCANNED)[:-1].tolist():
        evaluated[size] = cheapest_at(life, size, sparsity)
    return evaluated


def _refined(
    life: LifecycleTask,
    budget: BudgetTask,
    sparsity: float,
    start: ServedMember,
    evaluated: dict[float, ServedMember | None],
) -> FixedLayoutOptimum:
    """From one plan to the best near it: settle on its layout, ask again there, while it pays."""
    best = fixed_layout_optimum(life, budget, start, sparsity)
    for _ in range(ROUNDS):
        size = best.answer.n_active
        if abs(math.log(size / best.served.member.n_active)) < CLOSE:
            break
        served = evaluated[size] = cheapest_at(life, size, sparsity)
        if served is None:
            break
        nearer = fixed_layout_optimum(life, budget, served, sparsity)
        if nearer.whole.total >= best.whole.total:
            break
        best = nearer
    best = _polished(best, evaluated)
    return replace(best, evaluated=tuple(evaluated.items()))


def _polished(
    best: FixedLayoutOptimum, evaluated: dict[float, ServedMember | None]
) -> FixedLayoutOptimum:
    """The best of the members beside it: whole layers and widths cost a little more or less."""
    life, budget, sparsity = best.life, best.answer.task, best.sparsity
    low, high = life.bounds
    for step in BESIDE:
        size = min(max(best.answer.n_active * step, low), high)
        near = any(abs(math.log(size / each)) < CLOSE for each in evaluated)
        served = None if near else cheapest_at(life, size, sparsity)
        if served is None:
            continue
        evaluated[size] = served
        if _total(life, budget, served) < best.whole.total:
            best = fixed_layout_optimum(life, budget, served, sparsity)
    return best


def cheapest_at(life: LifecycleTask, size: float, sparsity: float) -> ServedMember | None:
    """The cheapest plan for a member; None where there is no such member, or nothing serves it."""
    try:
        return life.serving.cheapest(life.family, size, sparsity)
    except (Infeasible, ModelError):
        return None


def _total(life: LifecycleTask, budget: BudgetTask, served: ServedMember) -> float:
    """Cost of a member's whole life [USD]; infinite where it cannot be as good."""
    curve = training_curve(budget, [served.member.n_active])
    return float(curve.training[0]) + served.price * life.demand.counted
