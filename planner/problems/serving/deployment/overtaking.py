"""The change of one given quantity at which a rival overtakes a plan, found on the exact problem.

Both kinds are solved again, over all their layouts and batches, at every value looked at; only
where the change is to be sought is guessed, from how far apart the two are beside the value given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planner.problems.serving.deployment.alternatives import Contender, machines
from planner.problems.serving.deployment.pool_pairs import search_pools
from planner.problems.serving.deployment.pools import OnePool, Question, TwoPools
from planner.problems.serving.search.batch import search, sized
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task_builder import Draft, Hardware
from planner.problems.serving.varied import FARTHEST, Change, given_quantities

if TYPE_CHECKING:
    from planner.scenario import Scenario

__all__ = ["Contest", "changes"]

CLOSE = 1.01  # factor within which the break-even is found
NEAREST = 2  # changes of one rival that are told
TRIED = 4  # guesses that are followed to find them, the nearest first
ROUNDS = 7
SAME = 1e-9  # plans closer than this are as good as each other


@dataclass(frozen=True)
class Contest:
    """One scenario's questions, to be asked again of some layouts with other values."""

    scenario: Scenario
    questions: Sequence[Question]
    scores: dict[tuple[Any, ...], float] = field(default_factory=dict, repr=False)

    @property
    def systems(self) -> int:
        """Systems of the scenario."""
        return len(self.scenario.systems())

    def hardware(self) -> tuple[Hardware, ...]:
        """The machines of the scenario, as they were looked up."""
        found = {}
        for number, each in enumerate(self.questions):
            of = self.machines(number)
            tasks = (
                (each.task,)
                if isinstance(each, OnePool)
                else (each.pools.prefill, each.pools.decode)
            )
            for k, task in zip(of, tasks, strict=True):
                rent = task.price - task.electricity
                found[k] = Hardware(task.chip, task.machine, rent, task.profile, task.fabric)
        return tuple(found[k] for k in range(self.systems))

    def machines(self, number: int) -> tuple[int, ...]:
        """Which systems a question is about."""
        singles = sum(isinstance(each, OnePool) for each in self.questions)
        return machines(number, singles, self.systems)

    def score(self, one: Contender, scenario: Scenario, hardware: Sequence[Hardware]) -> float:
        """The best objective of a contender's kind, in another scenario; infinite if none."""
        question = self.questions[one.question]
        of = [hardware[k] for k in self.machines(one.question)]
        draft = Draft(scenario, question.task.sizes, question.task.chunk)
        if isinstance(question, OnePool):
            return _of_one(draft, of[0], question, one)
        return _of_two(draft, of, question, one)

    def lead(self, plan: Contender, rival: Contender, change: Change, factor: float) -> float:
        """How far the plan's kind leads, ln(rival / plan); nan where neither keeps the promises."""
        first, second = (self._known(one, change, factor) for one in (plan, rival))
        if math.isinf(first) and math.isinf(second):
            return math.nan
        if math.isinf(first):
            return -math.inf
        return math.log(second / first) if math.isfinite(second) else math.inf

    def _known(self, one: Contender, change: Change, factor: float) -> float:
        key = (one.question, id(one.rows), change.path, factor)
        if key not in self.scores:
            self.scores[key] = self.score(one, *change.to(factor))
        return self.scores[key]


def changes(contest: Contest, plan: Contender, rival: Contender) -> list[dict[str, Any]]:
    """The nearest changes at which the rival overtakes, nearest first, each verified."""
    start = math.log(rival.point.score / plan.point.score)
    if start <= SAME:
        return []
    used = sorted({*contest.machines(plan.question), *contest.machines(rival.question)})
    guessed = []
    for change in given_quantities(contest.scenario, contest.hardware(), used):
        lead = _Lead(contest, plan, rival, change, start)
        for probe in change.probes:
            at = lead.at(probe)
            guess = _guess(start, at, probe)
            if guess is not None:
                guessed.append((abs(math.log(guess)), lead, guess))
            if abs(at - start) <= SAME:
                break  # what does not matter when it is halved does not when it is doubled
    found: dict[tuple[str, bool], dict[str, Any]] = {}
    for _, lead, guess in sorted(guessed, key=lambda one: one[0])[:TRIED]:
        key = (lead.change.path, guess > 1)
        bracket = _bracket(lead, guess) if len(found) < NEAREST and key not in found else None
        if bracket is not None:
            found[key] = _told(lead.change, *bracket)
    return sorted(found.values(), key=lambda one: abs(math.log(one["factor"])))


