"""The answer to a lifecycle: one model, its tokens, its hardware, and what every phase costs.

Serving is the serving planner's optimum for the very model that is chosen, so the price of a token
is an outcome here, not a constant.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from planner.problems import training
from planner.problems.lifecycle import comparisons, resolve
from planner.problems.lifecycle import plan as records
from planner.problems.lifecycle.comparisons import optimum_point, recheck, sparsity_summary
from planner.problems.lifecycle.elasticities import lifecycle_elasticities, overtraining_from_pools
from planner.problems.lifecycle.presentation import tips
from planner.problems.lifecycle.question import LifecycleScenario
from planner.problems.lifecycle.resolve import LifecycleTask
from planner.problems.lifecycle.search import optimal_size as search
from planner.problems.lifecycle.search.best_size import best_size
from planner.problems.lifecycle.search.joint_program import joint_optimum
from planner.problems.serving import extrapolations
from planner.protocol.plan import BindingLimit, DataSource, MissedPromise, extrapolation_text
from planner.scenario import resolve_keys
from planner.scenario.keys.uncertain import IGNORED_NOTE
from planner.text.errors import SolverError
from planner.token_costs import spending
from planner.token_costs.optimum import NOTHING_CLOSER, extrapolation_warnings
from planner.token_costs.outputs import size_overtraining_ratio
from planner.token_costs.phase_costs import PhaseCost
from planner.token_costs.presentation import law_notes
from planner.token_costs.spending import FixedShare
from planner.token_costs.stationary_points import stationary_point, training_curve

AGREE = 1e-6  # of the two solvers of the first-order conditions, in logarithms
METHOD = (
    "training at {fine} sizes, the serving planner at {asked} of them, then tangent monomials of "
    "the price on the layouts found, each a geometric program, until the size stays; SciPy on the "
    "first-order conditions agrees; every sparsity by itself"
)
PLANNED_NOTE = (
    "the training planner at {laid} sizes, a percent apart where they may pay, and the serving "
    "planner at {asked} of them: the least of all; the power of the size that touches the cost of "
    "training there makes it the optimum of one geometric program, and SciPy on the first-order "
    "conditions agrees; every sparsity by itself"
)


def answer(question: LifecycleScenario) -> records.LifecyclePlan:
    """The model whose whole life costs least at the quality asked for.

    Raises InputError for a question that its law, its family or its machines cannot answer;
    SolverError if two solvers differ about the optimum, or an equation about a number of the plan.
    """
    life = resolve.resolve_life(question)
    sought = [best_size(life, sparsity) for sparsity in life.sparsities]
    optima = sorted(
        (each for each in sought if isinstance(each, search.FixedLayoutOptimum)),
        key=lambda row: row.whole.total,
    )
    warnings = [*life.left_out, *life.serving.warnings]
    warnings += [IGNORED_NOTE] * (question.uncertain is not None)
    if optima:
        complete = _optimal(optima, warnings)
    else:
        misses = [each for each in sought if isinstance(each, search.NotServable)]
        complete = _infeasible(life, misses, warnings)
    return records.LifecyclePlan(lambda: complete, question)


def _optimal(
    optima: Sequence[search.FixedLayoutOptimum], warnings: list[str]
) -> records.LifecycleAnswer:
    """Build the complete answer of the first optimum; the others are its alternatives."""
    best = optima[0]
    life, whole = best.life, best.whole
    scenario = life.scenario
    beyond = extrapolation_warnings(best.outside, scenario.extrapolate)
    warnings += beyond
    warnings += resolve.training_warnings(best.answer.task.phases, datetime.now(UTC).date())
    warnings += dict.fromkeys(x for size, _ in best.sides for x in best.served.warnings_at(size))
    slopes, prices = lifecycle_elasticities(best), comparisons.serving_prices(best)
    point, served = optimum_point(best), best.served
    curve = comparisons.lifecycle_curve(best, prices)
    recheck(point, best)
    bound = served.candidate.floor().usd_per_mtok / served.utilisation
    planned = planned_training(best)
    warnings += planned.warnings
    outside, sizes = extrapolations(served.candidate), _evaluated(best)
    complete = records.LifecycleAnswer(
        scenario=resolve_keys(scenario),
        plan=point,
        band=comparisons.interval(best, prices),
        serving_band=served.band,
        outside=outside,
        bound=records.ServedPriceBound(bound),
        certificate=_certificate(best, prices),
        binding=_binding(best, slopes),
        elasticities=slopes,
        alternatives=tuple(sparsity_summary(each) for each in optima[1:]),
        heuristic=comparisons.equal_pools(curve, whole.total),
        flat_price=comparisons.flat_price(best),
        curve=curve,
        evaluated=sizes,
        demand=life.demand,
        notes=law_notes(extrapolation_text(outside), beyond, warnings, tips(point, sizes)),
        provenance=_provenance(life, best.answer.task.phases, warnings, planned.data),
    )
    if planned.layout is None:
        return complete
    return spending.with_training(records.PlannedLife, complete, planned.layout)


def _certificate(
    best: search.FixedLayoutOptimum, prices: comparisons.ServingPrices
) -> records.LifecycleCertificate:
    """Method and checks of the optimum; no bound over all sizes is proven."""
    smooth, whole, program = best.answer, best.whole, joint_optimum(best)
    root = stationary_point(smooth.budgets)
    difference = None
    if root is not None and smooth.budgets.choices:
        difference = float(abs(root[0] - smooth.point[0]).max())
        if difference > AGREE:
            raise SolverError(
                f"two solvers differ about the size and tokens by {difference:.2g} (in logarithms)"
            )
    apart = None
    if program is not None:
        pairs = (
            (program.n_active, smooth.n_active),
            (program.pretrain, smooth.pretrain),
            (program.cost, smooth.total),
        )
        apart = max(abs(math.log(first / second)) for first, second in pairs)
        if abs(math.log(program.cost / smooth.total)) > AGREE:  # which tells sizes to its root
            raise SolverError(
                "the search and the joint program of size, tokens and batch differ about the cost; "
                f"their choices are {apart:.2g} apart (in logarithms)"
            )
    from_pools = overtraining_from_pools(best)
    at = (smooth.task, smooth.n_active, smooth.pretrain)
    ratio = size_overtraining_ratio(*at) if from_pools else None
    sized = smooth.task.phases["pretrain"].sized
    method = METHOD.format(fine=search.FINE_GRID_POINTS, asked=len(best.evaluated))
    if sized is not None:
        method = PLANNED_NOTE.format(laid=len(sized.sizes), asked=len(best.evaluated))
    return records.LifecycleCertificate(
        method=method,
        objective=whole.total,
        relaxation=None,
        gap=None,
        smooth=records.SmoothOptimum(smooth.n_active, smooth.pretrain, smooth.total),
        whole_over_smooth=whole.total / smooth.total - 1,
        over_training=spending.OvertrainingCheck(ratio, from_pools),
        interpolation_error=prices.error,
        multiplier=smooth.multiplier,
        program=records.ProgramBound(program.cost, program.lower_bound) if program else None,
        differences=records.SolverDifferences(difference, apart),
    )


def _binding(best: search.FixedLayoutOptimum, slopes: dict[str, float]) -> tuple[BindingLimit, ...]:
    """The limits that hold the answer, with d ln(cost) / d ln(limit)."""
    smooth = best.answer
    limits = [BindingLimit("loss", -smooth.loss * smooth.loss_price)]
    for name in ("ttft", "tpot", "e2e"):
        slope = slopes.get(f"serving.promises.{name}")
        if slope:
            limits.append(BindingLimit(name.upper(), slope))
    paths = (best.size_limit, "data.unique")
    limits += [BindingLimit(name, slopes[name]) for name in paths if name in slopes]
    memory = slopes.get("serving.system.memory")
    if memory:
        limits.append(BindingLimit("memory", memory))
    return tuple(limits)


def _evaluated(best: search.FixedLayoutOptimum) -> tuple[records.EvaluatedSize, ...]:
    """All sizes tried by the serving planner, smallest first, with their lifecycle costs."""
    budget = best.answer.task
    pairs = sorted(best.evaluated, key=lambda pair: pair[0])
    sizes = [served.member.n_active if served else size for size, served in pairs]
    curve, rows = training_curve(budget, sizes), []
    for place, (_, served) in enumerate(pairs):
        row = records.EvaluatedSize(sizes[place])
        if served is not None:
            plan, price = served.plan, served.price * 1e6
            row = replace(row, usd_per_mtok=price, chip=plan.chip, chips=plan.chips, mode=plan.mode)
            training, serving = float(curve.training[place]), served.price * budget.served
            if math.isfinite(training):
                row = replace(row, pretrain=float(curve.tokens[place]), training_usd=training,
                              serving_usd=serving, total_usd=training + serving)  # fmt: skip
        rows.append(row)
    return tuple(rows)


def _infeasible(
    life: resolve.LifecycleTask, misses: Sequence[search.NotServable], warnings: list[str]
) -> records.InfeasibleLife:
    """The answer to a question without one."""
    reasons = [each.law for each in misses if each.law is not None]
    if reasons:
        nearest = min(reasons, key=lambda row: row.short_by)
        missed = MissedPromise(nearest.promise, nearest.short_by, nearest.reason)
    else:
        sizes = sorted(size for each in misses for size in each.sizes)
        missed = MissedPromise(
            "serving",
            None,
            f"no unit of these chips keeps the promises for any model of {sizes[0]:.3g} to "
            f"{sizes[-1]:.3g} active parameters; planner solve with problem: serving says by "
            "how much",
        )
    # With pre-training still to be planned, no phase has been resolved.
    planned = life.scenario.phases.pretrain.training
    phases = {} if planned else life.training(life.sparsities[0])
    return records.InfeasibleLife(
        scenario=resolve_keys(life.scenario),
        certificate=records.NoCertificate(NOTHING_CLOSER),
        demand=life.demand,
        infeasible=(missed,),
        provenance=_provenance(life, phases, warnings),
    )


def _provenance(
    life: resolve.LifecycleTask,
    phases: Mapping[str, PhaseCost],
    warnings: Sequence[str],
    planned: Sequence[DataSource] = (),
) -> spending.LifeProvenance:
    """Provenance of an answer: version, law, sources with their dates, warnings."""
    law = life.law
    data = (
        DataSource(f"law {law.name}", law.source, law.as_of),
        *planned,
        *resolve.training_data(phases),
        *life.serving.data,
    )
    note = spending.FormlessLawNote(law.name, law.title, law.scope, law.note)
    return spending.LifeProvenance(law=note, data=data, warnings=tuple(warnings))


def planned_training(best: search.FixedLayoutOptimum) -> training.PlannedTraining:
    """The training layout of an optimum, compared with the plan at a fixed share of the peak.

    Raises SolverError where the life at a fixed share does not settle.
    """
    layouts = best.life.layouts(best.sparsity)
    if layouts.phase.training is None:
        return training.PlannedTraining()
    step = layouts.at(best.whole.n_active)
    assert step is not None  # it was chosen
    return training.planned_training(
        layouts, step, best.whole.pretrain, partial(_fixed, best), sparse=best.sparsity > 1
    )


def _fixed(best: search.FixedLayoutOptimum, fixed: PhaseCost) -> FixedShare | None:
    """The life at a fixed share, charged what training its size really costs."""
    claimed = search.optimal_size(_unplanned(best.life), best.sparsity)
    if not isinstance(claimed, search.FixedLayoutOptimum):
        return None
    layouts = best.life.layouts(best.sparsity)
    step, cost = layouts.at(claimed.whole.n_active), None
    if step is not None:
        budget = best.life.budget(best.sparsity, training.planned_cost(layouts, step))
        cost = search.total_cost(best.life, budget, claimed.served)
    whole = claimed.whole
    return training.fixed_share(
        fixed, whole.n_active, whole.pretrain, whole.total, cost, best.whole.total
    )


def _unplanned(life: LifecycleTask) -> LifecycleTask:
    phases = life.scenario.phases
    fixed = phases.pretrain.model_copy(update={"training": None})
    phases = phases.model_copy(update={"pretrain": fixed})
    return replace(life, scenario=life.scenario.model_copy(update={"phases": phases}))
