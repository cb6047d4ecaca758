"""What arrives at random in words: the load, the room, the queue, or that none is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.text.wording import duration, row

if TYPE_CHECKING:
    from planner.problems.serving.point import BorneLoad, KeptPrefixes, ServingPoint

SELDOM = 5e-4  # share of time that is told


def arrivals(load: BorneLoad) -> list[str]:
    """How the plan bears its arrivals."""
    lines = [
        row("demand", f"{load.requests_per_s:.3g} requests/s; {load.in_flight:.0f} in flight "
             "on average, those that wait included")
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
