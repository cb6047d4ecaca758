"""Switch points: change of one parameter that makes another kind of plan win, solved exactly.

Both kinds are solved again, over all their layouts and batches, at every value looked at; only
where the change is to be sought is guessed, from how far apart the two are beside the value given.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from planner.problems.serving.deployment.questions import OnePool, Question, search_steps
from planner.problems.serving.deployment.scored_points import PlanPoint
from planner.problems.serving.pairs.pool_pairs import search_pools_batched
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.plan import WinningChange
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve_hardware
from planner.problems.serving.task.task import TaskPair
from planner.problems.serving.task.task_builder import Hardware, TaskBuilder
from planner.protocol.bracket import Bracket, find_brackets
from planner.protocol.parameter import Parameter
from planner.text.tolerances import REL_TOL

TOLERANCE = 1.01  # factor within which the break-even is found
N_PRINTED = 2  # changes of one kind that are printed
MAX_GUESSES = 4  # guesses that are followed to find them, the nearest first
ROUNDS = 7
MAX_FACTOR = 3.0  # maximum factor on a parameter in the search for a change
PROBE_FACTOR = 1.1  # factor on a parameter in the first probe of its effect
MIN_LENGTH = 8.0  # tokens; shorter requests are not varied
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
    point: PlanPoint
    rows: np.ndarray | None


def machines(questions: Sequence[Question], number: int, systems: int) -> tuple[int, ...]:
    """Indices of the systems of a question: one index, or one for each of two pools.

    Questions of one pool come first; of each mode and set of formats there is one for every
    system, of two pools one for every pair.
    """
    singles = sum(isinstance(question, OnePool) for question in questions)
    if number < singles:
        return (number % systems,)
    return divmod((number - singles) % systems**2, systems)


Key: TypeAlias = tuple[int, int, str, float]
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class SwitchScan:
    """Questions of one scenario, solved again for chosen layouts at varied parameter values."""

    scenario: Scenario
    questions: Sequence[Question]
    scores: dict[Key, float] = field(default_factory=dict, repr=False)

    @property
    def systems(self) -> int:
        """Systems of the scenario."""
        return len(self.scenario.systems())

    @cached_property
    def hardware(self) -> tuple[Hardware, ...]:
        """The machines of the scenario, with profiles that no task has placed yet."""
        return resolve_hardware(self.scenario)

    def machines(self, number: int) -> tuple[int, ...]:
        """Indices of the systems of question `number`."""
        return machines(self.questions, number, self.systems)

    def _steps(
        self, of: Contender, change: Parameter, factor: float
    ) -> tuple[TaskPair | None, Steps]:
        """The pair of pools, if there are two, and the models of a contender's kind."""
        scenario, hardware = self.varied(change, factor)
        question = self.questions[of.question]
        used = [hardware[k] for k in self.machines(of.question)]
        task = question.task
        builder = TaskBuilder(scenario, task.sizes, task.chunk, task.redundant, task.drafts)
        layouts = [pool.step.layouts for pool in question.pools]
        if of.rows is not None:
            layouts[-1] = layouts[-1].take(of.rows)
        if isinstance(question, OnePool):
            task = builder.task(used[0], task.mode)
            return None, (Step(task, layouts[0], bound=task.uses_bound),)
        same = used[0] is used[1]
        pair = list(builder.pools(used[:1] if same else used))[0 if same else 1]
        prefill, decode = (
            Step(task.with_layout(arrivals=None), rows, bound=task.uses_bound)
            for task, rows in zip(pair.tasks, layouts, strict=True)
        )
        return pair, (prefill.with_task(pair.prefill), decode)

    def varied(self, parameter: Parameter, factor: float) -> tuple[Scenario, tuple[Hardware, ...]]:
        """The scenario with a parameter times a factor, and its machines.

        A profile stays that of the machine as it was.
        """
        scenario = parameter.to(factor) if parameter.to else self.scenario
        before = self.hardware
        if parameter.group in ("workload", "promises"):
            return scenario, before
        varied = zip(resolve_hardware(scenario), before, strict=True)
        return scenario, tuple(replace(new, profile=old.profile) for new, old in varied)

    def leads(
        self, plan: Contender, rival: Contender, changes: Sequence[tuple[Parameter, float]]
    ) -> list[float]:
        """Lead of the plan's kind, ln(rival / plan), at each change; searched together.

        Not a number where neither keeps the promises.
        """
        kinds = [(of, *change) for change in changes for of in (plan, rival)]
        self._search([kind for kind in kinds if _key(*kind) not in self.scores])
        scores = iter([self.scores[_key(*kind)] for kind in kinds])
        return [_lead(first, second) for first, second in zip(scores, scores, strict=True)]

    def _search(self, kinds: Sequence[tuple[Contender, Parameter, float]]) -> None:
        """Store the best objective of each kind at its change; infinite if infeasible."""
        models = {_key(*kind): self._steps(*kind) for kind in kinds}
        singles = {key: steps for key, (pair, steps) in models.items() if pair is None}
        doubles = {
            key: (pair, steps[0], steps[1])
            for key, (pair, steps) in models.items()
            if pair is not None
        }
        searched = search_steps([step for (step,) in singles.values()])
        for key, (_, points) in zip(singles, searched, strict=True):
            self.scores[key] = float(points.score.min(initial=math.inf))
        paired = search_pools_batched(list(doubles.values()))
        for key, (pairs, _) in zip(doubles, paired, strict=True):
            self.scores[key] = pairs[0].score if pairs else math.inf


