"""The best answer to each of many budgets, on the first-order conditions, or why there is none.

Ten thousand budgets are one call: those of one shape are arrays.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from planner.text.errors import FieldError
from planner.token_costs.budget_task import REPETITION, BudgetTask, stack_budgets
from planner.token_costs.phase_costs import PHASES
from planner.token_costs.posynomial_form import Array, Budgets
from planner.token_costs.stationary_points import (
    StationaryPoints,
    objective_and_constraint,
    stationary_points,
)

SIZE_ROUNDING = 1e-6  # of the size, for rounding
NOTHING_CLOSER = "no choice comes closer"
MAX_LOG_CHOICE = 200.0  # ln of parameters or tokens; e^200 acts as infinity
MAX_EPOCHS = 8.0  # multiples of a saturation reach; exp(-8) of the marginal value remains
MAX_PARAMS_OR_TOKENS = 1e25  # parameters or tokens; a larger optimum is infeasible
MIN_PARAMS_OR_TOKENS = 1e4  # parameters or tokens; a smaller optimum is no language model


@dataclass(frozen=True)
class NoBudget:
    """Infeasible result: `promise` falls short by the factor `short_by`; the reason as text."""

    task: BudgetTask
    promise: str
    short_by: float
    reason: str


def best_possible(free: Budgets) -> Array:
    """Logarithm of the least that the limited sum can come to, at no matter what."""
    far = MAX_LOG_CHOICE if free.aim == "cost" else -MAX_LOG_CHOICE
    point = np.full((len(free), len(free.choices)), far)
    with np.errstate(all="ignore"):
        side = free.losses(point) if free.aim == "cost" else free.costs(point)
    return side.value


def min_loss(task: BudgetTask) -> float:
    """Lower bound on the loss [nat] at any cost: floor, fixed choices, and data exhaustion."""
    free = stack_budgets([task])
    for name, value in task.fixed_choices.items():
        free = free.fixed(name, np.log([value]))
    possible, terms = best_possible(replace(free, aim="cost"))[0], task.terms
    return terms.floor + math.exp(possible) ** terms.power


def infeasible_result(task: BudgetTask, possible: float) -> NoBudget:
    """Infeasible result: the limit, the factor of its shortfall, and the reason."""
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


def data_exhaustion(task: BudgetTask, row: Budgets) -> NoBudget | None:
    """The answer where a cost buys more passes over the data than change anything."""
    if row.aim == "cost" or not row.curved:
        return None
    curves = [row.curved.get(each) for each in row.choices]
    if None in curves:
        return None
    most = [float(c.knee[0] + np.log1p(MAX_EPOCHS * c.reach[0])) for c in curves if c is not None]
    spent = float(row.costs(np.array([most])).value[0])
    if not np.isfinite(spent) or spent > row.limit[0]:
        return None
    reason = (
        f"{task.unique or math.nan:.3g} unique tokens cannot make use of it: a cost of "
        f"{math.exp(spent):.3g} already repeats them until another pass changes nothing"
    )
    return NoBudget(task, "data", math.exp(float(row.limit[0]) - spent), reason)


def not_converged(task: BudgetTask) -> NoBudget:
    """Infeasible result if Newton's steps did not converge: the limit is reached only in theory."""
    what = "loss" if task.required is not None else "cost"
    reason = f"this {what} is so close to what can be reached at all that no number describes it"
    return NoBudget(task, what, 1.0, reason)


def implausible_optimum(task: BudgetTask, values: Mapping[str, float]) -> NoBudget | None:
    """The answer where the best choices, in logarithms, are no model that anybody could train."""
    n_active, pretrain = (float(np.exp(values[name])) for name in ("n_active", "pretrain"))
    reason = f"a model of {n_active:.2g} parameters and {pretrain:.2g} tokens"
    if task.aim == "quality" and min(n_active, pretrain) < MIN_PARAMS_OR_TOKENS:
        return NoBudget(
            task, "cost", MIN_PARAMS_OR_TOKENS / min(n_active, pretrain), f"it buys {reason}"
        )
    if max(values.values()) > math.log(MAX_PARAMS_OR_TOKENS) or min(values.values()) < 0:
        return NoBudget(task, "loss", 1.0, f"it would take {reason}, which nobody can train")
    return None


