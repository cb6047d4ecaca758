"""The optima of many budgets at once, by Newton's steps on their first-order conditions.

Both sums are convex in the logarithms of the choices and the limit is always reached, so a point
that keeps the conditions is the best of all. Budgets of one shape are arrays, and every budget
takes its own steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import root as solve_equations

from planner.token_costs.budget_task import BudgetTask, stack_budgets
from planner.token_costs.posynomial_form import Array, Budgets, LogSum

STEPS = 60
MAX_STEP = 2.0  # ln; limit of the first attempt's steps
SHORT_STEP = 0.25  # ln; step limit of the second attempt, for points that long steps do not reach
MAX_SHORT_STEPS = 400
RESIDUAL_TOLERANCE = 1e-12
CONVERGENCE_TOLERANCE = 1e-9
NEAR_CEILING = 0.02
# Percent of the goal per percent of a choice below which it does not matter at all.
ZERO_ELASTICITY = 1e-18
MAX_FACTOR = 1e9  # factor around a point within which its gap bounds the optimum
DIAGONAL = 80  # bisection steps for the first point, on the diagonal of equal choices


@dataclass(frozen=True)
class StationaryPoints:
    """Points (P, J) in logarithms with their multipliers (P,).

    `multiplier` is minus d ln(what is made small) / d ln(the limit), 0 where nothing is left to
    choose. `converged` says where the first-order conditions hold to 1e-9; where they do not, no
    choice keeps the limit or the steps did not arrive, and the numbers mean nothing. `gap` is what
    the logarithm of the value may at most lie above the least there is: both sums are convex, so
    the Lagrangian's tangent at the point bounds it from below wherever the choices stay within a
    factor of `MAX_FACTOR`.
    """

    point: Array
    multiplier: Array
    converged: npt.NDArray[np.bool_]
    gap: Array
    steps: int

    def row(self, place: int) -> StationaryPoints:
        """Point number `place`, as arrays of length 1."""
        here = slice(place, place + 1)
        return StationaryPoints(self.point[here], self.multiplier[here], self.converged[here],
                                self.gap[here], self.steps)  # fmt: skip


def stationary_points(budgets: Budgets, first: Array | None = None) -> StationaryPoints:
    """The best points of all budgets; `first` are points to begin at, such as those of before."""
    if not budgets.choices:
        empty = np.zeros((len(budgets), 0))
        none = np.zeros(len(budgets))
        return StationaryPoints(empty, none, np.isfinite(budgets.limit), none, 0)
    with np.errstate(all="ignore"):  # what has no optimum overflows, and `converged` says so
        budgets, stretched = _folded(budgets)
        begun = start(budgets) if first is None else first
        point, multiplier, error, steps = _stepped(budgets, begun, MAX_STEP, STEPS)
        late = ~(error < CONVERGENCE_TOLERANCE)
        if late.any():
            slow = budgets.rows(late)
            again = _stepped(slow, start(slow), SHORT_STEP, MAX_SHORT_STEPS)
            point[late], multiplier[late], error[late] = again[:3]
            steps += again[3]
        goal, limited = objective_and_constraint(budgets, point)
        left = np.abs(goal.slope + multiplier[:, None] * limited.slope).sum(axis=1)
        gap = left * np.log(MAX_FACTOR) + np.abs(multiplier * (limited.value - budgets.limit))
    return StationaryPoints(
        point, multiplier * stretched, error < CONVERGENCE_TOLERANCE, gap, steps
    )


def _folded(budgets: Budgets) -> tuple[Budgets, Array]:
    """Budgets with constant terms of the limited sum taken off the limit, for fewer steps.

    Second, d ln(limit left) / d ln(limit) (P,), by which their multipliers are to be multiplied.
    """
    of_loss = budgets.aim == "cost"
    powers = budgets.loss_powers[0] if of_loss else budgets.cost_powers
    constant = ~powers.any(axis=1)
    logs = budgets.loss if of_loss else budgets.cost
    if constant.all() or not np.isfinite(logs[:, constant]).any():
        return budgets, np.ones(len(budgets))
    taken = np.logaddexp.reduce(logs[:, constant], axis=1)
    left = budgets.limit + np.log1p(-np.exp(taken - budgets.limit))
    stretched = np.exp(budgets.limit - left)
    if of_loss:
        reduced = replace(
            budgets, loss=budgets.loss[:, ~constant], loss_powers=budgets.loss_powers[:, ~constant]
        )
    else:
        reduced = replace(
            budgets, cost=budgets.cost[:, ~constant], cost_powers=budgets.cost_powers[~constant]
        )
    return replace(reduced, limit=left), stretched


def start(budgets: Budgets) -> Array:
    """Points that keep the limit with room: every term of the loss, or the cost, has its share."""
    if budgets.aim == "quality":
        low, high = np.full(len(budgets), 0.0), np.full(len(budgets), 80.0)
        ones = np.ones(len(budgets.choices))
        for _ in range(DIAGONAL):
            middle = (low + high) / 2
            dear = budgets.costs(np.multiply.outer(middle, ones)).value > budgets.limit
            low, high = np.where(dear, low, middle), np.where(dear, middle, high)
        return np.multiply.outer((low + high) / 2, ones)
    terms = budgets.loss.shape[1]
    room = (budgets.limit - np.log(terms))[:, None]
    point = np.zeros((len(budgets), len(budgets.choices)))
    for column, choice in enumerate(budgets.choices):
        power = budgets.loss_powers[:, :, column]
        alone = np.where(power < 0, (room - budgets.loss) / np.where(power < 0, power, 1.0), 0.0)
        wanted = alone.max(axis=1)
        if (curve := budgets.curved.get(choice)) is not None:
            wanted = curve.inverse(np.minimum(wanted, curve.ceiling - NEAR_CEILING))
        point[:, column] = wanted
    return point


def objective_and_constraint(budgets: Budgets, point: Array) -> tuple[LogSum, LogSum]:
    """Objective and limited quantity at a point: cost and loss, or loss and cost."""
    cost, loss = budgets.costs(point), budgets.losses(point)
    return (cost, loss) if budgets.aim == "cost" else (loss, cost)


def _stepped(
    budgets: Budgets, point: Array, longest: float, most: int
) -> tuple[Array, Array, Array, int]:
    """Newton's steps from a point: where they end, the multipliers, the largest violation."""
    size = point.shape[1]
    goal, limited = objective_and_constraint(budgets, point)
    multiplier = -(goal.slope * limited.slope).sum(1) / (limited.slope**2).sum(1)
    multiplier = np.clip(multiplier, 1e-3, 1e6)
    error = np.full(len(budgets), np.inf, dtype=np.float64)
    point = point.copy()
    for taken in count():
        rest = limited.value - budgets.limit
        stationary = goal.slope + multiplier[:, None] * limited.slope
        slopes = np.abs(goal.slope)
        error[:] = np.maximum(np.abs(stationary).max(axis=1) / slopes.max(axis=1), np.abs(rest))
        # Relative residual of each choice, so that a choice of small elasticity converges as well.
        closest = np.abs(stationary / np.maximum(slopes, ZERO_ELASTICITY)).max(axis=1)
        going = np.maximum(error, closest) > RESIDUAL_TOLERANCE
        if taken == most or not going.any():
            break
        system = np.zeros((len(budgets), size + 1, size + 1))
        system[:, :size, :size] = goal.curvature + multiplier[:, None, None] * limited.curvature
        system[:, :size, size] = system[:, size, :size] = limited.slope
        right = -np.concatenate([goal.slope, rest[:, None]], axis=1)
        step = _solved(system, right)
        length = np.abs(step[:, :size]).max(axis=1)
        shorter = np.where(length > longest, longest / length, 1.0) * going
        point += shorter[:, None] * step[:, :size]
        ahead = np.maximum(step[:, size], multiplier / 10)
        multiplier += shorter * (ahead - multiplier)
        goal, limited = objective_and_constraint(budgets, point)
    return point, multiplier, np.where(np.isnan(error), np.inf, error), taken