def _key(of: Contender, change: Parameter, factor: float) -> Key:
    return of.question, id(of.rows), change.path, factor


def _lead(first: float, second: float) -> float:
    if math.isinf(first) and math.isinf(second):
        return math.nan
    if math.isinf(first):
        return -math.inf
    return math.log(second / first) if math.isfinite(second) else math.inf


def switches(contest: SwitchScan, plan: Contender, rival: Contender) -> tuple[WinningChange, ...]:
    """Find the nearest changes that let the rival overtake, nearest first, each verified."""
    start = math.log(rival.point.score / plan.point.score)
    if start <= REL_TOL:
        return ()
    used = sorted({*contest.machines(plan.question), *contest.machines(rival.question)})
    probes = [
        (parameter, probe)
        for parameter in _worth_varying(contest, used)
        for probe in (
            (1 / MAX_FACTOR, MAX_FACTOR) if parameter.group == "promises" else (PROBE_FACTOR,)
        )
    ]
    guesses = []
    still: set[str] = set()
    for (parameter, probe), at in zip(probes, contest.leads(plan, rival, probes), strict=True):
        if parameter.path in still:
            continue  # a promise without effect at 1 / MAX_FACTOR is not tried at MAX_FACTOR
        guess = _guess(start, at, probe)
        if guess is not None:
            guesses.append(_Approach(parameter, guess, start))
        if abs(at - start) <= REL_TOL:
            still.add(parameter.path)
    approaches = sorted(guesses, key=lambda approach: approach.distance)[:MAX_GUESSES]

    def differences(points: Sequence[tuple[int, float]]) -> list[float]:
        looked = [approaches[number].change(step) for number, step in points]
        leads = contest.leads(plan, rival, looked)
        return [
            approaches[number].difference(lead)
            for (number, _), lead in zip(points, leads, strict=True)
        ]

    brackets = find_brackets(
        differences,
        [approach.bracket for approach in approaches],
        [approach.propose for approach in approaches],
        _enough,
        ROUNDS,
    )
    nearest: dict[tuple[str, bool], WinningChange] = {}
    for approach, bracket in zip(approaches, brackets, strict=True):
        key = (approach.parameter.path, approach.up)
        if len(nearest) < N_PRINTED and key not in nearest:
            switch = approach.switch(bracket)
            if switch is not None:
                nearest[key] = switch
    return tuple(sorted(nearest.values(), key=lambda switch: abs(math.log(switch.factor))))


def _worth_varying(contest: SwitchScan, used: Sequence[int]) -> list[Parameter]:
    """The parameters of the systems that are `used`, the promises, and the lengths of requests."""
    scenario, several = contest.scenario, contest.systems > 1
    names = [name for name in OF_SYSTEMS if name != "price" or scenario.objective == "cost"]
    prefixes = [f"system.{k}" for k in used] if several else ["system"]
    paths = [f"{prefix}.{name}" for prefix in prefixes for name in names]
    rows = {row.path: row for row in serving_parameters(scenario, contest.hardware)}
    lengths = [path for path in LENGTHS if (rows[path].value or 0.0) >= MIN_LENGTH]
    promises = [path for path in rows if path.startswith("promises.")]
    return [rows[path] for path in (*paths, *promises, *lengths) if path in rows]


