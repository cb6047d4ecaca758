"""The answer to a scenario of token budgets: size and tokens, the cost of each phase, the proof."""

from collections.abc import Iterator
from contextlib import suppress

from planner.catalogue.scaling_laws import law_names
from planner.laws.laws import scaling_law
from planner.laws.scaling_law import ALLOCATIONS, ScalingLaw
from planner.problems.budget import outputs
from planner.problems.budget import plan as records
from planner.problems.budget.certificate import proof
from planner.problems.budget.plan import LawSpread, ServedSpread
from planner.problems.budget.presentation import notes
from planner.problems.budget.question import BudgetScenario
from planner.problems.budget.resolve import (
    RULE,
    ResolvedBudget,
    budget_tasks,
    is_rule,
    resolve_budget,
    ruled_point,
)
from planner.problems.training import PlannedTraining
from planner.protocol.plan import BindingLimit, DataSource, KnownAnswer, MissedPromise
from planner.scenario import resolve_keys
from planner.text.errors import FieldError, InputError, SolverError
from planner.token_costs import optimum
from planner.token_costs.optimum import BudgetOptimum, select_best, solve_many
from planner.token_costs.parameters import elasticities
from planner.token_costs.presentation import law_notes
from planner.token_costs.spending import with_training

ALTERNATIVES = 3


def answer(question: BudgetScenario) -> records.BudgetPlan:
    """The size, sparsity and tokens of least cost, or of least loss.

    Raises InputError for a question that its law cannot answer; SolverError if the program, its
    first-order conditions, the law and the equations of the outputs do not agree on the answer.
    """
    resolution = resolve_budget(question)
    scenario = resolution.scenario  # with the tokens served that were sought
    if not resolution.tasks:
        return records.BudgetPlan(KnownAnswer(_by_rule(resolution)), scenario)
    solved = optimum.solve_many(resolution.tasks)
    ranked = sorted(
        (each for each in solved if isinstance(each, optimum.BudgetOptimum)),
        key=lambda row: row.score,
    )
    if not ranked:
        nearest = optimum.select_best(solved)
        assert isinstance(nearest, optimum.NoBudget)
        return records.BudgetPlan(KnownAnswer(_infeasible(resolution, nearest)), scenario)
    best = ranked[0]
    beyond = optimum.extrapolation_warnings(best.outside, scenario.extrapolate)
    stock = outputs.unique_data(best)
    warnings = (*resolution.warnings, *beyond, *_of_the_data(best), *_of_the_stock(stock))
    certificate = proof(best, len(resolution.tasks))
    slopes = elasticities(best, scenario.inference, scenario.rl)
    band = outputs.interval(best, scenario.draws, scenario.coverage)
    spread = over_laws(resolution, best)
    point = outputs.budget_point(best)
    outputs.recheck(point, best)
    planned = resolution.planned.layout(best) if resolution.planned else PlannedTraining()
    warnings += planned.warnings
    complete = records.BudgetAnswer(
        scenario=resolve_keys(scenario),
        plan=point,
        band=band,
        bound=_bound(best, certificate),
        gap=certificate.gap,
        certificate=certificate,
        binding=_binding(best, slopes),
        elasticities=slopes,
        alternatives=tuple(outputs.budget_point(each) for each in ranked[1 : 1 + ALTERNATIVES]),
        heuristic=outputs.equal_pools(best),
        compute_optimal=outputs.compute_optimal(best),
        demand=resolution.served,
        laws=tuple(_answer_by_law(law, resolution) for law in resolution.others) or None,
        over_laws=spread,
        unique_data=stock,
        notes=law_notes("", beyond, warnings, notes(band, spread, stock)),
        provenance=_provenance(resolution, warnings, planned.data),
    )
    if planned.layout is not None:
        complete = with_training(records.PlannedBudget, complete, planned.layout)
    return records.BudgetPlan(KnownAnswer(complete), scenario)


def _bound(
    best: optimum.BudgetOptimum, certificate: records.BudgetCertificate
) -> records.BudgetBound:
    task, bound = best.task, certificate.relaxation
    if task.aim == "quality":
        return records.BudgetBound(None, None, bound, optimum.min_loss(task))
    usd, flop = (bound, None) if task.in_usd else (None, bound)
    return records.BudgetBound(usd, flop, None, optimum.min_loss(task))


def _binding(best: optimum.BudgetOptimum, slopes: dict[str, float]) -> tuple[BindingLimit, ...]:
    """Binding limits of the answer, with d ln(objective) / d ln(limit)."""
    task = best.task
    limits = []
    if best.multiplier:  # zero multiplier: no choice is left and the limit has slack
        if task.required is None:
            limits.append(BindingLimit("cost", slopes["cost"]))
        else:
            limits.append(BindingLimit("loss", -best.loss * best.loss_price))
    if best.data_bound:
        limits.append(BindingLimit("unique data", slopes["data.unique"]))
    paths = ("rl.tokens" if name == "rl" else f"choose.{name}" for name in task.fixed_choices)
    return (*limits, *(BindingLimit(path, slopes[path]) for path in paths))


def _of_the_data(best: optimum.BudgetOptimum) -> tuple[str, ...]:
    if not best.data_bound:
        return ()
    name, unique = best.task.law.name, best.task.unique
    return (
        f"the law {name} says nothing of repeated data: training ends with the {unique:.3g} unique "
        "tokens (muennighoff-2023 knows what repeating them is worth)",
    )


