"""The best size of a model over its whole life, at one sparsity: a scan, then tangent monomials.

Training costs least at some size, and serving costs less below it, so the optimum lies between
that size and the one whose training alone costs as much. There the serving planner is asked at a
few sizes. From the best of them the price is replaced by its tangent monomial on the layout it
found, the budget with that monomial is solved, and both are repeated until the size stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.budgets.best import Answer, Nothing, solve_one
from planner.budgets.life import INFERENCE, Life, at_sizes, with_serving
from planner.budgets.optimum import Optimum, optimum
from planner.budgets.question import Question, assembled
from planner.budgets.serving_cost import Served
from planner.budgets.shape import Array, Budgets
from planner.errors import Infeasible, ModelError, SolverError

__all__ = ["Curve", "Settled", "Unserved", "Whole", "curve", "searched", "settle"]

FINE = 241  # sizes at which training alone is computed
DEEPEST = 1e4  # factor below the size of least training cost at which the search begins
SCANNED = 9  # sizes at which the serving planner is asked
BEST = 2  # of them are refined
ROUNDS = 8  # of asking the planner again at a better size
TANGENTS = 40  # of one layout
SAME = 1e-11  # change of ln N at which tangents have settled
RL = 1  # the column of reinforcement learning in the costs of a budget
TINY = 1e-9  # rounding of a logarithm
BESIDE = (0.98, 1.0, 1.02)  # sizes over the optimum at which whole members are compared
CLOSE = 2e-3  # change of ln N below which the planner is not asked again


@dataclass(frozen=True)
class Curve:
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
class Unserved:
    """Why a sparsity has no answer: the law's reason, or that no unit serves any of the sizes."""

    sparsity: float
    law: Nothing | None
    sizes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Settled:
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
    asked
        Every size at which the serving planner was asked, with what it found.
    """

    life: Life
    sparsity: float
    served: Served
    answer: Answer
    slope: float
    asked: tuple[tuple[float, Served | None], ...] = ()

    @cached_property
    def whole(self) -> Whole:
        """The member in whole numbers, trained until it is as good."""
        question, size = self.answer.question, self.served.member.n_active
        found = curve(question, [size])
        serving = self.served.price * self.life.demand.counted
        rl = float(found.rl_cost[0])
        return Whole(
            size, float(found.tokens[0]), float(found.rl[0]), float(found.training[0]) - rl, rl,
            serving,
        )  # fmt: skip


@dataclass(frozen=True)
class Whole:
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


def searched(life: Life, sparsity: float) -> Settled | Unserved:
    """The best size at one sparsity.

    Raises
    ------
    FieldError
        Where a choice contradicts itself, or the law cannot be asked that.
    """
    question = life.question(sparsity)
    alone = solve_one(replace(question, served=0.0))
    if isinstance(alone, Nothing):
        return Unserved(sparsity, alone)
    asked = _scan(life, question, sparsity, alone.n_active)
    priced = [(_total(life, question, each), each) for each in asked.values() if each is not None]
    priced = sorted((one for one in priced if math.isfinite(one[0])), key=lambda one: one[0])
    if not priced:
        return Unserved(sparsity, None, tuple(asked))
    found = [_refined(life, question, sparsity, each, asked) for _, each in priced[:BEST]]
    return min(found, key=lambda each: each.whole.total)


def settle(life: Life, question: Question, served: Served, sparsity: float) -> Settled:
    """The optimum on the layout of one plan: tangents of its price until the size stays.

    Raises
    ------
    SolverError
        If the size does not settle.
    """
    budgets, size = assembled([question]), served.member.n_active
    for _ in range(TANGENTS):
        price, slope = served.tangent(size)
        program = with_serving(budgets, size, price, slope, question.served)
        answer = _optimal(question, program, life.bounds)
        moved = math.log(answer.n_active / size)
        if abs(moved) < SAME:
            return Settled(life, sparsity, served, answer, slope)
        size = answer.n_active
    raise SolverError(
        f"the size of the model does not settle on the layout of {size:.4g} parameters "
        f"({moved:+.2g} in logarithms at last)"
    )


def curve(question: Question, sizes: Sequence[float] | Array) -> Curve:
    """Training at each size, to the quality asked for."""
    rows = at_sizes(question, list(sizes))
    found = optimum(rows)
    with np.errstate(all="ignore"):
        costs, point = rows.costs(found.point), np.exp(found.point)
        total = np.exp(costs.value)
        rl_cost = costs.shares[:, RL] * total
    chosen = rows.choices.index("rl") if "rl" in rows.choices else None
    rl = point[:, chosen] if chosen is not None else np.full(len(rows), question.rl_tokens)
    if question.rl_flop:
        rl = question.rl_flop / (question.phases["rl"].arithmetic * np.asarray(sizes))
    possible = found.found & np.isfinite(total)
    tokens = point[:, rows.choices.index("pretrain")]
    if question.unique is not None and not question.repeats:
        possible &= tokens <= question.unique
    return Curve(
        np.asarray(sizes, dtype=float),
        *(np.where(possible, each, np.inf) for each in (tokens, rl, total, rl_cost)),
    )


def _optimal(question: Question, program: Budgets, bounds: tuple[float, float]) -> Answer:
    """The optimum of a program within the sizes asked for and the data there is."""
    held: dict[str, float] = {}
    low, high = map(math.log, bounds)
    while True:
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
    question: Question, program: Budgets, free: Budgets, found: Optimum, values: dict[str, float]
) -> Answer:
    """An optimum in natural units."""
    at = np.array([[values[each] for each in program.choices]])
    costs, terms = program.costs(at), question.terms
    total = math.exp(float(costs.value[0]))
    shares = (costs.shares[0] * total).tolist()
    reducible = math.exp(float(program.losses(at).value[0])) ** terms.power
    size = math.exp(values["n_active"])
    rl = math.exp(values["rl"]) if "rl" in values else question.rl_tokens
    if question.rl_flop:
        rl = question.rl_flop / (question.phases["rl"].arithmetic * size)
    multiplier = float(found.multiplier[0])
    return Answer(
        question=question,
        n_active=size,
        pretrain=math.exp(values["pretrain"]),
        rl=rl,
        cost=(shares[0], shares[RL], shares[INFERENCE]),
        loss=terms.floor + reducible,
        worth_of_loss=multiplier / (terms.power * reducible),
        budgets=free,
        point=found.point,
        multiplier=multiplier,
    )


def _scan(
    life: Life, question: Question, sparsity: float, trained: float
) -> dict[float, Served | None]:
    """The serving planner at sizes from the one of least training cost downwards."""
    least, most_active = life.bounds
    top = min(max(trained, least), most_active)
    fine = curve(question, np.geomspace(max(top / DEEPEST, least), top, FINE))
    asked = {top: _cheapest(life, top, sparsity)}
    served = asked[top]
    most = math.inf if served is None else _total(life, question, served)
    worth = fine.sizes[fine.training < most]
    if not worth.size or worth[0] >= top:
        return asked
    for size in np.geomspace(worth[0], top, SCANNED)[:-1].tolist():
        asked[size] = _cheapest(life, size, sparsity)
    return asked


def _refined(
    life: Life,
    question: Question,
    sparsity: float,
    start: Served,
    asked: dict[float, Served | None],
) -> Settled:
    """From one plan to the best near it: settle on its layout, ask again there, while it pays."""
    best = settle(life, question, start, sparsity)
    for _ in range(ROUNDS):
        size = best.answer.n_active
        if abs(math.log(size / best.served.member.n_active)) < CLOSE:
            break
        served = asked[size] = _cheapest(life, size, sparsity)
        if served is None:
            break
        nearer = settle(life, question, served, sparsity)
        if nearer.whole.total >= best.whole.total:
            break
        best = nearer
    best = _polished(best, asked)
    return replace(best, asked=tuple(asked.items()))


def _polished(best: Settled, asked: dict[float, Served | None]) -> Settled:
    """The best of the members beside it: whole layers and widths cost a little more or less."""
    life, question, sparsity = best.life, best.answer.question, best.sparsity
    low, high = life.bounds
    for step in BESIDE:
        size = min(max(best.answer.n_active * step, low), high)
        near = any(abs(math.log(size / each)) < CLOSE for each in asked)
        served = None if near else _cheapest(life, size, sparsity)
        if served is None:
            continue
        asked[size] = served
        if _total(life, question, served) < best.whole.total:
            best = settle(life, question, served, sparsity)
    return best


def _cheapest(life: Life, size: float, sparsity: float) -> Served | None:
    try:
        return life.serving.cheapest(life.family, size, sparsity)
    except (Infeasible, ModelError):
        return None


def _total(life: Life, question: Question, served: Served) -> float:
    """Cost of a member's whole life [USD]; infinite where it cannot be as good."""
    found = curve(question, [served.member.n_active])
    return float(found.training[0]) + served.price * life.demand.counted
