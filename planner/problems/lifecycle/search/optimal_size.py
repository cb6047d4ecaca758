"""The best size of a model over its whole life, at one sparsity: a scan, then tangent monomials.

Training costs least at some size, and serving costs less below it, so the optimum lies between
that size and the one whose training alone costs as much. There serving is planned at a
few sizes. From the best of them the price is replaced by its tangent monomial on the layout it
found, the budget with that monomial is solved, and both are repeated until the size stays: then
the tangent touches at the optimum, so the optimum is that of the price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from planner.problems.lifecycle.resolve import LifecycleTask, with_serving
from planner.problems.lifecycle.search import tangent_search
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.text.errors import Infeasible, ModelError, SolverError
from planner.token_costs import optimum
from planner.token_costs import stationary_points as conditions
from planner.token_costs.budget_task import BudgetTask, stack_budgets
from planner.token_costs.posynomial_form import Array, Budgets

LOG_ROUNDOFF = 1e-9  # rounding of a logarithm
STOP_TOL = 1e-14  # of ln N, where the cost turns
MIN_LOG_SPACING = 1e-6  # ln N: the same size
STEEP_OFFSET = 0.1  # how far it is then taken to be
# d ln(price) / d ln N above which the optimum of a tangent is too far to be found.
MAX_SLOPE = 20.0
FINE_GRID_POINTS = 241  # sizes in the curve of training cost alone
SIZE_FACTORS_TRIED = (1.0, 1.003, 1.02)  # factors on the size of min training cost, also served
MAX_SIZE_REDUCTION = 1e4  # size of min training cost over the smallest size of the curve
SCAN_POINTS = 9  # sizes of the serving scan, up to that of min training cost
REFINED_MINIMA = 2  # of them are refined
ROUNDS = 8  # of asking the planner again at a better size
NEIGHBOR_FACTORS = (0.98, 1.0, 1.02)  # sizes over the optimum, compared as whole members
SIZE_TOLERANCE = 2e-3  # change of ln N below which serving is not planned again


@dataclass(frozen=True)
class FixedLayoutOptimum:
    """The optimum of one sparsity on one layout of serving.

    Attributes:
        served: The member nearest to it, in whole numbers, and the plan that serves it.
        answer: The optimum on the path through that member: its program has serving as the tangent
            monomial of the price there, its question the tokens as they weigh in the cost.
        slope: d ln(price of serving) / d ln N there.
        size_bound: d ln(cost) / d ln N where a limit holds the size, else 0.
        full: Whether that limit is the largest size that the layout serves.
        sides: Sizes whose tangents of the price meet there, with their weights: one, or two at a
            kink.
        evaluated: Every size at which the serving planner was asked, with the plan it has for it.
    """

    life: LifecycleTask
    sparsity: float
    served: ServedMember
    answer: optimum.BudgetOptimum
    slope: float
    size_bound: float = 0.0
    full: bool = False
    sides: tuple[tuple[float, float], ...] = ()
    evaluated: tuple[tuple[float, ServedMember | None], ...] = ()

    @property
    def outside(self) -> list[str]:
        """Sentences on values outside the range that the law was fitted on."""
        task = self.answer.task
        return task.law.outside(self.whole.n_active, self.whole.pretrain, task.sparsity)

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
        curve = conditions.training_curve(budget, [size])
        total = float(curve.training[0]) + self.served.price * self.life.demand.counted
        return MemberCost(size, float(curve.tokens[0]), float(curve.rl[0]), total)


@dataclass(frozen=True)
class MemberCost:
    """A member's size [param], its tokens, and what its whole life costs [USD]."""

    n_active: float
    pretrain: float
    rl: float
    total: float


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
    budgets, (least, most) = stack_budgets([budget]), life.bounds

    def priced(at: float, price: float, slope: float) -> Budgets:
        return with_serving(budgets, math.exp(at), price, slope, budget.served)

    def offset(touch: tangent_search.Tangent, slope: float) -> float:
        program = priced(touch.at, touch.price, slope)
        if slope > MAX_SLOPE:
            return -min(max(rise(budget, program, touch.at), -STEEP_OFFSET), STEEP_OFFSET)
        return math.log(_optimal(budget, program, life.bounds).n_active) - touch.at

    def look(at: float) -> tangent_search.Tangent | None:
        try:
            with np.errstate(over="ignore"):  # of a bound where next to nothing fits
                price, slope = served.tangent(math.exp(at))
        except (Infeasible, SolverError):
            return None  # infeasible, or the solver fails at the very edge of feasible sizes
        if not (math.isfinite(price) and math.isfinite(slope)):
            return None  # or its answer overflows
        touch = tangent_search.Tangent(at, price, slope, 0.0)
        return replace(touch, offset=offset(touch, slope))

    first = math.log(start or served.member.n_active)
    low, high = tangent_search.bracketing_tangents(look, first, (math.log(least), math.log(most)))
    at = tangent_search.tangent_at_kink(low, high, offset)
    if high is not None and abs(at.offset) > MIN_LOG_SPACING:
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