def _of_the_stock(data: records.UniqueData | None) -> tuple[str, ...]:
    """A sentence where a plan takes more fresh tokens than there may be."""
    if data is None or data.needed <= data.low:
        return ()
    may = "is more than" if data.needed > data.stock else "may be more than"
    return (
        f"pre-training on {data.needed:.3g} fresh tokens {may} the public text there is: "
        f"{data.stock:.3g} tokens, {data.low:.3g} to {data.high:.3g} ({data.source}); what would "
        f'work: law: muennighoff-2023 with data: {{unique: "{data.stock:.3g} tokens"}}, which '
        "counts what repeating them is worth",
    )


def _answer_by_law(law: ScalingLaw, resolution: ResolvedBudget) -> records.OtherLaw:
    """The answer by another law; a required loss is a number of the first law's data."""
    scenario, phases = resolution.scenario, resolution.phases
    try:
        if is_rule(law, scenario):
            return records.OtherLaw(law.name, ruled_point(law, scenario, phases["pretrain"]), None)
        tasks, _ = budget_tasks(law, scenario, phases, resolution.served, resolution.planned)
    except FieldError as error:
        return records.OtherLaw(law.name, None, str(error))
    best = optimum.select_best(optimum.solve_many(tasks))
    if isinstance(best, optimum.NoBudget):
        return records.OtherLaw(law.name, None, best.reason)
    return records.OtherLaw(law.name, outputs.budget_point(best), None)


def _by_rule(resolution: ResolvedBudget) -> records.RuledAnswer:
    """The answer of a rule for an arithmetic: a size and tokens, and no loss."""
    scenario, law = resolution.scenario, resolution.law
    point = ruled_point(law, scenario, resolution.phases["pretrain"])
    flop = point.cost.pretrain.flop
    beyond = law.outside(point.n_active, point.tokens.pretrain, arithmetic=flop)
    sentences = optimum.extrapolation_warnings(beyond, scenario.extrapolate)
    warnings = (*resolution.warnings, *sentences)
    return records.RuledAnswer(
        scenario=resolve_keys(scenario),
        plan=point,
        certificate=RULE,
        demand=resolution.served,
        notes=law_notes("", sentences, warnings),
        provenance=_provenance(resolution, warnings),
    )


def _infeasible(resolution: ResolvedBudget, nearest: optimum.NoBudget) -> records.InfeasibleBudget:
    """The answer to a question without one: what falls short, and by how much."""
    considered = len(resolution.tasks)
    return records.InfeasibleBudget(
        scenario=resolve_keys(resolution.scenario),
        certificate=records.BudgetCertificate(
            optimum.NOTHING_CLOSER, None, None, None, considered, None, {}
        ),
        demand=resolution.served,
        infeasible=(MissedPromise(nearest.promise, nearest.short_by, nearest.reason),),
        provenance=_provenance(resolution, resolution.warnings),
    )


def _provenance(
    resolution: ResolvedBudget, warnings: tuple[str, ...], sources: tuple[DataSource, ...] = ()
) -> records.LawProvenance:
    law = resolution.law
    note = records.LawNote(law.name, law.title, law.scope, law.note, law.form)
    return records.LawProvenance(law=note, data=(*resolution.data, *sources), warnings=warnings)


LAW_NEEDS = ("loss", "size", "tokens")  # what a law must know to weigh one against the other
MIN_LAWS = 3  # laws that make a spread


def over_laws(resolution: ResolvedBudget, best: BudgetOptimum) -> LawSpread | None:
    """Least and most of size, tokens and cost by every law that answers the question.

    All at the sparsity of the plan. None of a loss that is given as a number, which is one of the
    first law's data alone, and where too few laws answer.
    """
    quality = resolution.scenario.quality
    if quality is not None and quality.loss is not None:
        return None
    optima, served = {best.task.law.name: best}, [resolution.served_by(best.task.law)]
    phases = {**resolution.phases, "pretrain": best.task.phases["pretrain"].smooth()}
    for law in _comparable(best.task.law):
        try:
            tasks, _ = budget_tasks(law, resolution.scenario, phases, resolution.served)
            answer = select_best(solve_many(tasks))
        except (InputError, SolverError):
            continue
        if isinstance(answer, BudgetOptimum) and answer.task.sparsity == best.task.sparsity:
            optima[law.name] = answer
            with suppress(InputError):  # no number makes the model optimal by this law
                served.append(resolution.served_by(law))
    if len(optima) < MIN_LAWS:
        return None
    names = ("n_active", "pretrain", "total")
    columns = [[getattr(each, name) for each in optima.values()] for name in names]
    sought = [tokens for tokens in served if tokens is not None]
    columns += [sought] if sought else []
    record = ServedSpread if sought else LawSpread
    return record(tuple(optima), *((min(column), max(column)) for column in columns))


def _comparable(first: ScalingLaw) -> Iterator[ScalingLaw]:
    """Further laws of the catalogue without RL that trade size against tokens for a loss."""
    for name in law_names():
        try:
            law = scaling_law(name)
        except InputError:  # a reward law has no loss
            continue
        if name == first.name or law.form in ALLOCATIONS or "rl" not in law.lacks:
            continue
        if not any(need in law.lacks for need in LAW_NEEDS):
            yield law
