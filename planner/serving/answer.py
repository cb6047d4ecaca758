"""The answer to a serving scenario: the best plan, its reason and bound, or the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import floor, log
from typing import Any

import numpy as np

from planner.calibration.profile import Profile
from planner.errors import FieldError, SolverError
from planner.plan import Plan
from planner.scenario import Scenario, resolved
from planner.serving.asking import Asked, ask
from planner.serving.candidate import Candidate, evaluate, recheck
from planner.serving.certificate import elastic, relaxation
from planner.serving.current import current
from planner.serving.layouts import Layouts, enumerate_layouts
from planner.serving.reasons import EXPRESSIONS, binding, worth
from planner.serving.search import SAME_PRICE, Found, grows, search, sized
from planner.serving.shortfalls import shortfalls
from planner.serving.step import Step
from planner.serving.task import PROMISES, Task

__all__ = ["answer"]

ALTERNATIVES = 5
METHOD = (
    "every layout; largest feasible batch, last full stage and last full group by bisection, exact "
    "because T(B)/B never rises between two ceilings; lower bound by geometric programs, branch "
    "and bound"
)


@dataclass(frozen=True)
class _Searched:
    """One task, its model on all layouts, and what the search found."""

    task: Task
    step: Step
    found: Found


@dataclass(frozen=True)
class _Point:
    """A feasible layout and batch of one task, not yet evaluated in full."""

    score: float
    task: Task
    layouts: Layouts
    batch: float
    fill: float

    @property
    def candidate(self) -> Candidate:
        return evaluate(self.task, self.layouts, self.batch, self.fill)


def answer(scenario: Scenario) -> Plan:
    """The cheapest (fastest, ...) layout and batch that keep the promises.

    Raises
    ------
    InputError
        For a question that contradicts itself or that this version does not answer.
    SolverError
        If the plan does not survive its independent evaluation.
    """
    asked = ask(scenario)
    searched = [_search(task) for task in asked.tasks]
    points = _ranked(searched)
    if not points:
        return _infeasible(scenario, asked, searched)
    best = points[0].candidate
    recheck(best)
    binds, elasticities, unknown = _worth(best)
    asked = replace(asked, warnings=(*asked.warnings, *unknown))
    document = {
        **_head(scenario, "optimal"),
        "plan": best.plan(),
        "band": _band(best),
        "bound": best.floor(),
        "estimate": best.expected(),
        "certificate": _certificate(searched, points[0]),
        "binding": binds,
        "elasticities": elasticities,
        "alternatives": [p.candidate.plan() for p in points[1 : 1 + ALTERNATIVES]],
        "current": current(scenario, asked.tasks),
        "infeasible": None,
        "provenance": _provenance(scenario, asked, best.task.profile),
    }
    return Plan(document, elasticities, asked.warnings)


def _worth(best: Candidate) -> tuple[list[dict[str, Any]], dict[str, float], tuple[str, ...]]:
    """What binds, what each quantity is worth, and a warning where neither could be found.

    The plan stands without them: it was found among all layouts, and checked.
    """
    step = Step(best.task, best.layouts, bound=best.task.uses_bound)
    try:
        solution = elastic(step, best.batch)
    except SolverError as error:
        return [], {}, (f"what binds and what each quantity is worth is unknown: {error}",)
    return binding(solution), worth(solution), ()


def _search(task: Task) -> _Searched:
    layouts = enumerate_layouts(
        heads=task.sizes.n_q_heads,
        layers=task.sizes.n_layers,
        experts=task.sizes.n_experts,
        domain=task.machine.chips_per_domain,
        chips=task.chips[-1:] if grows(task) else task.chips,
        joined=task.machine.scale_out is not None,
        tiled=task.machine.kind == "torus",
        limits=task.limits_of,
    )
    if not len(layouts):
        given = ", ".join(f"{k} {list(v)}" for k, v in task.limits_of.items()) or "nothing"
        told = (
            f"no layout of {task.sizes.name} on {task.chips[-1]} chips admits {given}; "
            f"tp divides the {task.sizes.n_q_heads} attention heads, tp * dp_attention fits into "
            f"or is a multiple of the domain of {task.machine.chips_per_domain} chips, "
            f"ep * tp_expert = tp * dp_attention, pp is at most {task.sizes.n_layers}"
        )
        raise FieldError(("choose", told))
    step = sized(Step(task, layouts, bound=task.uses_bound))
    return _Searched(task, step, search(step))


def _ranked(searched: Sequence[_Searched]) -> list[_Point]:
    """The best batch of the best few layouts of every task, best first."""
    points: list[_Point] = []
    for each in searched:
        found = each.found
        _, first = np.unique(found.rows, return_index=True)
        for i in np.sort(first)[: 1 + ALTERNATIVES]:
            layouts = each.step.layouts.take(found.rows[i : i + 1])
            batch, fill = float(found.batch[i]), float(found.fill[i])
            points.append(_Point(float(found.score[i]), each.task, layouts, batch, fill))
    best = min((point.score for point in points), default=1.0)
    # Within one price the order of the search stands: it puts the faster plan first.
    return sorted(points, key=lambda point: floor(log(point.score / best) / SAME_PRICE))


def _certificate(searched: Sequence[_Searched], best: _Point) -> dict[str, Any]:
    """How many points were decided, and the bound of the relaxation over all of them."""
    bounds = [relaxation(each.step, each.found, best.score) for each in searched]
    least = min(bound.value for bound in bounds)
    # A price is compared as the plan quotes it, USD per million tokens.
    quoted = best.candidate.prices(best.candidate.chosen_by)[2] / best.score
    scale = quoted if best.task.objective == "cost" else 1.0
    return {
        "layouts_considered": sum(each.found.layouts_considered for each in searched),
        "points_considered": sum(each.found.points_considered for each in searched),
        "points_evaluated": sum(each.found.points_evaluated for each in searched),
        "objective": best.score * scale,
        "relaxation": least * scale,
        "gap": 1 - least / best.score,
        "programs_solved": sum(bound.solves for bound in bounds),
        "method": METHOD,
    }


def _band(best: Candidate) -> dict[str, Any] | None:
    """Where the profile's left-out rows put the truth; a bound needs no band."""
    if best.task.uses_bound:
        return None
    profile, plan = best.task.profile, best.plan()
    band: dict[str, Any] = {"coverage": profile.coverage, "from": profile.name}
    for name in ("tpot", "ttft", "usd_per_mtok"):
        value, ratio = plan[name], profile.band(name)
        band[name] = None if value is None else [value * ratio.low, value * ratio.high]
    return band


