"""Runners-up of another kind in the words of the answer, and what would let them win.

The kinds and how much dearer they are come with every answer. What would have to change is worked
out only when asked for, since both kinds are then solved again many times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.problems.serving.deployment.alternatives import contenders, machines, winner
from planner.problems.serving.deployment.pools import OnePool, Point, Question, questions_of, ranked
from planner.problems.serving.deployment.switch_points import Contest, changes
from planner.problems.serving.question import Scenario
from planner.problems.serving.task.resolve import ask
from planner.scenario import File

KEPT = ("mode", "layout", "prefill", "decode", "chip", "chips", "batch", "ttft", "tpot",
        "usd_per_mtok", "tokens_per_s", "e2e", "joule_per_token")  # fmt: skip
OF_A_POOL = ("layout", "chip", "chips", "chips_used", "batch")


def rivals(
    scenario: Scenario, questions: Sequence[Question], best: Point, *, why: bool = False
) -> list[dict[str, Any]]:
    """The best plan of every other kind, best first.

    `behind` is by how much its objective is worse, as a fraction. `wins_if` lists the nearest
    changes of one given quantity at which its kind overtakes the plan's; it is null unless `why`.
    """
    plan = winner(questions, best)
    contest = Contest(scenario, questions)
    return [
        {
            "kind": rival.kind,
            "plan": _short(rival.point.candidate.plan()),
            "behind": rival.point.score / best.score - 1,
            "wins_if": changes(contest, against, rival) if why else None,
        }
        for rival, against in contenders(questions, plan, contest.systems)
    ]


def explained(scenario: Scenario) -> list[dict[str, Any]]:
    """The rivals of a scenario's plan with what would let them win; none without a plan."""
    questions = questions_of(ask(scenario))
    points = ranked(questions)
    return rivals(scenario, questions, points[0], why=True) if points else []


def compared(
    scenario: Scenario, questions: Sequence[Question], best: Point
) -> list[dict[str, Any]] | None:
    """The best plan on each system of a list alone, beside the plan; null if there is one system.

    `behind` is by how much the objective is worse, null where nothing keeps the promises.
    """
    systems = scenario.systems()
    if len(systems) == 1:
        return None
    singles = sum(isinstance(each, OnePool) for each in questions)
    least: dict[int, float] = {}
    for number, each in enumerate(questions):
        of = set(machines(number, singles, len(systems)))
        scores = [point.score for point in each.points()[:1]]
        if len(of) == 1 and scores:
            k = of.pop()
            least[k] = min(scores[0], least.get(k, scores[0]))
    return [
        {"system": name, "behind": least[k] / best.score - 1 if k in least else None}
        for k, name in enumerate(_names(scenario))
    ]


def _names(scenario: Scenario) -> list[str]:
    """What the systems are called: catalogue names, or the files that wire them."""
    return [each.written if isinstance(each, File) else each.name for each in scenario.systems()]


def _short(plan: Mapping[str, Any]) -> dict[str, Any]:
    short = {name: plan[name] for name in KEPT}
    for pool in ("prefill", "decode"):
        if plan[pool]:
            short[pool] = {name: plan[pool][name] for name in OF_A_POOL}
    return short
