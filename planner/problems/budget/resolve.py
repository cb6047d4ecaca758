"""A scenario of token budgets as questions: one for every combination of the named choices.

A law that only says how to split an arithmetic: its size and tokens, read off, not optimised.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from planner.catalogue import models
from planner.laws.allocation import allocation
from planner.laws.laws import scaling_law
from planner.laws.scaling_law import ScalingLaw
from planner.problems.budget.budget_task import BudgetTask, LossTerm, Required
from planner.problems.budget.phase_costs import (
    PhaseCost,
    ServedTokens,
    costs,
    phase_costs,
    rl_flop_needed,
    served,
)
from planner.scenario import BudgetScenario, File
from planner.text.errors import FieldError

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


HELD = ("n_active", "pretrain")


@dataclass(frozen=True)
class ResolvedBudget:
    """What a scenario asks, in numbers.

    `questions` are those of the first law, none for a rule that only splits an arithmetic;
    `others` the further laws to stand beside it.
    """

    scenario: BudgetScenario
    law: ScalingLaw
    questions: tuple[BudgetTask, ...]
    others: tuple[ScalingLaw, ...]
    phases: dict[str, PhaseCost]
    served: ServedTokens
    warnings: tuple[str, ...]
    data: tuple[dict[str, Any], ...]


def resolve_budget(scenario: BudgetScenario) -> ResolvedBudget:
    """The questions of a scenario; raises InputError for what cannot be asked of its law."""
    laws = [_law(each) for each in scenario.laws]
    needed = (*scenario.used, *("rl" for law in laws if "rl" not in law.lacks))
    used = {name: getattr(scenario.phases, name) for name in dict.fromkeys(needed)}
    phases, warnings, data = phase_costs(used, scenario.rl.k)
    _check_rated(phases)
    tokens = served(scenario.inference)
    questions: tuple[BudgetTask, ...] = ()
    told: tuple[str, ...] = ()
    if not ruled(laws[0], scenario):
        questions, told = questions_for(laws[0], scenario, phases, tokens)
    known = [{"what": f"law {law.name}", "source": law.source, "as_of": law.as_of} for law in laws]
    return ResolvedBudget(
        scenario=scenario,
        law=laws[0],
        questions=questions,
        others=tuple(laws[1:]),
        phases=phases,
        served=tokens,
        warnings=(*warnings, *told),
        data=(*known, *data),
    )


def questions_for(
    law: ScalingLaw, scenario: BudgetScenario, phases: dict[str, PhaseCost], tokens: ServedTokens
) -> tuple[tuple[BudgetTask, ...], tuple[str, ...]]:
    """Every combination of sparsity, size and tokens to try of one law, and warnings."""
    for choice in ("loss", "size"):
        law.need(choice)
    sparsities, told = _sparsities(law, scenario)
    _check_term(law, scenario)
    held = [getattr(scenario.choose, name) for name in HELD]
    if held[1] is None and "tokens" in law.lacks:
        held[1], more = _own_tokens(law)
        told += more
    combinations = product(sparsities, *(each or (None,) for each in held))
    rl = scenario.rl
    own = {"rl": rl.tokens} if rl.tokens and "rl" not in law.lacks else {}
    return tuple(
        BudgetTask(
            law=law,
            phases=phases,
            in_usd=scenario.in_usd,
            sparsity=sparsity,
            served=tokens.counted,
            rl_tokens=0.0 if own else rl.tokens or 0.0,
            rl_flop=rl_flop_needed(rl.reward) if rl.reward else 0.0,
            rl_term=LossTerm(rl.loss.coefficient, rl.loss.exponent) if rl.loss else None,
            unique=scenario.data.unique,
            required=_required(scenario),
            limit=scenario.cost.value if scenario.cost else None,
            fixed_choices={k: v for k, v in zip(HELD, values, strict=True) if v is not None} | own,
        )
        for sparsity, *values in combinations
    ), tuple(told)


def _law(given: str | File | dict[str, Any]) -> ScalingLaw:
    """A law by name, from a file, or as described."""
    if isinstance(given, File):
        return scaling_law(given.path)
    return scaling_law(given, folder=Path())


def _required(scenario: BudgetScenario) -> Required | None:
    """The loss to reach; None where a cost limits and the loss is sought."""
    quality = scenario.quality
    if quality is None:
        return None
    if quality.like is None:
        return Required(loss=quality.loss)
    like, size = quality.like, quality.like.n_active
    if like.model is not None:
        from planner.architecture.counts import sizes

        size = float(sizes(models.load(like.model)).n_active["all"])
    return Required(n_active=size, tokens=like.tokens, sparsity=like.sparsity)


def _sparsities(law: ScalingLaw, scenario: BudgetScenario) -> tuple[list[float], list[str]]:
    """The sparsities to try that the law knows, and what is said of the others."""
    wanted, only = list(scenario.choose.sparsity), law.fixed_sparsity
    if "sparsity" not in scenario.choose.model_fields_set and only is not None:
        return [only], []
    known = wanted if only is None else [each for each in wanted if each == only]
    told = []
    if len(known) < len(wanted):
        others = ", ".join(f"{each:g}" for each in wanted if each not in known)
        what = f"knows no sparsity but {only:g}"
        told.append(f"the law {law.name} {what}: {others} of choose.sparsity is left out")
    inside = known
    if scenario.extrapolate is not True:
        inside = [each for each in known if not law.outside(sparsity=each)]
    for each in known:
        for sentence in law.outside(sparsity=each):
            left = "" if each in inside else "; left out (extrapolate: true would try it)"
            told.append(f"{sentence}{left}")
    if not inside:
        why = "; ".join(told)
        raise FieldError(("choose.sparsity", f"nothing is left to try: {why}"))
    return inside, told


def _check_term(law: ScalingLaw, scenario: BudgetScenario) -> None:
    """Refuse a further term of the loss where the law is not a sum."""
    terms = law.terms(law.fixed_sparsity or 1.0)
    rl = scenario.rl
    if "rl" not in law.lacks and (rl.reward or rl.loss or rl.tokens == 0):
        told = f"{law.name} has a term in tokens of reinforcement learning: give those, or nothing"
        key = "reward" if rl.reward else "loss" if rl.loss else "tokens"
        raise FieldError((f"rl.{key}", told))
    if rl.loss is not None and (terms is None or terms.power != 1):
        raise FieldError(("rl.loss", f"{law.name} is no sum of terms to which one could be added"))


def _check_rated(phases: dict[str, PhaseCost]) -> None:
    """Refuse a phase without utilisation beside some with: the law asked for it."""
    rated = [each.mfu is not None for each in phases.values()]
    if any(rated) and not all(rated):
        bare = [f"phases.{name}.mfu" for name, each in phases.items() if each.mfu is None]
        raise FieldError((bare[0], "give it too: the law has tokens of reinforcement learning"))


def _own_tokens(law: ScalingLaw) -> tuple[tuple[float, ...], list[str]]:
    """The one number of tokens that a law without a term for them was fitted on."""
    low, high = law.range()["d"] or (None, None)
    if low is None or low != high:
        raise FieldError(
            ("choose.pretrain", f"{law.name}: {law.lacks['tokens']}; give the tokens of "
             "pre-training, or a law that knows what they do")
        )  # fmt: skip
    return (low,), [
        f"{law.name}: {law.lacks['tokens']}; they are held at the {low:.3g} of its runs"
    ]