def _solved(system: Array, right: Array) -> Array:
    size = right.shape[1]
    eased = np.where(np.isfinite(system), system, 0.0)
    volume = np.linalg.det(eased)
    # Regularise singular systems: +1 on the diagonal of the choices, -1 on that of the multiplier.
    eased[np.abs(volume) < 1e-300] += np.diag([1.0] * (size - 1) + [-1.0])
    eased[~np.isfinite(volume)] = np.eye(size)
    return np.asarray(np.linalg.solve(eased, right[:, :, None])[:, :, 0], dtype=np.float64)


@dataclass(frozen=True)
class TrainingCurve:
    """Tokens and training cost by size at the required quality, infinite if unreachable.

    All (P,): active parameters, tokens of pre-training and of reinforcement learning, USD of both.
    """

    sizes: Array
    tokens: Array
    rl: Array
    training: Array


def training_curve(
    budget: BudgetTask, sizes: Sequence[float] | Array, drawn: Sequence[BudgetTask] = ()
) -> TrainingCurve:
    """Training at each size, to the quality asked for.

    Where the same budget is `drawn` many times, with other laws, the columns have one axis more
    before that of the sizes, of the draws.
    """
    tasks, sizes = drawn or [budget], np.asarray(sizes, dtype=float)
    repeated = stack_budgets(tasks).rows(np.repeat(np.arange(len(tasks)), len(sizes)))
    repeated = _at_their_share(repeated, budget, np.tile(sizes, len(tasks)))
    rows = repeated.fixed("n_active", np.tile(np.log(sizes), len(tasks)))
    points = stationary_points(rows)
    with np.errstate(all="ignore"):
        costs, choices = rows.costs(points.point), np.exp(points.point)
        total = np.exp(costs.value) + budget.constant_cost
    chosen = rows.choices.index("rl") if "rl" in rows.choices else None
    rl = choices[:, chosen] if chosen is not None else np.full(len(rows), budget.rl_tokens)
    if budget.rl_flop:
        rl = budget.rl_flop / (budget.phases["rl"].arithmetic * np.tile(sizes, len(tasks)))
    possible = points.converged & np.isfinite(total)
    tokens = choices[:, rows.choices.index("pretrain")]
    if budget.unique is not None and not budget.repeats:
        possible &= tokens <= budget.unique
    shape = (len(tasks), len(sizes)) if drawn else (len(sizes),)

    columns = (np.where(possible, each, np.inf).reshape(shape) for each in (tokens, rl, total))
    return TrainingCurve(sizes, *columns)


