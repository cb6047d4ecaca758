"""The answer to a serving scenario: the best plan, its reason and bound, or the way out."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from planner.problems.serving.advice import current_layout
from planner.problems.serving.advice.advice_text import plan_notes
from planner.problems.serving.advice.change import (
    Variation,
    cheaper_caches,
    cheaper_weights,
    quoted_accuracy,
    simpler_plan,
    used_limits,
)
from planner.problems.serving.advice.fleet_sizes import fleet_sizes, sure_plan
from planner.problems.serving.advice.grounds import imbalance, provenance
from planner.problems.serving.advice.ways_out import find_remedies
from planner.problems.serving.bounds.binding_limits import synchronized_ranks_warning
from planner.problems.serving.deployment import questions as search_questions
from planner.problems.serving.deployment.alternatives import alternative_kinds, compared_systems
from planner.problems.serving.deployment.beyond_fit import extrapolations, narrowing
from planner.problems.serving.deployment.borne_load import is_overloaded, uncounted_prefixes
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.missed_promises import missed_promises, relaxed_promises
from planner.problems.serving.deployment.promise_chances import promise_chances
from planner.problems.serving.deployment.scored_points import PlanPoint, tie_gap
from planner.problems.serving.make_or_buy.comparison import compare_make_or_buy
from planner.problems.serving.make_or_buy.host_prices import HostList, host_list
from planner.problems.serving.make_or_buy.offers import ComparedPoint
from planner.problems.serving.plan import (
    BrokenPromise,
    CurrentPoint,
    ServingAnswer,
    ServingCertificate,
    ServingPlan,
)
from planner.problems.serving.point import NextBest, ServingBand, ServingBound, ServingPoint
from planner.problems.serving.profiled import probability_cheaper
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.occupancy import overflow_warnings
from planner.problems.serving.task.plan_limits import PROMISES
from planner.problems.serving.task.resolve import ServingTasks, resolve
from planner.problems.serving.task.task import Task
from planner.protocol.plan import BindingLimit, DataSource, MissedPromise
from planner.scenario import resolve_keys
from planner.text.errors import Infeasible, SolverError
from planner.text.tolerances import UNSEEN

MANY_PROGRAMS = 120  # of a certificate


def answer(scenario: Scenario) -> ServingPlan:
    """The cheapest (fastest, ...) layouts and batches that keep the promises.

    The best plan is found and checked at once; what proves it and what stands beside it is worked
    out when it is looked at. Raises InputError for a question that contradicts itself or that this
    version does not answer; SolverError if the plan does not survive its independent evaluation.
    """
    listed, tasks = serving_tasks(scenario)
    questions, points = search_questions.best_plans(search_questions.all_searches(tasks))
    current = current_layout.current_layout(scenario, tasks.tasks)
    if not points:
        return ServingPlan(
            partial(_infeasible, scenario, tasks, questions, current), scenario, None
        )
    best = points[0].candidate
    best.recheck()
    least = current_layout.price_lower_bound(scenario)
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
    return ServingPlan(make, scenario, chosen, floor, band, tie_gap(questions, points[0].score))


def serving_tasks(scenario: Scenario) -> tuple[HostList | None, ServingTasks]:
    """Return the hosts to compare with (None without `buy`) and the tasks to search.

    Raises InputError for all that is refused before layouts are listed.
    """
    listed = host_list(scenario) if scenario.buy else None
    tasks = resolve(scenario)
    current_layout.current_candidate(scenario, tasks.tasks)
    return listed, tasks


def _answer(
    scenario: Scenario,
    tasks: ServingTasks,
    questions: Sequence[search_questions.Question],
    points: Sequence[PlanPoint],
    current: CurrentPoint | None,
    chosen: ServingPoint,
    floor: ServingBound,
    band: ServingBand | None,
    listed: HostList | None,
) -> ServingAnswer:
    """The whole answer around the best plan: proof, elasticities, runners-up, sources."""
    best = points[0].candidate
    binds, elasticities, unknown = _multipliers(best)
    even = imbalance(chosen, best.task.sizes.n_experts) if best.task.sizes.n_experts else ()
    crowds = overflow_warnings(chosen.demand)
    warnings = (
        *tasks.warnings,
        *unknown,
        *synchronized_ranks_warning(chosen),
        *even,
        *crowds,
        *_overloaded(best),
        *uncounted_prefixes(best),
    )
    proof = _certificate(questions, points[0])
    assert proof.gap is not None
    whole = ServingAnswer(
        gap=min(tie_gap(questions, points[0].score), proof.gap),
        scenario=resolve_keys(scenario),
        plan=ComparedPoint(
            **vars(chosen), buy=compare_make_or_buy(scenario, points, chosen, band, listed)
        )
        if listed
        else chosen,
        promises=promise_chances(best),
        needed_chance=best.task.chance,
        sizes=fleet_sizes(scenario, points[0]),
        simplest=None if best.task.uses_bound else simpler_plan(questions, points[0]),
        sure=sure_plan(scenario, points[0]),
        band=band,
        outside=extrapolations(best),
        narrow=narrowing(best, scenario),
        accuracy=quoted_accuracy(best),
        cheaper_weights=cheaper_weights(scenario, points[0]),
        cheaper_caches=cheaper_caches(scenario, points[0]),
        limits_used=used_limits(best),
        bound=floor,
        estimate=best.expected(),
        certificate=proof,
        binding=binds,
        elasticities=elasticities,
        alternatives=_alternatives(best, chosen, points[1 : 1 + search_questions.ALTERNATIVES]),
        rivals=alternative_kinds(scenario, questions, points[0]),
        systems=compared_systems(scenario, questions, points[0]),
        current=current,
        provenance=provenance(scenario, replace(tasks, warnings=warnings), best.task.profile),
    )
    return replace(whole, notes=plan_notes(whole))


def _overloaded(best: Candidate) -> tuple[str, ...]:
    if not is_overloaded(best):
        return ()
    return (
        "on these chips the estimate does not carry the load, and nothing is expected of them: "
        "efficiency one is out of reach; estimate: calibrated finds the chips that do",
    )


def _alternatives(
    best: Candidate, chosen: ServingPoint, points: Sequence[PlanPoint]
) -> tuple[NextBest | ServingPoint, ...]:
    """The next best plans, each with the chance that it is the cheaper one after all."""
    plans = [point.candidate.plan() for point in points]
    if best.task.uses_bound:
        return tuple(plans)
    chances = [probability_cheaper(chosen, plan, best.task.profile) for plan in plans]
    ties = [abs(plan.usd_per_mtok / chosen.usd_per_mtok - 1) < UNSEEN for plan in plans]
    return tuple(
        NextBest(**vars(plan), chance_better=chance, tied=tied)
        for plan, chance, tied in zip(plans, chances, ties, strict=True)
    )


def _multipliers(
    best: Candidate,
) -> tuple[tuple[BindingLimit, ...], dict[str, float], tuple[str, ...]]:
    """Binding limits, elasticities, and warnings if they are uncertain or unknown.

    The plan stands without them: it was found among all layouts, and checked.
    """
    try:
        return best.multipliers()
    except (Infeasible, SolverError) as error:
        # A promise just kept is missed by a program that smooths the plan by a part in 10,000.
        return (), {}, (f"what binds and what each quantity is worth is unknown: {error}",)


def _certificate(
    questions: Sequence[search_questions.Question], best: PlanPoint | None
) -> ServingCertificate:
    """Numbers of decided layouts and points, and the relaxation bound over all questions."""
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
    questions: Sequence[search_questions.Question],
    current: CurrentPoint | None,
) -> ServingAnswer:
    """A question without answer: which promises fall short, and by how much."""
    relaxed, missed = relaxed_promises(questions), missed_promises(questions)
    ways = find_remedies(scenario, missed, relaxed, questions)
    if any(m.promise == PROMISES["need"] for m in missed):
        questions = search_questions.waiting_for_places(questions) or questions
        relaxed, missed = relaxed_promises(questions), missed_promises(questions)
    alone = {promise.promise: promise.alone for promise in relaxed}
    whole = ServingAnswer(
        scenario=resolve_keys(scenario),
        needed_chance=questions[0].task.chance,
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
        ways_out=ways,
        provenance=provenance(scenario, tasks, questions[0].task.profile),
    )
    return replace(whole, notes=plan_notes(whole))


def _filling(scenario: Scenario, task: Task, missed: MissedPromise) -> float | None:
    if missed.promise != PROMISES["need"] or missed.short_by is None:
        return None
    share = math.ceil((task.utilisation + missed.short_by - 1.0) * 1000) / 1000
    change = Variation.of(scenario, "memory_utilisation", share, share)
    if share > 1 or change.best() is not None:
        return share if share <= 1 else None
    return None if change.lacked().keys() & {missed.promise, "chips"} else share
