"""Fleet sizes: minimum chips at the required chance, and minimum chips for a sure plan.

A price is no monotone function of the chips, so all multiples of what is rented are looked at, from
one unit up. Where a load is given the fewest of them that keep every promise are the answer; where
none is, the fewest with the least price per token.

The best plan on the first few of many numbers of chips, without a load, from one search of all.

What a replica does rests on no number of chips. A layout that does not come near the least price on
any number of them does so on no part of them, and pools that may be paired stay the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.catalogue.systems import System
from planner.problems.serving.advice.change import Variation
from planner.problems.serving.advice.records import FleetSize, SurePlan
from planner.problems.serving.deployment import questions
from planner.problems.serving.deployment.missed_promises import missed_promises
from planner.problems.serving.deployment.pool import HOUR
from planner.problems.serving.deployment.promise_chances import min_chance
from planner.problems.serving.deployment.scored_points import PlanPoint, best_point
from planner.problems.serving.pairs.pool_pairs import best_pairs, matched_together
from planner.problems.serving.point import short_point
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import fixed_batches
from planner.problems.serving.search.promise_limits import PromiseLimits
from planner.problems.serving.search.sizing import minimize_feasible_chips
from planner.problems.serving.step.layouts import AXES, Layouts
from planner.problems.serving.step.packing import distinct
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.requests import arrivals
from planner.problems.serving.task.resolve import ServingTasks, resolve
from planner.problems.serving.task.task import Task
from planner.protocol.plan import MissedPromise
from planner.protocol.promise import SURE_CHANCE, chance_word
from planner.text.errors import InputError
from planner.text.tolerances import TIE

COARSE_COUNT = 64  # chip counts in the first, coarse pass over a longer range


class PrefixSearch:
    """Searches the first few of some numbers of chips.

    Args:
        counts: numbers of chips that may be paid, in rising order.
        tasks_on: the questions of a scenario on numbers of chips; FieldError where there are none.
    """

    def __init__(
        self, counts: Sequence[int], tasks_on: Callable[[Sequence[int]], ServingTasks]
    ) -> None:
        self._counts, self._tasks_on = counts, tasks_on
        every = tasks_on(counts)
        self._singles = questions.single_pools(every.tasks)
        self._pools = [questions.both_pools(pair) for pair in every.pools]
        steps = [
            (pair, first.step.with_task(pair.prefill), last.step)
            for pair, (first, last) in zip(every.pools, self._pools, strict=True)
        ]
        self._matched = matched_together(steps)
        self._enough = np.inf
        coarse = counts[:: -(-len(counts) // COARSE_COUNT)]
        if len(coarse) < len(counts) and (near := self._on(coarse)) is not None:
            self._enough = near.score * (1 + TIE)  # what scores more is the best of no more counts
        self.best = self.first(len(counts))
        if self.best is not None:
            self._enough = self.best.score * (1 + TIE)

    def first(self, number: int) -> PlanPoint | None:
        """Best plan on the first `number` chip counts; None if worse than the best of all."""
        return self._on(self._counts[:number])

    def _on(self, counts: Sequence[int]) -> PlanPoint | None:
        try:
            tasks = self._tasks_on(counts)
        except InputError:
            return None
        point = best_point([*self._one_pool(tasks), *self._two_pools(tasks)])
        return point if point is not None and point.score <= self._enough else None

    def _one_pool(self, tasks: ServingTasks) -> list[questions.Question]:
        if self._enough == np.inf:
            return [*self._singles]
        if len(tasks.tasks) != len(self._singles):
            return [*questions.single_pools(tasks.tasks)]
        pools: list[questions.Question] = []
        for task, single in zip(tasks.tasks, self._singles, strict=True):
            near = single.searched.rows[single.searched.score <= self._enough]
            if not near.size:
                continue
            layouts = _also_in(task, single.step.layouts.take(np.unique(near)))
            if len(layouts):
                pools.append(questions.OnePool(task, Step(task, layouts, bound=task.uses_bound)))
        return pools

    def _two_pools(self, tasks: ServingTasks) -> list[questions.Question]:
        if len(tasks.pools) != len(self._pools):  # of few chips, or of little power
            return [*questions.double_pools(tasks.pools)]
        several = zip(tasks.pools, self._matched, strict=True)
        pairs = [best_pairs(pair, matched, self._enough) for pair, matched in several]
        return [*questions.searched_pairs(tasks.pools, self._pools, pairs)]


def _also_in(task: Task, wanted: Layouts) -> Layouts:
    try:
        layouts = admissible_layouts(task)
    except InputError:
        return wanted.take(np.arange(0))
    both = Layouts.joined([layouts, wanted])
    _, kind = distinct(*(getattr(both, axis) for axis in AXES), both.halves)
    return layouts.take(np.isin(kind[: len(layouts)], kind[len(layouts) :]))


MIN_CHIPS, MIN_PRICE = "fewest", "least price"
MAX_MACHINES = 8  # machines; larger fleets are not tried with chips rented singly
MAX_GROWTH = 4  # maximum factor on the given chips in the search at SURE_CHANCE
LARGEST_FLEET = 1024  # chips above which MAX_GROWTH is not applied


def fleet_sizes(scenario: Scenario, best: PlanPoint) -> tuple[FleetSize, ...]:
    """The sizes of a question that has a plan: of whole machines, then of single chips.

    Empty where nothing is paid for by its size: where the best plan is no cheapest one and no load
    is given.
    """
    if not (has_load(scenario) or scenario.objective == "cost"):
        return ()
    on_chips = _on_systems_of(scenario, best)
    sizes = [*_sizes(on_chips)]
    smallest = sizes[0] if sizes else None
    if (
        scenario.rent.unit is None
        and on_chips.unit > 1
        and smallest
        and (smallest.machines <= MAX_MACHINES)
    ):
        # Fleet size if chips are rented singly and replicas still share machines evenly.
        rent = on_chips.rent.model_copy(update={"unit": 1, "even": True})
        size = _fewest_size(on_chips.model_copy(update={"rent": rent}), smallest.chips)
        sizes += [size] if size and _cheaper(size, sizes) else []
    return tuple(sizes)


def has_load(scenario: Scenario) -> bool:
    """True if the scenario gives a load: concurrency, batch, utilisation or finite arrivals."""
    load, rate = scenario.workload, arrivals(scenario)
    in_flight = load.concurrency is not None or scenario.choose.batch is not None
    return in_flight or load.utilisation is not None or (rate is not None and rate < np.inf)


def sure_plan(scenario: Scenario, best: PlanPoint) -> SurePlan | None:
    """The best plan whose promises hold in nine of ten cases; None where the plan's do."""
    chance = min_chance(best.candidate)
    if chance is None or chance >= SURE_CHANCE:
        return None
    point = _with_chance(scenario, SURE_CHANCE).best()
    if point is None:
        return SurePlan(SURE_CHANCE, None, None, None, None)
    candidate = point.candidate
    price, bill = candidate.usd_per_mtok, candidate.outputs["usd_per_s"] * HOUR
    dearer = price / best.candidate.usd_per_mtok - 1
    return SurePlan(SURE_CHANCE, price, bill, dearer, short_point(candidate.plan()))


