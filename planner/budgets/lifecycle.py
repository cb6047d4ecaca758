"""The answer to a lifecycle: one model, its tokens, its hardware, and what every phase costs.

Serving is the serving planner's optimum for the very model that is chosen, so the price of a token
is an outcome here, not a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from planner.budgets.check import conditions
from planner.budgets.life import Life, life_of, training_data, training_warnings
from planner.budgets.lifecycle_beside import (
    Rates,
    equal_pools,
    flat_price,
    interval,
    life_curve,
    rates_of,
)
from planner.budgets.lifecycle_search import Settled, Unserved, searched
from planner.budgets.lifecycle_worth import lifecycle_elasticities, overtraining_identity
from planner.budgets.question import compute_optimal_tokens
from planner.errors import FieldError, SolverError
from planner.plan import Plan
from planner.scenario import resolved
from planner.scenario.lifecycle import LifecycleScenario
from planner.serving.answer import band

__all__ = ["answer"]

HOUR = 3600.0
FORWARD = 2.0  # flop/(param*token)
PHASES = ("pretrain", "rl", "inference")
AGREE = 1e-6  # of the two solvers of the first-order conditions, in logarithms
KEPT_BYTES = 16.0  # byte/param: weights, gradients and both moments in mixed precision
KEPT = 20  # checkpoints, for as long as the model is trained and served
STORAGE = 0.06 / 1e9 / (365.25 / 12 * 86400)  # USD/(byte*s)
STORAGE_TOLD = "$0.06 per GB and month, the dearest listed object store (CoreWeave, 2026-09-20)"
YEAR = 365.25 * 86400
METHOD = (
    "training at {fine} sizes, the serving planner at {asked} of them, then tangent monomials of "
    "the price on the layouts found, each a geometric program, until the size stays; SciPy on the "
    "first-order conditions agrees; every sparsity by itself"
)


def answer(scenario: LifecycleScenario) -> Plan:
    """The model whose whole life costs least at the quality asked for.

    Raises
    ------
    InputError
        For a question that its law, its family or its machines cannot answer.
    SolverError
        If two solvers differ about the optimum.
    """
    life = life_of(scenario)
    found = [searched(life, sparsity) for sparsity in life.sparsities]
    settled = sorted(
        (each for each in found if isinstance(each, Settled)), key=lambda each: each.whole.total
    )
    told = list(life.serving.warnings)
    if not settled:
        return _none(life, found, told)
    best = settled[0]
    told += _outside(best, scenario)
    told += training_warnings(life.training(best.sparsity), datetime.now(UTC).date())
    worth, rates = lifecycle_elasticities(best), rates_of(best)
    rows = life_curve(best, rates)
    document = {
        **_head(scenario, "optimal"),
        "plan": _planned(best),
        "band": interval(best, rates),
        "serving_band": band(best.served.candidate, best.served.plan),
        "bound": {"usd_per_mtok": best.served.candidate.floor()["usd_per_mtok"]},
        "certificate": _certificate(best, rates),
        "binding": _binding(best, worth),
        "elasticities": worth,
        "alternatives": [_short(each) for each in settled[1:]],
        "heuristic": equal_pools(rows, best.whole.total),
        "flat_price": flat_price(best, rates, best.whole.total),
        "curve": rows,
        "asked": _asked(best),
        "demand": {"tokens": life.demand.total, "counted": life.demand.counted},
        "infeasible": None,
        "provenance": _provenance(life, best.sparsity, told),
    }
    return Plan(document, worth, tuple(told))


def _planned(best: Settled) -> dict[str, Any]:
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


def _model(best: Settled) -> dict[str, Any]:
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


def _costs(best: Settled) -> dict[str, dict[str, float | None]]:
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


def _peak(best: Settled) -> float:
    """Arithmetic peak for the weights of the model that is served [flop/s]."""
    task, plan = best.served.candidate.task, best.served.plan
    return task.peak(plan["weights"], bound=False)


def _sum(parts: Any) -> float | None:
    known = list(parts)
    return None if None in known else sum(known)


def _chips(best: Settled, costs: dict[str, dict[str, float | None]]) -> dict[str, Any]:
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


def _overtrained(best: Settled) -> dict[str, float | None] | float | None:
    """Tokens over those that are compute-optimal for the size."""
    try:
        tokens = compute_optimal_tokens(best.answer.question.terms, best.whole.n_active)
    except FieldError:
        return None  # a law without a term in tokens has no compute-optimal ones
    return best.whole.pretrain / tokens


def _checkpoints(best: Settled, total: float) -> dict[str, Any]:
    """What keeping checkpoints costs, to show that it may be left out."""
    kept = KEPT_BYTES * best.served.member.n_total
    life = best.life.scenario.inference.lifetime
    seconds = YEAR if life is None or math.isinf(life) else life
    usd = KEPT * kept * seconds * STORAGE
    return {
        "bytes": kept, "count": KEPT, "seconds": seconds, "usd": usd, "share": usd / total,
        "assumes": STORAGE_TOLD,
    }  # fmt: skip


def _certificate(best: Settled, rates: Rates) -> dict[str, Any]:
    """How the optimum was found and checked; no bound over all sizes is proven."""
    found = conditions(best.answer.budgets)
    difference = None
    if found is not None and best.answer.budgets.choices:
        difference = float(abs(found[0] - best.answer.point[0]).max())
        if difference > AGREE:
            raise SolverError(
                f"two solvers differ about the size and tokens by {difference:.2g} (in logarithms)"
            )
    smooth, whole = best.answer, best.whole
    identity = overtraining_identity(best)
    tokens = compute_optimal_tokens(smooth.question.terms, smooth.n_active) if identity else None
    return {
        "method": METHOD.format(fine=241, asked=len(best.asked)),
        "objective": whole.total,
        "relaxation": None,
        "gap": None,
        "smooth": {"n_active": smooth.n_active, "pretrain": smooth.pretrain, "usd": smooth.total},
        "whole_over_smooth": whole.total / smooth.total - 1,
        "over_training": {
            "ratio": smooth.pretrain / tokens if tokens else None, "from_pools": identity,
        },
        "interpolation_error": rates.error,
        "multiplier": smooth.multiplier,
        "differences": {"scipy": difference},
    }  # fmt: skip


def _binding(best: Settled, worth: dict[str, float]) -> list[dict[str, Any]]:
    """The limits that hold the answer, with d ln(cost) / d ln(limit)."""
    answer = best.answer
    found = [{"name": "loss", "elasticity": -answer.loss * answer.worth_of_loss}]
    for name in ("ttft", "tpot", "e2e"):
        slope = worth.get(f"serving.promises.{name}")
        if slope:
            found.append({"name": f"{name} is kept in serving", "elasticity": slope})
    memory = worth.get("serving.system.memory")
    if memory:
        found.append({"name": "kv and weights fit in serving", "elasticity": memory})
    return found


def _short(settled: Settled) -> dict[str, Any]:
    """Another sparsity, in short."""
    whole = settled.whole
    return {
        "sparsity": settled.sparsity, "n_active": whole.n_active,
        "n_total": settled.served.member.n_total, "tokens": {"pretrain": whole.pretrain},
        "cost": {"total": {"usd": whole.total}}, "usd_per_mtok": settled.served.price * 1e6,
    }  # fmt: skip


def _asked(best: Settled) -> list[dict[str, Any]]:
    """Every size at which the serving planner was asked, smallest first."""
    rows = []
    for size, served in sorted(best.asked, key=lambda pair: pair[0]):
        plan = served.plan if served else None
        rows.append({
            "n_active": size,
            "usd_per_mtok": served.price * 1e6 if served else None,
            "chip": plan["chip"] if plan else None,
            "chips": plan["chips"] if plan else None,
            "mode": plan["mode"] if plan else None,
        })  # fmt: skip
    return rows


def _outside(best: Settled, scenario: LifecycleScenario) -> list[str]:
    """Sentences on what lies beyond the law's range; refused where that is asked for."""
    law = best.answer.question.law
    told = law.outside(best.whole.n_active, best.whole.pretrain, best.answer.question.sparsity)
    if told and scenario.extrapolate is False:
        raise FieldError(("law", f"{'; '.join(told)}; extrapolate: true answers all the same"))
    return told


