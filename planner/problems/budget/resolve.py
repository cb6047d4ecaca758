"""A scenario of token budgets as questions: one for every combination of the named choices.

A law that only says how to split an arithmetic: its size and tokens, read off, not optimised.
"""

import math
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter

from planner.laws.laws import scaling_law
from planner.laws.scaling_law import ALLOCATIONS, ScalingLaw
from planner.problems.budget.plan import BudgetCertificate, RuledPoint
from planner.problems.budget.planned_training import PATH, PlannedPretraining
from planner.problems.budget.question import BudgetScenario
from planner.protocol.plan import DataSource
from planner.scenario.keys.uncertain import IGNORED_NOTE
from planner.text.errors import FieldError
from planner.token_costs import budget_task
from planner.token_costs import phase_costs as costs
from planner.token_costs.spending import PhaseShares, PhaseTokens, ServedTokens

RULE = BudgetCertificate(
    "the law's own rule for an arithmetic of training; nothing was weighed against it",
    None, None, None, 1, None, {},
)  # fmt: skip
FIXABLE = ("n_active", "pretrain")


def is_rule(law: ScalingLaw, scenario: BudgetScenario) -> bool:
    """True if the law only splits a compute budget, and the question asks for such a split.

    Raises FieldError for a rule that is asked for a quality, or for more than pre-training.
    """
    if law.form not in ALLOCATIONS:
        return False
    if scenario.cost is None or scenario.used != ("pretrain",):
        raise FieldError(
            ("law", f"{law.name}: {law.lacks['loss']}; it answers cost: without inference and rl")
        )
    return True


def ruled_point(law: ScalingLaw, scenario: BudgetScenario, phase: costs.PhaseCost) -> RuledPoint:
    """The size and tokens for the arithmetic that the cost pays for."""
    limit = scenario.cost.value if scenario.cost is not None else 0.0
    flop = limit / phase.weight(scenario.in_usd)
    size, trained = law.allocated(flop, phase.arithmetic)
    phases, tokens = {"pretrain": phase}, PhaseTokens(trained, 0.0, 0.0)
    return RuledPoint(
        n_active=size,
        n_total=size,
        sparsity=1.0,
        tokens=tokens,
        epochs=None,
        cost=costs.spending(costs.symbol_values(phases, size, tokens)),
        share=PhaseShares(1.0, 0.0, 0.0),
        over_training=None,
        over_training_from_pools=None,
        tokens_per_parameter=trained / size,
        loss=None,
        law=law.name,
        coefficients=dict(law.values),
        objective="usd" if scenario.in_usd else "flop",
        phases={"pretrain": phase.machine()},
    )


@dataclass(frozen=True)
class ResolvedBudget:
    """Scenario resolved into numbers.

    `tasks` are those of the first law, none for a rule that only splits an arithmetic; `others`
    the further laws to stand beside it; `planned` lays out pre-training where that is asked.
    """

    scenario: BudgetScenario
    law: ScalingLaw
    tasks: tuple[budget_task.BudgetTask, ...]
    others: tuple[ScalingLaw, ...]
    phases: dict[str, costs.PhaseCost]
    served: ServedTokens
    warnings: tuple[str, ...]
    data: tuple[DataSource, ...]
    planned: PlannedPretraining | None = None
    sought: BudgetScenario | None = None

    def served_by(self, law: ScalingLaw) -> float | None:
        """Served tokens that make the model optimal by a law; None if they are not sought."""
        if self.sought is None:
            return None
        return _optimally_served(law, self.sought, self.phases).inference.tokens


