"""The best answer to each of many questions, on the first-order conditions, and why there is none.

Ten thousand budgets are one call: questions of one shape are arrays.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.problems.budget.budget_task import REPETITION, Question, assembled
from planner.problems.budget.optimum import Optimum, optimum
from planner.problems.budget.posynomial_form import Array, Budgets
from planner.problems.budget.shortfall import (
    Nothing,
    best_possible,
    beyond,
    least_loss,
    nothing,
    unsolved,
    worn_out,
)
from planner.text.errors import FieldError

__all__ = ["Answer", "Nothing", "Solved", "least_loss", "solve_many", "solve_one"]

FED = 1e-6  # of the size, for rounding


@dataclass(frozen=True)
class Answer:
    """The best choices of one question.

    Attributes
    ----------
    n_active, pretrain, rl
        Parameters and tokens; `rl` is 0 where a reward alone asks for arithmetic.
    cost
        Of each phase: pre-training, reinforcement learning, serving. [USD or flop]
    loss
        [nat]
    worth_of_loss
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

    question: Question
    n_active: float
    pretrain: float
    rl: float
    cost: tuple[float, float, float]
    loss: float
    worth_of_loss: float
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


Solved = Answer | Nothing


def solve_one(question: Question) -> Solved:
    """The best answer to one question."""
    return solve_many([question])[0]


def solve_many(questions: Sequence[Question]) -> list[Solved]:
    """The best answer to each question, in their order."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, each in enumerate(questions):
        groups[_shape(each)].append(place)
    found: dict[int, Solved] = {}
    for places in groups.values():
        answers = _solved([questions[i] for i in places])
        found.update(zip(places, answers, strict=True))
    return [found[i] for i in range(len(questions))]


def _shape(question: Question) -> tuple[object, ...]:
    """What questions must share to be one set of arrays."""
    terms = [each for each in question.terms.terms if each.coefficient]
    powers = tuple((bool(t.size), bool(t.tokens), bool(t.rl)) for t in terms)
    held = tuple(sorted(question.held))
    return powers, held, question.aim, question.curved, question.reinforced, bool(
        question.rl_flop
    )  # fmt: skip


def _solved(questions: list[Question]) -> list[Solved]:
    """The same for questions of one shape."""
    whole = assembled(questions)
    free = whole
    for name in questions[0].held:
        free = free.fixed(name, np.log([each.held[name] for each in questions]))
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


def _runs_out(question: Question, point: Array, choices: tuple[str, ...]) -> bool:
    """Whether more data is wanted than there is, by a law that says nothing of repetition."""
    if question.unique is None or question.repeats:
        return False
    return bool(point[0, choices.index("pretrain")] > math.log(question.unique))


def _at_the_end_of_the_data(question: Question, row: Budgets) -> Solved:
    """The best answer that uses every token once."""
    end = np.array([math.log(question.unique or math.nan)])
    free = row.fixed("pretrain", end)
    possible = best_possible(free)[0]
    if not possible < free.limit[0]:
        return nothing(question, possible, free)
    found: Optimum = optimum(free)
    if not found.found[0]:
        return unsolved(question)
    column = row.choices.index("pretrain")
    point = np.insert(found.point, column, end, axis=1)
    cost, loss = row.costs(point).slope[0, column], row.losses(point).slope[0, column]
    goal, held = (cost, loss) if question.aim == "cost" else (loss, cost)
    worth = -float(goal + found.multiplier[0] * held)
    return _read(question, assembled([question]), free, found, 0, end=end, data_bound=worth)


def _read(
    question: Question,
    whole: Budgets,
    free: Budgets,
    found: Optimum,
    place: int,
    *,
    end: Array | None = None,
    data_bound: float = 0.0,
) -> Solved:
    """The answer in natural units, from a point of the choices that are free."""
    point, multiplier = found.point[place : place + 1], float(found.multiplier[place])
    values = dict(zip(free.choices, point[0].tolist(), strict=True))
    values |= {name: math.log(value) for name, value in question.held.items()}
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
        paid[1] = question.fixed
    varied = total / math.fsum(paid) if question.aim == "cost" else 1.0
    return Answer(
        question=question,
        n_active=n_active,
        pretrain=pretrain,
        rl=rl,
        cost=(paid[0], paid[1], paid[2]),
        loss=terms.floor + reducible,
        worth_of_loss=varied * slope / (terms.power * reducible),
        budgets=free,
        point=point,
        multiplier=multiplier,
        gap=float(found.gap[place]),
        data_bound=varied * data_bound,
    )


def _check_fed(question: Question, n_active: float, pretrain: float) -> None:
    """Refuse a given size that is more than the tokens feed, where the tokens are still free."""
    if question.law.form != REPETITION or set(question.held) != {"n_active"}:
        return
    fed = question.law.repetition(min(pretrain, question.unique or math.inf)).fed
    if n_active > fed * (1 + FED):
        raise FieldError(
            ("choose.n_active", f"{n_active:.3g} parameters are more than {pretrain:.3g} tokens "
             f"feed, and {question.law.name} counts them for less; give fewer, or pretrain too")
        )  # fmt: skip
