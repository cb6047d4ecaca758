"""The change of one given quantity at which another kind of plan wins, found on the exact problem.

Both kinds are solved again, over all their layouts and batches, at every value looked at; only
where the change is to be sought is guessed, from how far apart the two are beside the value given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.deployment.pool_pairs import search_pools
from planner.problems.serving.deployment.pools import OnePool, Point, Question
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.plan import WinningChange
from planner.problems.serving.search.batch import search, sized
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import hardware_of
from planner.problems.serving.task.task_builder import Hardware, TaskBuilder
from planner.protocol.bracket import Bracket, bracketed
from planner.protocol.parameter import Parameter
from planner.text.tolerances import SAME

if TYPE_CHECKING:
    from planner.problems.serving.question import Scenario

CLOSE = 1.01  # factor within which the break-even is found
NEAREST = 2  # changes of one kind that are printed
TRIED = 4  # guesses that are followed to find them, the nearest first
ROUNDS = 7
FARTHEST = 3.0  # factor of a parameter beyond which no change is sought
NUDGE = 1.1  # factor by which it is felt whether a parameter matters
SHORTEST = 8.0  # tokens; shorter requests are not varied
OF_SYSTEMS = ("memory_bandwidth", "flops", "price", "scale_up", "scale_out")
LENGTHS = ("workload.input_tokens", "workload.output_tokens")
DIMENSIONS = {
    "byte/s": "bandwidth", "s": "time", "token/s": "token_rate", "token": "tokens",
    "USD/(chip*s)": "price", "flop/s": "",
}  # fmt: skip


@dataclass(frozen=True)
class Contender:
    """The best point of one kind, its question's number, and the layouts that are of its kind.

    `rows` index the layouts of the question, those of the pool that decodes if there are two;
    None stands for all of them.
    """

    kind: str
    question: int
    point: Point
    rows: np.ndarray | None


def machines(questions: Sequence[Question], number: int, systems: int) -> tuple[int, ...]:
    """Which systems of the scenario a question is about: one, or one for each of two pools.

    Questions of one pool come first; of each mode and set of formats there is one for every
    system, of two pools one for every pair.
    """
    singles = sum(isinstance(question, OnePool) for question in questions)
    if number < singles:
        return (number % systems,)
    return divmod((number - singles) % systems**2, systems)


@dataclass(frozen=True)
class Contest:
    """One scenario's questions, to be asked again of some layouts with other values."""

    scenario: Scenario
    questions: Sequence[Question]
    scores: dict[tuple[int, int, str, float], float] = field(default_factory=dict, repr=False)

    @property
    def systems(self) -> int:
        """Systems of the scenario."""
        return len(self.scenario.systems())

    def hardware(self) -> tuple[Hardware, ...]:
        """The machines of the scenario, as they were looked up."""
        systems = {}
        for number, question in enumerate(self.questions):
            for k, task in zip(self.machines(number), question.tasks, strict=True):
                rent = task.price - task.electricity
                systems[k] = Hardware(task.chip, task.machine, rent, task.profile, task.fabric)
        return tuple(systems[k] for k in range(self.systems))

    def machines(self, number: int) -> tuple[int, ...]:
        """Which systems a question is about."""
        return machines(self.questions, number, self.systems)

    def score(self, of: Contender, scenario: Scenario, hardware: Sequence[Hardware]) -> float:
        """The best objective of a contender's kind, in another scenario; infinite if none."""
        question = self.questions[of.question]
        used = [hardware[k] for k in self.machines(of.question)]
        task = question.task
        builder = TaskBuilder(scenario, task.sizes, task.chunk, task.redundant)
        layouts = [pool.step.layouts for pool in question.pools]
        if of.rows is not None:
            layouts[-1] = layouts[-1].take(of.rows)
        if isinstance(question, OnePool):
            task = builder.task(used[0], task.mode)
            step = sized(Step(task, layouts[0], bound=task.uses_bound))
            return float(search(step).score.min(initial=math.inf))
        same = used[0] is used[1]
        pair = list(builder.pools(used[:1] if same else used))[0 if same else 1]
        prefill, decode = (
            Step(task.with_layout(arrivals=None), rows, bound=task.uses_bound)
            for task, rows in zip(pair.tasks, layouts, strict=True)
        )
        pairs, _ = search_pools(pair, prefill.asked(pair.prefill), decode)
        return pairs[0].score if pairs else math.inf

    def varied(self, parameter: Parameter, factor: float) -> tuple[Scenario, tuple[Hardware, ...]]:
        """The scenario with a parameter times a factor, and its machines.

        A profile stays that of the machine as it was.
        """
        scenario = parameter.to(factor) if parameter.to else self.scenario
        before = self.hardware()
        if parameter.group in ("workload", "promises"):
            return scenario, before
        varied = zip(hardware_of(scenario), before, strict=True)
        return scenario, tuple(replace(new, profile=old.profile) for new, old in varied)

    def lead(self, plan: Contender, rival: Contender, change: Parameter, factor: float) -> float:
        """How far the plan's kind leads, ln(rival / plan); nan where neither keeps the promises."""
        first, second = (self._score_at(kind, change, factor) for kind in (plan, rival))
        if math.isinf(first) and math.isinf(second):
            return math.nan
        if math.isinf(first):
            return -math.inf
        return math.log(second / first) if math.isfinite(second) else math.inf

    def _score_at(self, of: Contender, change: Parameter, factor: float) -> float:
        key = (of.question, id(of.rows), change.path, factor)
        if key not in self.scores:
            self.scores[key] = self.score(of, *self.varied(change, factor))
        return self.scores[key]


