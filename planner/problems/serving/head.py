"""The head of a serving answer: layout, bill, promises, a smaller fleet, certainty, the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from planner.catalogue.chips import chip, chip_names
from planner.catalogue.systems import system as catalogued
from planner.catalogue.systems import system_names
from planner.problems.serving.advice.advice_text import queue_breaks
from planner.problems.serving.point import layout_text
from planner.problems.serving.task.plan_limits import LIMITS, limit_title
from planner.protocol.plan import MEASURED
from planner.protocol.section import BROKEN, UNCOUNTED, AnswerHead, marked
from planner.text.quantities import show
from planner.text.tolerances import UNSEEN
from planner.text.wording import (
    duration,
    increase,
    joined_ends,
    length,
    percent,
    plural,
    reference_text,
    three_digits,
    wrap_text,
    wrapped,
)

if TYPE_CHECKING:
    from planner.problems.serving.advice.records import FleetSize
    from planner.problems.serving.plan import CurrentPoint, ServingAnswer
    from planner.problems.serving.point import PlannedPool, ServingPoint
    from planner.protocol.promise import PromiseChance

MONTH = 730  # hours
CHANGE_COLUMN = 26  # columns of a price, followed by its change
BILL = attrgetter("usd_per_hour")
CHEAPER = 0.9  # of the bill, below which a smaller fleet is named first
TIMES = 2.0  # minimum ratio written as a factor; smaller ratios are in percent
N_SPACES = 3  # spaces between promises that share a line
MAX_LINE = 66  # columns that they may fill


def head(answer: ServingAnswer) -> AnswerHead:
    """Return the main rows of an answer; only a title if the question is infeasible.

    Source of the wording: engines' own names of layouts and limits.
    """
    title, point = question(answer.scenario), answer.plan
    if point is None:
        return AnswerHead(f"{BROKEN} NO PLAN: {title}")
    ends = getattr(answer.band, "usd_per_mtok", None)
    spread = f" ({joined_ends(*map(three_digits, ends))})" if ends else ""
    bill = f"${point.usd_per_hour:,.2f}/hour · ${point.usd_per_hour * MONTH:,.0f}/month"
    power = point.power_usd_per_hour
    paid = f", of it ${power:,.2f}/hour power" if power else ""
    return AnswerHead(
        title,
        run=tuple(_run(point)),
        cost=(f"{bill} · ${three_digits(point.usd_per_mtok)}/Mtok{spread}{paid}",),
        against=tuple(_current(answer.current, point)),
        promises=tuple(_lines([_promise(each, answer) for each in answer.promises])),
        smaller=tuple(_sizes(answer, point)),
        certainty=(certainty(answer),),
        limit=tuple(_limit(answer)),
        next=(_next(answer, point),),
        cheaper_size=_saves(answer, point),
    )


def question(scenario: Mapping[str, Any], aim: str | None = None) -> str:
    """Describe the question in a sentence; `aim` replaces the scenario's objective."""
    load, promises = scenario["workload"], scenario["promises"]
    read, written = length(load["input_tokens"]), length(load["output_tokens"])
    tokens = f"{read} token{'s' * (read != '1')} in, {written} out"
    keeps = [
        f"{limit_title(name)} ≤ {show(value, 'time')}"
        for name, value in promises.items()
        if value and name in LIMITS and name != "cache_fits"
    ]
    if speed := promises.get("tokens_per_s_per_user"):
        keeps.append(f"at least {speed:g} tokens/s per user")
    if share := promises.get("cache_fits"):
        keeps.append(f"caches fit {share:.0%} of the time")
    best = "most" if scenario["objective"] == "throughput" else "least"
    unit = (scenario.get("rent") or {}).get("unit") or 1
    rented = f", rented by {unit}" if unit > 1 else ""
    return (
        f"Serve {reference_text(scenario['model'], 'model')} on {_asked_chips(scenario)}{rented}: "
        f"{_load(load)}{tokens}; {', '.join(keeps) or 'no promise'}; "
        f"{aim or ' '.join((best, scenario['objective']))}"
    )


def _asked_chips(scenario: Mapping[str, Any]) -> str:
    """Describe the requested chips: `8–64 chips of hgx-h200`."""
    chips = scenario["chips"]
    if isinstance(chips, Mapping):
        chips = [chips["from"], chips["to"]]
    numbers = sorted(chips) if isinstance(chips, Sequence) else [chips]
    count = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,}–{numbers[-1]:,}"
    system = scenario["system"]
    if isinstance(system, str) and system in system_names():
        return f"{count} {catalogued(system).chip.product}"
    return f"{count} chip{'s' * (count != '1')} of {reference_text(system, 'system')}"


