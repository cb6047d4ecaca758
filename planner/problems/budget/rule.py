"""A law that only says how to split an arithmetic: its size and tokens, read off, not optimised."""

from __future__ import annotations

from typing import Any

from planner.laws.allocation import allocation
from planner.laws.scaling import ScalingLaw
from planner.problems.budget.phase_costs import PhaseCost, costs
from planner.scenario import BudgetScenario
from planner.text.errors import FieldError

__all__ = ["RULES", "ruled", "ruled_plan"]

RULES = ("allocation", "ratio")
METHOD = "the law's own rule for an arithmetic of training; nothing was weighed against it"


def ruled(law: ScalingLaw, scenario: BudgetScenario) -> bool:
    """Whether the law is such a rule, asked for what a rule can say.

    Raises FieldError for a rule that is asked for a quality, or for more than pre-training.
    """
    if law.form not in RULES:
        return False
    if scenario.cost is None or scenario.used != ("pretrain",):
        raise FieldError(
            ("law", f"{law.name}: {law.lacks['loss']}; it answers cost: without inference and rl")
        )
    return True


def ruled_plan(law: ScalingLaw, scenario: BudgetScenario, phase: PhaseCost) -> dict[str, Any]:
    """Document parts of the size and tokens for the arithmetic that the cost pays for."""
    limit = scenario.cost.value if scenario.cost is not None else 0.0
    flop = limit / phase.weight(scenario.in_usd)
    found = allocation(law, flop, flop_per=phase.arithmetic)
    tokens = {"pretrain": found.d, "rl": 0.0, "inference": 0.0}
    nothing = dict.fromkeys(("epochs", "over_training", "over_training_from_pools", "loss"))
    plan = {
        "n_active": found.n,
        "n_total": found.n,
        "sparsity": 1.0,
        "tokens": tokens,
        **nothing,
        "cost": costs({"pretrain": phase}, found.n, tokens),
        "share": {"pretrain": 1.0, "rl": 0.0, "inference": 0.0},
        "tokens_per_parameter": found.d / found.n,
        "law": law.name,
        "coefficients": dict(law.values),
        "objective": "usd" if scenario.in_usd else "flop",
        "phases": {"pretrain": phase.document()},
    }
    certificate: dict[str, Any] = {
        "method": METHOD, "objective": None, "relaxation": None, "gap": None,
        "points_considered": 1, "multiplier": None, "differences": {},
    }  # fmt: skip
    return {"plan": plan, "certificate": certificate}