def _sizes(scenario: Scenario) -> Iterator[FleetSize]:
    """Yield the fleet sizes in whole machines: at the required chance, and at `SURE_CHANCE`."""
    most = max(scenario.paid)
    size = _fewest_size(scenario, most)
    if size is None:
        return
    # With the least price fewer chips cost more, and mostly keep every promise.
    fewer = size.chips - size.unit
    dearer = size.reason == MIN_PRICE and fewer > 0 and _on(scenario, (fewer,)).serves()
    yield size if dearer else replace(size, lacks=_lacks(scenario, fewer))
    if not has_load(scenario) or size.chance is None or size.chance >= SURE_CHANCE:
        return
    more = most * MAX_GROWTH if most <= LARGEST_FLEET else most
    sure = _fewest_size(_with_chance(scenario, SURE_CHANCE).scenario, more, size.chips)
    yield from [replace(sure, reason="sure")] if sure else []


def _fewest_size(scenario: Scenario, most: int, least: int = 1) -> FleetSize | None:
    unit = scenario.unit
    counts = range(-(-least // unit) * unit, max(most // unit * unit, unit) + 1, unit)
    if not counts:
        return None
    if has_load(scenario):
        return _sized(scenario, MIN_CHIPS, min_feasible(scenario, counts))
    return _sized(scenario, MIN_PRICE, _least_price(scenario, counts))


def min_feasible(scenario: Scenario, counts: Sequence[int]) -> PlanPoint | None:
    """The best plan on the fewest of some numbers of chips that keep every promise, if any do."""
    load, single = scenario.workload, scenario.choose.mode in (None, ("aggregated",))
    if load.concurrency is not None or (scenario.choose.batch is not None and single):
        count = _fewest_in_flight(scenario, counts)
    elif load.utilisation is None:
        point = Variation(
            {}, scenario.model_copy(update={"chips": counts, "objective": "cost"})
        ).best()
        if point is None or scenario.objective == "cost":
            return point
        count = point.chips
    else:
        count = _first(counts, lambda chips: _on(scenario, (chips,)).serves())
    return None if count is None else _on(scenario, (count,)).best()


def _fewest_in_flight(scenario: Scenario, counts: Sequence[int]) -> int | None:
    try:
        tasks = resolve(scenario.model_copy(update={"chips": counts})).tasks
    except InputError:
        return None
    chips = [count for task in tasks if (count := _fewest_of(task)) is not None]
    return min(chips, default=None)


def _fewest_of(task: Task) -> int | None:
    """Minimum chips with a layout that keeps the promises at its batch; None if infeasible."""
    whole = task.with_layout(chips=task.chips[-1:])
    most = max(task.batches or ())

    def keeps(step: Step, *, uncut: bool) -> np.ndarray:
        """Which layouts keep their promises; `uncut` says what of halves without two sequences."""
        good = step.layouts.replicas >= 1 + task.spare
        at = np.flatnonzero(good)
        part = step.take(at)
        rows, batch, fill = fixed_batches(part)
        tried, hold = part.take(rows), np.zeros(at.size, dtype=bool)
        np.logical_or.at(hold, rows, PromiseLimits(tried, batch).hold(tried(batch, fill)))
        cut = (part.layouts.halves == 1) | (most > part.layouts.group * part.layouts.replicas)
        good[at] = np.where(cut, hold, uncut)
        return good

    # More chips leave each replica less: where halves are too small to be cut, fewer chips may do.
    step = Step(task, admissible_layouts(whole), bound=task.uses_bound)
    step = minimize_feasible_chips(step, lambda part: keeps(part, uncut=True))
    chips = step.layouts.chips[keeps(step, uncut=False)]
    return int(chips.min()) if chips.size else None


def _least_price(scenario: Scenario, counts: Sequence[int]) -> PlanPoint | None:
    """The best plan on the fewest chips whose price per token is a tie with the least of all."""

    def tasks(chips: Sequence[int]) -> ServingTasks:
        return resolve(_on(scenario, chips).scenario)

    try:
        search = PrefixSearch(counts, tasks)
    except InputError:
        return None
    if (point := search.best) is None:
        return None
    low, high, stride = -1, list(counts).index(point.chips), 1
    # Most often no fewer chips do: looked at first, then ever farther below, then in between.
    while high - low > 1:
        middle = max(high - stride, low + 1)
        nearer = search.first(middle + 1)
        if nearer is None:
            low = middle
        else:
            point, high = nearer, list(counts).index(nearer.chips)
        # In between sizes matter by their ratios.
        stride = 8 * stride if low < 0 else max(high - int(((low + 1) * high) ** 0.5), 1)
    return point


def _first(values: Sequence[int], holds: Callable[[int], bool]) -> int | None:
    low, high = -1, len(values) - 1
    if not holds(values[high]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(values[middle]) else (middle, high)
    return values[high]


def _sized(scenario: Scenario, reason: str, point: PlanPoint | None) -> FleetSize | None:
    """Fleet size of a plan: chips, cost, chance and settings; None without a plan."""
    if point is None:
        return None
    candidate, unit, count = point.candidate, scenario.unit, point.chips
    chance = min_chance(candidate)
    promised = candidate.task.promises or candidate.pools[0].task.promises
    machines = scenario.nodes is not None and count % scenario.unit == 0 and scenario.unit > 1
    sets: dict[str, str | float | None] = {"chips": count}
    if machines:
        sets = {"nodes": count // scenario.unit}
    elif scenario.nodes is not None:
        sets = {"nodes": None, "chips": count}
    if scenario.rent.even and scenario.rent.unit == 1:
        sets |= {"rent.unit": 1, "rent.even": "true"}
    if scenario.promises.chance == SURE_CHANCE:
        sets["promises.chance"] = f"{SURE_CHANCE:.0%}"
    return FleetSize(
        reason=reason,
        chips=count,
        unit=unit,
        machines=count // unit,
        usd_per_hour=candidate.outputs["usd_per_s"] * HOUR,
        usd_per_mtok=candidate.usd_per_mtok,
        chance=chance,
        word=chance_word(chance, within=True) if promised else None,
        plan=short_point(candidate.plan()),
        sets=sets,
    )


def _lacks(scenario: Scenario, count: int) -> tuple[MissedPromise, ...]:
    """Promises missed on `count` chips (one unit fewer); empty if `count` < 1."""
    if count < 1:
        return ()
    try:
        return tuple(
            missed_promises(questions.all_searches(resolve(_on(scenario, (count,)).scenario)))
        )
    except InputError as error:
        return (MissedPromise("layout", None, str(error)),)


def _on(scenario: Scenario, counts: Sequence[int]) -> Variation:
    return Variation({}, scenario.model_copy(update={"chips": counts}))


def _with_chance(scenario: Scenario, chance: float) -> Variation:
    promises = scenario.promises.model_copy(update={"chance": chance})
    return Variation({}, scenario.model_copy(update={"promises": promises}))


def _on_systems_of(scenario: Scenario, best: PlanPoint) -> Scenario:
    """The question on the systems of its plan alone, where it compares several."""
    if not isinstance(scenario.system, tuple):
        return scenario
    chips, systems = {task.chip.name for task in best.tasks}, scenario.systems()
    used = tuple(
        scenario.system[place]
        for place, system in zip(scenario.places(), systems, strict=True)
        if isinstance(system, System) and system.chip.name in chips
    )
    return scenario.model_copy(update={"system": used})


def _cheaper(size: FleetSize, sizes: Sequence[FleetSize]) -> bool:
    return all(size.usd_per_hour < each.usd_per_hour for each in sizes if each.word == size.word)
