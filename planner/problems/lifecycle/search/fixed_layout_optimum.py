"""The best size of a model on one layout of serving: tangents of its price until the size stays.

The price is replaced by its tangent monomial, and the budget with that monomial is solved; both
are repeated. At the end the tangent touches at the optimum, so the optimum is that of the price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.problems.lifecycle.resolve import LifecycleTask, with_serving
from planner.problems.lifecycle.search.tangent_search import (
    Tangent,
    bracketing_tangents,
    tangent_at_kink,
)
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.text.errors import Infeasible, SolverError
from planner.token_costs.budget_task import BudgetTask, assembled
from planner.token_costs.optimum import BudgetOptimum, lagrangian_slope, optimum_at
from planner.token_costs.posynomial_form import Budgets
from planner.token_costs.stationary_points import (
    StationaryPoints,
    stationary_points,
    training_curve,
)

TINY = 1e-9  # rounding of a logarithm
APART = 1e-6  # ln N: the same size
ASIDE = 0.1  # how far it is then taken to be
STEEP = 20.0  # d ln(price) / d ln N beyond which the optimum of a tangent is too far to be found


@dataclass(frozen=True)
class FixedLayoutOptimum:
    """The optimum of one sparsity on one layout of serving.

    Attributes
    ----------
    served : The member nearest to it, in whole numbers, and the plan that serves it.
    answer : The optimum on the path through that member: its program has serving as the tangent
        monomial of the price there, its question the tokens as they weigh in the cost.
    slope : d ln(price of serving) / d ln N there.
    size_bound : d ln(cost) / d ln N where a limit holds the size, else 0.
    full : Whether that limit is the largest size that the layout serves.
    sides : Sizes whose tangents of the price meet there, with their weights: one, or two at a kink.
    evaluated : Every size at which the serving planner was asked, with the plan it has for it.
    """

    life: LifecycleTask
    sparsity: float
    served: ServedMember
    answer: BudgetOptimum
    slope: float
    size_bound: float = 0.0
    full: bool = False
    sides: tuple[tuple[float, float], ...] = ()
    evaluated: tuple[tuple[float, ServedMember | None], ...] = ()

    @property
    def size_limit(self) -> str:
        """The limit that `size_bound` is of."""
        if self.full:
            return "serving.largest"
        return "choose.smallest" if self.size_bound > 0 else "choose.largest"

    @cached_property
    def price_elasticities(self) -> dict[str, float]:
        """d ln(price of serving) / d ln(quantity of machine, model, engine and promises)."""
        total: dict[str, float] = {}
        for size, weight in self.sides:
            for name, slope in self.served.elasticities_at(size).items():
                total[name] = total.get(name, 0.0) + weight * slope
        return total

    @cached_property
    def whole(self) -> MemberCost:
        """The member in whole numbers, trained until it is as good."""
        budget, size = self.answer.task, self.served.member.n_active
        curve = training_curve(budget, [size])
        serving = self.served.price * self.life.demand.counted
        rl = float(curve.rl_cost[0])
        return MemberCost(
            size, float(curve.tokens[0]), float(curve.rl[0]), float(curve.training[0]) - rl, rl,
            serving,
        )  # fmt: skip


@dataclass(frozen=True)
class MemberCost:
    """A member's size [param], tokens, and what its life costs by phase [USD]."""

    n_active: float
    pretrain: float
    rl: float
    pretrain_cost: float
    rl_cost: float
    serving_cost: float

    @property
    def total(self) -> float:
        """Cost of the whole life [USD]."""
        return self.pretrain_cost + self.rl_cost + self.serving_cost


