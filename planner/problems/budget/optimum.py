"""The optimum of many budgets at once, by Newton's steps on their first-order conditions.

Both sums are convex in the logarithms of the choices and the limit is always reached, so a point
that keeps the conditions is the best of all. Every budget takes its own steps, in arrays.

The best answer to each of many questions, on the first-order conditions, and why there is none.

Ten thousand budgets are one call: questions of one shape are arrays.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.laws.law_monomials import EffectiveAmounts, Saturation
from planner.problems.budget.budget_task import REPETITION, BudgetTask, assembled
from planner.problems.budget.posynomial_form import Array, Budgets, LogSum
from planner.problems.budget.shortfall import (
    NoBudget,
    best_possible,
    beyond,
    nothing,
    unsolved,
    worn_out,
)
from planner.text.errors import FieldError

STEPS = 60
LONGEST = 2.0  # of a step, in logarithms
PATIENT = 0.25  # the same, for those that long steps do not bring there
PATIENCE = 400
ENOUGH = 1e-12
CONVERGED = 1e-9
NEAR_CEILING = 0.02
TINY = 1e-18  # percent of the goal per percent of a choice below which it does not matter at all
FARTHEST = 1e9  # how far the choices may lie from a point, for what its gap says of them
DIAGONAL = 80  # halvings of the interval in which the first point is looked for


@dataclass(frozen=True)
class StationaryPoints:
    """Points (P, J) in logarithms with their multipliers (P,).

    `multiplier` is minus d ln(what is made small) / d ln(the limit), 0 where nothing is left to
    choose. `found` says where the
    first-order conditions hold to 1e-9; where they do not, no choice keeps the limit or the steps
    did not arrive, and the numbers mean nothing. `gap` is what the logarithm of the value may at
    most lie above the least there is: both sums are convex, so the Lagrangian's tangent at the
    point bounds it from below wherever the choices stay within a factor of `FARTHEST`.
    """

    point: Array
    multiplier: Array
    found: npt.NDArray[np.bool_]
    gap: Array
    steps: int


def optimum(budgets: Budgets, first: Array | None = None) -> StationaryPoints:
    """The best points of all budgets; `first` are points to begin at, such as those of before."""
    if not budgets.choices:
        empty = np.zeros((len(budgets), 0))
        none = np.zeros(len(budgets))
        return StationaryPoints(empty, none, np.isfinite(budgets.limit), none, 0)
    with np.errstate(all="ignore"):  # what has no optimum overflows, and is told by `found`
        budgets, stretched = _folded(budgets)
        begun = start(budgets) if first is None else first
        point, multiplier, error, steps = _stepped(budgets, begun, LONGEST, STEPS)
        late = ~(error < CONVERGED)
        if late.any():
            rest = _part(budgets, late)
            again = _stepped(rest, start(rest), PATIENT, PATIENCE)
            point[late], multiplier[late], error[late] = again[:3]
            steps += again[3]
        goal, held = _sides(budgets, point)
        left = np.abs(goal.slope + multiplier[:, None] * held.slope).sum(axis=1)
        gap = left * np.log(FARTHEST) + np.abs(multiplier * (held.value - budgets.limit))
    return StationaryPoints(point, multiplier * stretched, error < CONVERGED, gap, steps)


def _folded(budgets: Budgets) -> tuple[Budgets, Array]:
    """The same with constant terms of the limited sum taken off the limit.

    The steps are fewer so. Second, d ln(limit left) / d ln(limit), which brings multipliers back.
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
        kept = replace(
            budgets, loss=budgets.loss[:, ~constant], loss_powers=budgets.loss_powers[:, ~constant]
        )
    else:
        kept = replace(
            budgets, cost=budgets.cost[:, ~constant], cost_powers=budgets.cost_powers[~constant]
        )
    return replace(kept, limit=left), stretched


