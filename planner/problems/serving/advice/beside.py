"""What stands beside a plan: weights of another format, one chip fewer, how near each limit is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalogue.coefficient_spread import KNOWN, POOLED
from planner.problems.serving.advice.change import Change, bits_of, narrower_weights
from planner.problems.serving.advice.records import (
    CheaperWeights,
    FewerChips,
    QuotedAccuracy,
    UsedLimit,
)
from planner.problems.serving.deployment.candidate import READING
from planner.problems.serving.deployment.missed_promises import missed_promises
from planner.problems.serving.deployment.questions import best_point, rival_questions
from planner.problems.serving.task.plan_limits import PROMISES
from planner.problems.serving.task.resolve import resolve
from planner.text.errors import InputError
from planner.text.tolerances import UNSEEN

if TYPE_CHECKING:
    from planner.catalogue.profile import Profile
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.questions import Point
    from planner.problems.serving.point import ServingPoint
    from planner.problems.serving.question import Scenario

FULL = 0.995  # share of a limit that counts as all of it
WORTH_SAYING = 0.10  # saving from which on another format is worth a line
# What was left out of the fits whose errors hold for a plan, by how far it is from the rows.
LEFT_OUT = {
    KNOWN: "configurations", POOLED: "configurations", "assumed": "configurations",
    "new_model": "models", "new_chip": "chips", "new_architecture": "architectures",
    "new_engine": "engines", "new_engine_on_chip": "engine-chips", "new_version": "versions",
}  # fmt: skip
QUEUED = "assumed_setup_ttft"  # of two pools, whose queue no row tells


def cheaper_weights(scenario: Scenario, best: Point) -> CheaperWeights | None:
    """The cheapest other format of the weights that the chips run, where it saves a tenth.

    One that an engine loads comes before one of a checkpoint that has to be made first.
    """
    plan = best.candidate
    if scenario.objective != "cost":
        return None
    savings = []
    for change in narrower_weights(scenario, bits_of(plan.task)):
        point = change.best()
        if point is None:
            continue
        candidate = point.candidate
        if candidate.usd_per_mtok <= (1 - WORTH_SAYING) * plan.usd_per_mtok:
            savings.append((candidate.plan().engines, candidate.usd_per_mtok, change))
    if not savings:
        return None
    engines, least, change = min(savings, key=lambda row: (row[0] == (), row[1]))
    weights = str(change.sets["choose.weights"])
    return CheaperWeights(weights, engines, least, 1 - least / plan.usd_per_mtok)


def fewer_chips(scenario: Scenario, plan: ServingPoint) -> FewerChips | None:
    """What the next smaller number of chips lacks, or costs; None where there is but one.

    Where it is cheaper per token, the cheapest of all smaller numbers.
    """
    unit = scenario.rent.unit
    count = max((n for n in scenario.paid if n < plan.chips), default=plan.chips - unit)
    if count < 1:
        return None
    fewer = _on(scenario, plan, count)
    if scenario.objective == "cost" and (fewer.behind or 0.0) < -UNSEEN:
        fewer = _on(scenario, plan, *range(unit, count + 1, unit))
    return fewer


def _on(scenario: Scenario, plan: ServingPoint, *chips: int) -> FewerChips:
    """What the last of some numbers of chips lacks, or what the best of them costs."""
    try:
        questions = rival_questions(
            resolve(Change.of(scenario, "chips", chips, chips[-1]).scenario)
        )
    except InputError as error:
        return FewerChips(chips[-1], (), str(error), None, None)
    point = best_point(questions)
    if point is None:
        return FewerChips(chips[-1], tuple(missed_promises(questions)), "", None, None)
    price = point.candidate.usd_per_mtok
    paid = point.candidate.plan().chips
    return FewerChips(paid, (), "", price, price / plan.usd_per_mtok - 1)


def used_limits(candidate: Candidate) -> tuple[UsedLimit, ...]:
    """How much of each limit the plan uses, those that bind first; of two pools the fuller one."""
    used: dict[str, float] = {}
    for pool in candidate.pools:
        for name, limit in pool.task.limits.items():
            if name in pool.chosen_by and name != "load":  # the batch is the one that carries it
                share = pool.chosen_by[name] / limit
                used[PROMISES[name]] = max(used.get(PROMISES[name], 0.0), share)
    if candidate.joint:
        promised = {**candidate.joint.tasks.prefill.promises, **candidate.task.promises}
        for name, word in (("ttft", "ttft"), ("e2e", "latency")):
            if name in promised:
                used[name] = candidate.outputs[word] / promised[name]
        used[READING] = max(used.get(READING, 0.0), candidate.pools[0].utilisation)
    exceeded = candidate.held_by()
    limits = (
        UsedLimit(name, share, share >= FULL or name in exceeded)
        for name, share in used.items() if share > UNSEEN
    )  # fmt: skip
    return tuple(sorted(limits, key=lambda limit: (not limit.binds, -limit.used)))


def quoted_accuracy(candidate: Candidate, regime: str) -> QuotedAccuracy | None:
    """How far runs of this kind of plan were off in fits that did not see them.

    None where the profile does not record it, and of a plan chosen on the bound.
    """
    task, pooled = candidate.task, candidate.joint is not None
    if task.uses_bound:
        return None
    word = LEFT_OUT.get(regime, LEFT_OUT[KNOWN]) if task.profile.left_out else LEFT_OUT[KNOWN]
    reads, decodes = candidate.pools[0].prefills, candidate.last.decodes
    tpot = _error(task.profile, word, "pooled tpot" if pooled else "tpot") if decodes else None
    ttft = _error(task.profile, word, QUEUED if pooled else "ttft") if reads else None
    if tpot is None and ttft is None:
        return None
    of = "two pools" if pooled else "one pool"
    return QuotedAccuracy(of, word, *(tpot or (None, None)), *(ttft or (None, None)))


def _error(profile: Profile, word: str, quantity: str) -> tuple[float, int] | None:
    """Median error, relative, and rows: of those left out in one way, or in any; None without."""
    for row in profile.left_out:
        if (row["word"], row["quantity"]) == (word, quantity):
            return float(row["median"]), int(row["rows"])
    name = quantity.replace(" ", "_")
    if not {f"{name}_median", f"{name}_rows"} <= profile.errors.keys():
        return None
    return profile.errors[f"{name}_median"], int(profile.errors[f"{name}_rows"])
