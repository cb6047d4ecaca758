"""Caches kept between requests as a problem kind: outputs, parameters, search, and its sections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from planner.catalogue.ranges import ListedRange, rent_range
from planner.catalogue.systems import System
from planner.problems.cache import economics
from planner.problems.cache import plan as records
from planner.problems.cache.question import Trace
from planner.problems.cache.reuse_trace import BlockTrace, read_trace
from planner.protocol.output import Output, output_values
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import KnownAnswer, Plan, Provenance
from planner.protocol.problem import Problem, Search
from planner.protocol.section import AnswerHead, Section, table, value_lines
from planner.scenario import resolve_keys
from planner.scenario.keys.system_keys import resolved_system
from planner.text.errors import InputError
from planner.text.quantities import show
from planner.text.wording import joined_ends, percent, reference_text, three_digits

if TYPE_CHECKING:
    import sympy as sp

    from planner.problems.cache.economics import CacheTask
    from planner.problems.cache.question import CacheScenario
    from planner.report.pictures.value_rows import ValueRows


METHOD = "every tier and recompute, compared at each hold time; nothing else is a choice"
UNITS = {
    "price": "USD/(chip*s)", "prefill_efficiency": "1", "prefix": "token", "answer": "s",
    "hit": "1", "margin": "1",
}  # fmt: skip
MTOK = "/Mtok"
STEP = 1e-4  # of a logarithm, for elasticities


def _expression(name: str, plan: Plan) -> sp.Expr | None:
    """The expression of an output, in its unit."""
    from formulas.economics import tiers as equations
    from formulas.nomenclature import schedule_symbols as symbols

    again = economics.PER_MTOK * equations.remake_cost.rhs
    if name == "miss":
        return again
    if plan.answer.plan is None or plan.answer.plan.choice == "recompute":
        return symbols.p_hit * again
    store = symbols.C_store / symbols.n_share
    return economics.PER_MTOK * (store + symbols.p_hit * symbols.C_fetch)


def _prepared(question: CacheScenario) -> tuple[CacheTask, BlockTrace | None]:
    reuse = question.reuse
    uses = read_trace(reuse.trace.path, reuse.trace.written) if isinstance(reuse, Trace) else None
    return economics.resolve_cache(question), uses


class CacheProblem(Problem["CacheScenario", records.CachePlan]):
    """Problem kind `cache`: keep, move or recompute a KV cache between two requests."""

    kind = "cache"
    version = 1
    plan_type = records.CachePlan
    outputs = (
        Output("cost", "USD per million tokens", ("price",), equation=partial(_expression, "cost")),
        Output("miss", "USD per million tokens", equation=partial(_expression, "miss")),
        Output("prefill_time", "s", ("ttft",)),
    )

    def parameters(self, question: CacheScenario) -> list[Parameter]:
        """List the parameters of a scenario, each varied as `--set` would."""
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
        return Search(output_values(self.outputs, point), point.choice, point.cost, point, gap=0.0)

    def answer(self, question: CacheScenario) -> records.CachePlan:
        """Solve the scenario: every hold time, every tier, and the trace if given."""
        task, uses = _prepared(question)
        point = self._point(question, uses)
        options = sum(len(each.options) + 1 for each in point.holds)
        fetched = min((each.fetch for each in point.tiers), default=0.0)
        answer = records.CacheAnswer(
            scenario=resolve_keys(question),
            plan=point,
            gap=0.0,
            bound=records.CacheBound(fetched * point.holds[0].hit),
            certificate=records.CacheCertificate(METHOD, options, point.cost),
            elasticities=self._slopes(question, point.cost),
            provenance=Provenance(data=task.data, warnings=task.warnings),
        )
        return records.CachePlan(KnownAnswer(answer), question)

    def check(self, question: CacheScenario) -> None:
        """Raise InputError if the scenario cannot be resolved or its trace cannot be read."""
        _prepared(question)

    def _point(self, question: CacheScenario, uses: BlockTrace | None = None) -> records.CachePoint:
        """Compute the plan point; its trace result is None without `uses`."""
        costs = economics.TokenCosts(economics.resolve_cache(question))
        holds = tuple(
            economics.decision(costs, hold, chance, question.margin, question.chips)
            for hold, chance in question.holds
        )
        reuse, trace = question.reuse, None
        if uses is not None and isinstance(reuse, Trace):
            trace = economics.trace_reuse(
                costs, uses, reuse.block, reuse.ttl, tuple(reuse.capacity)
            )
        first = holds[0]
        return records.CachePoint(
            choice=first.choice if first.tier is None else f"{first.choice} ({first.tier})",
            kv_bytes_per_token=costs.task.values["b_kv"], miss=costs.miss * economics.PER_MTOK,
            cost=first.cost, prefill_time=costs.prefill_time(question.chips), holds=holds,
            tiers=tuple(costs.economics(tier, question.chips) for tier in costs.task.tiers),
            trace=trace,
        )  # fmt: skip

    def _slopes(self, question: CacheScenario, cost: float) -> dict[str, float]:
        slopes = {}
        for row in self.parameters(question):
            value = row.value or 0.0
            for step in (-STEP, STEP):  # a value may be the least or the most of its range
                with suppress(InputError):
                    there = self._point(self.varied(question, row.path, value * (1 + step))).cost
                    slopes[row.path] = math.log(there / cost) / math.log1p(step)
                    break
        return slopes

    def head(self, plan: records.CachePlan) -> AnswerHead:
        """Head of the answer: decision by hold time, cost of a miss and a hit, deciding factors."""
        question, point, first = plan.question, _point(plan), _point(plan).holds[0]
        cost, prefix = f"a miss costs {_usd(point.miss, MTOK)}", question.prefix
        if first.tier is not None:
            place = f"held in {first.tier} for {show(first.hold, 'time')}"
            cost += f"; {place} {_usd(first.cost, MTOK)}"
        ttft = f"a miss waits {show(point.prefill_time or 0.0, 'time')} for prefill"
        if first.ttft_saved:
            ttft += f", a hit {show(first.ttft_saved, 'time')} less"
        charges = sorted(row.price for row in point.holds if row.price is not None)
        ends = "–".join(dict.fromkeys(map(three_digits, (*charges[:1], *charges[-1:]))))
        margin = f"at your {question.margin or 0.0:.0%} margin"
        prefill = f"prefill at {question.prefill_efficiency:.0%} of peak is given"
        return AnswerHead(
            question_text(plan), run=(_advice(point.holds),), cost=(cost,),
            certainty=(f"given: arithmetic on prices; {prefill}",), against=(ttft,) * bool(prefix),
            promises=(f"${ends}/Mtok for a hit, {margin}",) if ends else (),
            limit=("capacity is not limited here: prices and read rates decide",),
            next=(f"planner solve FILE --set prefix={4 * (prefix or 2000):.0f}",),
            labels={"run": "Do", "against": "TTFT", "promises": "Charge"},
        )  # fmt: skip

    def sections(self, plan: records.CachePlan) -> Sequence[Section]:
        """The question, what to do by hold time, the tiers, the trace."""
        holds = ("Read again", "hits", "do", "cost", "recompute", "a hit", "charge", "pays from")
        tiers = ("Tier", "$/GB/hour", "worth holding up to", "pays from", "read in full")
        return (
            Section(question_text(plan), value_lines(self.outputs, plan)),
            _table("Prices per Mtok", holds, map(_hold, _point(plan).holds)),
            _table("", tiers, map(_tier, _point(plan).tiers)),
            *_trace(_point(plan).trace),
        )

    def picture(self, plan: records.CachePlan) -> ValueRows:
        """Plot the cost per token of each tier and of recompute, one panel per hold time."""
        from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows

        panels = []
        for row in _point(plan).holds:
            costs = {"recompute": row.recompute, **{x.tier: x.cost for x in row.options}}
            rows = [
                ValueRow(
                    name, cost, cost, _usd(cost, MTOK), chosen=name == (row.tier or "recompute")
                )
                for name, cost in sorted(costs.items(), key=lambda pair: pair[1])
            ]
            title = f"held {show(row.hold, 'time')}, read again with a chance of {percent(row.hit)}"
            panels.append(ValuePanel(title, "USD per million cached tokens", rows))
        return ValueRows(question_text(plan), panels)

    def listed(self, question: CacheScenario, path: str) -> ListedRange:
        """The listed rents of the chip."""
        systems = (resolved_system(question.system),) if path == "price" else ()  # type: ignore[arg-type]
        return rent_range(systems, path)


PROBLEM = CacheProblem()


def _point(plan: Plan) -> records.CachePoint:
    assert plan.answer.plan is not None  # there is always recompute
    point: records.CachePoint = plan.answer.plan
    return point


def question_text(plan: Plan) -> str:
    """Return the question as one line of text."""
    assert isinstance(plan, records.CachePlan)
    prefix, system = plan.question.prefix, resolved_system(plan.question.system)  # type: ignore[arg-type]
    assert isinstance(system, System)  # a file is refused as it is resolved
    length = f"a prefix of {prefix:,.0f} tokens" if prefix else "a token, attention left aside,"
    size = show(_point(plan).kv_bytes_per_token, "bytes_per_token")
    chips = system.counted([plan.question.chips])
    model = reference_text(plan.scenario["model"], "model")
    return f"Keep, move or recompute {length} of {model} on {chips}? {size} of KV cache"


def _advice(rows: Sequence[records.HoldDecision]) -> str:
    words = []
    for (choice, tier), group in groupby(rows, lambda row: (row.choice, row.tier)):
        holds = [show(row.hold, "time") for row in group]
        what = {"keep": f"keep it in {tier}", "move": f"move it to {tier}"}.get(choice, choice)
        words.append(f"{what} for {joined_ends(holds[0], holds[-1]) if holds[1:] else holds[0]}")
    return "; ".join(words)


def _table(title: str, heads: Sequence[str], cells: Iterable[tuple[str, ...]]) -> Section:
    return table(dict(zip(heads, zip(*cells, strict=True), strict=True)), title)


def _usd(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"${three_digits(value)}{unit}"


def _hold(row: records.HoldDecision) -> tuple[str, ...]:
    needed = row.hit_chance_needed
    pays = "" if needed is None or needed > 1 else percent(needed)
    return (show(row.hold, "time"), percent(row.hit), row.tier or row.choice, _usd(row.cost),
            _usd(row.recompute), _usd(row.floor), _usd(row.price), pays)  # fmt: skip


def _tier(row: records.TierEconomics) -> tuple[str, ...]:
    until = "never" if row.break_even_hold is None else show(row.break_even_hold, "time")
    often = "" if row.reads_per_hour is None else f"{three_digits(row.reads_per_hour)} reads/hour"
    full = "" if row.drain_time is None else show(row.drain_time, "time")
    return row.name, three_digits(row.usd_per_gb_hour), until, often, full


def _trace(trace: records.TraceReuse | None) -> Iterator[Section]:
    """Hit rates, and the lifetime that pays in each tier."""
    if trace is None:
        return
    title = f"{trace.requests:,} requests, {trace.blocks:,} blocks of {trace.block} tokens"
    rates = [(f"lifetime {show(x.ttl, 'time')}", percent(x.hit_rate, 3), "") for x in trace.ttl]
    rates += [
        (f"LRU of {x.blocks:,} blocks", percent(x.hit_rate, 3), show(x.bytes, "size"))
        for x in trace.lru
    ]
    yield _table(title, ("Kept", "leading blocks found", "holds"), rates)
    heads = ("Tier", "best lifetime", "found", "saved of recompute", "holds")
    yield _table("", heads, map(_lifetime, trace.best_ttl))


def _lifetime(row: records.TierLifetime) -> tuple[str, ...]:
    if row.ttl is None:
        return row.tier, "none", "", "", ""
    return (row.tier, show(row.ttl, "time"), percent(row.hit_rate, 3), percent(row.saved, 3),
            show(row.bytes, "size"))  # fmt: skip