def start(budgets: Budgets) -> Array:
    """Points that keep the limit with room: every term of the loss, or the cost, has its share."""
    if budgets.aim == "quality":
        return _along_the_diagonal(budgets)
    terms = budgets.loss.shape[1]
    room = (budgets.limit - np.log(terms))[:, None]
    point = np.zeros((len(budgets), len(budgets.choices)))
    for column, choice in enumerate(budgets.choices):
        power = budgets.loss_powers[:, :, column]
        alone = np.where(power < 0, (room - budgets.loss) / np.where(power < 0, power, 1.0), 0.0)
        wanted = alone.max(axis=1)
        curve = budgets.worth.curved.get(choice) if budgets.worth else None
        if curve is not None:
            wanted = curve.inverse(np.minimum(wanted, curve.ceiling - NEAR_CEILING))
        point[:, column] = wanted
    return point


def _along_the_diagonal(budgets: Budgets) -> Array:
    """Points on the line where all choices are equal that cost what they may."""
    low, high = np.full(len(budgets), 0.0), np.full(len(budgets), 80.0)
    ones = np.ones(len(budgets.choices))
    for _ in range(DIAGONAL):
        middle = (low + high) / 2
        dear = budgets.costs(np.multiply.outer(middle, ones)).value > budgets.limit
        low, high = np.where(dear, low, middle), np.where(dear, middle, high)
    return np.multiply.outer((low + high) / 2, ones)


def _part(budgets: Budgets, mask: npt.NDArray[np.bool_]) -> Budgets:
    """The budgets where the mask is true."""
    worth = budgets.worth and EffectiveAmounts(
        {k: Saturation(c.knee[mask], c.reach[mask]) for k, c in budgets.worth.curved.items()}
    )
    return replace(
        budgets,
        cost=budgets.cost[mask],
        loss=budgets.loss[mask],
        loss_powers=budgets.loss_powers[mask],
        limit=budgets.limit[mask],
        worth=worth,
    )


def _sides(budgets: Budgets, point: Array) -> tuple[LogSum, LogSum]:
    """What is made small, and what is limited."""
    cost, loss = budgets.costs(point), budgets.losses(point)
    return (cost, loss) if budgets.aim == "cost" else (loss, cost)


def _stepped(
    budgets: Budgets, point: Array, longest: float, most: int
) -> tuple[Array, Array, Array, int]:
    """Newton's steps from a point: where they end, the multipliers, the largest violation."""
    size = point.shape[1]
    goal, held = _sides(budgets, point)
    multiplier = -(goal.slope * held.slope).sum(1) / (held.slope**2).sum(1)
    multiplier = np.clip(multiplier, 1e-3, 1e6)
    error = np.full(len(budgets), np.inf, dtype=np.float64)
    point, taken = point.copy(), 0
    for taken in range(most + 1):
        rest = held.value - budgets.limit
        stationary = goal.slope + multiplier[:, None] * held.slope
        slopes = np.abs(goal.slope)
        error[:] = np.maximum(np.abs(stationary).max(axis=1) / slopes.max(axis=1), np.abs(rest))
        # Of a choice that hardly matters the slope is small, and is to be met as closely.
        closest = np.abs(stationary / np.maximum(slopes, TINY)).max(axis=1)
        going = np.maximum(error, closest) > ENOUGH
        if taken == most or not going.any():
            break
        system = np.zeros((len(budgets), size + 1, size + 1))
        system[:, :size, :size] = goal.curvature + multiplier[:, None, None] * held.curvature
        system[:, :size, size] = system[:, size, :size] = held.slope
        right = -np.concatenate([goal.slope, rest[:, None]], axis=1)
        step = _solved(system, right)
        length = np.abs(step[:, :size]).max(axis=1)
        shorter = np.where(length > longest, longest / length, 1.0) * going
        point += shorter[:, None] * step[:, :size]
        ahead = np.maximum(step[:, size], multiplier / 10)
        multiplier += shorter * (ahead - multiplier)
        goal, held = _sides(budgets, point)
    return point, multiplier, np.where(np.isnan(error), np.inf, error), taken


