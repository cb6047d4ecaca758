"""A serving question with one of its values changed, solved again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.catalogue.systems import System
from planner.problems.serving.deployment.missed_promises import missed_promises
from planner.problems.serving.deployment.pool import least_value
from planner.problems.serving.deployment.questions import (
    double_pools,
    questions_of,
    rival_questions,
)
from planner.problems.serving.deployment.scored_points import Point, best_point
from planner.problems.serving.search.admitted_layouts import layouts_of
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import BITS, Task
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.problems.serving.question import Scenario

# Formats that weights are cut down to; of four bits the one that chips of every maker multiply.
FORMATS = ("fp8", "int8", "mxfp4")
CACHE = "fp8"  # of caches, the format that engines offer beside 16 bits
DIGITS = 3  # of a promise, as texts print it


@dataclass(frozen=True)
class Change:
    """A scenario with values changed: `sets` are their paths, and how a file writes them."""

    sets: Mapping[str, str | float | None]
    scenario: Scenario
    point: Point | None = None  # its best plan, where it is known already

    @classmethod
    def of(cls, scenario: Scenario, path: str, value: object, text: str | float | None) -> Change:
        """A scenario with one value put in place of its own."""
        record, _, name = path.rpartition(".")
        if not record:
            return cls({path: text}, scenario.model_copy(update={name: value}))
        changed = getattr(scenario, record).model_copy(update={name: value})
        return cls({path: text}, scenario.model_copy(update={record: changed}))

    def promising(self, promise: str, limit: float) -> Change:
        """The same with another limit of a promise as well [s], no shorter when it is typed."""
        digit = 10.0 ** (math.floor(math.log10(limit)) - DIGITS + 1)
        value = math.ceil(limit / digit) * digit
        values: dict[str, float | None] = {promise: value}
        if promise == "tpot":
            values["tokens_per_s_per_user"] = None
        promises = self.scenario.promises.model_copy(update=values)
        sets = {**self.sets, f"promises.{promise}": f"{value * 1e3:.6g} ms"}
        return Change(sets, self.scenario.model_copy(update={"promises": promises}))

    def best(self) -> Point | None:
        """The best plan; None where nothing keeps the promises, or the change cannot be made."""
        if self.point is not None:
            return self.point
        try:
            return best_point(rival_questions(resolve(self.scenario)))
        except InputError:
            return None

    def serves(self, *, pairs: bool = True) -> bool:
        """Whether any plan keeps the promises, two pools looked at where `pairs`."""
        try:
            tasks = resolve(self.scenario)
            if any(map(_served, tasks.tasks)):
                return True
            return pairs and any(double.pairs for double in double_pools(tasks.pools))
        except InputError:
            return False

    def lacked(self) -> dict[str, float]:
        """What a question without a plan misses, and by which factor; empty where it is none."""
        try:
            missed = missed_promises(questions_of(resolve(self.scenario)))
        except InputError:
            return {}
        return {each.promise: each.short_by or 1.0 for each in missed}


def _served(task: Task) -> bool:
    """Whether one pool keeps its promises: at its smallest batch each is nearest to being kept."""
    step = Step(task, layouts_of(task), bound=task.uses_bound)
    return math.isfinite(least_value(step, "need"))


def narrower_weights(scenario: Scenario, bits: int) -> Iterator[Change]:
    """The same with weights of each format below so many bits that all its chips multiply.

    Nothing where the scenario chooses a format, or the lecture counts.
    """
    choose, used = scenario.choose, scenario.systems()
    if choose.weights or choose.activations or scenario.assumptions == "lecture":
        return
    chips = [each.chip for each in used if isinstance(each, System)]
    tried = [f for f in FORMATS if BITS[f] < bits and all(chip.computes(f) for chip in chips)]
    for name in {BITS[name]: name for name in reversed(tried)}.values():
        yield Change.of(scenario, "choose.weights", (name,), name)


def narrower_caches(scenario: Scenario, task: Task) -> Change | None:
    """The same with caches in fp8; None where they are chosen, as narrow, or no chip's own."""
    choose, used = scenario.choose, scenario.systems()
    narrow = BITS[task.sizes.kv_dtype] <= BITS[CACHE]
    if choose.kv or narrow or scenario.assumptions == "lecture":
        return None
    if not all(isinstance(each, System) and each.chip.computes(CACHE) for each in used):
        return None
    return Change.of(scenario, "choose.kv", (CACHE,), CACHE)


def bits_of(task: Task) -> int:
    """Bits of a weight, of experts where there are any."""
    return BITS[task.sizes.weight_dtype["routed" if task.sizes.n_experts else "dense_ffn"]]
