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

from planner.problems.budget.budget_task import compute_optimal_tokens
from planner.problems.budget.check import conditions
from planner.problems.lifecycle import presentation
from planner.problems.lifecycle.comparisons import (
    ServingPrices,
    equal_pools,
    flat_price,
    interval,
    lifecycle_curve,
    serving_prices,
)
from planner.problems.lifecycle.fixed_layout_optimum import FixedLayoutOptimum, training_curve
from planner.problems.lifecycle.joint_program import joint_optimum
from planner.problems.lifecycle.parameters import lifecycle_elasticities, overtraining_from_pools
from planner.problems.lifecycle.plan import plan_of, short
from planner.problems.lifecycle.question import LifecycleScenario
from planner.problems.lifecycle.resolve import (
    LifecycleTask,
    resolve_life,
    training_data,
    training_warnings,
)
from planner.problems.lifecycle.search import FINE, Unserved, optimal_size
from planner.problems.serving.answer import band
from planner.protocol.plan import MappingPlan, Plan
from planner.scenario import resolved
from planner.text.errors import FieldError, SolverError

AGREE = 1e-6  # of the two solvers of the first-order conditions, in logarithms
METHOD = (
    "training at {fine} sizes, the serving planner at {asked} of them, then tangent monomials of "
    "the price on the layouts found, each a geometric program, until the size stays; SciPy on the "
    "first-order conditions agrees; every sparsity by itself"
)


class LifecyclePlan(MappingPlan):
    """The answer to a lifecycle question."""

    kind = "lifecycle"


def answer(scenario: LifecycleScenario) -> Plan:
    """The model whose whole life costs least at the quality asked for.

    Raises
    ------
    InputError
        For a question that its law, its family or its machines cannot answer.
    SolverError
        If two solvers differ about the optimum.
    """
    life = resolve_life(scenario)
    found = [optimal_size(life, sparsity) for sparsity in life.sparsities]
    settled = sorted(
        (each for each in found if isinstance(each, FixedLayoutOptimum)),
        key=lambda each: each.whole.total,
    )
    told = [*life.left_out, *life.serving.warnings]
    if not settled:
        return _none(life, found, told)
    best = settled[0]
    told += _outside(best, scenario)
    told += training_warnings(life.training(best.sparsity), datetime.now(UTC).date())
    worth, rates = lifecycle_elasticities(best), serving_prices(best)
    rows = lifecycle_curve(best, rates)
    document = {
        **_head(scenario, "optimal"),
        "plan": plan_of(best),
        "band": interval(best, rates),
        **_of_serving(best),
        "certificate": _certificate(best, rates),
        "binding": _binding(best, worth),
        "elasticities": worth,
        "alternatives": [short(each) for each in settled[1:]],
        "heuristic": equal_pools(rows, best.whole.total),
        "flat_price": flat_price(best, rates, best.whole.total),
        "curve": rows,
        "asked": _asked(best),
        "demand": {"tokens": life.demand.total, "counted": life.demand.counted},
        "infeasible": None,
        "provenance": _provenance(life, best.sparsity, told),
    }
    return LifecyclePlan(dict, document, worth, tuple(told), presentation)


def _of_serving(best: FixedLayoutOptimum) -> dict[str, Any]:
    """Where measured runs put the plan that serves, and its roofline; idle time is paid too."""
    served = best.served
    found = band(served.candidate, served.plan)
    if found is not None and found["usd_per_mtok"] is not None:
        found["usd_per_mtok"] = [each / served.utilisation for each in found["usd_per_mtok"]]
    least = served.candidate.floor()["usd_per_mtok"] / served.utilisation
    return {"serving_band": found, "bound": {"usd_per_mtok": least}}


