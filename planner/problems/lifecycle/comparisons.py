"""Comparisons for the best life of a model: its cost curve, simpler rules, its interval.

The numbers of a lifecycle's plan, each the value of one equation, and their check.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from planner.problems.lifecycle import plan as records
from planner.problems.lifecycle.plan import SimplerRule, SizeCost
from planner.problems.lifecycle.resolve import with_serving
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum, cheapest_plan_at_size
from planner.token_costs import spending as spendings
from planner.token_costs.budget_task import stack_budgets
from planner.token_costs.outputs import evaluate, life_point, recheck_shared, require, traverse
from planner.token_costs.phase_costs import PhaseCost, spending, symbol_values
from planner.token_costs.posynomial_form import Array
from planner.token_costs.stationary_points import stationary_points, training_curve

CURVE_POINTS = 97  # sizes of the curve
WIDER = 2.5  # factor of the curve beyond the smallest and the largest planned size
GRID_SIZE = 49  # sizes of the grid for the drawn laws
MIN_LOG_SPACING = 1e-3  # ln N: members closer than this are one


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
    """Serving prices at all evaluated sizes that have a plan, near-duplicate sizes dropped."""
    served = {s.member.n_active: s.price for _, s in best.evaluated if s is not None}
    served[best.served.member.n_active] = best.served.price
    pairs: list[tuple[float, float]] = []
    for pair in sorted(served.items()):
        if not pairs or math.log(pair[0] / pairs[-1][0]) > MIN_LOG_SPACING:
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
    curve = training_curve(budget, np.geomspace(low, high, CURVE_POINTS))
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
            tokens = spendings.TrainedTokens(between.pretrain)
            return SimplerRule(between.n_active, tokens, total, max(total / best - 1, 0.0))
    return None


def flat_price(best: FixedLayoutOptimum) -> SimplerRule | None:
    """Budget that assumes a constant price per served FLOP, equal to that of the optimum.

    Its size is then charged what serving it really costs. None where it is not served.
    """
    budget, life, member = best.answer.task, best.life, best.served.member
    program = with_serving(
        stack_budgets([budget]), member.n_active, best.served.price, 1.0, budget.served
    )
    points = stationary_points(program)
    if not points.converged[0]:
        return None
    wanted = float(np.clip(np.exp(points.point[0, 0]), *life.bounds))
    served = cheapest_plan_at_size(life, wanted, best.sparsity)
    if served is None:
        return None
    size = served.member.n_active
    trained = training_curve(budget, [size])
    total = float(trained.training[0]) + served.price * budget.served
    if not math.isfinite(total):
        return None
    tokens = spendings.TrainedTokens(float(trained.tokens[0]))
    return SimplerRule(size, tokens, total, total / best.whole.total - 1)


def interval(best: FixedLayoutOptimum, prices: ServingPrices) -> spendings.LawInterval | None:
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
    curve = training_curve(budget, np.union1d(np.geomspace(low, high, GRID_SIZE), kinks), drawn)
    sizes, total = curve.sizes, curve.training + prices.at(curve.sizes) * budget.served
    corner = np.isin(sizes, kinks).astype(float)
    lowest = (_lowest(sizes, corner, *pair) for pair in zip(total, curve.tokens, strict=True))
    answered = [row for row in lowest if row is not None]
    names = ("n_active", "pretrain", "cost")
    columns = {name: [row[k] for row in answered] for k, name in enumerate(names)}
    ends = spendings.LawInterval.of(columns, budget.law.name, draws, coverage)
    # Serving prices tie within a thousandth: the plan's corner may be next to that of the draws.
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


HOUR, DAY = 3600.0, 86400.0
CHECKPOINT_BYTES = 16.0  # byte/param: weights, gradients and both moments in mixed precision
CHECKPOINTS = 10  # checkpoints stored together, until training ends
STORAGE = 0.06 / 1e9 / (365.25 / 12 * DAY)  # USD/(byte*s)
STORAGE_SOURCE = "$0.06 per GB and month, the dearest listed object store (CoreWeave, 2026-09-20)"
MAX_TRAINING = 90 * DAY  # training where no duration is given [s]


def optimum_point(best: FixedLayoutOptimum) -> records.LifecyclePoint:
    """The plan of an optimum: the member in whole numbers, every number by its equation."""
    whole, budget, served = best.whole, best.answer.task, best.served
    tokens = spendings.PhaseTokens(whole.pretrain, whole.rl, budget.served)
    cost, counted = _spending(best, tokens), served.member.n_total
    alike = life_point(budget, whole.n_active, tokens, cost, budget.unique)
    # Storage cost of checkpoints, to show that the objective may leave it out.
    size = CHECKPOINT_BYTES * best.served.member.n_total
    seconds = best.life.scenario.phases.pretrain.duration or MAX_TRAINING
    usd = CHECKPOINTS * size * seconds * STORAGE
    return records.LifecyclePoint(
        **vars(replace(alike, n_total=counted, sparsity=counted / whole.n_active)),
        model=_shape(best),
        chips=_chips(best, cost),
        serving=served.plan,
        usd_per_mtok=served.price * 1e6,
        slope_of_price=best.slope,
        checkpoints=records.Checkpoints(
            size, CHECKPOINTS, seconds, usd, usd / (cost.total.usd or math.nan), STORAGE_SOURCE
        ),
    )


def sparsity_summary(best: FixedLayoutOptimum) -> records.OtherSparsity:
    """Another sparsity, in short."""
    whole, served = best.whole, best.served
    return records.OtherSparsity(
        sparsity=best.sparsity, n_active=whole.n_active, n_total=served.member.n_total,
        tokens=spendings.TrainedTokens(whole.pretrain), usd_per_mtok=served.price * 1e6,
        cost=records.TotalCost(records.TotalUsd(whole.total)),
    )  # fmt: skip


def recheck(point: records.LifecyclePoint, best: FixedLayoutOptimum) -> None:
    """Every number of a plan again, the objective first, by walking its equation.

    Raises SolverError for a number that its equation does not give.
    """
    from formulas.scaling import budget_outputs as outputs

    cost = point.cost
    require("the objective", cost.total.usd, best.whole.total)
    values = _symbols(best, point.tokens)
    require("cost.total.usd", cost.total.usd, traverse(outputs.served_life_cost, values))
    require("cost.total.flop", cost.total.flop, traverse(outputs.done_arithmetic, values))
    recheck_shared(point, best.answer.task)
    require("share", math.fsum(vars(point.share).values()), 1.0)
    require("usd_per_mtok", point.usd_per_mtok, best.served.at(point.n_active) * 1e6)


def _symbols(best: FixedLayoutOptimum, tokens: spendings.PhaseTokens) -> dict[str, float]:
    values = symbol_values(best.answer.task.phases, best.whole.n_active, tokens)
    return {**values, "D_inf": tokens.inference, "C_mix": best.served.price}


def _spending(best: FixedLayoutOptimum, tokens: spendings.PhaseTokens) -> spendings.LifeSpending:
    """USD, FLOP done and paid for and chip hours of each phase and in all."""
    from formulas.scaling import budget_outputs as outputs

    served, values = best.served, _symbols(best, tokens)
    training = spending({**values, "D_inf": 0.0})
    alone = {**values, "D_pt": 0.0, "D_rl": 0.0}
    rented = tokens.inference / served.tokens_per_chip_second
    inference = spendings.Spending(
        usd=evaluate(outputs.served_life_cost, **alone),
        flop=evaluate(outputs.done_arithmetic, **alone),
        flop_paid=rented * served.peak,
        chip_hours=rented / HOUR,
    )
    phases = (training.pretrain, training.rl, inference)
    columns = zip(*(vars(phase).values() for phase in phases), strict=True)
    return spendings.LifeSpending(*phases, spendings.Spending(*map(sum, columns)))


def _shape(best: FixedLayoutOptimum) -> records.ModelShape:
    """Architecture of the optimal model: layers, heads, experts, bytes."""
    counted = best.served.member.sizes
    return records.ModelShape(
        name=counted.name,
        family=best.served.member.family.name,
        layers=counted.n_layers,
        hidden=counted.hidden,
        heads=counted.n_q_heads,
        kv_heads=counted.n_kv_heads,
        experts=counted.n_experts,
        experts_active=counted.n_experts_active,
        shared_experts=counted.n_shared_experts,
        vocab=counted.vocab,
        kv_bytes_per_token=counted.kv_bytes_per_token,
        weight_bytes=counted.total_weight_bytes,
        source=counted.source,
    )


def _chips(best: FixedLayoutOptimum, cost: spendings.LifeSpending) -> records.LifeChips:
    """Chips of each phase: for training where a duration is given, for serving where a rate is."""
    phases = best.answer.task.phases
    training = {name: _of_training(phase, getattr(cost, name)) for name, phase in phases.items()}
    served, rate = best.served, best.life.scenario.inference.rate
    units = None if rate is None else math.ceil(rate / served.tokens_per_s)
    serving = records.ServingChips(
        served.plan.chip,
        units and units * served.plan.chips,
        units,
        served.plan.chips,
        served.tokens_per_s,
    )
    if "rl" in training:
        return records.LifecycleChipsWithRl(training["pretrain"], serving, training["rl"])
    return records.LifeChips(training["pretrain"], serving)


def _of_training(phase: PhaseCost, cost: spendings.Spending) -> records.TrainingChips:
    count = None
    if phase.duration is not None and cost.chip_hours is not None:
        count = math.ceil(cost.chip_hours * HOUR / phase.duration)
    chip = phase.system.chip.name if phase.system else ""
    return records.TrainingChips(
        chip, count, phase.mfu or 0.0, phase.duration and phase.duration / DAY
    )