class _Approach:
    """The search for a switch from a guess on; steps are |ln factor|, `start` the lead before."""

    def __init__(self, parameter: Parameter, guess: float, start: float) -> None:
        self.parameter = parameter
        self.up = guess > 1
        self.start = start
        self.distance = abs(math.log(guess))
        self.factors = {0.0: 1.0}
        self.bracket = Bracket(0.0, ahead=start, behind=-math.inf)

    def switch(self, bracket: Bracket) -> WinningChange | None:
        """Last factor with the plan ahead and first without; None if not bracketed closely."""
        if not bracket.closed or bracket.far - bracket.near > 2 * math.log(TOLERANCE):
            return None
        near, far = self.factors[bracket.near], self.factors[bracket.far]
        value = self.parameter.value
        return WinningChange(
            what=self.parameter.path,
            factor=far,
            value=None if value is None else value * far,
            before=None if value is None else value * near,
            dimension=DIMENSIONS[self.parameter.unit],
            verified=True,
        )

    def propose(self, bracket: Bracket) -> Sequence[float]:
        """Next step to evaluate; empty if already evaluated."""
        self.bracket = bracket
        if not bracket.turn:
            step = self.distance + math.log(TOLERANCE) / 3
        elif not bracket.closed:
            # Extrapolate the lead linearly to zero, plus 1 %; double the step if the lead
            # does not shrink.
            slope = self.start - bracket.ahead
            on = (
                bracket.near * self.start / slope
                if slope > 0 and math.isfinite(slope)
                else 2 * bracket.near
            )
            step = min(max(on * 1.01, bracket.near + math.log(TOLERANCE)), math.log(MAX_FACTOR))
        else:
            step = _between(bracket)
        factor = _rounded(self.parameter, math.exp(step if self.up else -step))
        step = abs(math.log(factor))
        if step in self.factors:
            return ()
        self.factors[step] = factor
        return (step,)

    def change(self, step: float) -> tuple[Parameter, float]:
        """The parameter, and its factor at a step that was proposed."""
        return self.parameter, self.factors[step]

    def difference(self, lead: float) -> float:
        """Lead, negative past the switch; NaN if infeasible or if the lead grows again."""
        if not self.bracket.closed and lead >= self.bracket.ahead:
            return math.nan
        return lead if lead < -REL_TOL else max(lead, 0.0)


def _enough(bracket: Bracket) -> bool:
    beyond = not bracket.closed and bracket.near >= math.log(MAX_FACTOR)
    return beyond or bracket.far - bracket.near <= math.log(TOLERANCE)


def _rounded(parameter: Parameter, factor: float) -> float:
    base = 1.0 if parameter.value is None else parameter.value
    value = base * factor
    digit = 1.0 if parameter.unit == "token" else 10.0 ** (math.floor(math.log10(value)) - 3)
    return (math.ceil if factor > 1 else math.floor)(value / digit) * digit / base


def _guess(start: float, at: float, probe: float) -> float | None:
    if not math.isfinite(at):
        return probe if at == -math.inf else None
    if at == start:
        return None
    steps = math.log(probe) * start / (start - at)
    return math.exp(steps) if abs(steps) <= math.log(MAX_FACTOR) else None


def _between(bracket: Bracket) -> float:
    """A step inside a bracket: where a line crosses zero, every third time the middle."""
    near, lead, far, behind = bracket.near, bracket.ahead, bracket.far, bracket.behind
    if math.isinf(lead) or math.isinf(behind) or bracket.turn % 3 == 0:
        return (near + far) / 2
    crossing = near + (far - near) * lead / (lead - behind)
    # On either side of the crossing in turn, so that the bracket closes from both ends.
    aside = math.log(TOLERANCE) / 3 * (1 if far - crossing > crossing - near else -1)
    margin = (far - near) / 20
    return min(max(crossing + aside, near + margin), far - margin)
