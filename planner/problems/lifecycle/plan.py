"""The plan of a lifecycle in the words of the interface: model, tokens, phases, chips, serving."""

from __future__ import annotations

import math
from typing import Any

from planner.problems.budget.budget_task import compute_optimal_tokens
from planner.problems.lifecycle.fixed_layout_optimum import FixedLayoutOptimum
from planner.text.errors import FieldError

HOUR = 3600.0
FORWARD = 2.0  # flop/(param*token)
PHASES = ("pretrain", "rl", "inference")
KEPT_BYTES = 16.0  # byte/param: weights, gradients and both moments in mixed precision
KEPT = 10  # checkpoints, for as long as the model is trained
STORAGE = 0.06 / 1e9 / (365.25 / 12 * 86400)  # USD/(byte*s)
STORAGE_TOLD = "$0.06 per GB and month, the dearest listed object store (CoreWeave, 2026-09-20)"
LONG = 90 * 86400.0  # training where no duration is given [s]


def plan_of(best: FixedLayoutOptimum) -> dict[str, Any]:
    """The plan in the words of the interface: the member in whole numbers."""
    whole, question, served = best.whole, best.answer.question, best.served
    costs = _costs(best)
    total = whole.total
    unique = question.unique
    spent = (whole.pretrain_cost, whole.rl_cost, whole.serving_cost)
    return {
        "n_active": whole.n_active,
        "n_total": served.member.n_total,
        "sparsity": served.member.n_total / whole.n_active,
        "model": _model(best),
        "tokens": {"pretrain": whole.pretrain, "rl": whole.rl, "inference": question.served},
        "epochs": max(1.0, whole.pretrain / unique) if unique is not None else None,
        "cost": costs,
        "share": {name: each / total for name, each in zip(PHASES, spent, strict=True)},
        "over_training": _overtrained(best),
        "tokens_per_parameter": whole.pretrain / whole.n_active,
        "loss": best.answer.loss,
        "law": question.law.name,
        "coefficients": dict(question.law.values),
        "objective": "usd",
        "chips": _chips(best, costs),
        "serving": served.plan,
        "usd_per_mtok": served.price * 1e6,
        "slope_of_price": best.slope,
        "checkpoints": _checkpoints(best, total),
    }


def _model(best: FixedLayoutOptimum) -> dict[str, Any]:
    """What the model is made of."""
    counted = best.served.member.sizes
    return {
        "name": counted.name,
        "family": best.served.member.family.name,
        "layers": counted.n_layers,
        "hidden": counted.hidden,
        "heads": counted.n_q_heads,
        "kv_heads": counted.n_kv_heads,
        "experts": counted.n_experts,
        "experts_active": counted.n_experts_active,
        "shared_experts": counted.n_shared_experts,
        "vocab": counted.vocab,
        "kv_bytes_per_token": counted.kv_bytes_per_token,
        "weight_bytes": counted.total_weight_bytes,
        "source": counted.source,
    }


def _costs(best: FixedLayoutOptimum) -> dict[str, dict[str, float | None]]:
    """USD, FLOP done and chip hours of each phase and in all, as a budget tells them."""
    whole, question, served = best.whole, best.answer.question, best.served
    plan, found = served.plan, dict[str, dict[str, float | None]]()
    tokens = {"pretrain": whole.pretrain, "rl": whole.rl}
    spent = {"pretrain": whole.pretrain_cost, "rl": whole.rl_cost}
    for name, usd in spent.items():
        phase = question.phases.get(name)
        flop = phase.arithmetic * whole.n_active * tokens[name] if phase else 0.0
        seconds = phase.chip_seconds(flop) if phase else 0.0
        found[name] = {
            "usd": usd, "flop": flop,
            "flop_paid": flop / (phase.mfu or 1.0) if phase else 0.0,
            "chip_hours": None if seconds is None else seconds / HOUR,
        }  # fmt: skip
    each_second = served.tokens_per_s / plan["chips"]
    found["inference"] = {
        "usd": whole.serving_cost,
        "flop": FORWARD * whole.n_active * question.served,
        "flop_paid": question.served / each_second * _peak(best),
        "chip_hours": question.served / each_second / HOUR,
    }
    found["total"] = {key: _sum(found[name][key] for name in PHASES) for key in found["rl"]}
    return found


def _peak(best: FixedLayoutOptimum) -> float:
    """Arithmetic peak for the weights of the model that is served [flop/s]."""
    task, plan = best.served.candidate.task, best.served.plan
    return task.peak(plan["weights"], bound=False)


def _sum(parts: Any) -> float | None:
    known = list(parts)
    return None if None in known else sum(known)


def _chips(best: FixedLayoutOptimum, costs: dict[str, dict[str, float | None]]) -> dict[str, Any]:
    """Chips of each phase: for training where a duration is given, for serving where a rate is."""
    found: dict[str, Any] = {}
    for name, phase in best.life.training(best.sparsity).items():
        hours = costs[name]["chip_hours"]
        count = None
        if phase.duration is not None and hours is not None:
            count = math.ceil(hours * HOUR / phase.duration)
        found[name] = {"chip": phase.system.chip.name, "count": count, "mfu": phase.by.mfu,
                       "days": phase.duration and phase.duration / 86400}  # fmt: skip
    served, demand = best.served, best.life.scenario.inference
    unit = served.plan["chips"]
    units = None
    if demand.rate is not None:
        units = math.ceil(demand.rate / served.tokens_per_s)
    found["inference"] = {
        "chip": served.plan["chip"], "count": units and units * unit, "units": units,
        "chips_per_unit": unit, "tokens_per_s_per_unit": served.tokens_per_s,
    }  # fmt: skip
    return found


def _overtrained(best: FixedLayoutOptimum) -> dict[str, float | None] | float | None:
    """Tokens over those that are compute-optimal for the size."""
    try:
        tokens = compute_optimal_tokens(best.answer.question.terms, best.whole.n_active)
    except FieldError:
        return None  # a law without a term in tokens has no compute-optimal ones
    return best.whole.pretrain / tokens


def _checkpoints(best: FixedLayoutOptimum, total: float) -> dict[str, Any]:
    """What keeping checkpoints costs, to show that it may be left out."""
    kept = KEPT_BYTES * best.served.member.n_total
    seconds = best.life.scenario.phases.pretrain.duration or LONG
    usd = KEPT * kept * seconds * STORAGE
    return {
        "bytes": kept, "count": KEPT, "seconds": seconds, "usd": usd, "share": usd / total,
        "assumes": STORAGE_TOLD,
    }  # fmt: skip


def short(settled: FixedLayoutOptimum) -> dict[str, Any]:
    """Another sparsity, in short."""
    whole = settled.whole
    return {
        "sparsity": settled.sparsity, "n_active": whole.n_active,
        "n_total": settled.served.member.n_total, "tokens": {"pretrain": whole.pretrain},
        "cost": {"total": {"usd": whole.total}}, "usd_per_mtok": settled.served.price * 1e6,
    }  # fmt: skip
