"""What stands beside a plan in words: its load, promises, sizes, cheaper weights, accuracy.

What a reader of a serving plan must know beside its numbers, as notes in one order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from planner.problems.serving.point import layout_text
from planner.problems.serving.task.plan_limits import title_of
from planner.protocol.note import Note, ordered
from planner.protocol.plan import outside_text
from planner.protocol.promise import LIKELY
from planner.text.tolerances import UNSEEN
from planner.text.wording import duration, excess, percent, row

if TYPE_CHECKING:
    from planner.problems.serving.advice.records import FleetSize, QuotedAccuracy
    from planner.problems.serving.outputs import LoopTimes
    from planner.problems.serving.plan import ServingAnswer
    from planner.problems.serving.point import BorneLoad, KeptPrefixes, MarginalPrices, ServingPoint
    from planner.protocol.promise import PromiseChance


SELDOM = 5e-4  # share of time that is shown
REASONS = {"fewest": "the fewest", "sure": "the fewest that are sure",
           "least price": "the least price per token"}  # fmt: skip


def advice(answer: ServingAnswer) -> list[str]:
    """One line each, as far as there is something to say."""
    lines = []
    if answer.accuracy is not None:
        lines.append(row("accuracy", accuracy_text(answer.accuracy)))
    if answer.limits_used:
        full = [limit for limit in answer.limits_used if limit.binds]
        rest = answer.limits_used[len(full) :]
        words = [", ".join(title_of(limit.limit) for limit in full) or "no limit"]
        words += [f"next {title_of(limit.limit)}, {limit.used:.0%} used" for limit in rest[:1]]
        lines.append(row("held by", "; ".join(words)))
    return lines


def cheaper_text(answer: ServingAnswer) -> str:
    """What weights of fewer bits save; empty where none do."""
    cheaper = answer.cheaper_weights
    if cheaper is None:
        return ""
    price = f"${cheaper.usd_per_mtok:.3g}/Mtok, {cheaper.saving:.0%} less".replace("%", " %")
    made = ", once there is such a checkpoint" if cheaper.engines == () else ""
    return (
        f"weights in {cheaper.weights} cost {price}{made}; what that costs in quality is not "
        f"judged here: --set choose.weights={cheaper.weights}"
    )


def caches_text(answer: ServingAnswer) -> str:
    """What caches of half the bytes save; empty where they save little or are chosen."""
    caches = answer.cheaper_caches
    if caches is None:
        return ""
    price = f"${caches.usd_per_mtok:.3g}/Mtok, {caches.saving:.0%} less".replace("%", " %")
    return (
        f"caches in {caches.kv} cost {price}; what that costs in quality is not judged here: "
        f"--set choose.kv={caches.kv}"
    )


def advice_in_full(answer: ServingAnswer) -> list[str]:
    """How much of each limit is used."""
    lines: list[str] = []
    if answer.limits_used:
        lines += ["", "How much of each limit is used"]
        lines += [
            f"  {title_of(limit.limit):<28} {limit.used:7.1%}" for limit in answer.limits_used
        ]
    return lines


def fleet(marginal: MarginalPrices | None) -> list[str]:
    """What more of each kind costs in the fleet as it is."""
    if marginal is None:
        return []
    if marginal.this_fleet_input is None or marginal.this_fleet_output is None:
        words = "both pools are full: more of either kind takes more chips"
    elif marginal.room > UNSEEN:
        words = f"{marginal.room:.0%} more of both cost nothing, then {marginal.full} is full"
    elif marginal.this_fleet_input == 0:
        words = f"more input is free, output bears the bill: ${marginal.this_fleet_output:.3g}/Mtok"
    else:
        words = f"more output is free, input bears the bill: ${marginal.this_fleet_input:.3g}/Mtok"
    return [row("  this fleet", words)]


def promise_lines(answer: ServingAnswer) -> list[str]:
    """Each promise with its value, its limit and its chance."""
    lines = map(promise_text, answer.promises)
    return [row("promises" if not i else "", line) for i, line in enumerate(lines)]


def promise_text(promise: PromiseChance) -> str:
    """One promise with its value, its limit and its chance."""
    value, limit = duration(promise.value), duration(promise.limit)
    chance = "" if promise.chance is None else f", holds in {100 * promise.chance:.0f} of 100 cases"
    return f"{title_of(promise.promise)} {value} of {limit}: {promise.word}{chance}"


def size_texts(answer: ServingAnswer) -> list[str]:
    """The sizes of the fleet, each with its bill, its layout and what leads to it."""
    return [_size(size, answer) for size in answer.sizes]


def _size(size: FleetSize, answer: ServingAnswer) -> str:
    chips = f"{size.chips} chips"
    if size.unit > 1:
        chips += f" ({size.machines} machine{'s' * (size.machines > 1)})"
    elif answer.sizes[0].unit > 1:
        chips += ", rented one by one"
    likely = f", {size.word}" if size.word and size.chance is not None else ""
    price = f"${size.usd_per_hour:,.2f}/hour, ${size.usd_per_mtok:.3g}/Mtok"
    if answer.plan is not None and size.chips == answer.plan.chips and size.word == _least(answer):
        return f"{REASONS[size.reason]}: these {chips}{likely}{_lacking(size)}"
    values = {path: "null" if value is None else value for path, value in size.sets.items()}
    sets = " ".join(f"--set {path}={value}" for path, value in values.items())
    words = layout_text(size.plan)
    return f"{REASONS[size.reason]}: {chips}{likely}, {price}, {words}{_lacking(size)}: {sets}"


def simplest_text(answer: ServingAnswer) -> str:
    """The best plan that is plain and inside the measured runs; empty where it is the plan."""
    simple = answer.simplest
    if simple is None or simple.is_plan:
        return ""
    worse = f"{100 * simple.behind:.2g} %" if simple.behind > 0 else "nothing"
    share = f"{math.ceil(100 * max(simple.behind, 0.0) + 1e-9):.0f}%"
    return f"the simplest, {layout_text(simple.plan)}, loses {worse}: --set prefer.simple={share}"


def sure_text(answer: ServingAnswer) -> str:
    """What it costs that every promise holds in nine of ten cases; empty where they do."""
    sure = answer.sure
    if sure is None:
        return ""
    if sure.usd_per_mtok is None or sure.plan is None or sure.dearer is None:
        return "no plan on these chips keeps the promises in 90 of 100 cases"
    price = f"${sure.usd_per_mtok:.3g}/Mtok, {percent(sure.dearer)} more"
    return f"the promises hold in {100 * sure.chance:.0f} of 100 cases at {price}: --sure"


def _least(answer: ServingAnswer) -> str | None:
    """The word of the promise that is the least likely to hold."""
    chances = [(x.chance, x.word) for x in answer.promises if x.chance is not None]
    return min(chances, default=(1.0, None))[1]


def _lacking(size: FleetSize) -> str:
    if not size.lacks:
        return ""
    reasons = (
        title_of(missed.promise) if missed.short_by is None
        else f"{title_of(missed.promise)} by {excess(missed.short_by)}"
        for missed in size.lacks
    )  # fmt: skip
    return f" ({size.chips - size.unit} miss {', then '.join(reasons)})"


def accuracy_text(quoted: QuotedAccuracy) -> str:
    """How far runs of a kind of plan were off, and what the fits did not see."""
    if quoted.left_out is None:
        return "not known: no fit left out runs of such a plan"
    parts = [
        f"{name} {error:.1%} off ({rows:,} runs)".replace("%", " %")
        for name, error, rows in (
            ("TPOT", quoted.tpot, quoted.tpot_rows), ("TTFT", quoted.ttft, quoted.ttft_rows),
        )
        if error is not None
    ]  # fmt: skip
    return f"of {quoted.of}, median with {quoted.left_out} left out: {', '.join(parts)}"


def arrivals(load: BorneLoad) -> list[str]:
    """How the plan bears its arrivals."""
    flight = "no end of them" if load.in_flight is None else f"{load.in_flight:.0f}"
    lines = [
        row("demand", f"{load.requests_per_s:.3g} requests/s; {flight} in flight on average, "
             "those that wait included")
    ]  # fmt: skip
    if load.decoding_per_replica:
        lines.append(
            row("room", f"a replica decodes {load.decoding_per_replica:.0f} on average; memory "
                 f"holds {load.room_per_replica:,}, {_too_few(load.crowded)}")
        )  # fmt: skip
    if load.spare_replicas:
        lines.append(row("spare", f"times hold with {load.spare_replicas} of the replicas down"))
    if load.wait is not None and load.ttft_p95 is not None and load.ttft_p99 is not None:
        lines.append(
            row("queue", f"{duration(load.wait)} on average before prefill, which "
                 f"is busy {load.readers_busy:.0%} of the time; TTFT is below "
                 f"{duration(load.ttft_p95)} for 95% of the requests, below "
                 f"{duration(load.ttft_p99)} for 99%")
        )  # fmt: skip
    return lines


def loop_lines(loop: LoopTimes | None) -> list[str]:
    """How late first tokens of a closed loop are, and how many requests wait for a place."""
    if loop is None:
        return []
    tails = (
        f"below {duration(loop.ttft_p95)} for 95% of the requests, below "
        f"{duration(loop.ttft_p99)} for 99%, of ten that each user sends, the first all at once; "
        f"later ones below {duration(loop.settled_p95)} (95%)"
    )
    lines = [row("  tails", tails)]
    if loop.waiting:
        words = (
            f"there are places for {loop.users - loop.waiting:,} of the {loop.users:,} requests in "
            f"flight; each waits {duration(loop.wait)} for one, which is part of TTFT"
        )
        lines.append(row("  waiting", words))
    return lines


def uncounted_queue(point: ServingPoint, promises: Mapping[str, Any]) -> str:
    """What a promise on the first token leaves out where no demand is given; empty elsewhere."""
    late = point.unqueued
    if late is None or not (promises["ttft"] or promises["e2e"]):
        return ""
    added = (
        "a queue without end" if late.added_p95 is None else f"{duration(late.added_p95)} (95 %)"
    )
    busy = f"{late.readers_busy:.0%}".replace("%", " %")
    return (
        f"TTFT has no queue in it, nor has its promise: prefill is {busy} busy, and requests at "
        f"random would add {added}; give workload.demand, or workload.utilisation"
    )


def _too_few(share: float) -> str:
    """How often there is no room."""
    return f"too few {share:.1%} of the time" if share >= SELDOM else "hardly ever too few"


def kept_prefixes(prefixes: KeptPrefixes | None) -> list[str]:
    """How many conversations are kept, and what is found of the input."""
    if prefixes is None:
        return []
    room = f"a rank has room for {prefixes.room_per_rank:,}"
    words = f"{prefixes.conversations:,} conversations, {room}"
    return [row("prefixes", f"{words}; {prefixes.cached_input:.0%} of the input is found")]


def plan_notes(answer: ServingAnswer) -> tuple[Note, ...]:
    """The notes of an answer, the gravest first."""
    return ordered((*_of_promises(answer), *_of_current(answer), *_of_plan(answer)))


def _of_promises(answer: ServingAnswer) -> Iterator[Note]:
    """Promises that are more likely broken than kept."""
    for promise in answer.promises:
        if promise.chance is not None and promise.chance < LIKELY:
            yield Note("broken", "promise", promise_text(promise), "promises")


def _of_current(answer: ServingAnswer) -> Iterator[Note]:
    """The user's own layout: what it breaks, and what it costs beside the plan."""
    current, plan = answer.current, answer.plan
    if current is None:
        return
    broken = (f"{title_of(x.promise)} by {excess(x.short_by)}" for x in current.breaks)
    if words := ", ".join(broken):
        text = f"your layout {layout_text(current)} misses {words}"
        yield Note("broken", "current", text, "current")
    if plan is not None and current.usd_per_mtok > plan.usd_per_mtok:
        dearer = percent(current.usd_per_mtok / plan.usd_per_mtok - 1)
        text = f"your layout {layout_text(current)} costs {dearer} more per token than the plan"
        yield Note("tip", "current", text, "current")


def _of_plan(answer: ServingAnswer) -> Iterator[Note]:
    """What was never measured, what is left out or assumed, and what else there is to choose."""
    plan, band = answer.plan, answer.band
    if text := outside_text(answer.outside):
        if plan is not None and band is not None and band.usd_per_mtok:
            low, high = (end / plan.usd_per_mtok for end in band.usd_per_mtok)
            text += f"; price expected between {low:.2f} and {high:.2f} of this"
        yield Note("extrapolated", "outside", text, "outside")
    if plan is not None and (text := uncounted_queue(plan, answer.scenario["promises"])):
        yield Note("left out", "queue", text, "plan.unqueued")
    for warning in answer.provenance.warnings:
        yield Note("assumed", "warning", warning, "provenance.warnings")
    for text in size_texts(answer):
        yield Note("tip", "sizes", text, "sizes")
    tips = {
        "sure": sure_text,
        "simplest": simplest_text,
        "cheaper_weights": cheaper_text,
        "cheaper_caches": caches_text,
    }
    for code, words in tips.items():
        if text := words(answer):
            yield Note("tip", code, text, code)