def _optimal(
    budget: BudgetTask, program: Budgets, bounds: tuple[float, float]
) -> optimum.BudgetOptimum:
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
        points = conditions.stationary_points(free)
        if not points.converged[0] and "n_active" in free.choices:
            size = _where_cost_turns(budget, program, low, high)
            if size in (low, high):
                fixed["n_active"] = size
                continue
            rest = program.fixed("n_active", np.array([size]))
            point = _checked(conditions.stationary_points(rest)).point[0].tolist()
            chosen = dict(zip(rest.choices, point, strict=True)) | {"n_active": size}
            points = conditions.stationary_points(
                free, np.array([[chosen[name] for name in free.choices]])
            )
        _checked(points)
        logs = dict(zip(free.choices, points.point[0].tolist(), strict=True)) | fixed
        if not low <= logs["n_active"] <= high:
            fixed["n_active"] = min(max(logs["n_active"], low), high)
        elif budget.runs_out(logs["pretrain"] - LOG_ROUNDOFF):
            fixed["pretrain"] = math.log(budget.unique or math.nan)
        else:
            break
    return optimum.make_optimum(budget, program, free, points, logs)


def stationary(budgets: Budgets) -> Array:
    """The stationary point (1, J) of one program; raises SolverError if the solver fails."""
    return _checked(conditions.stationary_points(budgets)).point


def _checked(points: conditions.StationaryPoints) -> conditions.StationaryPoints:
    if not points.converged[0]:
        raise SolverError("the budget with its price of serving has no optimum that is found")
    return points


def _where_cost_turns(budget: BudgetTask, program: Budgets, low: float, high: float) -> float:
    """ln N where the cost stops falling, an end where it does not between them.

    For a price so steep that Newton's steps in all choices together jump across the optimum.
    """

    def near(size: float) -> float:
        return min(max(rise(budget, program, size), -STEEP_OFFSET), STEEP_OFFSET)

    if near(high) <= 0:
        return high
    return low if near(low) >= 0 else float(brentq(near, low, high, xtol=STOP_TOL, rtol=STOP_TOL))


def rise(budget: BudgetTask, program: Budgets, size: float) -> float:
    """d ln(cost) / d ln N at a size in logarithms, at the same loss; tokens answer.

    Minus infinity at a size that the data cannot make as good.
    """
    rest = program.fixed("n_active", np.array([size]))
    if float(optimum.best_possible(rest)[0]) >= float(rest.limit[0]):
        return -math.inf
    points = _checked(conditions.stationary_points(rest))
    at = np.insert(points.point, program.choices.index("n_active"), size, axis=1)
    if budget.runs_out(float(at[0, program.choices.index("pretrain")]) - LOG_ROUNDOFF):
        return -math.inf
    return optimum.lagrangian_slope(program, at, "n_active", float(points.multiplier[0]))


def _of_the_bound(program: Budgets, answer: optimum.BudgetOptimum) -> float:
    if "n_active" in answer.budgets.choices:
        return 0.0
    return optimum.lagrangian_slope(
        program, answer.at(program.choices), "n_active", answer.multiplier
    )


@dataclass(frozen=True)
class NotServable:
    """Reason why a sparsity has no answer: a limit of the law, or no unit serves any size."""

    sparsity: float
    law: optimum.NoBudget | None
    sizes: tuple[float, ...] = ()