def _infeasible(scenario: Scenario, asked: Asked, searched: Sequence[_Searched]) -> Plan:
    """The document of a question without answer: which promises fall short, and by how much."""
    short = min(
        (shortfalls(each.step) for each in searched),
        key=lambda missed: max((factor for _, factor in missed), default=1.0),
    )
    document = {
        **_head(scenario, "infeasible"),
        "plan": None,
        "band": None,
        "bound": None,
        "estimate": None,
        "certificate": {
            "layouts_considered": sum(each.found.layouts_considered for each in searched),
            "points_considered": sum(each.found.points_considered for each in searched),
            "points_evaluated": sum(each.found.points_evaluated for each in searched),
            "objective": None,
            "relaxation": None,
            "gap": None,
            "programs_solved": 0,
            "method": METHOD,
        },
        "binding": [],
        "elasticities": {},
        "alternatives": [],
        "current": current(scenario, asked.tasks),
        "infeasible": [
            {
                "promise": PROMISES[name],
                "short_by": factor,
                "expression": EXPRESSIONS[PROMISES[name]],
            }
            for name, factor in short
        ],
        "provenance": _provenance(scenario, asked, asked.tasks[0].profile),
    }
    return Plan(document, {}, asked.warnings)


def _head(scenario: Scenario, status: str) -> dict[str, Any]:
    return {"problem": "serving", "status": status, "scenario": resolved(scenario)}


def _provenance(scenario: Scenario, asked: Asked, profile: Profile) -> dict[str, Any]:
    return {
        "version": version("token-planner"),
        "assumptions": scenario.assumptions,
        "estimate": scenario.estimate if scenario.assumptions == "physical" else "bound",
        "profile": profile.name,
        "queueing": "ttft excludes queueing: no demand was given",
        "data": list(asked.data),
        "warnings": list(asked.warnings),
    }
