"""Caches kept between requests as a problem kind: outputs, parameters, search, and its sections."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from planner.catalogue.ranges import ListedRange, rent_range
from planner.problems.cache import economics
from planner.problems.cache import plan as records
from planner.problems.cache.question import Trace
from planner.problems.cache.reuse_trace import BlockTrace, read_trace
from planner.protocol.output import Output, values_in
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import KnownAnswer, Plan, Provenance
from planner.protocol.problem import Problem, Search
from planner.protocol.section import Line, Section
from planner.scenario import resolved
from planner.scenario.keys.system_keys import resolved_system
from planner.text.quantities import show
from planner.text.wording import digits, named, percent

if TYPE_CHECKING:
    import sympy as sp

    from planner.problems.cache.economics import CacheTask
    from planner.problems.cache.question import CacheScenario
    from planner.report.pictures.value_rows import ValueRows


METHOD = "every tier and computing again, compared at each hold time; nothing else is a choice"
UNITS = {
    "price": "USD/(chip*s)", "prefill_efficiency": "1", "prefix": "token", "answer": "s",
    "hit": "1", "margin": "1",
}  # fmt: skip
STEP = 1e-4  # of a logarithm, for elasticities


def _expression(name: str, plan: Plan) -> sp.Expr | None:
    """The expression of an output, in its unit."""
    from formulas.economics import tiers as equations
    from formulas.nomenclature import schedule_symbols as symbols

    again = economics.PER_MILLION * equations.remake_cost.rhs
    if name == "miss":
        return again
    if plan.answer.plan is None or plan.answer.plan.choice == "recompute":
        return symbols.p_hit * again
    store = symbols.C_store / symbols.n_share
    return economics.PER_MILLION * (store + symbols.p_hit * symbols.C_fetch)


def _prepared(question: CacheScenario) -> tuple[CacheTask, BlockTrace | None]:
    """What is looked up for a question, and the trace that it names."""
    reuse = question.reuse
    uses = read_trace(reuse.trace.path, reuse.trace.written) if isinstance(reuse, Trace) else None
    return economics.resolve_cache(question), uses


class CacheProblem(Problem["CacheScenario"]):
    """What to do with a cache between two requests."""

    kind = "cache"
    version = 1
    plan_type = records.CachePlan
    outputs = (
        Output("cost", "USD per million tokens", ("price",), equation=partial(_expression, "cost")),
        Output("miss", "USD per million tokens", equation=partial(_expression, "miss")),
        Output("prefill_time", "s", ("ttft",)),
    )

    def parameters(self, question: CacheScenario) -> list[Parameter]:
        """What a scenario gives, each varied as `--set` would."""
        price = economics.resolve_cache(question).price.value
        values = {path: self.value(question, path) for path in UNITS} | {"price": price}
        rows = [
            Parameter(path, values[path], unit, "prices" if path == "price" else "cache")
            for path, unit in UNITS.items()
        ]
        if question.hold is not None and len(question.hold) == 1:
            rows.append(Parameter("hold", question.hold[0], "s", "cache"))
        listed = question.tiers if isinstance(question.tiers, tuple) else ()
        rows += [
            Parameter(f"tiers.{place}.price", tier.price[0], "USD/(byte*s)", "prices")
            for place, tier in enumerate(listed)
            if tier.price is not None and tier.price[0] is not None
        ]
        return settable(question, rows)

    def search(
        self, question: CacheScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The cheapest choice at the first hold time."""
        point = self._point(question)
        return Search(values_in(self.outputs, point), point.choice, point.cost, point, gap=0.0)

    def answer(self, question: CacheScenario) -> records.CachePlan:
        """The plan: every hold time, every tier, and the trace where one is given."""
        task, uses = _prepared(question)
        point = self._point(question, uses)
        options = sum(len(each.options) + 1 for each in point.holds)
        fetched = min((each.fetch for each in point.tiers), default=0.0)
        answer = records.CacheAnswer(
            scenario=resolved(question),
            plan=point,
            gap=0.0,
            bound=records.CacheBound(fetched * point.holds[0].hit),
            certificate=records.CacheCertificate(METHOD, options, point.cost),
            elasticities=self._slopes(question, point.cost),
            provenance=Provenance(data=task.data, warnings=task.warnings),
        )
        return records.CachePlan(KnownAnswer(answer))

    def check(self, question: CacheScenario) -> None:
        """Refuse what cannot be looked up, and a trace that is none."""
        _prepared(question)

    def _point(self, question: CacheScenario, uses: BlockTrace | None = None) -> records.CachePoint:
        """The plan; without its trace where only the numbers of the first hold time are wanted."""
        costs = economics.TokenCosts(economics.resolve_cache(question))
        holds = tuple(
            economics.decision(costs, hold, chance, question.margin, question.chips)
            for hold, chance in question.holds
        )
        reuse, trace = question.reuse, None
        if uses is not None and isinstance(reuse, Trace):
            trace = economics.reused(costs, uses, reuse.block, reuse.ttl, tuple(reuse.capacity))
        first = holds[0]
        return records.CachePoint(
            choice=first.choice if first.tier is None else f"{first.choice} ({first.tier})",
            kv_bytes_per_token=costs.task.values["b_kv"],
            miss=costs.miss * economics.PER_MILLION,
            cost=first.cost,
            prefill_time=costs.prefill_time(question.chips),
            holds=holds,
            tiers=tuple(costs.economics(tier, question.chips) for tier in costs.task.tiers),
            trace=trace,
        )

    def _slopes(self, question: CacheScenario, cost: float) -> dict[str, float]:
        """d ln cost / d ln parameter, by solving again a little above."""
        slopes = {}
        for row in self.parameters(question):
            value = row.value or 0.0
            lower = self.varied(question, row.path, value * (1 - STEP))
            there = self._point(lower).cost
            slopes[row.path] = math.log(there / cost) / math.log1p(-STEP)
        return slopes

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The question, what to do by hold time, the tiers, the trace."""
        assert isinstance(plan, records.CachePlan)
        return sections(plan)

    def picture(self, plan: Plan) -> ValueRows:
        """What each tier and computing again cost, at every hold time."""
        assert isinstance(plan, records.CachePlan)
        return costs_picture(plan)

    def listed(self, question: CacheScenario, path: str) -> ListedRange:
        """The listed rents of the chip."""
        systems = (resolved_system(question.system),) if path == "price" else ()  # type: ignore[arg-type]
        return rent_range(systems, path)


PROBLEM = CacheProblem()


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
        chosen = row.tier or "compute again"
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