def resolve_budget(scenario: BudgetScenario) -> ResolvedBudget:
    """Resolve a scenario into tasks; raises InputError if its law cannot answer the question."""
    laws = [scaling_law(law) for law in scenario.laws]
    needed = (*scenario.used, *("rl" for law in laws if "rl" not in law.lacks))
    used = {name: getattr(scenario.phases, name) for name in dict.fromkeys(needed)}
    phases, warnings, data = costs.phase_costs(used, scenario.rl.k)
    planned = _planned(scenario, laws[0])
    if planned is None:
        # Refuse phases with and without mfu together: a law with RL tokens adds the phase rl.
        rated = [each.mfu is not None for each in phases.values()]
        if any(rated) and not all(rated):
            bare = [f"phases.{name}.mfu" for name, each in phases.items() if each.mfu is None]
            raise FieldError((bare[0], "give it too: the law has tokens of reinforcement learning"))
    sought = scenario if math.isinf(scenario.inference.tokens or 0.0) else None
    if sought is not None:
        scenario = _optimally_served(laws[0], scenario, phases)
    served = costs.served_tokens(scenario.inference)
    tasks: tuple[budget_task.BudgetTask, ...] = ()
    if not is_rule(laws[0], scenario):
        tasks, more = budget_tasks(laws[0], scenario, phases, served, planned)
        warnings += more
    if scenario.uncertain is not None:
        warnings += (IGNORED_NOTE,)
    sources = [DataSource(f"law {law.name}", law.source, law.as_of) for law in laws]
    return ResolvedBudget(
        scenario, laws[0], tasks, tuple(laws[1:]), phases, served, warnings, (*sources, *data),
        planned, sought,
    )  # fmt: skip


def _planned(scenario: BudgetScenario, law: ScalingLaw) -> PlannedPretraining | None:
    """Layouts of pre-training; None if the scenario does not ask for them.

    Raises FieldError where a question needs what training costs before a size is chosen.
    """
    if scenario.phases.pretrain.training is None:
        return None
    words = ""
    if law.form in ALLOCATIONS:
        words = f"{law.name} only splits an arithmetic: no size is weighed"
    if math.isinf(scenario.inference.tokens or 0.0):
        words = "inference.tokens: optimal is of one size and a fixed share of the peak"
    if words:
        raise FieldError((PATH, f"{words}; give phases.pretrain.mfu in place of training"))
    return PlannedPretraining(scenario)


def _optimally_served(
    law: ScalingLaw, scenario: BudgetScenario, phases: dict[str, costs.PhaseCost]
) -> BudgetScenario:
    """Scenario with the number of served tokens that makes the model of `quality.like` optimal.

    Raises FieldError where no number does, or nothing says how many tokens it was trained on.
    """
    path, quality = "inference.tokens", scenario.quality
    required = None if quality is None else budget_task.required_loss(quality)
    if required is None or required.n_active is None or required.tokens is None:
        words = "optimal is of a model: give quality: {like: {n_active: 8e9, tokens: 15 T tokens}}"
        raise FieldError((path, words))
    if law.form in ALLOCATIONS or "rl" not in law.lacks or scenario.rl.used:
        reason = "with rl; leave rl out" if scenario.rl.used else f"by {law.name}; take another law"
        raise FieldError((path, f"how many tokens make a model optimal is not known {reason}"))
    size, trained = required.n_active, required.tokens
    terms = budget_task.law_terms(law, required.sparsity).terms
    pulls = [
        sum(-power(t) * t.coefficient * size**t.size * trained**t.tokens for t in terms)
        for power in (attrgetter("size"), attrgetter("tokens"))
    ]
    weights = {
        name: phase.arithmetic * phase.weight(scenario.in_usd) for name, phase in phases.items()
    }
    from formulas.scaling.overtraining import optimal_serving

    values = {"C_pt": weights["pretrain"] * trained, "q_pull": pulls[0] / pulls[1], "C_rl": 0.0}
    tokens = float(optimal_serving.numpy()(**values)) / weights["inference"]
    if not tokens > 0:
        least = budget_task.compute_optimal_tokens(
            budget_task.law_terms(law, required.sparsity), size
        )
        words = f"with {trained:.3g} tokens it has fewer than the {least:.3g} that are optimal"
        raise FieldError((path, f"{words} for its size when nothing is served: no number does"))
    counted = tokens / (1 - scenario.inference.obsolescence)
    served = scenario.inference.model_copy(update={"tokens": counted})
    return scenario.model_copy(update={"inference": served})