def _certificate(best: FixedLayoutOptimum, rates: ServingPrices) -> dict[str, Any]:
    """How the optimum was found and checked; no bound over all sizes is proven."""
    found = conditions(best.answer.budgets)
    difference = None
    if found is not None and best.answer.budgets.choices:
        difference = float(abs(found[0] - best.answer.point[0]).max())
        if difference > AGREE:
            raise SolverError(
                f"two solvers differ about the size and tokens by {difference:.2g} (in logarithms)"
            )
    smooth, whole, program = best.answer, best.whole, joint_optimum(best)
    apart = None
    if program is not None:
        apart = max(
            abs(math.log(one / other))
            for one, other in (
                (program.n_active, smooth.n_active),
                (program.pretrain, smooth.pretrain),
                (program.cost, smooth.total),
            )
        )
        if apart > AGREE:
            raise SolverError(
                f"the search and the one program of size, tokens and batch differ by {apart:.2g} "
                "(in logarithms)"
            )
    identity = overtraining_from_pools(best)
    tokens = compute_optimal_tokens(smooth.question.terms, smooth.n_active) if identity else None
    return {
        "method": METHOD.format(fine=FINE, asked=len(best.asked)),
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
        "program": program and {"usd": program.cost, "lower_bound": program.lower_bound},
        "differences": {"scipy": difference, "program": apart},
    }  # fmt: skip


def _binding(best: FixedLayoutOptimum, worth: dict[str, float]) -> list[dict[str, Any]]:
    """The limits that hold the answer, with d ln(cost) / d ln(limit)."""
    answer = best.answer
    found = [{"name": "loss", "elasticity": -answer.loss * answer.loss_price}]
    for name in ("ttft", "tpot", "e2e"):
        slope = worth.get(f"serving.promises.{name}")
        if slope:
            found.append({"name": f"{name} is kept in serving", "elasticity": slope})
    for name in ("choose.smallest", "choose.largest", "serving.largest", "data.unique"):
        if name in worth:
            found.append({"name": name, "elasticity": worth[name]})
    memory = worth.get("serving.system.memory")
    if memory:
        found.append({"name": "kv and weights fit in serving", "elasticity": memory})
    return found


def _asked(best: FixedLayoutOptimum) -> list[dict[str, Any]]:
    """Every size at which the serving planner was asked, smallest first, with what its life costs.

    Null where no unit serves it; the costs are null where it cannot be as good as asked.
    """
    question = best.answer.question
    pairs = sorted(best.asked, key=lambda pair: pair[0])
    sizes = [served.member.n_active if served else size for size, served in pairs]
    trained = training_curve(question, sizes)
    rows = []
    for place, (_, served) in enumerate(pairs):
        plan, usd = served.plan if served else None, float(trained.training[place])
        whole = served is not None and math.isfinite(usd)
        serving = served.price * question.served if served else 0.0
        rows.append({
            "n_active": sizes[place],
            "usd_per_mtok": served.price * 1e6 if served else None,
            "chip": plan["chip"] if plan else None,
            "chips": plan["chips"] if plan else None,
            "mode": plan["mode"] if plan else None,
            "pretrain": float(trained.tokens[place]) if whole else None,
            "training_usd": usd if whole else None,
            "serving_usd": serving if whole else None,
            "total_usd": usd + serving if whole else None,
        })  # fmt: skip
    return rows


def _outside(best: FixedLayoutOptimum, scenario: LifecycleScenario) -> list[str]:
    """Sentences on what lies beyond the law's range; refused where that is asked for."""
    law = best.answer.question.law
    told = law.outside(best.whole.n_active, best.whole.pretrain, best.answer.question.sparsity)
    if told and scenario.extrapolate is False:
        raise FieldError(("law", f"{'; '.join(told)}; extrapolate: true answers all the same"))
    return told


def _none(
    life: LifecycleTask, found: Sequence[FixedLayoutOptimum | Unserved], told: list[str]
) -> Plan:
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
    keys = ("plan", "band", "serving_band", "bound", "heuristic", "flat_price", "curve", "asked")
    document = {
        **_head(life.scenario, "infeasible"),
        **dict.fromkeys(keys),
        "certificate": {
            "method": "no choice comes closer",
            **dict.fromkeys(("objective", "relaxation", "gap", "smooth", "multiplier")),
        },
        "binding": [],
        "elasticities": {},
        "alternatives": [],
        "demand": {"tokens": life.demand.total, "counted": life.demand.counted},
        "infeasible": [why],
        "provenance": _provenance(life, life.sparsities[0], told),
    }
    return LifecyclePlan(dict, document, {}, tuple(told), presentation)


def _head(scenario: LifecycleScenario, status: str) -> dict[str, Any]:
    return {"problem": "lifecycle", "status": status, "scenario": resolved(scenario)}


def _provenance(life: LifecycleTask, sparsity: float, warnings: Sequence[str]) -> dict[str, Any]:
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
