"""The answer to a serving scenario: the best plan, its reason and bound, or the way out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from planner.catalogue.profile import Profile
from planner.problems.serving.bounds.binding_limits import EXPRESSIONS, together
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.current import current
from planner.problems.serving.deployment.pair import PairCandidate
from planner.problems.serving.deployment.pools import (
    ALTERNATIVES,
    Point,
    Question,
    questions_of,
    ranked,
)
from planner.problems.serving.deployment.relaxed_promises import eased
from planner.problems.serving.deployment.rivals import compared, explained, rivals
from planner.problems.serving.plan import (
    RivalKind,
    ServingAnswer,
    ServingBand,
    ServingBound,
    ServingPlan,
    ServingPoint,
)
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.occupancy import crowded
from planner.problems.serving.step.binding import uneven
from planner.problems.serving.task.resolve import Asked, ask
from planner.problems.serving.task.task import PROMISES
from planner.protocol.document import typed
from planner.protocol.plan import KnownAnswer
from planner.protocol.probability_better import chance_better
from planner.scenario import resolved
from planner.text.errors import Infeasible, SolverError

METHOD = (
    "every layout; largest feasible batch, last full stage and last full group by bisection, exact "
    "because T(B)/B never rises between two ceilings; lower bound by geometric programs, branch "
    "and bound"
)


def answer(scenario: Scenario) -> ServingPlan:
    """The cheapest (fastest, ...) layouts and batches that keep the promises.

    The best plan is found and checked at once; what proves it and what stands beside it is worked
    out when it is looked at.

    Raises
    ------
    InputError
        For a question that contradicts itself or that this version does not answer.
    SolverError
        If the plan does not survive its independent evaluation.
    """
    asked = ask(scenario)
    questions = questions_of(asked)
    points = ranked(questions)
    mine = current(scenario, asked.tasks)
    if not points:
        whole = typed(ServingAnswer, _infeasible(scenario, asked, questions, mine))
        return ServingPlan(KnownAnswer(whole), scenario, None)
    best = points[0].candidate
    best.recheck()
    chosen, floor = best.plan(), best.floor()
    spread = band(best, chosen)
    document = {
        **head(scenario, "optimal"),
        "plan": chosen,
        "band": spread,
        "bound": floor,
        "estimate": best.expected(),
        "current": mine,
    }
    return ServingPlan(
        partial(_answer, scenario, asked, questions, points, document),
        scenario,
        typed(ServingPoint, chosen),
        typed(ServingBound, floor),
        typed(ServingBand, spread),
    )


def _answer(
    scenario: Scenario,
    asked: Asked,
    questions: Sequence[Question],
    points: Sequence[Point],
    document: Mapping[str, Any],
) -> ServingAnswer:
    """The whole answer around the best plan: proof, elasticities, runners-up, sources."""
    best, chosen = points[0].candidate, document["plan"]
    binds, elasticities, unknown = _worth(best)
    even = uneven(chosen, best.task.sizes.n_experts) if best.task.sizes.n_experts else ()
    warnings = (*asked.warnings, *unknown, *together(chosen), *even, *crowded(chosen["demand"]))
    asked = replace(asked, warnings=warnings)
    whole = {
        **document,
        "certificate": _certificate(questions, points[0]),
        "binding": binds,
        "elasticities": elasticities,
        "alternatives": _alternatives(best, chosen, points[1 : 1 + ALTERNATIVES]),
        "rivals": rivals(scenario, questions, points[0]),
        "systems": compared(scenario, questions, points[0]),
        "infeasible": None,
        "eased": None,
        "provenance": provenance(scenario, asked, best.task.profile),
    }
    answer: ServingAnswer = typed(ServingAnswer, whole)
    return answer


def explained_rivals(scenario: Scenario) -> tuple[RivalKind, ...]:
    """The best plan of every other kind, with what would let it win."""
    return tuple(typed(RivalKind, each) for each in explained(scenario))


def _alternatives(
    best: Candidate | PairCandidate, chosen: Mapping[str, Any], points: Sequence[Point]
) -> list[dict[str, Any]]:
    """The next best plans, each with the chance that it is the cheaper one after all."""
    plans = [point.candidate.plan() for point in points]
    if best.task.uses_bound:
        return plans
    profile = best.task.profile
    return [{**plan, "chance_better": chance_better(chosen, plan, profile)} for plan in plans]


def _worth(
    best: Candidate | PairCandidate,
) -> tuple[list[dict[str, Any]], dict[str, float], tuple[str, ...]]:
    """What binds, what each quantity is worth, and a warning where neither could be found.

    The plan stands without them: it was found among all layouts, and checked.
    """
    try:
        return *best.worth(), ()
    except (Infeasible, SolverError) as error:
        # A promise just kept is missed by a program that smooths the plan by a part in 10,000.
        return [], {}, (f"what binds and what each quantity is worth is unknown: {error}",)


def _certificate(questions: Sequence[Question], best: Point) -> dict[str, Any]:
    """How many points were decided, and the bound of the relaxation over all of them."""
    bounds = [each.relaxation(best.score) for each in questions]
    least = min(bound.value for bound in bounds)
    # A price is compared as the plan quotes it, USD per million tokens.
    quoted = best.candidate.usd_per_mtok / best.score
    scale = quoted if best.objective == "cost" else 1.0
    return {
        **_considered(questions),
        "objective": best.score * scale,
        "relaxation": least * scale,
        "gap": 1 - least / best.score,
        "programs_solved": sum(bound.solves for bound in bounds),
        "method": METHOD,
    }


def _considered(questions: Sequence[Question]) -> dict[str, int]:
    return {
        "layouts_considered": sum(each.layouts_considered for each in questions),
        "points_considered": sum(each.points_considered for each in questions),
        "points_evaluated": sum(each.points_evaluated for each in questions),
    }


def band(best: Candidate | PairCandidate, plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Where the profile's left-out rows put the truth of a plan; a bound needs no band."""
    if best.task.uses_bound:
        return None
    profile = best.task.profile
    found: dict[str, Any] = {"coverage": profile.coverage, "from": profile.name}
    for name in ("tpot", "ttft", "usd_per_mtok"):
        value, ratio = plan[name], profile.band(name)
        found[name] = None if value is None else [value * ratio.low, value * ratio.high]
    # What a request costs in chip time is what throughput lacks.
    rate, price = plan["tokens_per_s"], profile.band("usd_per_mtok")
    found["tokens_per_s"] = None if rate is None else [rate / price.high, rate / price.low]
    return found


