"""A serving question with one of its values changed, solved again.

What stands beside a plan: weights of another format, how near each limit is, how far off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.catalogue.coefficient_spread import IN_SAMPLE
from planner.catalogue.profile import Profile
from planner.catalogue.systems import System
from planner.problems.serving.advice import records
from planner.problems.serving.deployment.beyond_fit import distance_kinds
from planner.problems.serving.deployment.candidate import READING, Candidate
from planner.problems.serving.deployment.missed_promises import missed_promises
from planner.problems.serving.deployment.pool import min_output
from planner.problems.serving.deployment.questions import (
    Question,
    all_searches,
    double_pools,
    searches_with_best_point,
)
from planner.problems.serving.deployment.scored_points import PlanPoint, best_point, plain_plan
from planner.problems.serving.point import short_point
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.plan_limits import PROMISES
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import BITS, Task
from planner.text.errors import InputError
from planner.text.tolerances import UNSEEN

# Weight formats tried for quantisation; of 4 bits, mxfp4 runs on chips of every vendor.
FORMATS = ("fp8", "int8", "mxfp4")
CACHE = "fp8"  # of caches, the format that engines offer beside 16 bits
DIGITS = 3  # of a promise, as texts print it


@dataclass(frozen=True)
class Variation:
    """A scenario with values changed: `sets` are their paths, and how a file writes them."""

    sets: Mapping[str, str | float | None]
    scenario: Scenario
    point: PlanPoint | None = None  # its best plan, where it is known already

    @classmethod
    def of(
        cls, scenario: Scenario, path: str, value: object, text: str | float | None
    ) -> Variation:
        """A scenario with one value put in place of its own."""
        record, _, name = path.rpartition(".")
        if not record:
            return cls({path: text}, scenario.model_copy(update={name: value}))
        changed = getattr(scenario, record).model_copy(update={name: value})
        return cls({path: text}, scenario.model_copy(update={record: changed}))

    def promising(self, promise: str, limit: float) -> Variation:
        """Change another promise as well: the limit [s], rounded up to `DIGITS` digits."""
        digit = 10.0 ** (math.floor(math.log10(limit)) - DIGITS + 1)
        value = math.ceil(limit / digit) * digit
        values: dict[str, float | None] = {promise: value}
        if promise == "tpot":
            values["tokens_per_s_per_user"] = None
        promises = self.scenario.promises.model_copy(update=values)
        sets = {**self.sets, f"promises.{promise}": f"{value * 1e3:.6g} ms"}
        return Variation(sets, self.scenario.model_copy(update={"promises": promises}))

    def best(self) -> PlanPoint | None:
        """Best plan; None if no plan keeps the promises, or the change is invalid."""
        if self.point is not None:
            return self.point
        try:
            return best_point(searches_with_best_point(resolve(self.scenario)))
        except InputError:
            return None

    def serves(self, *, pairs: bool = True) -> bool:
        """True if any plan keeps the promises; pairs of pools are tried only if `pairs`."""
        try:
            tasks = resolve(self.scenario)
            if any(map(_served, tasks.tasks)):
                return True
            return pairs and any(double.pairs for double in double_pools(tasks.pools))
        except InputError:
            return False

    def lacked(self) -> dict[str, float]:
        """Missed promises of the changed question, with factors; empty if it is invalid."""
        try:
            missed = missed_promises(all_searches(resolve(self.scenario)))
        except InputError:
            return {}
        return {each.promise: each.short_by or 1.0 for each in missed}


def _served(task: Task) -> bool:
    step = Step(task, admissible_layouts(task), bound=task.uses_bound)
    return math.isfinite(min_output(step, "need"))


def narrower_weights(scenario: Scenario, bits: int) -> Iterator[Variation]:
    """Yield a variation per weight width below `bits`, in a format that all its chips multiply.

    Nothing where the scenario chooses a format, or the lecture counts.
    """
    choose, used = scenario.choose, scenario.systems()
    if choose.weights or choose.activations or scenario.assumptions == "lecture":
        return
    chips = [each.chip for each in used if isinstance(each, System)]
    tried = [f for f in FORMATS if BITS[f] < bits and all(chip.computes(f) for chip in chips)]
    for name in {BITS[name]: name for name in reversed(tried)}.values():
        yield Variation.of(scenario, "choose.weights", (name,), name)


def narrower_caches(scenario: Scenario, task: Task) -> Variation | None:
    """Variation with fp8 caches; None if chosen, already as narrow, or not native to all chips."""
    choose, used = scenario.choose, scenario.systems()
    narrow = BITS[task.sizes.kv_dtype] <= BITS[CACHE]
    if choose.kv or narrow or scenario.assumptions == "lecture":
        return None
    if not all(isinstance(each, System) and each.chip.computes(CACHE) for each in used):
        return None
    return Variation.of(scenario, "choose.kv", (CACHE,), CACHE)


def weight_bits(task: Task) -> int:
    """Bits per weight: of the routed experts if the model has experts, else of the dense FFN."""
    return BITS[task.sizes.weight_dtype["routed" if task.sizes.n_experts else "dense_ffn"]]


FULL_SHARE = 0.995  # share of a limit that counts as all of it
MIN_SAVING_SHOWN = 0.10  # share of the price; smaller savings by another format are not shown
# Groups left out of the fits whose errors apply to a plan, by its distance from the rows.
LEFT_OUT = {
    IN_SAMPLE: "configurations", "new_model": "models", "new_chip": "chips",
    "new_architecture": "architectures", "new_engine": "engines",
    "new_engine_on_chip": "engine-chips", "new_version": "versions", "new_format": "formats",
    "new_cache": "caches", "new_batch": "batches", "new_scale": "scale",
}  # fmt: skip
MIN_RUNS = 8  # rows; minimum for a quoted error, and for a name to count as seen by a fit
QUEUED_TTFT_KEY = "assumed_setup_ttft"  # of two pools, whose queue no row tells


def cheaper_weights(scenario: Scenario, best: PlanPoint) -> records.CheaperWeights | None:
    """The cheapest other format of the weights that the chips run, where it saves a tenth.

    One that an engine loads comes before one of a checkpoint that has to be made first.
    """
    plan = best.candidate
    if scenario.objective != "cost":
        return None
    savings = []
    for change in narrower_weights(scenario, weight_bits(plan.task)):
        point = change.best()
        if point is None:
            continue
        candidate = point.candidate
        if candidate.usd_per_mtok <= (1 - MIN_SAVING_SHOWN) * plan.usd_per_mtok:
            savings.append((candidate.plan().engines, candidate.usd_per_mtok, change))
    if not savings:
        return None
    engines, least, change = min(savings, key=lambda row: (row[0] == (), row[1]))
    weights = str(change.sets["choose.weights"])
    return records.CheaperWeights(weights, engines, least, 1 - least / plan.usd_per_mtok)


def cheaper_caches(scenario: Scenario, best: PlanPoint) -> records.CheaperCaches | None:
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
    if least > (1 - MIN_SAVING_SHOWN) * price:
        return None
    return records.CheaperCaches(str(change.sets["choose.kv"]), least, 1 - least / price)


def simpler_plan(questions: Sequence[Question], best: PlanPoint) -> records.SimplerPlan | None:
    """Best plain plan covered by measured runs, and its loss; None if not found."""
    point = plain_plan(questions)
    if point is None:
        return None
    plan, plain = short_point(best.candidate.plan()), short_point(point.candidate.plan())
    return records.SimplerPlan(plain, point.score / best.score - 1, plain == plan)


def used_limits(candidate: Candidate) -> tuple[records.UsedLimit, ...]:
    """Used share of each limit of the plan, binding limits first; maximum over two pools."""
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
        records.UsedLimit(name, share, share >= FULL_SHARE or name in exceeded)
        for name, share in used.items() if share > UNSEEN
    )  # fmt: skip
    return tuple(sorted(limits, key=lambda limit: (not limit.binds, -limit.used)))


def quoted_accuracy(candidate: Candidate) -> records.QuotedAccuracy | None:
    """Median held-out errors for this kind of plan, from fits that excluded such runs.

    None of a plan chosen on the bound. Without numbers where no fit left such runs out: where the
    plan is outside the measured runs in several ways, or in one of which there are too few.
    """
    task, pooled = candidate.task, candidate.joint is not None
    if task.uses_bound:
        return None
    of, kinds = "two pools" if pooled else "one pool", distance_kinds(candidate) or {IN_SAMPLE}
    word = LEFT_OUT.get(next(iter(kinds))) if len(kinds) == 1 else None
    reads, decodes = candidate.pools[0].prefills, candidate.last.decodes
    tpot = _error(task.profile, word, "pooled tpot" if pooled else "tpot") if decodes else None
    ttft = _error(task.profile, word, QUEUED_TTFT_KEY if pooled else "ttft") if reads else None
    if tpot is None and ttft is None:
        return records.QuotedAccuracy(of, None, None, None, None, None)
    return records.QuotedAccuracy(of, word, *(tpot or (None, None)), *(ttft or (None, None)))


def _error(profile: Profile, word: str | None, quantity: str) -> tuple[float, int] | None:
    for row in profile.left_out:
        if (row["word"], row["quantity"]) == (word, quantity) and row["rows"] >= MIN_RUNS:
            return float(row["median"]), int(row["rows"])
    name = quantity.replace(" ", "_")
    if (
        word != LEFT_OUT[IN_SAMPLE]
        or not {f"{name}_median", f"{name}_rows"} <= profile.errors.keys()
    ):
        return None
    return profile.errors[f"{name}_median"], int(profile.errors[f"{name}_rows"])