@dataclass(frozen=True)
class _Lead:
    """How far a plan leads its rival as one quantity changes; `start` is where nothing does."""

    contest: Contest
    plan: Contender
    rival: Contender
    change: Change
    start: float

    def at(self, factor: float) -> float:
        return self.contest.lead(self.plan, self.rival, self.change, factor)


def _of_one(draft: Draft, hardware: Hardware, question: OnePool, one: Contender) -> float:
    layouts = question.step.layouts
    if one.rows is not None:
        layouts = layouts.take(one.rows)
    task = draft.task(hardware, question.task.mode)
    step = sized(Step(task, layouts, bound=task.uses_bound))
    return float(search(step).score.min(initial=math.inf))


def _of_two(
    draft: Draft, hardware: Sequence[Hardware], question: TwoPools, one: Contender
) -> float:
    same = hardware[0] is hardware[1]
    pools = list(draft.pools(hardware[:1] if same else hardware))[0 if same else 1]
    layouts = [side.step.layouts for side in (question.reading, question.decoding)]
    if one.rows is not None:
        layouts[1] = layouts[1].take(one.rows)
    first, second = (
        Step(task.with_layout(arrivals=None), some, bound=task.uses_bound)
        for task, some in zip((pools.prefill, pools.decode), layouts, strict=True)
    )
    found, _ = search_pools(pools, first.asked(pools.prefill), second)
    return found[0].score if found else math.inf


def _told(change: Change, near: float, far: float) -> dict[str, Any]:
    """A bracket in the words of the answer."""
    base = change.value
    return {
        "what": change.path,
        "factor": far,
        "value": None if base is None else base * far,
        "before": None if base is None else base * near,
        "dimension": change.dimension,
        "verified": True,
    }


def _guess(start: float, at: float, probe: float) -> float | None:
    """Where the lead would end if it went on as between no change and the probe."""
    if not math.isfinite(at):
        return probe if at == -math.inf else None
    if at == start:
        return None
    steps = math.log(probe) * start / (start - at)
    return math.exp(steps) if abs(steps) <= math.log(FARTHEST) else None


def _bracket(lead: _Lead, guess: float) -> tuple[float, float] | None:
    """The last factor at which the plan leads and the first at which it does not, close by."""
    farthest, up = math.log(FARTHEST), guess > 1
    near, ahead, far, behind = 0.0, lead.start, math.inf, -math.inf  # steps are |ln factor|
    factors = {0.0: 1.0}
    step = abs(math.log(guess)) + math.log(CLOSE) / 3
    for turn in range(ROUNDS):
        factor = lead.change.rounded(math.exp(step if up else -step))
        step = abs(math.log(factor))
        if step in factors:
            break
        factors[step], at = factor, lead.at(factor)
        if math.isnan(at) or (at >= ahead and math.isinf(far)):
            return None  # neither keeps the promises there, or the lead grows again
        if at < -SAME:
            far, behind = step, at
        else:
            near, ahead = step, at
        if far - near <= math.log(CLOSE) or (math.isinf(far) and near >= farthest):
            break
        if math.isinf(far):
            step = min(_beyond(near, ahead, lead.start), farthest)
        else:
            step = _between(near, ahead, far, behind, turn)
    if math.isinf(far) or far - near > 2 * math.log(CLOSE):
        return None
    return factors[near], factors[far]


def _between(near: float, lead: float, far: float, behind: float, turn: int) -> float:
    """A step inside a bracket: where a line crosses zero, every third time the middle."""
    if math.isinf(lead) or math.isinf(behind) or turn % 3 == 2:
        return (near + far) / 2
    crossing = near + (far - near) * lead / (lead - behind)
    # On either side of the crossing in turn, so that the bracket closes from both ends.
    aside = math.log(CLOSE) / 3 * (1 if far - crossing > crossing - near else -1)
    margin = (far - near) / 20
    return min(max(crossing + aside, near + margin), far - margin)


def _beyond(near: float, lead: float, start: float) -> float:
    """A step past the last one, as far as a line through the first suggests and a little more."""
    slope = start - lead
    on = near * start / slope if slope > 0 and math.isfinite(slope) else 2 * near
    return max(on * 1.01, near + math.log(CLOSE))