def _load(load: Mapping[str, Any]) -> str:
    """Describe the load: requests at once, utilisation, or requests per second; may be empty."""
    if users := load.get("concurrency"):
        return f"{users:,} requests at once, "
    if load["utilisation"]:
        return f"the busiest pool {load['utilisation']:.0%} busy, "
    demand = load["demand"]
    if demand == "max":
        return "as many requests as can be served, "
    rate = demand if isinstance(demand, str) or demand is None else f"{demand:g} requests/s"
    return f"{rate}, " if rate else ""


def _placed(pool: ServingPoint | PlannedPool) -> str:
    listed_chip = pool.chip is not None and pool.chip in chip_names()
    product = chip(pool.chip or "").product if listed_chip else f"chip{'s' * (pool.chips != 1)}"
    idle = pool.chips - pool.chips_used
    return f"{pool.chips:,} {product}" + (f", {idle} of them idle" if idle else "")


def _run(point: ServingPoint) -> Iterator[str]:
    for name, pool in point.phases.items():
        busy = f", {pool.utilisation:.0%} busy"
        yield f"{name:<8} {layout_text(pool)} on {_placed(pool)}{busy}"
    if point.layout:
        yield f"{layout_text(point)} on {_placed(point)}{_nodes(point)}"


def _nodes(point: ServingPoint) -> str:
    """Machines of one pool, where they are whole."""
    parts = [
        (pattern.machines, pattern.chips == part.chips_per_machine)
        for part in point.placement for pattern in part.machines
    ]  # fmt: skip
    if not parts or not all(whole for _, whole in parts):
        return ""
    nodes = sum(machines for machines, _ in parts)
    return f" ({nodes} node{'s' * (nodes != 1)})"


def _current(current: CurrentPoint | None, point: ServingPoint) -> Iterator[str]:
    """User's own layout: its price relative to the plan's, and the promises that it breaks."""
    if current is None:
        return
    factor = current.usd_per_mtok / point.usd_per_mtok
    if abs(factor - 1) < UNSEEN:
        beside = "as the plan"
    else:
        beside = f"{factor:.2g}× the plan" if factor >= TIMES else increase(factor - 1)
    price = f"${three_digits(current.usd_per_mtok)}/Mtok, {beside}"
    yield f"{layout_text(current)}, batch {current.batch:,}: {price}"
    if current.breaks:
        breaks = (miss_text(each.promise, each.short_by) for each in current.breaks)
        yield f"{BROKEN} {', '.join(breaks)}"


def miss_text(promise: str, factor: float | None) -> str:
    """By how much a limit is missed, in words: `TPOT 87% too slow`, `memory 31% too small`."""
    name = limit_title(promise)
    if factor is None:
        return f"no {name}"
    if promise == "demand":
        return f"{three_digits(100 / factor)}% of the load carried"
    much = f"{three_digits(factor)} times" if factor >= TIMES else percent(max(factor - 1, 1e-4))
    times = ("ttft", "tpot", "e2e", "ttft_p95", "ttft_p99")
    word = "too slow" if promise in times else "too small" if promise == "memory" else "missed"
    return f"{name} {much} {word}" if word != "missed" else f"{name} missed by {much}"


def _promise(promise: PromiseChance, answer: ServingAnswer) -> str:
    words = (
        f"{limit_title(promise.promise)} {duration(promise.value)} ≤ {show(promise.limit, 'time')}"
    )
    if queue_breaks(promise, answer):
        chance = "" if promise.chance is None else f", {100 * promise.chance:.0f}%"
        return f"{UNCOUNTED} {words} (if nobody queues{chance})"
    return marked(words, promise.word, promise.chance)


def _lines(parts: Sequence[str]) -> list[str]:
    """Join parts into lines of up to MAX_LINE characters; a fixed sentence if `parts` is empty."""
    if not parts:
        return ["none asked: the batch is as large as pays"]
    lines = [parts[0]]
    for part in parts[1:]:
        joined = f"{lines[-1]}{' ' * N_SPACES}{part}"
        if len(joined) <= MAX_LINE:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def _sizes(answer: ServingAnswer, point: ServingPoint) -> Iterator[str]:
    """Fewer chips that do, how sure, each with its bill; or why the next fewer do not."""
    smaller = smaller_sizes(answer, point)
    for size in smaller:
        rented = f" ({plural(size.machines, 'node')})" if size.unit > 1 else ""
        rented += " one by one" * ("rent.unit" in size.sets)
        chance, word = size.chance, size.word
        sure = "" if word is None or chance is None else f", {word}, {chance:.0%}"
        bill = increase(size.usd_per_hour / point.usd_per_hour - 1)
        price = f"${size.usd_per_hour:,.2f}/hour ({bill}), ${three_digits(size.usd_per_mtok)}/Mtok"
        yield f"{plural(size.chips, 'chip')}{rented}{sure}: {price}"
    unit = max((size.unit for size in answer.sizes), default=1)  # chips that are rented together
    for size in answer.sizes:
        if size.chips == point.chips and size.lacks and size.unit >= unit:
            reasons = ", ".join(miss_text(each.promise, each.short_by) for each in size.lacks)
            fewer = plural(size.chips - size.unit, "chip")
            yield f"{BROKEN if smaller else 'no:'} {fewer}: {reasons}"