def budget_tasks(
    law: ScalingLaw,
    scenario: BudgetScenario,
    phases: dict[str, costs.PhaseCost],
    served: ServedTokens,
    planned: PlannedPretraining | None = None,
) -> tuple[tuple[budget_task.BudgetTask, ...], tuple[str, ...]]:
    """Every combination of sparsity, size and tokens to try of one law, and warnings."""
    for choice in ("loss", "size"):
        law.need(choice)
    sparsities, warnings = _sparsities(law, scenario)
    terms = law.terms(law.fixed_sparsity or 1.0)
    learned = scenario.rl
    if "rl" not in law.lacks and (learned.reward or learned.loss or learned.tokens == 0):
        fault = f"{law.name} has a term in tokens of reinforcement learning: give those, or nothing"
        key = "reward" if learned.reward else "loss" if learned.loss else "tokens"
        raise FieldError((f"rl.{key}", fault))
    if learned.loss is not None and (terms is None or terms.power != 1):
        raise FieldError(("rl.loss", f"{law.name} is no sum of terms to which one could be added"))
    fixed = [getattr(scenario.choose, name) for name in FIXABLE]
    if fixed[1] is None and "tokens" in law.lacks:
        # Without a token term, the law fixes the tokens only if it was fitted on a single count.
        low, high = law.limits.get("d", (None, None))
        if low is None or low != high:
            raise FieldError(
                ("choose.pretrain", f"{law.name}: {law.lacks['tokens']}; give the tokens of "
                 "pre-training, or a law that knows what they do")
            )  # fmt: skip
        fixed[1] = (low,)
        note = f"they are held at the {low:.3g} of its runs"
        warnings += [f"{law.name}: {law.lacks['tokens']}; {note}"]
    rl = scenario.rl
    fixed_rl = {"rl": rl.tokens} if rl.tokens and "rl" not in law.lacks else {}
    task = budget_task.BudgetTask(
        law=law,
        phases=phases,
        in_usd=scenario.in_usd,
        served=served.counted,
        unique=scenario.data.unique,
        required=None if scenario.quality is None else budget_task.required_loss(scenario.quality),
        limit=scenario.cost.value if scenario.cost else None,
        fixed_choices=fixed_rl,
    )
    task, tasks = budget_task.with_rl(task, rl), []
    for sparsity, *values in product(sparsities, *(each or (None,) for each in fixed)):
        choices = {k: v for k, v in zip(FIXABLE, values, strict=True) if v is not None} | fixed_rl
        tasks.append(replace(task, sparsity=sparsity, fixed_choices=choices))
    if planned is not None:
        tasks = [planned.planned(each) for each in tasks]
    return tuple(tasks), tuple(warnings)


def _sparsities(law: ScalingLaw, scenario: BudgetScenario) -> tuple[list[float], list[str]]:
    """Sparsities to try within the law's range, and warnings about the others."""
    wanted, only = list(scenario.choose.sparsity), law.fixed_sparsity
    if "sparsity" not in scenario.choose.model_fields_set and only is not None:
        return [only], []
    possible = wanted if only is None else [each for each in wanted if each == only]
    warnings = []
    if len(possible) < len(wanted):
        others = ", ".join(f"{each:g}" for each in wanted if each not in possible)
        what = f"knows no sparsity but {only:g}"
        warnings.append(f"the law {law.name} {what}: {others} of choose.sparsity is left out")
    inside = possible
    if scenario.extrapolate is not True:
        inside = [each for each in possible if not law.outside(sparsity=each)]
    for sparsity in possible:
        left = "" if sparsity in inside else "; left out (extrapolate: true would try it)"
        warnings += [f"{sentence}{left}" for sentence in law.outside(sparsity=sparsity)]
    if not inside:
        why = "; ".join(warnings)
        raise FieldError(("choose.sparsity", f"nothing is left to try: {why}"))
    return inside, warnings