def _infeasible(
    scenario: Scenario, asked: Asked, questions: Sequence[Question], mine: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The document of a question without answer: which promises fall short, and by how much."""
    return {
        **head(scenario, "infeasible"),
        "plan": None,
        "band": None,
        "bound": None,
        "estimate": None,
        "certificate": {
            **_considered(questions),
            "objective": None,
            "relaxation": None,
            "gap": None,
            "programs_solved": 0,
            "method": METHOD,
        },
        "binding": [],
        "elasticities": {},
        "alternatives": [],
        "rivals": [],
        "systems": None,
        "current": mine,
        **_way_out(questions),
        "provenance": provenance(scenario, asked, questions[0].task.profile),
    }


def _way_out(questions: Sequence[Question]) -> dict[str, Any]:
    """Promises that the nearest plan breaks, and what each promise would have to be alone."""
    found = eased(questions)
    alone = {each["promise"]: each["alone"] for each in found}
    missed = [{**each, "alone": alone.get(each["promise"])} for each in short_by(questions)]
    return {"infeasible": missed, "eased": found}


def short_by(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """The promises that the nearest plan of questions without answer breaks, and by how much."""
    short = min(
        (each.shortfalls() for each in questions),
        # A question that says nothing of what is missing is no way out.
        key=lambda missed: max((factor for _, factor in missed), default=math.inf),
    )
    return [
        {"promise": PROMISES[name], "short_by": factor, "expression": EXPRESSIONS[PROMISES[name]]}
        for name, factor in short
    ]


def head(scenario: Scenario, status: str) -> dict[str, Any]:
    """What the question was, and whether it has an answer."""
    return {"problem": "serving", "status": status, "scenario": resolved(scenario)}


def provenance(scenario: Scenario, asked: Asked, profile: Profile) -> dict[str, Any]:
    """What an answer rests on: version, assumptions, sources with their dates, warnings."""
    return {
        "version": version("token-planner"),
        "assumptions": scenario.assumptions,
        "estimate": scenario.estimate if scenario.assumptions == "physical" else "bound",
        "profile": profile.name,
        "queueing": _queueing(scenario),
        "data": list(asked.data),
        "warnings": list(asked.warnings),
    }


def _queueing(scenario: Scenario) -> str:
    if scenario.workload.demand is None:
        return "ttft excludes queueing: no demand was given"
    if scenario.assumptions == "lecture" or scenario.estimate == "bound":
        return "ttft excludes queueing: the bound knows none"
    return "ttft includes the mean wait before a prompt is read, Poisson arrivals dealt at random"
