"""Text of the advice on a serving plan: load, promises, sizes, cheaper weights, accuracy.

What a reader of a serving plan must know beside its numbers, as notes in one order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.problems.serving.parameters import QUANTITIES
from planner.problems.serving.point import layout_text
from planner.problems.serving.task.plan_limits import limit_title
from planner.protocol.note import Note, sort_notes
from planner.protocol.plan import extrapolation_text
from planner.protocol.promise import LIKELY
from planner.protocol.section import Line
from planner.text.quantities import show
from planner.text.tolerances import UNSEEN
from planner.text.wording import duration, percent, three_digits, wrapped

if TYPE_CHECKING:
    from planner.problems.serving.advice.records import QuotedAccuracy
    from planner.problems.serving.outputs import LoopTimes
    from planner.problems.serving.plan import ServingAnswer, ServingPlan, WinningChange
    from planner.problems.serving.point import BorneLoad, KeptPrefixes, MarginalPrices, ServingPoint
    from planner.protocol.promise import PromiseChance


QUANTITY_WORDS = {row.path.rpartition(".")[2]: row.words for row in QUANTITIES if row.words}
# Comparative adjectives (more, less) by dimension of the quantity.
COMPARISON_ADJECTIVES = {
    "tokens": ("longer", "shorter"),
    "time": ("longer", "shorter"),
    "price": ("above", "below"),
}
OBJECTIVE_ADJECTIVES = {
    "cost": ("dearer", "cheaper"), "latency": ("slower", "faster"),
    "energy": ("more energy", "less energy"), "throughput": ("less throughput", "more throughput"),
}  # fmt: skip
NEGLIGIBLE_SHARE = 5e-4  # share of time that is shown


def _fewer_bits(answer: ServingAnswer, code: str, key: str, what: str) -> str:
    """Text of the saving by weights or caches of fewer bits; empty without a saving."""
    cheaper = getattr(answer, code)
    if cheaper is None:
        return ""
    form, made = getattr(cheaper, key), getattr(cheaper, "engines", None) == ()
    price = f"${three_digits(cheaper.usd_per_mtok)}/Mtok (−{cheaper.saving:.0%})"
    price += " once a checkpoint exists" * made
    return f"{form} {what}: {price}, quality not judged: --set choose.{key}={form}"


def advice_in_full(answer: ServingAnswer) -> list[str]:
    """Text lines with the used share of each limit."""
    used = answer.limits_used
    lines = ["", "How much of each limit is used"] if used else []
    return [*lines, *(f"  {limit_title(x.limit):<28} {x.used:7.1%}" for x in used)]


def fleet(marginal: MarginalPrices) -> str:
    """Text of the marginal prices of input and output tokens in the existing fleet."""
    extra = marginal.this_fleet_input, marginal.this_fleet_output
    if extra[0] is None or extra[1] is None:
        return "both pools are full: it needs more chips"
    if marginal.room > UNSEEN:
        return f"room for {marginal.room:.0%}, then {marginal.full} is full"
    free, paid, price = ("input", "output", extra[1]) if extra[0] == 0 else (
        "output", "input", extra[0])  # fmt: skip
    return f"with these chips extra {free} is free, extra {paid} ${three_digits(price)}/Mtok"


def promise_text(promise: PromiseChance) -> str:
    """One promise with its value, its limit and its chance."""
    value, limit = duration(promise.value), show(promise.limit, "time")
    chance = "" if promise.chance is None else f", holds in {100 * promise.chance:.0f} of 100 cases"
    return f"{limit_title(promise.promise)} {value} of {limit}: {promise.word}{chance}"


def simplest_text(answer: ServingAnswer) -> str:
    """The best plan that is plain and inside the measured runs; empty where it is the plan."""
    simple = answer.simplest
    if simple is None or simple.is_plan:
        return ""
    worse = f"{percent(simple.behind)}" if simple.behind > 0 else "nothing"
    share = f"{math.ceil(100 * max(simple.behind, 0.0) + 1e-9):.0f}%"
    return f"the simplest, {layout_text(simple.plan)}, loses {worse}: --set prefer.simple={share}"


def sure_text(answer: ServingAnswer) -> str:
    """Text if no plan keeps the promises in 90 of 100 cases; else empty."""
    sure = answer.sure
    if sure is None or None not in (sure.usd_per_mtok, sure.plan, sure.dearer):
        return ""
    return "no plan on these chips keeps the promises in 90 of 100 cases"


def accuracy_text(quoted: QuotedAccuracy) -> str:
    """Text of the median held-out errors of TPOT and TTFT for one kind of plan."""
    if quoted.left_out is None:
        return "not known: no fit left out runs of such a plan"
    parts = [
        f"{name} {error:.1%} off ({rows:,} runs)"
        for name, error, rows in (
            ("TPOT", quoted.tpot, quoted.tpot_rows), ("TTFT", quoted.ttft, quoted.ttft_rows),
        )
        if error is not None
    ]  # fmt: skip
    return f"of {quoted.of}, median with {quoted.left_out} left out: {', '.join(parts)}"


def arrivals(load: BorneLoad) -> list[Line]:
    """Text lines on open arrivals: load, spare replicas, waiting times and TTFT tails."""
    flight = "unlimited" if load.in_flight is None else f"{load.in_flight:.0f}"
    words = f"{load.requests_per_s:.3g} requests/s, {flight} in flight, waiting included"
    if load.decoding_per_replica:
        words += f"; a replica decodes {load.decoding_per_replica:.0f} on average and has room "
        words += f"for {load.room_per_replica:,}, {_too_few(load.crowded)}"
    lines = [Line("Load", words)]
    if load.spare_replicas:
        lines.append(Line("Spare", f"times hold with {load.spare_replicas} of the replicas down"))
    if load.wait is not None and load.ttft_p95 is not None and load.ttft_p99 is not None:
        tails = f"TTFT p95 {duration(load.ttft_p95)}, p99 {duration(load.ttft_p99)}"
        wait = f"{duration(load.wait)} on average (prefill {load.readers_busy:.0%} busy)"
        lines.append(Line("Queue", f"{wait}; {tails}"))
    return lines


def loop_lines(loop: LoopTimes | None) -> list[Line]:
    """Text lines on a closed loop: TTFT tails, and number of requests waiting for a slot."""
    if loop is None:
        return []
    tails = (
        f"below {duration(loop.ttft_p95)} for 95% of the requests, below "
        f"{duration(loop.ttft_p99)} for 99%, of ten that each user sends, the first all at once; "
        f"later ones below {duration(loop.settled_p95)} (95%)"
    )
    lines = [Line("TTFT tails", tails)]
    if loop.waiting:
        words = (
            f"there are places for {loop.users - loop.waiting:,} of the {loop.users:,} requests in "
            f"flight; each waits {duration(loop.wait)} for one, which is part of TTFT"
        )
        lines.append(Line("waiting", words))
    return lines


def queue_breaks(promise: PromiseChance, answer: ServingAnswer) -> bool:
    """True if the queueing of random requests would break a promise that excludes queueing."""
    late = answer.plan.unqueued if answer.plan else None
    if late is None or promise.promise not in ("ttft", "e2e"):
        return False
    return late.added_p95 is None or promise.value + late.added_p95 > promise.limit


def uncounted_queue(point: ServingPoint, promises: Mapping[str, Any]) -> str:
    """Text of the queueing delay left out of TTFT if no demand is given; else empty."""
    late = point.unqueued
    if late is None or not (promises["ttft"] or promises["e2e"]):
        return ""
    added = (
        "a queue without end" if late.added_p95 is None else f"{duration(late.added_p95)} at p95"
    )
    busy = f"{late.readers_busy:.0%}"
    return (
        f"TTFT leaves out waiting: at this load (prefill {busy} busy) requests at random add "
        f"{added}; give workload.demand"
    )


def _too_few(share: float) -> str:
    return (
        f"too few {share:.1%} of the time" if share >= NEGLIGIBLE_SHARE else "hardly ever too few"
    )


def prefix_cache_lines(prefixes: KeptPrefixes | None) -> list[Line]:
    """Text line on the prefix cache: conversations, room per rank, share of input found."""
    if prefixes is None:
        return []
    room = f"a rank has room for {prefixes.room_per_rank:,}"
    words = f"{prefixes.conversations:,} conversations, {room}"
    return [Line("Prefixes", f"{words}; {prefixes.cached_input:.0%} of the input is found")]


def plan_notes(answer: ServingAnswer) -> tuple[Note, ...]:
    """The notes of an answer, the gravest first."""
    return sort_notes(_notes(answer))


def _notes(answer: ServingAnswer) -> Iterator[Note]:
    """Yield notes: likely broken promises, extrapolation, uncounted queue, assumptions, tips."""
    for promise in answer.promises:
        if promise.chance is not None and promise.chance < LIKELY:
            yield Note("broken", "promise", promise_text(promise), "promises")
    plan, band = answer.plan, answer.band
    for _, holds in plan.memories().values() if plan is not None else ():
        if holds is not None and holds.verdict == "does not fit":
            text = f"{holds.engine} does not start with contexts of {holds.context:,} tokens: its "
            text += "cache has room for " + " to ".join(f"{end:,}" for end in holds.tokens)
            yield Note("broken", "memory", text, "plan")
    if text := extrapolation_text(answer.outside):
        if plan is not None and band is not None and band.usd_per_mtok:
            low, high = (end / plan.usd_per_mtok for end in band.usd_per_mtok)
            text += f"; price expected between {low:.2f} and {high:.2f} of this"
        yield Note("extrapolated", "outside", text, "outside")
    if plan is not None and (text := uncounted_queue(plan, answer.scenario["promises"])):
        yield Note("left out", "queue", text, "plan.unqueued")
    for warning in answer.provenance.warnings:
        yield Note("assumed", "warning", warning, "provenance.warnings")
    tips = {
        "sure": sure_text(answer),
        "simplest": simplest_text(answer),
        "cheaper_weights": _fewer_bits(answer, "cheaper_weights", "weights", "weights"),
        "cheaper_caches": _fewer_bits(answer, "cheaper_caches", "kv", "KV cache"),
    }
    for code, text in tips.items():
        if text:
            yield Note("tip", code, text, code)


def switch_points(plan: ServingPlan) -> list[str]:
    """Text lines on the changes that would let each alternative kind of plan win."""
    lines = ["What would have to change for another kind to win"]
    names = [system.system for system in plan.answer.systems or ()]
    for kind in plan.rivals:
        changes = " or if ".join(_change(change, names) for change in kind.wins_if or ())
        if changes:
            lines += wrapped(f"{kind.kind} wins if {changes}")
        else:
            none = "no change of a single quantity by up to three times, or to a third, is enough"
            lines += wrapped(f"{kind.kind}: {none}")
    if not plan.rivals:
        lines.append("  no other kind keeps the promises")
    return lines


def _change(change: WinningChange, systems: Sequence[str]) -> str:
    """Text of one change: the quantity, its new value, and the factor."""
    *where, name = change.what.split(".")
    up, down = COMPARISON_ADJECTIVES.get(change.dimension, ("above", "below"))
    system = f" of {systems[int(where[1])]}" if len(where) > 1 else ""
    words, times = f"{QUANTITY_WORDS[name]}{system} is", f"x{change.factor:.3g}"
    words = f"{words} {up if change.factor > 1 else down}"
    if change.value is None:
        return f"{words} {times} of what it is"
    than = " than" if up == "longer" else ""
    return f"{words}{than} {_value(change.dimension, change.value)} ({times})"


def _value(dimension: str, value: float) -> str:
    if dimension == "tokens":
        return f"{value:,.0f} tokens"
    return duration(value) if dimension == "time" else show(value, dimension)


def systems(answer: ServingAnswer) -> list[Line]:
    """Text line on the systems of a list: the best, and the loss of each alternative alone."""
    texts = []
    unranked = any(system.unranked for system in answer.systems or ())
    for system in answer.systems or ():
        name, behind = system.system, system.behind
        if behind is None:
            texts.append(f"{name} keeps no promise")
        elif behind <= 0:
            texts.append(f"{name} has the best estimate" if unranked else f"{name} is best")
        else:
            texts.append(f"{name} alone is {worse(answer, behind)}")
    if unranked:
        texts.append("bands of two makers overlap or are borrowed, so they are not ranked")
    return [Line("Systems", "; ".join(texts))] if texts else []


def worse(answer: ServingAnswer, behind: float) -> str:
    """Text of the difference from the plan; `behind` < 0 is possible on chips not given."""
    objective = answer.scenario["objective"]
    if abs(behind) < UNSEEN:
        return "as good"
    change = abs(behind / (1 + behind) if objective == "throughput" else behind)
    return f"{100 * change:.3g}% {OBJECTIVE_ADJECTIVES[objective][behind < 0]}"