def extrapolation_warnings(sentences: list[str], extrapolate: bool | None) -> tuple[str, ...]:
    """Extrapolation warnings of a law; raises FieldError for any if `extrapolate` is False."""
    if sentences and extrapolate is False:
        raise FieldError(("law", f"{'; '.join(sentences)}; extrapolate: true answers all the same"))
    return tuple(sentences)


@dataclass(frozen=True)
class BudgetOptimum:
    """The best choices of one question.

    Attributes:
        n_active, pretrain, rl: Parameters and tokens; `rl` is 0 where a reward alone asks for
            arithmetic.
        cost: Of each phase: pre-training, reinforcement learning, serving. [USD or flop]
        loss: [nat]
        loss_price: -d ln(cost) / d(loss) at the optimum, the same whichever of them is limited
            [1/nat]; 0, or infinite for the best loss, where nothing is left to choose and so
            nothing is given up.
        budgets, point: The program it is the optimum of, held choices gone, and where, in
            logarithms.
        multiplier: -d ln(what is made small) / d ln(the limit), the loss counted without its floor.
        gap: What the logarithm of what is made small may at most lie above the least there is.
        data_bound: -d ln(cost) / d ln(unique) where the data runs out and the law knows no
            repetition, else 0; for the best loss at a cost, -d ln(loss - floor) / d ln(unique).
    """

    task: BudgetTask
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

    def at(self, choices: Sequence[str]) -> Array:
        """Logarithms of these choices at the optimum (1, J)."""
        return np.log([[getattr(self, name) for name in choices]])

    @property
    def outside(self) -> list[str]:
        """Warnings for values outside the range that the law was fitted on."""
        task, unique = self.task, self.task.unique if self.task.repeats else None
        epochs = None if unique is None else max(1.0, self.pretrain / unique)
        return task.law.outside(self.n_active, self.pretrain, epochs=epochs)

    @property
    def total(self) -> float:
        """Cost of the whole life [USD or flop]."""
        return sum(self.cost)

    @property
    def shares(self) -> dict[str, float]:
        """{phase: share of the cost [-]}."""
        return {name: cost / self.total for name, cost in zip(PHASES, self.cost, strict=True)}

    @property
    def score(self) -> float:
        """The objective: cost of the whole life [USD or flop], or loss [nat]."""
        return self.total if self.task.aim == "cost" else self.loss


Solved = BudgetOptimum | NoBudget


def solve_one(task: BudgetTask) -> Solved:
    """The best answer to one question."""
    return solve_many([task])[0]


