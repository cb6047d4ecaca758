"""The numbers of a lifecycle's plan, each the value of one equation, and their check."""

import math
from dataclasses import replace

from planner.problems.lifecycle import plan as records
from planner.problems.lifecycle.search.optimal_size import FixedLayoutOptimum
from planner.token_costs.outputs import life_point, recheck_shared, refuse, value_of, walked
from planner.token_costs.phase_costs import PhaseCost, spending, symbol_values
from planner.token_costs.spending import LifeSpending, PhaseTokens, Spending, TrainedTokens

HOUR, DAY = 3600.0, 86400.0
CHECKPOINT_BYTES = 16.0  # byte/param: weights, gradients and both moments in mixed precision
CHECKPOINTS = 10  # at once, for as long as the model is trained
STORAGE = 0.06 / 1e9 / (365.25 / 12 * DAY)  # USD/(byte*s)
STORAGE_SOURCE = "$0.06 per GB and month, the dearest listed object store (CoreWeave, 2026-09-20)"
LONG = 90 * DAY  # training where no duration is given [s]


def point_of(best: FixedLayoutOptimum) -> records.LifecyclePoint:
    """The plan of an optimum: the member in whole numbers, every number by its equation."""
    whole, budget, served = best.whole, best.answer.task, best.served
    tokens = PhaseTokens(whole.pretrain, whole.rl, budget.served)
    cost, counted = _spending(best, tokens), served.member.n_total
    alike = life_point(budget, whole.n_active, tokens, cost, budget.unique)
    return records.LifecyclePoint(
        **vars(replace(alike, n_total=counted, sparsity=counted / whole.n_active)),
        model=_shape(best),
        chips=_chips(best, cost),
        serving=served.plan,
        usd_per_mtok=served.price * 1e6,
        slope_of_price=best.slope,
        checkpoints=_checkpoints(best, cost.total.usd or math.nan),
    )


def short(best: FixedLayoutOptimum) -> records.OtherSparsity:
    """Another sparsity, in short."""
    whole, served = best.whole, best.served
    return records.OtherSparsity(
        sparsity=best.sparsity, n_active=whole.n_active, n_total=served.member.n_total,
        tokens=TrainedTokens(whole.pretrain), usd_per_mtok=served.price * 1e6,
        cost=records.TotalCost(records.TotalUsd(whole.total)),
    )  # fmt: skip


def recheck(point: records.LifecyclePoint, best: FixedLayoutOptimum) -> None:
    """Every number of a plan again, the objective first, by walking its equation.

    Raises SolverError for a number that its equation does not give.
    """
    from formulas.scaling import budget_outputs as outputs

    cost = point.cost
    refuse("the objective", cost.total.usd, best.whole.total)
    values = _symbols(best, point.tokens)
    refuse("cost.total.usd", cost.total.usd, walked(outputs.served_life_cost, values))
    refuse("cost.total.flop", cost.total.flop, walked(outputs.done_arithmetic, values))
    recheck_shared(point, best.answer.task)
    refuse("share", math.fsum(vars(point.share).values()), 1.0)
    refuse("usd_per_mtok", point.usd_per_mtok, best.served.at(point.n_active) * 1e6)


def _symbols(best: FixedLayoutOptimum, tokens: PhaseTokens) -> dict[str, float]:
    """{symbol: value} of a whole life: served tokens at their price beside the FLOP of training."""
    values = symbol_values(best.answer.task.phases, best.whole.n_active, tokens)
    return {**values, "D_inf": tokens.inference, "C_mix": best.served.price}


def _spending(best: FixedLayoutOptimum, tokens: PhaseTokens) -> LifeSpending:
    """USD, FLOP done and paid for and chip hours of each phase and in all."""
    from formulas.scaling import budget_outputs as outputs

    served, values = best.served, _symbols(best, tokens)
    training = spending({**values, "D_inf": 0.0})
    alone = {**values, "D_pt": 0.0, "D_rl": 0.0}
    rented = tokens.inference / served.tokens_per_chip_second
    inference = Spending(
        usd=value_of(outputs.served_life_cost, **alone),
        flop=value_of(outputs.done_arithmetic, **alone),
        flop_paid=rented * served.peak,
        chip_hours=rented / HOUR,
    )
    phases = (training.pretrain, training.rl, inference)
    columns = zip(*(vars(phase).values() for phase in phases), strict=True)
    return LifeSpending(*phases, Spending(*map(sum, columns)))


def _shape(best: FixedLayoutOptimum) -> records.ModelShape:
    """What the model is made of."""
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


def _chips(best: FixedLayoutOptimum, cost: LifeSpending) -> records.LifeChips:
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
        return records.ReinforcedChips(training["pretrain"], serving, training["rl"])
    return records.LifeChips(training["pretrain"], serving)


def _of_training(phase: PhaseCost, cost: Spending) -> records.TrainingChips:
    count = None
    if phase.duration is not None and cost.chip_hours is not None:
        count = math.ceil(cost.chip_hours * HOUR / phase.duration)
    chip = phase.system.chip.name if phase.system else ""
    return records.TrainingChips(
        chip, count, phase.mfu or 0.0, phase.duration and phase.duration / DAY
    )


def _checkpoints(best: FixedLayoutOptimum, total: float) -> records.Checkpoints:
    """What keeping checkpoints costs, to show that it may be left out."""
    size = CHECKPOINT_BYTES * best.served.member.n_total
    seconds = best.life.scenario.phases.pretrain.duration or LONG
    usd = CHECKPOINTS * size * seconds * STORAGE
    return records.Checkpoints(size, CHECKPOINTS, seconds, usd, usd / total, STORAGE_SOURCE)
