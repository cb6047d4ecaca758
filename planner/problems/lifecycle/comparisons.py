"""What stands beside the best life of a model: its curve, simpler rules, its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from planner.problems.lifecycle.plan import SimplerRule, SizeCost
from planner.problems.lifecycle.resolve import with_serving
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum, cheapest_at
from planner.token_costs.budget_task import assembled
from planner.token_costs.posynomial_form import Array
from planner.token_costs.spending import LawInterval, TrainedTokens
from planner.token_costs.stationary_points import stationary_points, training_curve

POINTS = 97  # sizes of the curve
WIDER = 2.5  # factor by which the curve goes beyond the sizes that were asked
DRAWN = 49  # sizes at which every drawn law is looked at
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
        prices: Array = np.exp(inner + beyond)
        return prices


def serving_prices(best: FixedLayoutOptimum) -> ServingPrices:
    """The prices at every size that was asked and is served."""
    served = {s.member.n_active: s.price for _, s in best.evaluated if s is not None}
    served[best.served.member.n_active] = best.served.price
    pairs: list[tuple[float, float]] = []
    for pair in sorted(served.items()):
        if not pairs or math.log(pair[0] / pairs[-1][0]) > APART:
            pairs.append(pair)
    sizes, prices = (np.array(each) for each in zip(*pairs, strict=True))
    errors = []
    for k in range(1, len(sizes) - 1):  # each from its neighbours
        others = ServingPrices(np.delete(sizes, k), np.delete(prices, k), 0.0)
        errors.append(abs(float(others.at(sizes[k : k + 1])[0]) / prices[k] - 1))
    return ServingPrices(sizes, prices, max(errors, default=0.0))


def lifecycle_curve(best: FixedLayoutOptimum, prices: ServingPrices) -> tuple[SizeCost, ...]:
    """Cost of the whole life at fixed quality, by size, for a table or a picture."""
    budget = best.answer.task
    low, high = prices.sizes[0] / WIDER, prices.sizes[-1] * WIDER
    curve = training_curve(budget, np.geomspace(low, high, POINTS))
    serving = prices.at(curve.sizes) * budget.served
    columns = (curve.sizes, curve.tokens, curve.training, serving, curve.training + serving)
    possible = np.isfinite(curve.training)
    return tuple(SizeCost(*row) for row in np.stack(columns, axis=1)[possible].tolist())


def equal_pools(rows: Sequence[SizeCost], best: float) -> SimplerRule | None:
    """The lecture's heuristic: the size whose training costs what serving it does.

    None where no size of the curve does. `worse_by` is over the `best` total [USD].
    """
    for left, right in pairwise(rows):
        first, second = (math.log(row.training_usd / row.serving_usd) for row in (left, right))
        if first >= 0 > second or second >= 0 > first:
            share = first / (first - second)
            between = SizeCost(*(
                math.exp((1 - share) * math.log(low) + share * math.log(high))
                for low, high in zip(vars(left).values(), vars(right).values(), strict=True)
            ))  # fmt: skip
            total = between.training_usd + between.serving_usd
            tokens = TrainedTokens(between.pretrain)
            return SimplerRule(between.n_active, tokens, total, max(total / best - 1, 0.0))
    return None


def flat_price(best: FixedLayoutOptimum) -> SimplerRule | None:
    """What a budget says that takes the price of a served FLOP for a constant, that of the plan.

    Its size is then charged what serving it really costs. None where it is not served.
    """
    budget, life, member = best.answer.task, best.life, best.served.member
    program = with_serving(
        assembled([budget]), member.n_active, best.served.price, 1.0, budget.served
    )
    points = stationary_points(program)
    if not points.converged[0]:
        return None
    wanted = float(np.clip(np.exp(points.point[0, 0]), *life.bounds))
    served = cheapest_at(life, wanted, best.sparsity)
    if served is None:
        return None
    size = served.member.n_active
    trained = training_curve(budget, [size])
    total = float(trained.training[0]) + served.price * budget.served
    if not math.isfinite(total):
        return None
    tokens = TrainedTokens(float(trained.tokens[0]))
    return SimplerRule(size, tokens, total, total / best.whole.total - 1)


def interval(best: FixedLayoutOptimum, prices: ServingPrices) -> LawInterval | None:
    """Ends that hold a share of laws drawn from the standard errors: size, tokens, cost.

    Every drawn law is solved on the same prices of serving, and the plan's own size lies between.
    None where nothing is drawn.
    """
    scenario, budget = best.life.scenario, best.answer.task
    draws, coverage = scenario.draws, scenario.coverage
    if not draws or "interval" in budget.law.lacks:
        return None
    drawn = [replace(budget, law=law) for law in budget.law.draws(draws)]
    least, most = best.life.bounds
    low, high = prices.sizes[0] / WIDER**2, prices.sizes[-1] * WIDER**2
    # The price bends at every member, and many a law has its optimum in such a corner.
    low, high = max(low, least), min(high, most)
    kinks = prices.sizes[(low < prices.sizes) & (prices.sizes < high)]
    curve = training_curve(budget, np.union1d(np.geomspace(low, high, DRAWN), kinks), drawn)
    sizes, total = curve.sizes, curve.training + prices.at(curve.sizes) * budget.served
    corner = np.isin(sizes, kinks).astype(float)
    lowest = (_lowest(sizes, corner, *pair) for pair in zip(total, curve.tokens, strict=True))
    answered = [row for row in lowest if row is not None]
    names = ("n_active", "pretrain", "cost")
    columns = {name: [row[k] for row in answered] for k, name in enumerate(names)}
    ends = LawInterval.of(columns, budget.law.name, draws, coverage)
    # Prices of serving are ties within a thousandth: the plan's corner may be beside that of draws.
    size = best.served.member.n_active
    low, high = ends.n_active or (size, size)
    return replace(ends, n_active=(min(low, size), max(high, size)) if ends.n_active else None)


def _lowest(
    sizes: Array, corner: Array, total: Array, tokens: Array
) -> tuple[float, float, float] | None:
    """Size, tokens and cost at the lowest point: a corner of the price, or a parabola's bottom."""
    place = int(np.argmin(total))
    if not np.isfinite(total[place]):
        return None
    logs, size, around = np.log(sizes), float(sizes[place]), slice(place - 1, place + 2)
    if 0 < place < len(logs) - 1 and not corner[place] and np.isfinite(total[around]).all():
        rise = np.diff(np.log(total[around])) / (step := np.diff(logs[around]))
        if rise[0] < rise[1]:  # slopes in the middles of both steps, zero between them
            share = rise[0] / (rise[0] - rise[1])
            size *= math.exp((share * (step[0] + step[1]) - step[0]) / 2)
    possible = np.isfinite(total)
    trained = float(np.exp(np.interp(math.log(size), logs[possible], np.log(tokens[possible]))))
    return size, trained, float(total[place])