def _none(life: Life, found: Sequence[Settled | Unserved], told: list[str]) -> Plan:
    """The document of a question without answer."""
    missed = [each for each in found if isinstance(each, Unserved)]
    reasons = [each.law for each in missed if each.law is not None]
    if reasons:
        nearest = min(reasons, key=lambda each: each.short_by)
        why = {"promise": nearest.promise, "short_by": nearest.short_by,
               "expression": nearest.reason}  # fmt: skip
    else:
        sizes = sorted(size for each in missed for size in each.sizes)
        why = {
            "promise": "serving", "short_by": None,
            "expression": (
                f"no unit of these chips keeps the promises for any model of {sizes[0]:.3g} to "
                f"{sizes[-1]:.3g} active parameters; planner solve with problem: serving says by "
                "how much"
            ),
        }  # fmt: skip
    keys = ("plan", "band", "serving_band", "bound", "certificate", "heuristic", "flat_price",
            "curve", "asked")  # fmt: skip
    document = {
        **_head(life.scenario, "infeasible"),
        **dict.fromkeys(keys),
        "binding": [],
        "elasticities": {},
        "alternatives": [],
        "demand": {"tokens": life.demand.total, "counted": life.demand.counted},
        "infeasible": [why],
        "provenance": _provenance(life, life.sparsities[0], told),
    }
    return Plan(document, {}, tuple(told))


def _head(scenario: LifecycleScenario, status: str) -> dict[str, Any]:
    return {"problem": "lifecycle", "status": status, "scenario": resolved(scenario)}


def _provenance(life: Life, sparsity: float, warnings: Sequence[str]) -> dict[str, Any]:
    """What an answer rests on: version, law, sources with their dates, warnings."""
    law = life.law
    data = [
        {"what": f"law {law.name}", "source": law.source, "as_of": law.as_of},
        *training_data(life.training(sparsity)),
        *life.serving.data,
    ]
    return {
        "version": version("token-planner"),
        "law": {"name": law.name, "title": law.title, "scope": law.scope, "note": law.note},
        "data": data,
        "warnings": list(warnings),
    }
