"""The answer to a scenario of token budgets: size and tokens, the cost of each phase, the proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from planner.laws.scaling_law import ScalingLaw
from planner.problems.budget import presentation
from planner.problems.budget.certificate import Proof, proof
from planner.problems.budget.comparisons import compute_optimal, equal_pools, interval, overtraining
from planner.problems.budget.optimum import BudgetOptimum, NoBudget, Solved, solve_many
from planner.problems.budget.parameters import elasticities
from planner.problems.budget.phase_costs import costs
from planner.problems.budget.resolve import (
    ResolvedBudget,
    questions_for,
    resolve_budget,
    ruled,
    ruled_plan,
)
from planner.problems.budget.shortfall import least_loss
from planner.protocol.plan import MappingPlan, Plan
from planner.scenario import BudgetScenario, resolved
from planner.text.errors import FieldError

ALTERNATIVES = 3
ONE_EPOCH = 1.0


class BudgetPlan(MappingPlan):
    """The answer to a budget question."""

    kind = "budget"


def answer(scenario: BudgetScenario) -> Plan:
    """The size, sparsity and tokens of least cost, or of least loss.

    Raises
    ------
    InputError
        For a question that its law cannot answer.
    SolverError
        If the program, its first-order conditions and the law do not agree on the answer.
    """
    asked = resolve_budget(scenario)
    if not asked.questions:
        return _by_rule(asked)
    solved = solve_many(asked.questions)
    ranked = sorted(
        (each for each in solved if isinstance(each, BudgetOptimum)), key=lambda each: each.score
    )
    if not ranked:
        return _none(asked, solved)
    best = ranked[0]
    told = (*asked.warnings, *_outside(best, scenario), *_of_the_data(best))
    proven, worth = proof(best), elasticities(best, scenario)
    band = interval(best, scenario.draws, scenario.coverage)
    document = {
        **_head(scenario, "optimal"),
        "plan": plan_of(best),
        "band": band,
        "bound": _bound(best, proven),
        "certificate": proven.document(best, len(asked.questions)),
        "binding": _binding(best, worth),
        "elasticities": worth,
        "alternatives": [plan_of(each) for each in ranked[1 : 1 + ALTERNATIVES]],
        "heuristic": equal_pools(best),
        "compute_optimal": compute_optimal(best),
        "demand": _demand(asked),
        "laws": [_by(law, asked) for law in asked.others] or None,
        "infeasible": None,
        "provenance": _provenance(asked, told),
    }
    return BudgetPlan(dict, document, worth, told, presentation)


def answers(scenarios: Sequence[BudgetScenario]) -> list[Solved]:
    """The best answer to each of many scenarios, on the first-order conditions alone.

    For sweeps: all questions are one call, nothing stands beside them, and what is proven of each
    is its `gap`. A rule for an arithmetic has none and raises FieldError.
    """
    asked = [resolve_budget(each) for each in scenarios]
    for each in asked:
        each.law.need("loss")
    solved = iter(solve_many([question for each in asked for question in each.questions]))
    best: list[Solved] = []
    for each in asked:
        found = [next(solved) for _ in each.questions]
        answered = [one for one in found if isinstance(one, BudgetOptimum)]
        nothing = [one for one in found if isinstance(one, NoBudget)]
        if answered:
            best.append(min(answered, key=lambda one: one.score))
        else:
            best.append(min(nothing, key=lambda one: one.short_by))
    return best


def plan_of(best: BudgetOptimum) -> dict[str, Any]:
    """The plan of an answer, in the words of the interface."""
    question, ratio = best.question, overtraining(best)
    tokens = {"pretrain": best.pretrain, "rl": best.rl, "inference": question.served}
    unique = None if best.data_bound else question.unique
    return {
        "n_active": best.n_active,
        "n_total": best.n_active * question.sparsity,
        "sparsity": question.sparsity,
        "tokens": tokens,
        "epochs": max(ONE_EPOCH, best.pretrain / unique) if unique else ONE_EPOCH,
        "cost": costs(question.phases, best.n_active, tokens),
        "share": {name: each / best.total for name, each in zip(tokens, best.cost, strict=True)},
        "over_training": None if ratio is None else ratio.ratio,
        "over_training_from_pools": None if ratio is None else ratio.from_pools,
        "tokens_per_parameter": best.pretrain / best.n_active,
        "loss": best.loss,
        "law": question.law.name,
        "coefficients": dict(question.law.values),
        "objective": "usd" if question.in_usd else "flop",
        "phases": {name: phase.document() for name, phase in question.phases.items()},
    }


def _bound(best: BudgetOptimum, proven: Proof) -> dict[str, float | None]:
    """What no choice goes below, at what is asked."""
    question = best.question
    aim = "loss" if question.aim == "quality" else "usd" if question.in_usd else "flop_paid"
    found: dict[str, float | None] = dict.fromkeys(("usd", "flop_paid", "loss"))
    found[aim] = proven.lower_bound
    return {**found, "least_loss": least_loss(question)}


def _binding(best: BudgetOptimum, worth: dict[str, float]) -> list[dict[str, Any]]:
    """The limits that hold the answer, with d ln(what is made small) / d ln(limit)."""
    question = best.question
    found: list[dict[str, Any]] = []
    if not best.multiplier:
        pass  # nothing is left to choose: the limit is kept with room
    elif question.required is None:
        found = [{"name": "cost", "elasticity": worth["cost"]}]
    else:
        found = [{"name": "loss", "elasticity": -best.loss * best.loss_price}]
    if best.data_bound:
        found.append({"name": "unique data", "elasticity": worth["data.unique"]})
    found += [
        {"name": path, "elasticity": worth[path]}
        for path in (_path(name) for name in question.fixed_choices)
    ]
    return found


def _path(held: str) -> str:
    """Where a choice of one value stands in the scenario."""
    return "rl.tokens" if held == "rl" else f"choose.{held}"


def _outside(best: BudgetOptimum, scenario: BudgetScenario) -> tuple[str, ...]:
    """Sentences on what lies beyond the law's fitted range; refused where that is asked for."""
    question = best.question
    epochs = None
    if question.repeats and question.unique is not None:
        epochs = max(ONE_EPOCH, best.pretrain / question.unique)
    told = question.law.outside(best.n_active, best.pretrain, epochs=epochs)
    return _allowed(told, scenario)