def solve_many(tasks: Sequence[BudgetTask]) -> list[Solved]:
    """The best answer to each question, in their order."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, task in enumerate(tasks):
        # Key of the questions that can be stacked into one set of arrays.
        terms = [each for each in task.terms.terms if each.coefficient]
        powers = tuple((bool(t.size), bool(t.tokens), bool(t.rl)) for t in terms)
        fixed, rewarded = tuple(sorted(task.fixed_choices)), bool(task.rl_flop)
        sized = task.phases["pretrain"].size_power()
        groups[(powers, fixed, task.aim, task.curved, task.reinforced, rewarded, sized)].append(
            place
        )
    solved: dict[int, Solved] = {}
    for places in groups.values():
        answers = _best_solved([tasks[i] for i in places])
        solved.update(zip(places, answers, strict=True))
    return [solved[i] for i in range(len(tasks))]


def select_best(solved: Sequence[Solved]) -> Solved:
    """Optimum with the best score; if all are infeasible, the result with the least shortfall."""
    optima = [each for each in solved if isinstance(each, BudgetOptimum)]
    if optima:
        return min(optima, key=lambda row: row.score)
    misses = (each for each in solved if isinstance(each, NoBudget))
    return min(misses, key=lambda row: row.short_by)


def _best_solved(tasks: list[BudgetTask]) -> list[Solved]:
    """Best answers to questions of one shape, in their order."""
    whole = stack_budgets(tasks)
    free = whole
    for name in tasks[0].fixed_choices:
        free = free.fixed(name, np.log([task.fixed_choices[name] for task in tasks]))
    possible = best_possible(free)
    points = stationary_points(free)
    answers: list[Solved] = []
    for place, task in enumerate(tasks):
        row = free.row(place)
        if not possible[place] < row.limit[0]:
            answers.append(infeasible_result(task, possible[place]))
            continue
        if task.curved and (useless := data_exhaustion(task, row)) is not None:
            answers.append(useless)
            continue
        logs = dict(zip(free.choices, points.point[place].tolist(), strict=True))
        if "pretrain" in logs and task.runs_out(logs["pretrain"]):
            answers.append(_at_the_end_of_the_data(task, row))
        elif not points.converged[place]:
            answers.append(not_converged(task))
        else:
            answers.append(_possible(task, whole.row(place), row, points.row(place)))
    return answers


def _at_the_end_of_the_data(task: BudgetTask, row: Budgets) -> Solved:
    """The best answer that uses every token once."""
    end = math.log(task.unique or math.nan)
    free = row.fixed("pretrain", np.array([end]))
    possible = best_possible(free)[0]
    if not possible < free.limit[0]:
        return infeasible_result(task, possible)
    points = stationary_points(free)
    if not points.converged[0]:
        return not_converged(task)
    return _possible(task, stack_budgets([task]), free, points, {"pretrain": end})


def lagrangian_slope(budgets: Budgets, at: Array, choice: str, multiplier: float) -> float:
    """d ln(objective) / d ln(choice) at a fixed limit, at a point (1, J) [-].

    The other choices answer; it is 0 along a choice that is free.
    """
    column = budgets.choices.index(choice)
    goal, limited = objective_and_constraint(budgets, at)
    return float(goal.slope[0, column] + multiplier * limited.slope[0, column])


def _possible(
    task: BudgetTask,
    whole: Budgets,
    free: Budgets,
    points: StationaryPoints,
    fixed: Mapping[str, float] = MappingProxyType({}),
) -> Solved:
    """The answer, unless its choices are no model that anybody could train."""
    logs = dict(zip(free.choices, points.point[0].tolist(), strict=True)) | dict(fixed)
    logs |= {name: math.log(value) for name, value in task.fixed_choices.items()}
    if (untrainable := implausible_optimum(task, logs)) is not None:
        return untrainable
    _check_fed(task, math.exp(logs["n_active"]), math.exp(logs["pretrain"]))
    return make_optimum(task, whole, free, points, logs)


def make_optimum(
    task: BudgetTask,
    whole: Budgets,
    free: Budgets,
    points: StationaryPoints,
    logs: Mapping[str, float],
) -> BudgetOptimum:
    """The optimum in natural units.

    Args:
        whole, free: The program with every choice, and with the free ones that `points` has one
            point of.
        logs: {choice: logarithm} of every choice.
    """
    at, terms = np.array([[logs[each] for each in whole.choices]]), task.terms
    costs, multiplier = whole.costs(at), float(points.multiplier[0])
    reducible = math.exp(float(whole.losses(at).value[0])) ** terms.power
    total, n_active = math.exp(float(costs.value[0])), math.exp(logs["n_active"])
    bound = 0.0
    if "pretrain" not in (*free.choices, *task.fixed_choices):  # the data holds it
        bound = -lagrangian_slope(whole, at, "pretrain", multiplier)
    slope = multiplier
    if task.aim == "quality":
        slope = 1 / multiplier if multiplier else math.inf
    paid = (costs.shares[0] * total).tolist()
    rl = math.exp(logs["rl"]) if "rl" in logs else task.rl_tokens
    if task.rl_flop:  # the flop of a reward target do not depend on the size
        paid[1] = task.constant_cost
        rl = task.rl_flop / (task.phases["rl"].arithmetic * n_active)
    varied = total / math.fsum(paid) if task.aim == "cost" else 1.0
    return BudgetOptimum(
        task=task,
        n_active=n_active,
        pretrain=math.exp(logs["pretrain"]),
        rl=rl,
        cost=(paid[0], paid[1], paid[2]),
        loss=terms.floor + reducible,
        loss_price=varied * slope / (terms.power * reducible),
        budgets=free,
        point=points.point,
        multiplier=multiplier,
        gap=float(points.gap[0]),
        data_bound=varied * bound,
    )


def _check_fed(task: BudgetTask, n_active: float, pretrain: float) -> None:
    """Refuse a given size that is more than the tokens feed, where the tokens are still free."""
    if task.law.form != REPETITION or set(task.fixed_choices) != {"n_active"}:
        return
    fed = task.law.fed(min(pretrain, task.unique or math.inf))
    if n_active > fed * (1 + SIZE_ROUNDING):
        raise FieldError(
            ("choose.n_active", f"{n_active:.3g} parameters are more than {pretrain:.3g} tokens "
             f"feed, and {task.law.name} counts them for less; give fewer, or pretrain too")
        )  # fmt: skip
