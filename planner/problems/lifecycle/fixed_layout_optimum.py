"""The best size of a model on one layout of serving: tangents of its price until the size stays.

The price is replaced by its tangent monomial, and the budget with that monomial is solved; both
are repeated. At the end the tangent touches at the optimum, so the optimum is that of the price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.problems.budget.budget_task import BudgetTask, assembled
from planner.problems.budget.optimum import BudgetOptimum, StationaryPoints, optimum
from planner.problems.budget.posynomial_form import Array, Budgets
from planner.problems.lifecycle.resolve import INFERENCE, LifecycleTask, at_sizes, with_serving
from planner.problems.lifecycle.serving_cost import ServedMember
from planner.problems.lifecycle.tangent_search import Tangent, bracketing_tangents, tangent_at_kink
from planner.text.errors import Infeasible, SolverError

RL = 1  # the column of reinforcement learning in the costs of a budget
TINY = 1e-9  # rounding of a logarithm
APART = 1e-6  # ln N: the same size
ASIDE = 0.1  # how far it is then taken to be
STEEP = 20.0  # d ln(price) / d ln N beyond which the optimum of a tangent is too far to be found


@dataclass(frozen=True)
class TrainingCurve:
    """Tokens and the cost of training by size, at the quality asked for, infinite where none is.

    All (P,): active parameters, tokens of pre-training and of reinforcement learning, USD of both
    phases together and of the latter.
    """

    sizes: Array
    tokens: Array
    rl: Array
    training: Array
    rl_cost: Array


@dataclass(frozen=True)
class FixedLayoutOptimum:
    """The optimum of one sparsity on one layout of serving.

    Attributes
    ----------
    served
        The member nearest to it, in whole numbers, and the plan that serves it.
    answer
        The optimum on the path through that member: its program has serving as the tangent
        monomial of the price there, its question the tokens as they weigh in the cost.
    slope
        d ln(price of serving) / d ln N there.
    size_bound
        d ln(cost) / d ln N where a limit holds the size, else 0.
    full
        Whether that limit is the largest size that the layout serves.
    sides
        Sizes whose tangents of the price meet there, with their weights: one, or two at a kink.
    asked
        Every size at which the serving planner was asked, with what it found.
    """

    life: LifecycleTask
    sparsity: float
    served: ServedMember
    answer: BudgetOptimum
    slope: float
    size_bound: float = 0.0
    full: bool = False
    sides: tuple[tuple[float, float], ...] = ()
    asked: tuple[tuple[float, ServedMember | None], ...] = ()

    @cached_property
    def worth(self) -> dict[str, float]:
        """d ln(price of serving) / d ln(quantity of machine, model, engine and promises)."""
        total: dict[str, float] = {}
        for size, weight in self.sides:
            for name, slope in self.served.worth(size).items():
                total[name] = total.get(name, 0.0) + weight * slope
        return total

    @cached_property
    def whole(self) -> MemberCost:
        """The member in whole numbers, trained until it is as good."""
        question, size = self.answer.question, self.served.member.n_active
        found = training_curve(question, [size])
        serving = self.served.price * self.life.demand.counted
        rl = float(found.rl_cost[0])
        return MemberCost(
            size, float(found.tokens[0]), float(found.rl[0]), float(found.training[0]) - rl, rl,
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
    question: BudgetTask,
    served: ServedMember,
    sparsity: float,
    start: float | None = None,
) -> FixedLayoutOptimum:
    """The optimum on the layout of one plan: tangents of its price until the size stays.

    At a kink of the price, where memory or a promise begins to hold, it is the optimum between
    the tangents of both sides. `start` [param] is where to begin, the member itself when absent.

    Raises
    ------
    SolverError
        If the size does not settle.
    """
    budgets, (least, most) = assembled([question]), life.bounds

    def priced(at: float, price: float, slope: float) -> Budgets:
        return with_serving(budgets, math.exp(at), price, slope, question.served)

    def moved(touch: Tangent, slope: float) -> float:
        program = priced(touch.at, touch.price, slope)
        if slope > STEEP:
            return -min(max(_rise(question, program, touch.at), -ASIDE), ASIDE)
        return math.log(_optimal(question, program, life.bounds).n_active) - touch.at

    def look(at: float) -> Tangent | None:
        try:
            with np.errstate(over="ignore"):  # of a bound where next to nothing fits
                price, slope = served.tangent(math.exp(at))
        except (Infeasible, SolverError):
            return None  # at the very edge of what fits, the solver of programs finds nothing
        touch = Tangent(at, price, slope, 0.0)
        return replace(touch, moved=moved(touch, slope))

    first = math.log(start or served.member.n_active)
    low, high = bracketing_tangents(look, first, (math.log(least), math.log(most)))
    at = tangent_at_kink(low, high, moved)
    if high is not None and abs(at.moved) > APART:
        raise SolverError("the size of the model does not settle on this layout")
    program = priced(at.at, at.price, at.slope)
    largest = most if high is not None else min(most, math.exp(at.at))
    answer = _optimal(question, program, (least, largest))
    share = (at.slope - low.slope) / (high.slope - low.slope) if high not in (None, low) else 0.0
    sides = [(math.exp(low.at), 1.0 - share)]
    if high is not None and share:
        sides.append((math.exp(high.at), share))
    return FixedLayoutOptimum(
        life, sparsity, served, answer, at.slope, _of_the_bound(program, answer),
        full=high is None, sides=tuple(sides),
    )  # fmt: skip


def training_curve(question: BudgetTask, sizes: Sequence[float] | Array) -> TrainingCurve:
    """Training at each size, to the quality asked for."""
    rows = at_sizes(question, list(sizes))
    found = optimum(rows)
    with np.errstate(all="ignore"):
        costs, point = rows.costs(found.point), np.exp(found.point)
        total = np.exp(costs.value) + question.constant_cost
        rl_cost = costs.shares[:, RL] * np.exp(costs.value) + question.constant_cost
    chosen = rows.choices.index("rl") if "rl" in rows.choices else None
    rl = point[:, chosen] if chosen is not None else np.full(len(rows), question.rl_tokens)
    if question.rl_flop:
        rl = question.rl_flop / (question.phases["rl"].arithmetic * np.asarray(sizes))
    possible = found.found & np.isfinite(total)
    tokens = point[:, rows.choices.index("pretrain")]
    if question.unique is not None and not question.repeats:
        possible &= tokens <= question.unique
    return TrainingCurve(
        sizes=np.asarray(sizes, dtype=float),
        tokens=np.where(possible, tokens, np.inf),
        rl=np.where(possible, rl, np.inf),
        training=np.where(possible, total, np.inf),
        rl_cost=np.where(possible, rl_cost, 0.0),
    )


def _optimal(question: BudgetTask, program: Budgets, bounds: tuple[float, float]) -> BudgetOptimum:
    """The optimum of a program within the sizes asked for and the data there is."""
    held: dict[str, float] = {}
    low, high = map(math.log, bounds)
    while True:
        if len(held) > 1:
            raise SolverError(
                f"no model of {bounds[0]:.3g} to {bounds[1]:.3g} active parameters, on the data "
                "there is, is as good as asked for"
            )
        free = program
        for name, value in held.items():
            free = free.fixed(name, np.array([value]))
        found = optimum(free)
        if not found.found[0]:
            raise SolverError("the budget with its price of serving has no optimum that is found")
        values = dict(zip(free.choices, found.point[0].tolist(), strict=True)) | held
        size, tokens = values["n_active"], values["pretrain"]
        if not low <= size <= high:
            held["n_active"] = min(max(size, low), high)
        elif question.unique and not question.repeats and tokens > math.log(question.unique) + TINY:
            held["pretrain"] = math.log(question.unique)
        else:
            return _read(question, program, free, found, values)


def _read(
    question: BudgetTask,
    program: Budgets,
    free: Budgets,
    found: StationaryPoints,
    values: dict[str, float],
) -> BudgetOptimum:
    """An optimum in natural units."""
    at = np.array([[values[each] for each in program.choices]])
    costs, terms = program.costs(at), question.terms
    total = math.exp(float(costs.value[0]))
    paid = (costs.shares[0] * total).tolist()
    # What a reward asks for is paid whatever the size, so it is no part of the program.
    paid[RL] += question.constant_cost
    varied = total / math.fsum(paid)
    reducible = math.exp(float(program.losses(at).value[0])) ** terms.power
    size = math.exp(values["n_active"])
    rl = math.exp(values["rl"]) if "rl" in values else question.rl_tokens
    if question.rl_flop:
        rl = question.rl_flop / (question.phases["rl"].arithmetic * size)
    multiplier = float(found.multiplier[0])
    data = 0.0
    if "pretrain" not in free.choices:
        data = -along(program, at, "pretrain", multiplier)
    return BudgetOptimum(
        question=question,
        n_active=size,
        pretrain=math.exp(values["pretrain"]),
        rl=rl,
        cost=(paid[0], paid[RL], paid[INFERENCE]),
        loss=terms.floor + reducible,
        loss_price=varied * multiplier / (terms.power * reducible),
        budgets=free,
        point=found.point,
        multiplier=multiplier,
        gap=float(found.gap[0]),
        data_bound=varied * data,
    )


def _rise(question: BudgetTask, program: Budgets, size: float) -> float:
    """d ln(cost) / d ln N at a size in logarithms, at the same loss; tokens answer.

    Minus infinity at a size that the data cannot make as good.
    """
    free = program.fixed("n_active", np.array([size]))
    found = optimum(free)
    if not found.found[0]:
        raise SolverError("the budget with its price of serving has no optimum that is found")
    at = np.insert(found.point, program.choices.index("n_active"), size, axis=1)
    tokens = float(at[0, program.choices.index("pretrain")])
    if question.unique and not question.repeats and tokens > math.log(question.unique) + TINY:
        return -math.inf
    return along(program, at, "n_active", float(found.multiplier[0]))


def _of_the_bound(program: Budgets, answer: BudgetOptimum) -> float:
    """d ln(cost) / d ln N at a size that a limit holds."""
    if "n_active" in answer.budgets.choices:
        return 0.0
    values = {"n_active": answer.n_active, "pretrain": answer.pretrain, "rl": answer.rl}
    at = np.log([[values[each] for each in program.choices]])
    return along(program, at, "n_active", answer.multiplier)


def along(program: Budgets, at: Array, choice: str, multiplier: float) -> float:
    """d ln(cost) / d ln(choice) at the same loss, the others answering; 0 where it is free."""
    column = program.choices.index(choice)
    slopes = program.costs(at).slope[0, column] + multiplier * program.losses(at).slope[0, column]
    return float(slopes)
