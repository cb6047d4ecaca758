"""What stands beside the best life of a model: its curve, simpler rules, its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from planner.problems.budget.budget_task import BudgetTask, assembled
from planner.problems.budget.optimum import optimum
from planner.problems.budget.posynomial_form import Array, Budgets
from planner.problems.lifecycle.fixed_layout_optimum import FixedLayoutOptimum, training_curve
from planner.problems.lifecycle.search import cheapest_at

POINTS = 97  # sizes of the curve
WIDER = 2.5  # factor by which the curve goes beyond the sizes that were asked
DRAWN = 49  # sizes at which every drawn law is looked at
FEWEST = 0.5  # share of the draws that must have an answer, for ends to mean something
APART = 1e-3  # ln N: members closer than this are one


@dataclass(frozen=True)
class ServingPrices:
    """Price of serving by size [USD/token]: that of the plans found, straight lines in logarithms.

    `error` is the largest relative difference at an inner plan when it is left out.
    """

    sizes: Array
    prices: Array
    error: float

    def at(self, sizes: Array) -> Array:
        """Prices at any sizes; beyond the ends in proportion to the size."""
        logs, ends = np.log(sizes), np.log(self.sizes)
        inner = np.interp(logs, ends, np.log(self.prices))
        beyond = np.minimum(logs - ends[0], 0.0) + np.maximum(logs - ends[-1], 0.0)
        found: Array = np.exp(inner + beyond)
        return found


def serving_prices(settled: FixedLayoutOptimum) -> ServingPrices:
    """The prices at every size that was asked and is served."""
    served = {s.member.n_active: s.price for _, s in settled.asked if s is not None}
    served[settled.served.member.n_active] = settled.served.price
    pairs: list[tuple[float, float]] = []
    for pair in sorted(served.items()):
        if not pairs or math.log(pair[0] / pairs[-1][0]) > APART:
            pairs.append(pair)
    sizes, prices = (np.array(each) for each in zip(*pairs, strict=True))
    errors = [
        abs(_without(sizes, prices, place) / prices[place] - 1)
        for place in range(1, len(sizes) - 1)
    ]
    return ServingPrices(sizes, prices, max(errors, default=0.0))


def lifecycle_curve(settled: FixedLayoutOptimum, rates: ServingPrices) -> list[dict[str, float]]:
    """Cost of the whole life at fixed quality, by size, as rows for a table or a picture."""
    question = settled.answer.question
    low, high = rates.sizes[0] / WIDER, rates.sizes[-1] * WIDER
    found = training_curve(question, np.geomspace(low, high, POINTS))
    serving = rates.at(found.sizes) * question.served
    kept = np.isfinite(found.training)
    return [
        {
            "n_active": float(n), "pretrain": float(d), "training_usd": float(c),
            "serving_usd": float(s), "total_usd": float(c + s),
        }
        for n, d, c, s in zip(
            found.sizes[kept], found.tokens[kept], found.training[kept], serving[kept],
            strict=True,
        )
    ]  # fmt: skip


def equal_pools(rows: list[dict[str, float]], best: float) -> dict[str, Any] | None:
    """The lecture's heuristic: the size whose training costs what serving it does.

    None where no size of the curve does. `worse_by` is over the `best` total [USD].
    """
    for one, other in pairwise(rows):
        first, second = (math.log(row["training_usd"] / row["serving_usd"]) for row in (one, other))
        if first >= 0 > second or second >= 0 > first:
            share = first / (first - second)
            mixed = {
                key: math.exp((1 - share) * math.log(one[key]) + share * math.log(other[key]))
                for key in one
            }
            total = mixed["training_usd"] + mixed["serving_usd"]
            return {
                "n_active": mixed["n_active"], "tokens": {"pretrain": mixed["pretrain"]},
                "cost": total, "worse_by": max(total / best - 1, 0.0),
            }  # fmt: skip
    return None


def flat_price(
    settled: FixedLayoutOptimum, rates: ServingPrices, best: float
) -> dict[str, Any] | None:
    """What a budget says that takes the price of a served FLOP for a constant, that of the plan.

    Its size is then charged what serving it really costs. None where it is not served.
    """
    question = settled.answer.question
    member = settled.served.member
    budgets = assembled([question])
    cost, powers = budgets.cost.copy(), budgets.cost_powers.copy()
    cost[:, 2] = math.log(question.served * settled.served.price / member.n_active)
    powers[2], powers[2, 0] = 0.0, 1.0
    found = optimum(replace(budgets, cost=cost, cost_powers=powers))
    if not found.found[0]:
        return None
    asked = float(np.clip(np.exp(found.point[0, 0]), *settled.life.bounds))
    served = cheapest_at(settled.life, asked, settled.sparsity)
    if served is None:
        return None
    size = served.member.n_active
    trained = training_curve(question, [size])
    total = float(trained.training[0]) + served.price * question.served
    if not math.isfinite(total):
        return None
    return {
        "n_active": size, "tokens": {"pretrain": float(trained.tokens[0])},
        "cost": total, "worse_by": total / best - 1,
    }  # fmt: skip


def interval(settled: FixedLayoutOptimum, rates: ServingPrices) -> dict[str, Any] | None:
    """Ends that hold a share of laws drawn from the standard errors: size, tokens, cost.

    Every drawn law is solved on the same prices of serving. None where nothing is drawn.
    """
    asked, question = settled.life.scenario, settled.answer.question
    if not asked.draws or "interval" in question.law.lacks:
        return None
    drawn = [replace(question, law=law) for law in question.law.draws(asked.draws)]
    least, most = settled.life.bounds
    low, high = rates.sizes[0] / WIDER**2, rates.sizes[-1] * WIDER**2
    logs = np.log(np.geomspace(max(low, least), min(high, most), DRAWN))
    training, tokens = _drawn(drawn, logs, question)
    total = training + rates.at(np.exp(logs)) * question.served
    best = [_lowest(logs, row, own) for row, own in zip(total, tokens, strict=True)]
    answered = [each for each in best if each is not None]
    ends = ((1 - asked.coverage) / 2, (1 + asked.coverage) / 2)
    enough = len(answered) >= max(2, FEWEST * asked.draws)
    found: dict[str, Any] = {
        "coverage": asked.coverage,
        "from": f"{asked.draws} draws from the standard errors of {question.law.name}",
        "answered": len(answered) / asked.draws,
    }
    for column, name in enumerate(("n_active", "pretrain", "cost")):
        values = [each[column] for each in answered]
        found[name] = np.quantile(values, ends).tolist() if enough else None
    return found


def _drawn(drawn: list[BudgetTask], logs: Array, question: BudgetTask) -> tuple[Array, Array]:
    """Cost of training and tokens, (draws, sizes); infinite where a drawn law has no way there."""
    rows = _repeated(assembled(drawn), len(logs)).fixed("n_active", np.tile(logs, len(drawn)))
    found = optimum(rows)
    with np.errstate(all="ignore"):
        cost = np.exp(rows.costs(found.point).value) + question.constant_cost
        tokens = np.exp(found.point[:, rows.choices.index("pretrain")])
    possible = found.found & np.isfinite(cost)
    if question.unique is not None and not question.repeats:
        possible &= tokens <= question.unique
    shape = (len(drawn), len(logs))
    return np.where(possible, cost, np.inf).reshape(shape), tokens.reshape(shape)


def _repeated(budgets: Budgets, times: int) -> Budgets:
    """Every budget many times over, one after the other."""
    worth = budgets.worth
    if worth is not None:
        curved = {
            name: replace(
                each, knee=np.repeat(each.knee, times), reach=np.repeat(each.reach, times)
            )
            for name, each in worth.curved.items()
        }
        worth = replace(worth, curved=curved)
    return replace(
        budgets,
        cost=np.repeat(budgets.cost, times, axis=0),
        loss=np.repeat(budgets.loss, times, axis=0),
        loss_powers=np.repeat(budgets.loss_powers, times, axis=0),
        limit=np.repeat(budgets.limit, times),
        worth=worth,
    )


def _lowest(logs: Array, total: Array, tokens: Array) -> tuple[float, float, float] | None:
    """Size, tokens and cost at the bottom of the parabola through the three lowest points."""
    place = int(np.argmin(total))
    if not np.isfinite(total[place]):
        return None
    at, around = logs[place], slice(place - 1, place + 2)
    if 0 < place < len(logs) - 1 and np.isfinite(total[around]).all():
        left, middle, right = np.log(total[around])
        bend = left - 2 * middle + right
        if bend > 0:
            at = at + (logs[1] - logs[0]) * (left - right) / (2 * bend)
    known = np.isfinite(total)
    size = float(np.exp(at))
    trained = float(np.exp(np.interp(at, logs[known], np.log(tokens[known]))))
    return size, trained, float(total[place])


def _without(sizes: Array, prices: Array, place: int) -> float:
    """The price at one size from its neighbours."""
    logs = np.log(sizes)
    sides = [place - 1, place + 1]
    return float(np.exp(np.interp(logs[place], logs[sides], np.log(prices[sides]))))