def typed_size(size: FleetSize) -> str:
    """The changes that lead to a size."""
    values = {path: "null" if value is None else value for path, value in size.sets.items()}
    return " ".join(f"--set {path}={value}" for path, value in values.items())


def smaller_sizes(answer: ServingAnswer, point: ServingPoint) -> list[FleetSize]:
    """Sizes that are smaller than the plan, each once."""
    smaller = {size.chips: size for size in reversed(answer.sizes) if size.chips < point.chips}
    return [*smaller.values()]


def _saves(answer: ServingAnswer, point: ServingPoint) -> bool:
    loaded = answer.load == "given" or answer.scenario["workload"].get("concurrency")
    least = min(map(BILL, smaller_sizes(answer, point)), default=point.usd_per_hour)
    return bool(loaded) and least < CHEAPER * point.usd_per_hour


def certainty(answer: ServingAnswer) -> str:
    """Describe the certainty of the estimate: hardware limit, extrapolated or measured; errors."""
    if answer.band is None:
        return "hardware limit only: no engine's overhead, nothing measured"
    if answer.outside:
        worst, *others = sorted(answer.outside, key=lambda outside: -outside.share)
        more = f" and {len(others)} more" if others else ""
        rests = f" ({worst.rests})" if worst.rests else ""
        return f"EXTRAPOLATED: no measured run has {worst.words}{rests}{more}"
    measured = answer.band.kind == MEASURED
    words = "within measurements" if measured else "EXTRAPOLATED: no run of such a plan"
    quoted = answer.accuracy
    if quoted is None or quoted.left_out is None:
        return words
    pairs = (("TPOT", quoted.tpot), ("TTFT", quoted.ttft))
    errors = ", ".join(f"{name} {error:.1%}" for name, error in pairs if error is not None)
    return f"{words}; median error {errors}"


def _limit(answer: ServingAnswer) -> Iterator[str]:
    """Binding limits, and the used share of the next limit."""
    if answer.limits_used:
        full = [each for each in answer.limits_used if each.binds]
        rest = answer.limits_used[len(full) :]
        near = [f"{limit_title(each.limit)}, {each.used:.0%} used" for each in rest[:1]]
        if full:
            bind = "bind" if len(full) > 1 else "binds"
            first = f"{', '.join(limit_title(each.limit) for each in full)} {bind}"
            yield "; next ".join([first, *near])
        else:
            yield "; nearest is ".join(["none reached", *near])


def _next(answer: ServingAnswer, point: ServingPoint) -> str:
    """Suggested next command: a smaller fleet, the `--sure` plan, or the launch."""
    if _saves(answer, point):
        return f"planner solve FILE {typed_size(min(smaller_sizes(answer, point), key=BILL))}"
    sure = answer.sure
    if sure is not None and sure.usd_per_mtok is not None and sure.dearer is not None:
        price = f"${three_digits(sure.usd_per_mtok)}/Mtok ({increase(sure.dearer)})"
        return f"--sure: every promise holds in 90 of 100 cases, {price}"
    if point.engines:
        return f"planner export FILE --engine {point.engines[0]}    (more: --more, --why)"
    return "--more, --why"


def relaxed_limits(answer: object) -> list[str]:
    """Value of each promise that is feasible with the others unchanged, or that no value is."""
    feasible, never = [], []
    for promise in getattr(answer, "eased", None) or ():
        name = limit_title(promise.promise)
        if promise.alone is None:
            never.append(f"any {name}")
        else:
            form = percent if promise.promise == "cache_fits" else duration
            alone, promised = form(promise.alone), form(promise.promised)
            value = alone if alone != promised else "a little more"
            feasible.append(f"{name} {value} instead of {promised}")
    sentences = (("feasible if", feasible), ("not feasible with", never))
    return [
        line
        for words, names in sentences
        if names
        for line in wrapped(f"{words} {' or '.join(names)}, other promises unchanged")
    ]


def remedy_lines(answer: object) -> list[str]:
    """Every change that was seen to leave a plan, as it is typed, and its bill, the least first."""
    ways = sorted(getattr(answer, "ways_out", None) or (), key=lambda change: change.usd_per_hour)
    lines = ["", "Fix, one change at a time, each solved"] if ways else []
    for change in ways:
        words = (f"{path}={'null' if x is None else x}" for path, x in change.sets.items())
        typed = " ".join(f"--set '{word}'" if " " in word else f"--set {word}" for word in words)
        price = f"${change.usd_per_hour:,.2f}/hour, ${three_digits(change.usd_per_mtok)}/Mtok"
        lines += wrap_text(typed, f"  {price:<{CHANGE_COLUMN}} ", " " * (CHANGE_COLUMN + 3))
    return lines