def switches(contest: Contest, plan: Contender, rival: Contender) -> tuple[WinningChange, ...]:
    """The nearest changes at which the rival overtakes, nearest first, each verified."""
    start = math.log(rival.point.score / plan.point.score)
    if start <= SAME:
        return ()
    used = sorted({*contest.machines(plan.question), *contest.machines(rival.question)})
    guesses = []
    for parameter in _worth_varying(contest, used):
        lead = _Lead(contest, plan, rival, parameter, start)
        promised = parameter.group == "promises"
        for probe in (1 / FARTHEST, FARTHEST) if promised else (NUDGE,):
            at = lead.at(probe)
            guess = _guess(start, at, probe)
            if guess is not None:
                guesses.append((abs(math.log(guess)), lead, guess))
            if abs(at - start) <= SAME:
                break  # what does not matter when it is halved does not when it is doubled
    nearest: dict[tuple[str, bool], WinningChange] = {}
    for _, lead, guess in sorted(guesses, key=lambda guess: guess[0])[:TRIED]:
        key = (lead.parameter.path, guess > 1)
        if len(nearest) < NEAREST and key not in nearest:
            switch = _Approach(lead, guess).switch()
            if switch is not None:
                nearest[key] = switch
    return tuple(sorted(nearest.values(), key=lambda switch: abs(math.log(switch.factor))))


def _worth_varying(contest: Contest, used: Sequence[int]) -> list[Parameter]:
    """The parameters of the systems that are `used`, the promises, and the lengths of requests."""
    scenario, several = contest.scenario, contest.systems > 1
    names = [name for name in OF_SYSTEMS if name != "price" or scenario.objective == "cost"]
    prefixes = [f"system.{k}" for k in used] if several else ["system"]
    paths = [f"{prefix}.{name}" for prefix in prefixes for name in names]
    rows = {row.path: row for row in serving_parameters(scenario, contest.hardware())}
    lengths = [path for path in LENGTHS if (rows[path].value or 0.0) >= SHORTEST]
    promises = [path for path in rows if path.startswith("promises.")]
    return [rows[path] for path in (*paths, *promises, *lengths) if path in rows]


@dataclass(frozen=True)
class _Lead:
    """How far a plan leads its rival as one parameter moves; `start` is where nothing does."""

    contest: Contest
    plan: Contender
    rival: Contender
    parameter: Parameter
    start: float

    def at(self, factor: float) -> float:
        return self.contest.lead(self.plan, self.rival, self.parameter, factor)


class _Approach:
    """The search for a switch from a guess on; steps are |ln factor|."""

    def __init__(self, lead: _Lead, guess: float) -> None:
        self.lead = lead
        self.up = guess > 1
        self.first = abs(math.log(guess)) + math.log(CLOSE) / 3
        self.factors = {0.0: 1.0}
        self.bracket = Bracket(0.0, ahead=lead.start, behind=-math.inf)

    def switch(self) -> WinningChange | None:
        """The last factor at which the plan leads and the first at which it does not, close by."""
        bracket = bracketed(self.difference, self.bracket, self.propose, self.enough, ROUNDS)
        if not bracket.closed or bracket.far - bracket.near > 2 * math.log(CLOSE):
            return None
        near, far = self.factors[bracket.near], self.factors[bracket.far]
        parameter = self.lead.parameter
        value = parameter.value
        return WinningChange(
            what=parameter.path,
            factor=far,
            value=None if value is None else value * far,
            before=None if value is None else value * near,
            dimension=DIMENSIONS[parameter.unit],
            verified=True,
        )

    def propose(self, bracket: Bracket) -> Sequence[float]:
        """The step to look at next; none where it was looked at."""
        self.bracket = bracket
        if not bracket.turn:
            step = self.first
        elif not bracket.closed:
            step = min(_beyond(bracket.near, bracket.ahead, self.lead.start), math.log(FARTHEST))
        else:
            step = _between(bracket)
        factor = _rounded(self.lead.parameter, math.exp(step if self.up else -step))
        step = abs(math.log(factor))
        if step in self.factors:
            return ()
        self.factors[step] = factor
        return (step,)

    def difference(self, steps: Sequence[float]) -> list[float]:
        """The leads; not a number where there is no plan, or where the lead grows again."""
        leads = [self.lead.at(self.factors[step]) for step in steps]
        grows = [not self.bracket.closed and lead >= self.bracket.ahead for lead in leads]
        clear = [lead if lead < -SAME else max(lead, 0.0) for lead in leads]
        return [math.nan if up else lead for up, lead in zip(grows, clear, strict=True)]

    def enough(self, bracket: Bracket) -> bool:
        """Whether the bracket is close, or as far away as is looked."""
        beyond = not bracket.closed and bracket.near >= math.log(FARTHEST)
        return beyond or bracket.far - bracket.near <= math.log(CLOSE)


def _rounded(parameter: Parameter, factor: float) -> float:
    """The factor of a value that can be said in few digits, no nearer to what is given."""
    base = 1.0 if parameter.value is None else parameter.value
    value = base * factor
    digit = 1.0 if parameter.unit == "token" else 10.0 ** (math.floor(math.log10(value)) - 3)
    return (math.ceil if factor > 1 else math.floor)(value / digit) * digit / base


def _guess(start: float, at: float, probe: float) -> float | None:
    """Where the lead would end if it went on as between no change and the probe."""
    if not math.isfinite(at):
        return probe if at == -math.inf else None
    if at == start:
        return None
    steps = math.log(probe) * start / (start - at)
    return math.exp(steps) if abs(steps) <= math.log(FARTHEST) else None


def _between(bracket: Bracket) -> float:
    """A step inside a bracket: where a line crosses zero, every third time the middle."""
    near, lead, far, behind = bracket.near, bracket.ahead, bracket.far, bracket.behind
    if math.isinf(lead) or math.isinf(behind) or bracket.turn % 3 == 0:
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
