"""The best size of a model over its whole life, its training at a fixed share or laid out too.

Where training is laid out, its price switches from size to size as layouts do, so no tangent tells
where the optimum lies. Sizes one percent apart are compared instead: each at the share of the peak
that its own layout reaches, and at a price of serving that is planned at ever more of them, until
the best of all is one where both were planned.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from planner.problems import training
from planner.problems.lifecycle.comparisons import ServingPrices
from planner.problems.lifecycle.resolve import LifecycleTask, with_serving
from planner.problems.lifecycle.search import optimal_size as search
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.text.errors import Infeasible, SolverError
from planner.token_costs.budget_task import BudgetTask, stack_budgets
from planner.token_costs.optimum import NoBudget, solve_one
from planner.token_costs.phase_costs import SizedShare
from planner.token_costs.posynomial_form import Array
from planner.token_costs.stationary_points import training_curve

ROUNDS = 24  # of planning serving at a better size
REL_TOL = 1e-6  # ln N: the same member
TRUST_REGION = 0.15  # ln N; trust region of a price tangent


def best_size(
    life: LifecycleTask, sparsity: float
) -> search.FixedLayoutOptimum | search.NotServable:
    """The best size at one sparsity.

    Raises FieldError where a choice contradicts itself, the law cannot say that, or no size has a
    training layout.
    """
    if life.scenario.phases.pretrain.training is None:
        return search.optimal_size(life, sparsity)
    layouts = life.layouts(sparsity)
    at_peak = life.budget(sparsity, training.cost_with_mfu(layouts.phase, 1.0))
    alone = solve_one(replace(at_peak, served=0.0))
    if isinstance(alone, NoBudget):
        return search.NotServable(sparsity, alone)
    trained = partial(_training_usd, at_peak)
    step = training.search_size_grid(layouts, trained, alone.n_active, life.bounds)
    trend = life.budget(sparsity, training.planned_cost(layouts, step).smooth())
    begun = search.optimal_size(life, sparsity, trend)
    if not isinstance(begun, search.FixedLayoutOptimum):
        return begun
    evaluated, tangents = dict(begun.evaluated), _Tangents()
    for _ in range(ROUNDS):

        def total(sizes: Array, shares: Array) -> Array:
            serving = _price(evaluated, tangents, sizes) * at_peak.served
            return trained(sizes, shares) + serving

        step = training.search_size_grid(layouts, total, begun.whole.n_active, life.bounds)
        members = (served.member.n_active for served in evaluated.values() if served is not None)
        if any(abs(math.log(size / step.n_active)) < REL_TOL for size in members):
            break
        evaluated[step.n_active] = search.cheapest_plan_at_size(life, step.n_active, sparsity)
    # The optimum at the member that costs least, on the layouts of its training and serving.
    there = [x for x in evaluated.values() if x is not None]
    steps = {x.member.n_active: layouts.at(x.member.n_active) for x in there}
    budget = life.budget(sparsity, training.planned_cost(layouts, step))
    totals = [search.total_cost(life, budget, x) if steps[x.member.n_active] else math.inf
              for x in there]  # fmt: skip
    place = int(np.argmin(totals))
    if not math.isfinite(totals[place]):
        return search.NotServable(sparsity, None, tuple(evaluated))
    cheapest = there[place]
    best = steps[cheapest.member.n_active]
    assert best is not None  # its total is finite
    flat = training.planned_cost(layouts, best)
    growth = _growth(life.budget(sparsity, flat), cheapest, flat.sized.trend if flat.sized else 0.0)
    budget = life.budget(sparsity, training.planned_cost(layouts, best, growth))
    optimum = search.fixed_layout_optimum(life, budget, cheapest, sparsity)
    return replace(optimum, evaluated=tuple(evaluated.items()))


def cheapest_life(life: LifecycleTask) -> search.FixedLayoutOptimum | None:
    """The cheapest life over all sparsities; None if no sparsity keeps the promises."""
    sought = (best_size(life, sparsity) for sparsity in life.sparsities)
    optima = [each for each in sought if isinstance(each, search.FixedLayoutOptimum)]
    return min(optima, key=lambda row: row.whole.total) if optima else None


def _training_usd(at_peak: BudgetTask, sizes: Array, shares: Array) -> Array:
    """Cost of training to the quality asked for at sizes (n,) [param] and shares of the peak."""
    order = np.argsort(sizes)
    sized = SizedShare(1.0, sizes[order], shares[order])
    pretrain = replace(at_peak.phases["pretrain"], sized=sized)
    phases = {**at_peak.phases, "pretrain": pretrain}
    return training_curve(replace(at_peak, phases=phases), sizes).training


class _Tangents(dict[float, float]):
    """Slopes d ln(price of serving) / d ln(size) of the members, on the layouts that serve them."""

    def of(self, served: ServedMember) -> float:
        """Slope d ln price / d ln N of a member; 1 if it has no tangent at an edge."""
        size = served.member.n_active
        if size not in self:
            self[size] = _tangent(served) or 1.0
        return self[size]


def _tangent(served: ServedMember) -> float | None:
    try:
        with np.errstate(over="ignore"):
            return served.tangent(served.member.n_active)[1]
    except (Infeasible, SolverError):
        return None


def _price(evaluated: dict[float, ServedMember | None], tangents: _Tangents, sizes: Array) -> Array:
    """Least prices of serving at sizes (n,) [USD/token]; infinite where they are too large."""
    served = {x.member.n_active: x for x in evaluated.values() if x is not None}
    ends = np.array(sorted(served))
    lines = ServingPrices(ends, np.array([served[size].price for size in ends]), 0.0).at(sizes)
    least = lines.copy()
    for size, member in served.items():
        near = np.abs(np.log(sizes / size)) < TRUST_REGION
        if near.any():
            tangent = member.price * (sizes / size) ** tangents.of(member)
            least = np.where(near, np.minimum(least, tangent), least)
    planned = np.abs(np.log(sizes[:, None] / ends)).min(axis=1) < REL_TOL
    unserved = [size for size, x in evaluated.items() if x is None and size > ends[-1]]
    prices = np.where(planned, lines, least)
    return np.where(sizes < min(unserved, default=math.inf), prices, math.inf)


def _growth(flat: BudgetTask, served: ServedMember, trend: float) -> float:
    """Growth exponent of the peak share at which the member is the optimum."""
    size, slope = served.member.n_active, _tangent(served)
    if slope is None:
        return trend
    program = with_serving(stack_budgets([flat]), size, served.price, slope, flat.served)
    at = math.log(size)
    rise = search.rise(flat, program, at)
    if not math.isfinite(rise):
        return trend
    rest = program.fixed("n_active", np.array([at]))
    spent = rest.costs(search.stationary(rest)).shares[0, 0]
    return training.supporting_growth(rise, float(spent))