def optimal_size(
    life: LifecycleTask, sparsity: float, budget: BudgetTask | None = None
) -> FixedLayoutOptimum | NotServable:
    """The best size at one sparsity, of the life's own budget or of another.

    Raises FieldError where a choice contradicts itself, or the law cannot say that.
    """
    budget = budget or life.budget(sparsity)
    alone = optimum.solve_one(replace(budget, served=0.0))
    if isinstance(alone, optimum.NoBudget):
        return NotServable(sparsity, alone)
    evaluated = _scan(life, budget, sparsity, alone.n_active)
    priced = [
        (total_cost(life, budget, each), each) for each in evaluated.values() if each is not None
    ]
    priced = sorted((pair for pair in priced if math.isfinite(pair[0])), key=lambda pair: pair[0])
    if not priced:
        served = [size for size, each in evaluated.items() if each is not None]
        return NotServable(sparsity, _untrained(budget, served), tuple(evaluated))
    refined = [
        _refined(life, budget, sparsity, each, evaluated) for _, each in priced[:REFINED_MINIMA]
    ]
    return min(refined, key=lambda row: row.whole.total)


def _untrained(budget: BudgetTask, sizes: Sequence[float]) -> optimum.NoBudget | None:
    """Infeasible budget if no served size reaches the loss; None if no size is served."""
    if not sizes:
        return None
    fixed = replace(budget, fixed_choices={"n_active": max(sizes)})
    least = optimum.min_loss(fixed)
    wanted = fixed.required.value(fixed.law) if fixed.required else 1.0
    data = f" on {budget.unique:.3g} unique tokens" if budget.unique else ""
    reason = f"no model of at most {max(sizes):.4g} active parameters gets below {least:.4g}{data}"
    return optimum.NoBudget(budget, "loss", least / wanted, reason)


def _scan(
    life: LifecycleTask, budget: BudgetTask, sparsity: float, trained: float
) -> dict[float, ServedMember | None]:
    """Plan serving at the size of least training cost, just above it, and below it."""
    least, most_active = life.bounds
    top = min(max(trained, least), most_active)
    fine = conditions.training_curve(
        budget, np.geomspace(max(top / MAX_SIZE_REDUCTION, least), top, FINE_GRID_POINTS)
    )
    # A member in whole numbers may be a little smaller than asked for, and just not good enough.
    ends = [top * factor for factor in SIZE_FACTORS_TRIED if top * factor <= most_active]
    evaluated = {size: cheapest_plan_at_size(life, size, sparsity) for size in ends}
    most = min(total_cost(life, budget, each) if each else math.inf for each in evaluated.values())
    worthwhile = fine.sizes[fine.training < most]
    if not worthwhile.size or worthwhile[0] >= top:
        return evaluated
    for size in np.geomspace(worthwhile[0], top, SCAN_POINTS)[:-1].tolist():
        evaluated[size] = cheapest_plan_at_size(life, size, sparsity)
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
        if abs(math.log(size / best.served.member.n_active)) < SIZE_TOLERANCE:
            break
        served = evaluated[size] = cheapest_plan_at_size(life, size, sparsity)
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
    """Return the cheapest of the optimum and nearby members; rounded layers shift the cost."""
    life, budget, sparsity = best.life, best.answer.task, best.sparsity
    low, high = life.bounds
    for step in NEIGHBOR_FACTORS:
        size = min(max(best.answer.n_active * step, low), high)
        near = any(abs(math.log(size / each)) < SIZE_TOLERANCE for each in evaluated)
        served = None if near else cheapest_plan_at_size(life, size, sparsity)
        if served is None:
            continue
        evaluated[size] = served
        if total_cost(life, budget, served) < best.whole.total:
            best = fixed_layout_optimum(life, budget, served, sparsity)
    return best


def cheapest_plan_at_size(life: LifecycleTask, size: float, sparsity: float) -> ServedMember | None:
    """The cheapest plan for a member; None if the member does not exist or cannot be served."""
    try:
        return life.serving.cheapest(life.family, size, sparsity)
    except (Infeasible, ModelError):
        return None


def total_cost(life: LifecycleTask, budget: BudgetTask, served: ServedMember) -> float:
    """Cost of a member's whole life [USD]; infinite where it cannot be as good."""
    curve = conditions.training_curve(budget, [served.member.n_active])
    return float(curve.training[0]) + served.price * life.demand.counted