def _at_their_share(budgets: Budgets, task: BudgetTask, sizes: Array) -> Budgets:
    """Budgets, one for each size, that train at the share of the peak that its layouts reach."""
    phase = task.phases["pretrain"]
    if phase.sized is None:
        return budgets
    cost = budgets.cost.copy()
    # The monomial has a power of the size in it already.
    powers = phase.sized.growth * np.log(sizes / phase.sized.size)
    cost[:, 0] += np.log(phase.dearer(sizes)) + powers
    return replace(budgets, cost=cost)


TOLERANCE = 1e-12
ATTEMPTS: tuple[Literal["hybr", "lm"], ...] = ("hybr", "lm")
PERTURBATION = 0.3  # of a logarithm from an answer to be checked


def stationary_point(budgets: Budgets, near: Array | None = None) -> tuple[Array, float] | None:
    """The point (J,) where the first-order conditions hold, and their largest violation.

    They are taken without multipliers: at the optimum every choice lowers the loss in proportion
    to what it costs, and the limit is met.

    SciPy's solver of equations from a point of its own, then from one beside `near` (J,), which
    it is to check; None where it finds nothing.
    """

    def violated(point: Array) -> Array:
        at = point[None, :]
        cost, loss = budgets.costs(at), budgets.losses(at)
        limited = loss if budgets.aim == "cost" else cost
        weights, gains = cost.slope[0], -loss.slope[0]
        # Percent of the loss per percent of the cost, of every choice against the last.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(gains[:-1] * weights[-1]) - np.log(gains[-1] * weights[:-1])
        return np.append(ratios, limited.value - budgets.limit)

    starts = [start(budgets)[0], *([] if near is None else [near - PERTURBATION])]
    for first, method in product(starts, ATTEMPTS):
        with np.errstate(all="ignore"):
            solution = solve_equations(violated, first, method=method, tol=TOLERANCE)
            error = float(np.abs(violated(solution.x)).max())
        if error < 1e-7:
            return np.asarray(solution.x, dtype=np.float64), error
    return None