def _solved(system: Array, right: Array) -> Array:
    """Solutions of small systems; a singular one, which has no optimum, gives numbers that fail."""
    size = system.shape[1]
    eased = np.where(np.isfinite(system), system, 0.0)
    volume = np.linalg.det(eased)
    # Up for the choices and down for the multiplier: whatever stands there, it is regular then.
    eased[np.abs(volume) < 1e-300] += np.diag([1.0] * (size - 1) + [-1.0])
    eased[~np.isfinite(volume)] = np.eye(size)
    return np.asarray(np.linalg.solve(eased, right[:, :, None])[:, :, 0], dtype=np.float64)


FED = 1e-6  # of the size, for rounding


@dataclass(frozen=True)
class BudgetOptimum:
    """The best choices of one question.

    Attributes
    ----------
    n_active, pretrain, rl
        Parameters and tokens; `rl` is 0 where a reward alone asks for arithmetic.
    cost
        Of each phase: pre-training, reinforcement learning, serving. [USD or flop]
    loss
        [nat]
    loss_price
        -d ln(cost) / d(loss) at the optimum, the same whichever of them is limited [1/nat]; 0, or
        infinite for the best loss, where nothing is left to choose and so nothing is given up.
    budgets, point
        The program it is the optimum of, held choices gone, and where, in logarithms.
    multiplier
        -d ln(what is made small) / d ln(the limit), the loss counted without its floor.
    gap
        What the logarithm of what is made small may at most lie above the least there is.
    data_bound
        -d ln(cost) / d ln(unique) where the data runs out and the law knows no repetition, else 0;
        for the best loss at a cost, -d ln(loss - floor) / d ln(unique).
    """

    question: BudgetTask
    n_active: float
    pretrain: float
    rl: float
    cost: tuple[float, float, float]
    loss: float
    loss_price: float
    budgets: Budgets
    point: Array
    multiplier: float
    gap: float
    data_bound: float = 0.0

    @property
    def total(self) -> float:
        """Cost of the whole life [USD or flop]."""
        return sum(self.cost)

    @property
    def score(self) -> float:
        """What is made small."""
        return self.total if self.question.aim == "cost" else self.loss


Solved = BudgetOptimum | NoBudget


def solve_one(question: BudgetTask) -> Solved:
    """The best answer to one question."""
    return solve_many([question])[0]


