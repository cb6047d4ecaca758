"""What stands beside a plan: weights of another format, how near each limit is, how far off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalogue.coefficient_spread import KNOWN
from planner.problems.serving.advice.change import bits_of, narrower_caches, narrower_weights
from planner.problems.serving.advice.records import (
    CheaperCaches,
    CheaperWeights,
    QuotedAccuracy,
    SimplerPlan,
    UsedLimit,
)
from planner.problems.serving.deployment.beyond_fit import kinds_outside
from planner.problems.serving.deployment.candidate import READING
from planner.problems.serving.deployment.scored_points import simplest
from planner.problems.serving.point import short_point
from planner.problems.serving.task.plan_limits import PROMISES
from planner.text.tolerances import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.catalogue.profile import Profile
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.questions import Question
    from planner.problems.serving.deployment.scored_points import Point
    from planner.problems.serving.question import Scenario

FULL = 0.995  # share of a limit that counts as all of it
WORTH_SAYING = 0.10  # saving from which on another format is worth a line
# What was left out of the fits whose errors hold for a plan, by how far it is from the rows.
LEFT_OUT = {
    KNOWN: "configurations", "new_model": "models", "new_chip": "chips",
    "new_architecture": "architectures", "new_engine": "engines",
    "new_engine_on_chip": "engine-chips", "new_version": "versions", "new_format": "formats",
    "new_cache": "caches", "new_batch": "batches", "new_scale": "scale",
}  # fmt: skip
LEAST_RUNS = 8  # of which an error is quoted, as of which a fit counts as having seen a name
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


def cheaper_caches(scenario: Scenario, best: Point) -> CheaperCaches | None:
    """Caches of half the bytes, where chips multiply them, an engine keeps them, and a tenth goes.

    What they cost in quality only the user may risk.
    """
    price = best.candidate.usd_per_mtok
    if scenario.objective != "cost":
        return None
    change = narrower_caches(scenario, best.tasks[-1])
    point = change.best() if change else None
    if change is None or point is None:
        return None
    least = point.candidate.usd_per_mtok
    if least > (1 - WORTH_SAYING) * price:
        return None
    return CheaperCaches(str(change.sets["choose.kv"]), least, 1 - least / price)


def simpler_plan(questions: Sequence[Question], best: Point) -> SimplerPlan | None:
    """The best plain plan that measured runs cover, and what it loses; None where there is none."""
    point = simplest(questions)
    if point is None:
        return None
    plan, plain = short_point(best.candidate.plan()), short_point(point.candidate.plan())
    return SimplerPlan(plain, point.score / best.score - 1, plain == plan)


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


def quoted_accuracy(candidate: Candidate) -> QuotedAccuracy | None:
    """How far runs of this kind of plan were off in fits that did not see them.

    None of a plan chosen on the bound. Without numbers where no fit left such runs out: where the
    plan is outside the measured runs in several ways, or in one of which there are too few.
    """
    task, pooled = candidate.task, candidate.joint is not None
    if task.uses_bound:
        return None
    of, kinds = "two pools" if pooled else "one pool", kinds_outside(candidate) or {KNOWN}
    word = LEFT_OUT.get(next(iter(kinds))) if len(kinds) == 1 else None
    reads, decodes = candidate.pools[0].prefills, candidate.last.decodes
    tpot = _error(task.profile, word, "pooled tpot" if pooled else "tpot") if decodes else None
    ttft = _error(task.profile, word, QUEUED if pooled else "ttft") if reads else None
    if tpot is None and ttft is None:
        return QuotedAccuracy(of, None, None, None, None, None)
    return QuotedAccuracy(of, word, *(tpot or (None, None)), *(ttft or (None, None)))


def _error(profile: Profile, word: str | None, quantity: str) -> tuple[float, int] | None:
    """Median error, relative, and rows: of those left out in one way; None without."""
    for row in profile.left_out:
        if (row["word"], row["quantity"]) == (word, quantity) and row["rows"] >= LEAST_RUNS:
            return float(row["median"]), int(row["rows"])
    name = quantity.replace(" ", "_")
    if word != LEFT_OUT[KNOWN] or not {f"{name}_median", f"{name}_rows"} <= profile.errors.keys():
        return None
    return profile.errors[f"{name}_median"], int(profile.errors[f"{name}_rows"])