def fixed_layout_optimum(
    life: LifecycleTask,
    budget: BudgetTask,
    served: ServedMember,
    sparsity: float,
    start: float | None = None,
) -> FixedLayoutOptimum:
    """The optimum on the layout of one plan: tangents of its price until the size stays.

    At a kink of the price, where memory or a promise begins to hold, it is the optimum between
    the tangents of both sides. `start` [param] is where to begin, the member itself when absent.

    Raises SolverError if the size does not settle.
    """
    budgets, (least, most) = assembled([budget]), life.bounds

    def priced(at: float, price: float, slope: float) -> Budgets:
        return with_serving(budgets, math.exp(at), price, slope, budget.served)

    def offset(touch: Tangent, slope: float) -> float:
        program = priced(touch.at, touch.price, slope)
        if slope > STEEP:
            return -min(max(_rise(budget, program, touch.at), -ASIDE), ASIDE)
        return math.log(_optimal(budget, program, life.bounds).n_active) - touch.at

    def look(at: float) -> Tangent | None:
        try:
            with np.errstate(over="ignore"):  # of a bound where next to nothing fits
                price, slope = served.tangent(math.exp(at))
        except (Infeasible, SolverError):
            return None  # at the very edge of what fits, the solver of programs finds nothing
        touch = Tangent(at, price, slope, 0.0)
        return replace(touch, offset=offset(touch, slope))

    first = math.log(start or served.member.n_active)
    low, high = bracketing_tangents(look, first, (math.log(least), math.log(most)))
    at = tangent_at_kink(low, high, offset)
    if high is not None and abs(at.offset) > APART:
        raise SolverError("the size of the model does not settle on this layout")
    program = priced(at.at, at.price, at.slope)
    largest = most if high is not None else min(most, math.exp(at.at))
    answer = _optimal(budget, program, (least, largest))
    share = (at.slope - low.slope) / (high.slope - low.slope) if high not in (None, low) else 0.0
    sides = [(math.exp(low.at), 1.0 - share)]
    if high is not None and share:
        sides.append((math.exp(high.at), share))
    return FixedLayoutOptimum(
        life, sparsity, served, answer, at.slope, _of_the_bound(program, answer),
        full=high is None, sides=tuple(sides),
    )  # fmt: skip


def _optimal(budget: BudgetTask, program: Budgets, bounds: tuple[float, float]) -> BudgetOptimum:
    """The optimum of a program within the sizes asked for and the data there is."""
    fixed: dict[str, float] = {}
    low, high = map(math.log, bounds)
    while True:
        if len(fixed) > 1:
            raise SolverError(
                f"no model of {bounds[0]:.3g} to {bounds[1]:.3g} active parameters, on the data "
                "there is, is as good as asked for"
            )
        free = program
        for name, value in fixed.items():
            free = free.fixed(name, np.array([value]))
        points = _converged(free)
        logs = dict(zip(free.choices, points.point[0].tolist(), strict=True)) | fixed
        if not low <= logs["n_active"] <= high:
            fixed["n_active"] = min(max(logs["n_active"], low), high)
        elif _beyond_the_data(budget, logs["pretrain"]):
            fixed["pretrain"] = math.log(budget.unique or math.nan)
        else:
            break
    bound = 0.0
    if "pretrain" in fixed:
        at = np.array([[logs[each] for each in program.choices]])
        bound = -lagrangian_slope(program, at, "pretrain", float(points.multiplier[0]))
    return optimum_at(budget, program, free, points, logs, bound)


def _converged(budgets: Budgets) -> StationaryPoints:
    points = stationary_points(budgets)
    if not points.converged[0]:
        raise SolverError("the budget with its price of serving has no optimum that is found")
    return points


def _beyond_the_data(budget: BudgetTask, log_tokens: float) -> bool:
    """Whether more tokens are wanted than there are, by a law that knows no repetition."""
    if not budget.unique or budget.repeats:
        return False
    return log_tokens > math.log(budget.unique) + TINY


def _rise(budget: BudgetTask, program: Budgets, size: float) -> float:
    """d ln(cost) / d ln N at a size in logarithms, at the same loss; tokens answer.

    Minus infinity at a size that the data cannot make as good.
    """
    points = _converged(program.fixed("n_active", np.array([size])))
    at = np.insert(points.point, program.choices.index("n_active"), size, axis=1)
    if _beyond_the_data(budget, float(at[0, program.choices.index("pretrain")])):
        return -math.inf
    return lagrangian_slope(program, at, "n_active", float(points.multiplier[0]))


def _of_the_bound(program: Budgets, answer: BudgetOptimum) -> float:
    """d ln(cost) / d ln N at a size that a limit holds."""
    if "n_active" in answer.budgets.choices:
        return 0.0
    values = {"n_active": answer.n_active, "pretrain": answer.pretrain, "rl": answer.rl}
    at = np.log([[values[each] for each in program.choices]])
    return lagrangian_slope(program, at, "n_active", answer.multiplier)
