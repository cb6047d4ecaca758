"""What stands beside a plan in words: its load, why not fewer chips, cheaper weights, accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.problems.serving.task.plan_limits import title_of
from planner.text.tolerances import UNSEEN
from planner.text.wording import duration, excess, row, wrapped

if TYPE_CHECKING:
    from planner.problems.serving.advice.records import FewerChips, QuotedAccuracy
    from planner.problems.serving.plan import ServingAnswer
    from planner.problems.serving.point import BorneLoad, KeptPrefixes, MarginalPrices, ServingPoint

SELDOM = 5e-4  # share of time that is shown


def advice(answer: ServingAnswer) -> list[str]:
    """One line each, as far as there is something to say."""
    lines = []
    if answer.accuracy is not None:
        lines.append(row("accuracy", accuracy_text(answer.accuracy)))
    if answer.cheaper_weights is not None:
        cheaper = answer.cheaper_weights
        price = f"${cheaper.usd_per_mtok:.3g}/Mtok, {cheaper.saving:.0%} less"
        made = ", once there is such a checkpoint" if cheaper.engines == () else ""
        lines.append(
            row("cheaper", f"{price}, with --set choose.weights={cheaper.weights}{made}; what that "
                "costs in quality is not judged here")
        )  # fmt: skip
    if answer.limits_used:
        lines.append(row("held by", _limits(answer)))
    if answer.fewer_chips is not None:
        lines.append(row("fewer chips", _fewer(answer.fewer_chips)))
    return lines


def advice_in_full(answer: ServingAnswer) -> list[str]:
    """Why not fewer chips, with every reason, and how much of each limit is used."""
    lines, fewer = [], answer.fewer_chips
    if fewer is not None:
        lines += ["", f"Why not {fewer.chips} chips"]
        lines += wrapped(_fewer(fewer))
        for missed in fewer.missed:
            lines += wrapped(f"{title_of(missed.promise)}: {missed.expression}")
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


def _limits(answer: ServingAnswer) -> str:
    full = [limit for limit in answer.limits_used if limit.binds]
    rest = answer.limits_used[len(full) :]
    words = [", ".join(title_of(limit.limit) for limit in full) or "no limit"]
    words += [f"next {title_of(limit.limit)}, {limit.used:.0%} used" for limit in rest[:1]]
    return "; ".join(words)


def _fewer(fewer: FewerChips) -> str:
    if fewer.refused:
        return f"{fewer.chips} take no layout that is asked for ({fewer.refused})"
    if fewer.behind is None:
        reasons = (
            title_of(missed.promise) if missed.short_by is None
            else f"{title_of(missed.promise)} by {excess(missed.short_by)}"
            for missed in fewer.missed
        )  # fmt: skip
        return f"{fewer.chips} miss {', then '.join(reasons)}"
    price = f"${fewer.usd_per_mtok:.3g}/Mtok"
    if abs(fewer.behind) < UNSEEN:
        return f"{fewer.chips} cost as much per token, {price}"
    more = f"{abs(fewer.behind):.2g}" if fewer.behind > 9.95 else f"{100 * abs(fewer.behind):.2g} %"
    if fewer.behind > 0:
        return f"{fewer.chips} cost {more} more per token, {price}"
    return f"{fewer.chips} cost {more} less per token, {price}: --set chips={fewer.chips}"


def accuracy_text(quoted: QuotedAccuracy) -> str:
    """How far runs of a kind of plan were off, and what the fits did not see."""
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


def uncounted_queue(point: ServingPoint, promises: Mapping[str, Any]) -> list[str]:
    """What a promise on the first token leaves out where no demand is given."""
    late = point.unqueued
    if late is None or not (promises["ttft"] or promises["e2e"]):
        return []
    added = "a queue without end" if late.added_p95 is None else f"{duration(late.added_p95)} (95%)"
    words = (
        f"not in it, nor in the promise: prefill is {late.readers_busy:.0%} busy, and requests at "
        f"random would add {added}; give demand, or workload.utilisation"
    )
    return [row("  queue", words)]


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