def _allowed(told: list[str], scenario: BudgetScenario) -> tuple[str, ...]:
    """The sentences as warnings; refused where the scenario does not extrapolate."""
    if told and scenario.extrapolate is False:
        raise FieldError(("law", f"{'; '.join(told)}; extrapolate: true answers all the same"))
    return tuple(told)


def _of_the_data(best: BudgetOptimum) -> tuple[str, ...]:
    """A sentence where the data runs out and the law does not know what repeating it does."""
    if not best.data_bound:
        return ()
    name, unique = best.question.law.name, best.question.unique
    return (
        f"the law {name} says nothing of repeated data: training ends with the {unique:.3g} unique "
        "tokens (muennighoff-2023 knows what repeating them is worth)",
    )


def _by(law: ScalingLaw, asked: ResolvedBudget) -> dict[str, Any]:
    """The same question by another law; a loss is a number of the first law's data."""
    try:
        if ruled(law, asked.scenario):
            parts = ruled_plan(law, asked.scenario, asked.phases["pretrain"])
            return {"law": law.name, "plan": parts["plan"], "why_not": None}
        questions, _ = questions_for(law, asked.scenario, asked.phases, asked.served)
    except FieldError as error:
        return {"law": law.name, "plan": None, "why_not": str(error)}
    solved = solve_many(questions)
    answers = [each for each in solved if isinstance(each, BudgetOptimum)]
    if not answers:
        why = next(each.reason for each in solved if isinstance(each, NoBudget))
        return {"law": law.name, "plan": None, "why_not": why}
    found = min(answers, key=lambda each: each.score)
    return {"law": law.name, "plan": plan_of(found), "why_not": None}


def _by_rule(asked: ResolvedBudget) -> Plan:
    """The document of a rule for an arithmetic: a size and tokens, and no loss."""
    scenario, law = asked.scenario, asked.law
    parts = ruled_plan(law, scenario, asked.phases["pretrain"])
    plan = parts["plan"]
    tokens, flop = plan["tokens"]["pretrain"], plan["cost"]["pretrain"]["flop"]
    beyond = law.outside(plan["n_active"], tokens, arithmetic=flop)
    told = (*asked.warnings, *_allowed(beyond, scenario))
    keys = ("band", "bound", "heuristic", "compute_optimal", "laws", "infeasible")
    document = {
        **_head(scenario, "optimal"),
        **dict.fromkeys(keys),
        **parts,
        "binding": [],
        "elasticities": {},
        "alternatives": [],
        "demand": _demand(asked),
        "provenance": _provenance(asked, told),
    }
    return BudgetPlan(dict, document, {}, told, presentation)


def _none(asked: ResolvedBudget, solved: Sequence[Solved]) -> Plan:
    """The document of a question without answer: what falls short, and by how much."""
    nearest = min(
        (each for each in solved if isinstance(each, NoBudget)), key=lambda each: each.short_by
    )
    keys = ("plan", "band", "bound", "heuristic", "compute_optimal", "laws")
    document = {
        **_head(asked.scenario, "infeasible"),
        **dict.fromkeys(keys),
        "certificate": {
            "method": "no choice comes closer", "objective": None, "relaxation": None, "gap": None,
            "points_considered": len(asked.questions), "multiplier": None, "differences": {},
        },
        "binding": [],
        "elasticities": {},
        "alternatives": [],
        "demand": _demand(asked),
        "infeasible": [
            {"promise": nearest.promise, "short_by": nearest.short_by,
             "expression": nearest.reason}
        ],
        "provenance": _provenance(asked, asked.warnings),
    }  # fmt: skip
    return BudgetPlan(dict, document, {}, asked.warnings, presentation)


def _demand(asked: ResolvedBudget) -> dict[str, float | None]:
    """Tokens served if the model is not overtaken, None without end, and what they count as."""
    total = asked.served.total
    return {"tokens": total if math.isfinite(total) else None, "counted": asked.served.counted}


def _head(scenario: BudgetScenario, status: str) -> dict[str, Any]:
    return {"problem": "budget", "status": status, "scenario": resolved(scenario)}


def _provenance(asked: ResolvedBudget, warnings: Sequence[str]) -> dict[str, Any]:
    """What an answer rests on: version, law, sources with their dates, warnings."""
    law = asked.law
    return {
        "version": version("token-planner"),
        "law": {
            "name": law.name,
            "form": law.form,
            "title": law.title,
            "scope": law.scope,
            "note": law.note,
        },
        "data": list(asked.data),
        "warnings": list(warnings),
    }
