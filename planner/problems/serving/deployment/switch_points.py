"""The change of one given quantity at which a rival overtakes a plan, found on the exact problem.

Both kinds are solved again, over all their layouts and batches, at every value looked at; only
where the change is to be sought is guessed, from how far apart the two are beside the value given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from planner.problems.serving.deployment.alternatives import Contender, machines
from planner.problems.serving.deployment.pool_pairs import search_pools
from planner.problems.serving.deployment.pools import OnePool, Question, TwoPools
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.search.batch import search, sized
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import hardware_of
from planner.problems.serving.task.task_builder import Draft, Hardware
from planner.protocol.bracket import Bracket, bracketed
from planner.protocol.parameter import Parameter

if TYPE_CHECKING:
    from planner.problems.serving.question import Scenario

CLOSE = 1.01  # factor within which the break-even is found
NEAREST = 2  # changes of one rival that are told
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

    def varied(self, parameter: Parameter, factor: float) -> tuple[Scenario, tuple[Hardware, ...]]:
        """The scenario with a parameter times a factor, and its machines.

        A profile stays that of the machine as it was.
        """
        scenario = parameter.to(factor) if parameter.to else self.scenario
        machines = self.hardware()
        if parameter.group in ("workload", "promises"):
            return scenario, machines
        profiles = (each.profile for each in machines)
        varied = zip(hardware_of(scenario), profiles, strict=True)
        return scenario, tuple(replace(each, profile=profile) for each, profile in varied)

    def lead(self, plan: Contender, rival: Contender, change: Parameter, factor: float) -> float:
        """How far the plan's kind leads, ln(rival / plan); nan where neither keeps the promises."""
        first, second = (self._known(one, change, factor) for one in (plan, rival))
        if math.isinf(first) and math.isinf(second):
            return math.nan
        if math.isinf(first):
            return -math.inf
        return math.log(second / first) if math.isfinite(second) else math.inf

    def _known(self, one: Contender, change: Parameter, factor: float) -> float:
        key = (one.question, id(one.rows), change.path, factor)
        if key not in self.scores:
            self.scores[key] = self.score(one, *self.varied(change, factor))
        return self.scores[key]


def changes(contest: Contest, plan: Contender, rival: Contender) -> list[dict[str, Any]]:
    """The nearest changes at which the rival overtakes, nearest first, each verified."""
    start = math.log(rival.point.score / plan.point.score)
    if start <= SAME:
        return []
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
    switches: dict[tuple[str, bool], dict[str, Any]] = {}
    for _, lead, guess in sorted(guesses, key=lambda one: one[0])[:TRIED]:
        key = (lead.parameter.path, guess > 1)
        if len(switches) < NEAREST and key not in switches:
            switch = _Approach(lead, guess).switch()
            if switch is not None:
                switches[key] = switch
    return sorted(switches.values(), key=lambda one: abs(math.log(one["factor"])))


def _worth_varying(contest: Contest, used: Sequence[int]) -> list[Parameter]:
    """The parameters of the systems that are `used`, the promises, and the lengths of requests."""
    scenario = contest.scenario
    several = len(scenario.systems()) > 1
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

    def switch(self) -> dict[str, Any] | None:
        """The last factor at which the plan leads and the first at which it does not, close by."""
        bracket = bracketed(self.difference, self.bracket, self.propose, self.enough, ROUNDS)
        if not bracket.closed or bracket.far - bracket.near > 2 * math.log(CLOSE):
            return None
        near, far = self.factors[bracket.near], self.factors[bracket.far]
        parameter = self.lead.parameter
        return {
            "what": parameter.path,
            "factor": far,
            "value": None if parameter.value is None else parameter.value * far,
            "before": None if parameter.value is None else parameter.value * near,
            "dimension": DIMENSIONS[parameter.unit],
            "verified": True,
        }

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
