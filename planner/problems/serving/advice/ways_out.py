"""Remedies of an infeasible question: one change each, with the price of its plan.

A promise at the value that all others leave possible; more chips; chips of more memory; weights of
fewer bits; the part of a load that can be served. Every change was solved: it has a plan.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

from planner.catalogue.systems import System, system, system_names
from planner.problems.serving.advice.change import DIGITS, Variation, narrower_weights, weight_bits
from planner.problems.serving.advice.records import WayOut
from planner.problems.serving.deployment.missed_promises import common_factor, relaxed_promises
from planner.problems.serving.deployment.pool import HOUR
from planner.problems.serving.deployment.questions import Question, all_searches
from planner.problems.serving.plan import RelaxedPromise
from planner.problems.serving.question import Scenario
from planner.problems.serving.task.resolve import resolve
from planner.protocol.bracket import Bracket, find_bracket
from planner.protocol.plan import MissedPromise
from planner.text.errors import InputError

MEMORY, DEMAND = "memory", "demand"
CAPACITY_LIMITS = (MEMORY, DEMAND, "chips", "prefill keeps up", "prefill queue is stable")
MAX_CHIP_FACTOR = 16  # upper end of the search, as a factor on the paid chips
MAX_CHIP_FACTOR_TWO_POOLS = 4  # factor for two pools, where each chip count is a search of pairs
LARGEST_FLEET = 1024  # chips; larger fleets for a load have too many layouts to search here
LARGEST_SYSTEM = 1_000_000  # chips; larger systems are not built
TRIES = 3  # guesses of how many chips carry a load
CHIP_ESTIMATE_FACTOR = 2  # search margin: factor on the chips estimated at constant load per chip
SYSTEMS_TRIED = 4  # of those with the memory, the cheapest first

# Yields variations of a machine change that also relax its promises, given its searches.
RemedyGenerator: TypeAlias = Callable[
    [Variation, Sequence[RelaxedPromise], Sequence[Question]], Iterator[Variation]
]


def find_remedies(
    scenario: Scenario,
    missed: Sequence[MissedPromise],
    relaxed: Sequence[RelaxedPromise],
    questions: Sequence[Question],
) -> tuple[WayOut, ...]:
    """Every single change that was seen to leave a plan, with the price of that plan."""
    bits = weight_bits(questions[0].task)
    short = {promise.promise: promise.short_by or 1.0 for promise in missed}
    alone = list(_eased_alone(Variation({}, scenario), relaxed, questions))
    changes = [*(alone or _together(scenario, relaxed, short))]
    changes += [*_loads(scenario, short), *_machines(scenario, short, bits)]
    return (
        _priced(changes)
        or _priced(_with_promises(scenario, short, bits, _eased_alone))
        or _priced(_eased_alike(Variation({}, scenario), relaxed, questions))
        or _priced(_with_promises(scenario, short, bits, _eased_alike) if MEMORY in short else ())
        or _priced(_elsewhere(scenario, short[MEMORY]) if MEMORY in short else ())
    )


def _priced(changes: Iterable[Variation]) -> tuple[WayOut, ...]:
    plans = [
        (change.sets, point.candidate) for change in changes if (point := change.best()) is not None
    ]
    return tuple(
        WayOut(sets, plan.usd_per_mtok, plan.outputs["usd_per_s"] * HOUR) for sets, plan in plans
    )


def _together(
    scenario: Scenario, relaxed: Sequence[RelaxedPromise], short: Mapping[str, float]
) -> list[Variation]:
    """Ease all missed promises, each by its factor; empty if any other limit is missed."""
    made = {promise.promise: promise.promised for promise in relaxed}
    common = short.get("promises together")
    factors = dict.fromkeys(made, common) if common else short
    if not factors or not factors.keys() <= made.keys():
        return []
    change = Variation({}, scenario)
    for name, factor in factors.items():
        change = change.promising(name, made[name] * (factor or 1.0))
    return [change]


def _eased_alone(
    change: Variation, relaxed: Sequence[RelaxedPromise], _: Sequence[Question]
) -> Iterator[Variation]:
    for promise in relaxed:
        if promise.alone is not None:
            yield change.promising(promise.promise, promise.alone)


def _eased_alike(
    change: Variation, relaxed: Sequence[RelaxedPromise], questions: Sequence[Question]
) -> Iterator[Variation]:
    common = common_factor(questions) if relaxed else None
    if common is not None:
        for promise in relaxed:
            change = change.promising(promise.promise, promise.promised * common)
        yield change


def _machines(scenario: Scenario, short: Mapping[str, float], bits: int) -> Iterator[Variation]:
    yield from _chips(scenario, short)
    # The cheapest machines of chips with memory enough, at their listed rent.
    need = short.get(MEMORY, 0.0) * _memory(scenario)
    enough = ((rent, name) for rent, name, memory in _listed(scenario) if memory >= need > 0)
    moved = (_moved(scenario, name) for _, name in sorted(enough)[:SYSTEMS_TRIED])
    yield from islice((change for change in moved if change.serves(pairs=False)), 1)
    yield from narrower_weights(scenario, bits)


def _with_promises(
    scenario: Scenario, short: Mapping[str, float], bits: int, eased: RemedyGenerator
) -> Iterator[Variation]:
    """Yield each machine change together with the promises eased as that change requires."""
    missed = [name for name in short if name in type(scenario.promises).model_fields]
    none = dict.fromkeys((*missed, *(["tokens_per_s_per_user"] if "tpot" in missed else [])))
    free = scenario.model_copy(update={"promises": scenario.promises.model_copy(update=none)})
    for change in _machines(free, short, bits) if missed else ():
        promised = change.scenario.model_copy(update={"promises": scenario.promises})
        try:
            questions = all_searches(resolve(promised))
        except InputError:
            continue
        yield from eased(Variation(change.sets, promised), relaxed_promises(questions), questions)


def _chips(scenario: Scenario, short: Mapping[str, float]) -> Iterator[Variation]:
    """Yield the minimum feasible chips, if any; pairs of pools only if `aggregated` is excluded.

    Of a load the search itself finds the fewest.
    """
    paid, unit = max(scenario.paid), scenario.model_copy(update={"chips": (LARGEST_SYSTEM,)}).unit
    pairs = "aggregated" not in (scenario.choose.mode or ("aggregated",))
    room = max((short[name] for name in CAPACITY_LIMITS if name in short), default=1.0)
    guess = max(_whole(paid * room, unit), _whole(paid + 1, unit))

    def paying(count: float) -> Variation:
        return Variation.of(scenario, "chips", (int(count),), int(count))

    # Chips of less than a machine are rented one by one.
    for change in map(paying, range(paid + 1, unit)):
        if change.serves(pairs=pairs):
            yield change
            return
    if scenario.workload.demand is not None and room > 1:
        yield from _carrying(scenario, paid, guess)
        return

    def difference(counts: Sequence[float]) -> list[float]:
        return [-1.0 if paying(counts[0]).serves(pairs=pairs) else 1.0]

    def propose(at: Bracket) -> Sequence[float]:
        if at.closed:
            return (max(_whole((at.near + at.far) / 2, unit) - unit, at.near + unit),)
        further = guess if at.turn == 0 else _whole(2 * at.near, unit)
        most = max(
            paid * (MAX_CHIP_FACTOR_TWO_POOLS if pairs else MAX_CHIP_FACTOR),
            CHIP_ESTIMATE_FACTOR**2 * guess,
        )
        return (further,) if further <= min(most, LARGEST_SYSTEM) else ()

    chips = find_bracket(difference, Bracket(paid), propose, lambda at: at.far - at.near <= unit)
    if chips.closed:
        yield paying(chips.far)


def _whole(chips: float, unit: int) -> int:
    return math.ceil(chips / unit) * unit


def _carrying(scenario: Scenario, tried: int, guess: int) -> Iterator[Variation]:
    """Yield the minimum chips for a load; the shortfall at the tried counts sets the next guess."""
    for _ in range(TRIES):
        if guess > LARGEST_FLEET:
            return
        counts = tuple(range(tried + 1, CHIP_ESTIMATE_FACTOR * guess + 1))
        point = Variation.of(scenario, "chips", counts, "").best()
        if point is not None:
            count = point.candidate.plan().chips
            yield replace(Variation.of(scenario, "chips", (count,), count), point=point)
            return
        tried = counts[-1]
        lacked = Variation.of(scenario, "chips", (tried,), tried).lacked().get(DEMAND, 0.0)
        if lacked <= 1:
            return
        guess = math.ceil(tried * lacked)


def _elsewhere(scenario: Scenario, short: float) -> Iterator[Variation]:
    """Yield the machines of least rent whose memory holds the model, and the chips needed."""
    need = short * _memory(scenario) * max(scenario.paid)
    counts = ((rent, name, math.ceil(need / memory)) for rent, name, memory in _listed(scenario))
    cheapest = sorted((rent * count, name, count) for rent, name, count in counts)
    for _, name, count in cheapest[: SYSTEMS_TRIED if need else 0]:
        moved = _moved(scenario, name)
        least = moved.scenario.model_copy(update={"chips": (count,)}).paid[0]
        for chips in (n for n in (least, CHIP_ESTIMATE_FACTOR * least) if n <= LARGEST_SYSTEM):
            change = Variation.of(moved.scenario, "chips", (chips,), chips)
            if change.serves(pairs="aggregated" not in (scenario.choose.mode or ("aggregated",))):
                yield replace(change, sets={**moved.sets, **change.sets})
                return


def _memory(scenario: Scenario) -> float:
    """Memory of the largest chip [byte]; 0 where systems are topology files."""
    used = scenario.systems()
    if not all(isinstance(each, System) for each in used):
        return 0.0
    return max(each.chip.memory for each in used if isinstance(each, System))


def _listed(scenario: Scenario) -> Iterator[tuple[float, str, float]]:
    """Systems whose rent is listed: it [USD/(chip*s)], the name, memory of a chip [byte]."""
    free = scenario.model_copy(update={"price": None})
    for name in system_names():
        with suppress(InputError):
            yield free.price_of(system(name)).value, name, system(name).chip.memory


def _moved(scenario: Scenario, name: str) -> Variation:
    free = scenario.model_copy(update={"price": None})
    change = Variation.of(free, "system", name, name)
    return (
        change if scenario.price is None else replace(change, sets={**change.sets, "price": None})
    )


def _loads(scenario: Scenario, short: Mapping[str, float]) -> Iterator[Variation]:
    """The part of the load that these chips carry, or of a batch that two pools decode."""
    if "batch" in short:
        batch = round(min(scenario.choose.batch or (0,)) / short["batch"])
        yield Variation.of(scenario, "choose.batch", (batch,), batch)
    demand = scenario.workload.demand
    if demand is None or not short.get(DEMAND, 0.0) > 1:
        return
    served = demand.value / short[DEMAND]
    digit = 10.0 ** (math.floor(math.log10(served)) - DIGITS + 1)
    rate = math.floor(served / digit) * digit
    unit = "requests/s" if demand.per == "request" else "tokens/s"
    words = f"{rate:.{DIGITS}g} {unit}"
    yield Variation.of(scenario, "workload.demand", replace(demand, value=rate), words)