def solve_many(questions: Sequence[BudgetTask]) -> list[Solved]:
    """The best answer to each question, in their order."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, each in enumerate(questions):
        groups[_shape(each)].append(place)
    found: dict[int, Solved] = {}
    for places in groups.values():
        answers = _best_solved([questions[i] for i in places])
        found.update(zip(places, answers, strict=True))
    return [found[i] for i in range(len(questions))]


def _shape(question: BudgetTask) -> tuple[object, ...]:
    """What questions must share to be one set of arrays."""
    terms = [each for each in question.terms.terms if each.coefficient]
    powers = tuple((bool(t.size), bool(t.tokens), bool(t.rl)) for t in terms)
    held = tuple(sorted(question.fixed_choices))
    return powers, held, question.aim, question.curved, question.reinforced, bool(
        question.rl_flop
    )  # fmt: skip


def _best_solved(questions: list[BudgetTask]) -> list[Solved]:
    """The same for questions of one shape."""
    whole = assembled(questions)
    free = whole
    for name in questions[0].fixed_choices:
        free = free.fixed(name, np.log([each.fixed_choices[name] for each in questions]))
    possible = best_possible(free)
    found = optimum(free)
    answers: list[Solved] = []
    for place, question in enumerate(questions):
        row = free.row(place)
        if not possible[place] < row.limit[0]:
            answers.append(nothing(question, possible[place], row))
            continue
        if question.curved and (useless := worn_out(question, row)) is not None:
            answers.append(useless)
            continue
        point = found.point[place : place + 1]
        if "pretrain" in free.choices and _runs_out(question, point, free.choices):
            answers.append(_at_the_end_of_the_data(question, row))
        elif not found.found[place]:
            answers.append(unsolved(question))
        else:
            answers.append(_read(question, whole.row(place), row, found, place))
    return answers


def _runs_out(question: BudgetTask, point: Array, choices: tuple[str, ...]) -> bool:
    """Whether more data is wanted than there is, by a law that says nothing of repetition."""
    if question.unique is None or question.repeats:
        return False
    return bool(point[0, choices.index("pretrain")] > math.log(question.unique))


def _at_the_end_of_the_data(question: BudgetTask, row: Budgets) -> Solved:
    """The best answer that uses every token once."""
    end = np.array([math.log(question.unique or math.nan)])
    free = row.fixed("pretrain", end)
    possible = best_possible(free)[0]
    if not possible < free.limit[0]:
        return nothing(question, possible, free)
    found: StationaryPoints = optimum(free)
    if not found.found[0]:
        return unsolved(question)
    column = row.choices.index("pretrain")
    point = np.insert(found.point, column, end, axis=1)
    cost, loss = row.costs(point).slope[0, column], row.losses(point).slope[0, column]
    goal, held = (cost, loss) if question.aim == "cost" else (loss, cost)
    worth = -float(goal + found.multiplier[0] * held)
    return _read(question, assembled([question]), free, found, 0, end=end, data_bound=worth)


def _read(
    question: BudgetTask,
    whole: Budgets,
    free: Budgets,
    found: StationaryPoints,
    place: int,
    *,
    end: Array | None = None,
    data_bound: float = 0.0,
) -> Solved:
    """The answer in natural units, from a point of the choices that are free."""
    point, multiplier = found.point[place : place + 1], float(found.multiplier[place])
    values = dict(zip(free.choices, point[0].tolist(), strict=True))
    values |= {name: math.log(value) for name, value in question.fixed_choices.items()}
    if end is not None:
        values["pretrain"] = float(end[0])
    at = np.array([[values[each] for each in whole.choices]])
    costs, losses = whole.costs(at), whole.losses(at)
    terms = question.terms
    reducible = math.exp(float(losses.value[0])) ** terms.power
    total = math.exp(float(costs.value[0]))
    if (nobody := beyond(question, values)) is not None:
        return nobody
    n_active, pretrain = math.exp(values["n_active"]), math.exp(values["pretrain"])
    _check_fed(question, n_active, pretrain)
    slope = multiplier
    if question.aim == "quality":
        slope = 1 / multiplier if multiplier else math.inf
    rl = math.exp(values["rl"]) if "rl" in values else question.rl_tokens
    if question.rl_flop:
        rl = question.rl_flop / (question.phases["rl"].arithmetic * n_active)
    paid = (costs.shares[0] * total).tolist()
    if question.rl_flop:
        paid[1] = question.constant_cost
    varied = total / math.fsum(paid) if question.aim == "cost" else 1.0
    return BudgetOptimum(
        question=question,
        n_active=n_active,
        pretrain=pretrain,
        rl=rl,
        cost=(paid[0], paid[1], paid[2]),
        loss=terms.floor + reducible,
        loss_price=varied * slope / (terms.power * reducible),
        budgets=free,
        point=point,
        multiplier=multiplier,
        gap=float(found.gap[place]),
        data_bound=varied * data_bound,
    )


def _check_fed(question: BudgetTask, n_active: float, pretrain: float) -> None:
    """Refuse a given size that is more than the tokens feed, where the tokens are still free."""
    if question.law.form != REPETITION or set(question.fixed_choices) != {"n_active"}:
        return
    fed = question.law.repetition(min(pretrain, question.unique or math.inf)).fed
    if n_active > fed * (1 + FED):
        raise FieldError(
            ("choose.n_active", f"{n_active:.3g} parameters are more than {pretrain:.3g} tokens "
             f"feed, and {question.law.name} counts them for less; give fewer, or pretrain too")
        )  # fmt: skip
