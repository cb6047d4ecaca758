"""The answer to a serving scenario: the best plan, its reason and bound, or the way out."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from planner.catalogue.profile import Profile
from planner.problems.serving.advice.beside import (
    cheaper_weights,
    fewer_chips,
    quoted_accuracy,
    used_limits,
)
from planner.problems.serving.advice.change import Change
from planner.problems.serving.advice.ways_out import ways_out
from planner.problems.serving.bounds.binding_limits import together
from planner.problems.serving.deployment.alternatives import alternative_kinds, compared_systems
from planner.problems.serving.deployment.beyond_fit import narrowing, outside_fit
from planner.problems.serving.deployment.borne_load import overloaded, uncounted_prefixes
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.missed_promises import (
    exceeded_promises,
    missed_promises,
    relaxed_promises,
)
from planner.problems.serving.deployment.pool import evaluate
from planner.problems.serving.deployment.questions import (
    ALTERNATIVES,
    Point,
    Question,
    best_point,
    questions_of,
    ranked,
    rival_questions,
)
from planner.problems.serving.make_or_buy.comparison import compared
from planner.problems.serving.make_or_buy.host_prices import HostList, host_list
from planner.problems.serving.make_or_buy.offers import ComparedPoint
from planner.problems.serving.plan import (
    BrokenPromise,
    CurrentPoint,
    ServingAnswer,
    ServingCertificate,
    ServingPlan,
    ServingProvenance,
)
from planner.problems.serving.point import NextBest, ServingBand, ServingBound, ServingPoint
from planner.problems.serving.profiled import chance_better
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.binding import uneven
from planner.problems.serving.step.layouts import HALVES, Layouts
from planner.problems.serving.step.occupancy import crowded
from planner.problems.serving.task.plan_limits import PROMISES
from planner.problems.serving.task.requests import arrivals
from planner.problems.serving.task.resolve import ServingTasks, resolve
from planner.problems.serving.task.task import Task
from planner.protocol.plan import BindingLimit, DataSource, MissedPromise
from planner.scenario import resolved
from planner.scenario.keys.workload import Current
from planner.text.errors import FieldError, Infeasible, SolverError
from planner.text.tolerances import UNSEEN

MANY_PROGRAMS = 120  # of a certificate
WHOLE = {"aggregated", "disaggregated"}  # modes that do all of a request


def answer(scenario: Scenario) -> ServingPlan:
    """The cheapest (fastest, ...) layouts and batches that keep the promises.

    The best plan is found and checked at once; what proves it and what stands beside it is worked
    out when it is looked at. Raises InputError for a question that contradicts itself or that this
    version does not answer; SolverError if the plan does not survive its independent evaluation.
    """
    listed = host_list(scenario) if scenario.buy else None
    tasks = resolve(scenario)
    questions = questions_of(tasks)
    points = ranked(questions)
    current = current_layout(scenario, tasks.tasks)
    if not points:
        return ServingPlan(
            partial(_infeasible, scenario, tasks, questions, current), scenario, None
        )
    best = points[0].candidate
    best.recheck()
    least = least_price(scenario)
    chosen, floor = best.plan(), best.floor(least)
    band = best.band(chosen, floor)
    if listed is not None:
        tasks = replace(
            tasks,
            data=(*tasks.data, DataSource("hosts", listed.source, listed.as_of)),
            warnings=(*tasks.warnings, *listed.warnings),
        )
    make = partial(
        _answer, scenario, tasks, questions, points, current, chosen, floor, band, listed
    )
    return ServingPlan(make, scenario, chosen, floor, band)


def _beside_hosts(
    scenario: Scenario,
    points: Sequence[Point],
    chosen: ServingPoint,
    band: ServingBand | None,
    listed: HostList,
) -> ComparedPoint:
    """The plan with the hosts that sell its tokens."""
    return ComparedPoint(**vars(chosen), buy=compared(scenario, points, chosen, band, listed))


def least_price(scenario: Scenario) -> float | None:
    """USD per million tokens that no plan of any mode goes below; None without a given load.

    A plan under a load pays its chips whatever they do, so that its own roofline costs what it
    does; the bound is that of the whole question, searched once more at efficiency one.
    """
    rate = arrivals(scenario)
    if rate is None or rate == float("inf"):
        return None
    choose = scenario.choose
    if choose.mode and WHOLE & {*choose.mode} and choose.prefill is choose.decode is None:
        choose = choose.model_copy(update={"mode": None})
    changes = {"estimate": "bound", "objective": "cost", "choose": choose}
    point = best_point(rival_questions(resolve(scenario.model_copy(update=changes))))
    return None if point is None else point.candidate.usd_per_mtok


def _answer(
    scenario: Scenario,
    tasks: ServingTasks,
    questions: Sequence[Question],
    points: Sequence[Point],
    current: CurrentPoint | None,
    chosen: ServingPoint,
    floor: ServingBound,
    band: ServingBand | None,
    listed: HostList | None,
) -> ServingAnswer:
    """The whole answer around the best plan: proof, elasticities, runners-up, sources."""
    best = points[0].candidate
    binds, elasticities, unknown = _multipliers(best)
    even = uneven(chosen, best.task.sizes.n_experts) if best.task.sizes.n_experts else ()
    crowds = crowded(chosen.demand)
    warnings = (
        *tasks.warnings,
        *unknown,
        *together(chosen),
        *even,
        *crowds,
        *_overloaded(best),
        *uncounted_prefixes(best),
    )
    return ServingAnswer(
        status="optimal",
        scenario=resolved(scenario),
        plan=_beside_hosts(scenario, points, chosen, band, listed) if listed else chosen,
        band=band,
        outside=outside_fit(best),
        narrow=narrowing(best, scenario),
        accuracy=quoted_accuracy(best, band.regime if band else ""),
        cheaper_weights=cheaper_weights(scenario, points[0]),
        fewer_chips=fewer_chips(scenario, chosen),
        limits_used=used_limits(best),
        bound=floor,
        estimate=best.expected(),
        certificate=_certificate(questions, points[0]),
        binding=binds,
        elasticities=elasticities,
        alternatives=_alternatives(best, chosen, points[1 : 1 + ALTERNATIVES]),
        rivals=alternative_kinds(scenario, questions, points[0]),
        systems=compared_systems(scenario, questions, points[0]),
        current=current,
        provenance=provenance(scenario, replace(tasks, warnings=warnings), best.task.profile),
    )


def _overloaded(best: Candidate) -> tuple[str, ...]:
    """What to say of a plan on the bound that the estimate finds too small."""
    if not overloaded(best):
        return ()
    return (
        "on these chips the estimate does not carry the load, and nothing is expected of them: "
        "efficiency one is out of reach; estimate: calibrated finds the chips that do",
    )


def _alternatives(
    best: Candidate, chosen: ServingPoint, points: Sequence[Point]
) -> tuple[NextBest | ServingPoint, ...]:
    """The next best plans, each with the chance that it is the cheaper one after all."""
    plans = [point.candidate.plan() for point in points]
    if best.task.uses_bound:
        return tuple(plans)
    chances = [chance_better(chosen, plan, best.task.profile) for plan in plans]
    ties = [abs(plan.usd_per_mtok / chosen.usd_per_mtok - 1) < UNSEEN for plan in plans]
    return tuple(
        NextBest(**vars(plan), chance_better=chance, tied=tied)
        for plan, chance, tied in zip(plans, chances, ties, strict=True)
    )


def _multipliers(
    best: Candidate,
) -> tuple[tuple[BindingLimit, ...], dict[str, float], tuple[str, ...]]:
    """What binds, the elasticities, and warnings where they were hard to find, or not found.

    The plan stands without them: it was found among all layouts, and checked.
    """
    try:
        return best.multipliers()
    except (Infeasible, SolverError) as error:
        # A promise just kept is missed by a program that smooths the plan by a part in 10,000.
        return (), {}, (f"what binds and what each quantity is worth is unknown: {error}",)


def _certificate(questions: Sequence[Question], best: Point | None) -> ServingCertificate:
    """How many points were decided, and the bound of the relaxation over all of them."""
    decided = [question.decided for question in questions]
    proof = ServingCertificate(
        layouts_considered=sum(count.layouts for count in decided),
        points_considered=sum(count.points for count in decided),
        points_evaluated=sum(count.evaluated for count in decided),
    )
    if best is None:
        return proof
    least, programs = math.inf, 0
    for question in questions:
        # Of very many questions those whose bound is not the least need no better one.
        enough = least if programs > MANY_PROGRAMS else math.inf
        bound = question.relaxation(best.score, enough)
        least, programs = min(least, bound.value), programs + bound.solves
    # A price is compared as the plan quotes it, USD per million tokens.
    quoted = best.candidate.usd_per_mtok / best.score
    scale = quoted if best.objective == "cost" else 1.0
    return replace(
        proof,
        objective=best.score * scale,
        relaxation=least * scale,
        gap=1 - least / best.score,
        programs_solved=programs,
    )


def _infeasible(
    scenario: Scenario,
    tasks: ServingTasks,
    questions: Sequence[Question],
    current: CurrentPoint | None,
) -> ServingAnswer:
    """A question without answer: which promises fall short, and by how much."""
    relaxed = relaxed_promises(questions)
    alone = {promise.promise: promise.alone for promise in relaxed}
    missed = missed_promises(questions)
    return ServingAnswer(
        status="infeasible",
        scenario=resolved(scenario),
        certificate=_certificate(questions, None),
        current=current,
        infeasible=tuple(
            BrokenPromise(
                **vars(m),
                alone=alone.get(m.promise),
                memory_utilisation=_filling(scenario, questions[0].task, m),
            )
            for m in missed
        ),
        eased=relaxed,
        ways_out=ways_out(scenario, missed, relaxed, questions),
        provenance=provenance(scenario, tasks, questions[0].task.profile),
    )


def _filling(scenario: Scenario, task: Task, missed: MissedPromise) -> float | None:
    """The share of the memory with which a plan would fit; None where that is not enough."""
    if missed.promise != PROMISES["need"] or missed.short_by is None:
        return None
    share = math.ceil((task.utilisation + missed.short_by - 1.0) * 1000) / 1000
    change = Change.of(scenario, "memory_utilisation", share, share)
    if share > 1 or change.best() is not None:
        return share if share <= 1 else None
    return None if change.lacked().keys() & {missed.promise, "chips"} else share


def current_layout(scenario: Scenario, tasks: Sequence[Task]) -> CurrentPoint | None:
    """The user's own layout, with the promises it breaks; None if none was given.

    Raises FieldError if the layout cannot be that of this model on these chips.
    """
    current = scenario.current
    if current is None:
        return None
    if not tasks:
        words = "a layout of one pool cannot be set beside two; choose mode: aggregated as well"
        raise FieldError(("current", words))
    layouts = _layouts_of(current, tasks[0])
    replicas = int(layouts.replicas[0])
    total = current.batch or (scenario.workload.concurrency or 0)
    if not total:
        words = "say how many sequences are in flight over all replicas"
        raise FieldError(("current.batch", words))
    batch = math.ceil(total / replicas)
    # Depths that are left free are tried on the layout too: the best at its batch.
    alike = (tasks[0].sizes, tasks[0].chip, tasks[0].mode)
    depths = {x.drafts: x for x in reversed(tasks) if (x.sizes, x.chip, x.mode) == alike}
    pools = [
        evaluate(
            task.with_layout(redundant=current.redundant_experts),
            layouts,
            batch,
            total / (batch * replicas),
        )
        for task in depths.values()
    ]
    pool = min(pools, key=lambda depth: depth.chosen_by["slot"])
    candidate, least = Candidate((pool,)), least_price(scenario)
    broken = exceeded_promises(pool.task, pool.chosen_by)
    point = _without_end(candidate.plan())
    return CurrentPoint(**vars(point), bound=candidate.floor(least), breaks=broken)


def _without_end(point: ServingPoint) -> ServingPoint:
    """A point whose times are null where its queue grows without end: it bears no such load."""
    if point.demand is None:
        return point
    demand = replace(
        point.demand,
        wait=_ending(point.demand.wait),
        ttft_p95=_ending(point.demand.ttft_p95),
        ttft_p99=_ending(point.demand.ttft_p99),
        in_flight=_ending(point.demand.in_flight),
    )
    return replace(point, demand=demand, ttft=_ending(point.ttft), e2e=_ending(point.e2e))


def _ending(value: float | None) -> float | None:
    return None if value == math.inf else value


def _layouts_of(current: Current, task: Task) -> Layouts:
    sizes, whole = task.sizes, current.tp * current.dp_attention
    if sizes.n_q_heads % current.tp:
        heads = f"the {sizes.n_q_heads} attention heads of {sizes.name}"
        raise FieldError(("current.tp", f"{current.tp} does not divide {heads}"))
    if not sizes.n_experts and (current.ep or 1) > 1:
        raise FieldError(("current.ep", f"{sizes.name} has no experts, so ep is 1"))
    if current.pp > sizes.n_layers:
        raise FieldError(("current.pp", f"{sizes.name} has {sizes.n_layers} layers only"))
    ep = 1
    if sizes.n_experts:
        cut = current.tp_expert
        ep = current.ep or (whole // cut if cut else current.dp_attention)
        if whole % ep:
            raise FieldError(("current.ep", f"{ep} does not divide tp * dp_attention = {whole}"))
    xtp = whole // ep if sizes.n_experts else 1
    chips = task.chips[-1]
    replicas = current.replicas or chips // (whole * current.cp * current.pp)
    halves = HALVES[current.overlap]
    if halves > 1 and min(ep, current.dp_attention) == 1:
        words = "what two batches overlap is an exchange of dp_attention copies with ep experts"
        raise FieldError(("current.overlap", f"{words}, and both must be above 1"))
    ways = (current.tp, current.pp, current.cp, current.dp_attention, ep, xtp)
    return Layouts(*(np.array([value]) for value in (*ways, replicas, chips, halves)))


def provenance(scenario: Scenario, tasks: ServingTasks, profile: Profile) -> ServingProvenance:
    """What an answer rests on: version, assumptions, sources with their dates, warnings."""
    return ServingProvenance(
        assumptions=scenario.assumptions,
        estimate=scenario.estimate if scenario.assumptions == "physical" else "bound",
        profile=profile.name,
        queueing=_queueing(scenario),
        data=tasks.data,
        warnings=tuple(tasks.warnings),
    )


def _queueing(scenario: Scenario) -> str:
    if scenario.workload.arrivals is None:
        return "ttft excludes queueing: no demand was given"
    if scenario.assumptions == "lecture" or scenario.estimate == "bound":
        return "ttft excludes queueing: the bound knows none"
    return "ttft includes the mean wait before a prompt is read, Poisson arrivals dealt at random"
