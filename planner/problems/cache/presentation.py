"""A cache question for the reader: what to do by hold time, the tiers, the trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.protocol.section import Line, Section
from planner.text.quantities import show
from planner.text.wording import digits, named, percent

if TYPE_CHECKING:
    from planner.problems.cache import plan as records
    from planner.report.pictures.value_rows import ValueRows

SECONDS = 120.0  # up to which a hold time is printed in seconds


def sections(plan: records.CachePlan) -> tuple[Section, ...]:
    """The answer as sections under what was asked."""
    scenario, point = plan.scenario, plan.answer.plan
    assert point is not None  # there is always computing again
    asked_for = f"{named(scenario['model'], 'model')} on {named(scenario['system'], 'system')}"
    prefix = scenario["prefix"]
    length = f"a prefix of {prefix:,.0f} tokens" if prefix else "a token, attention left aside"
    title = f"{asked_for}: keep, move or recompute {length}?"
    return (
        Section(title, tuple(_costs(point))),
        Section("what to do, by hold time", tuple(map(_hold, point.holds))),
        Section("until when holding pays", tuple(_tiers(point))),
        *_trace(point.trace),
    )


def _usd(value: float) -> str:
    """A price per million tokens."""
    return f"${digits(value)}/Mtok"


def _costs(point: records.CachePoint) -> Iterator[Line]:
    """What a miss costs, and how large a cached token is."""
    yield Line("a miss", _usd(point.miss), "", "computing the cache again")
    yield Line("cache", show(point.kv_bytes_per_token, "bytes_per_token"))
    hit = point.holds[0].options[0].hit
    share = percent(hit.hbm / point.miss)
    yield Line("HBM during the answer", _usd(hit.hbm), "", f"{share} of a miss")
    if point.prefill_time is not None:
        yield Line("prefill", point.prefill_time, "s")


def _hold(row: records.HoldDecision) -> Line:
    """One hold time: the choice, what it costs, what it should be sold for."""
    words = row.choice if row.tier is None else f"{row.choice}: {row.tier}"
    notes = [f"{_usd(row.cost)} against {_usd(row.recompute)} again"]
    if row.hit_chance_needed is not None and row.hit_chance_needed > 1:
        notes.append("pays at no hit chance")
    elif row.hit_chance_needed is not None:
        notes.append(f"pays from a hit chance of {percent(row.hit_chance_needed)}")
    if row.floor is not None:
        notes.append(f"a hit costs {_usd(row.floor)}")
    if row.price is not None:
        notes.append(f"charge {_usd(row.price)}")
    if row.ttft_saved:
        notes.append(f"TTFT {show(row.ttft_saved, 'time')} shorter")
    return Line(f"{show(row.hold, 'time')}, hit {percent(row.hit, 3)}", words, "", "; ".join(notes))


def _tiers(point: records.CachePoint) -> Iterator[Line]:
    """Break-even hold times."""
    for row in point.tiers:
        until = "never" if row.break_even_hold is None else show(row.break_even_hold, "time")
        notes = [f"${digits(row.usd_per_gb_hour)} per GB and hour"]
        if row.drain_time is not None:
            notes.append(f"drains in {show(row.drain_time, 'time')}")
        if row.reads_per_hour is not None:
            notes.append(f"{digits(row.reads_per_hour)} reads an hour pay for it")
        yield Line(row.name, until, "", ", ".join(notes))


def costs_picture(plan: records.CachePlan) -> ValueRows:
    """What each tier and computing again cost a token, a panel for every hold time."""
    from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows

    point = plan.answer.plan
    assert point is not None  # there is always computing again
    panels = []
    for row in point.holds:
        costs = {"compute again": row.recompute, **{x.tier: x.cost for x in row.options}}
        chosen = row.tier or ("compute again" if row.choice == "recompute" else "HBM")
        rows = [
            ValueRow(name, cost, cost, _usd(cost), chosen=name == chosen)
            for name, cost in sorted(costs.items(), key=lambda pair: pair[1])
        ]
        title = f"held {show(row.hold, 'time')}, read again with a chance of {percent(row.hit)}"
        panels.append(ValuePanel(title, "USD per million cached tokens", rows))
    return ValueRows(sections(plan)[0].title, panels)


def _trace(trace: records.TraceReuse | None) -> Iterator[Section]:
    """Hit rates, and the lifetime that pays in each tier."""
    if trace is None:
        return
    title = f"{trace.requests:,} requests, {trace.blocks:,} blocks of {trace.block} tokens"
    rates = [Line(f"lifetime {show(x.ttl, 'time')}", percent(x.hit_rate, 3)) for x in trace.ttl]
    rates += [
        Line(f"LRU of {x.blocks:,} blocks", percent(x.hit_rate, 3), "", show(x.bytes, "size"))
        for x in trace.lru
    ]
    yield Section(f"{title}: leading blocks that are found", tuple(rates))
    yield Section("the lifetime that pays, by tier", tuple(map(_lifetime, trace.best_ttl)))


def _lifetime(row: records.TierLifetime) -> Line:
    """The best lifetime of a tier."""
    if row.ttl is None:
        return Line(row.tier, "none")
    note = (
        f"finds {percent(row.hit_rate, 3)}, saves {percent(row.saved, 3)} of computing it all, "
        f"holds {show(row.bytes, 'size')}"
    )
    return Line(row.tier, show(row.ttl, "time"), "", note)
