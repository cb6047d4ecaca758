"""Caches kept between requests as a problem kind: outputs, parameters, search, sections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from planner.catalogue.ranges import ListedRange, rent_range
from planner.problems.cache import plan as records
from planner.problems.cache.economics import PER_MILLION, TokenCosts, decision, reused
from planner.problems.cache.presentation import sections
from planner.problems.cache.question import Trace
from planner.problems.cache.resolve import resolve_cache
from planner.problems.cache.reuse_trace import read_trace
from planner.protocol.output import Output, values_in
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import KnownAnswer, Plan, Provenance
from planner.protocol.problem import Problem, Search
from planner.protocol.section import Section
from planner.scenario import resolved
from planner.scenario.keys.system_keys import resolved_system

if TYPE_CHECKING:
    import sympy as sp

    from planner.problems.cache.question import CacheScenario
    from planner.report.pictures.value_rows import ValueRows

METHOD = "every tier and computing again, compared at each hold time; nothing else is a choice"
UNITS = {
    "price": "USD/(chip*s)", "prefill_efficiency": "1", "prefix": "token", "answer": "s",
    "hit": "1", "margin": "1",
}  # fmt: skip
STEP = 1e-4  # of a logarithm, for elasticities


def _by(name: str, plan: Plan) -> sp.Expr | None:
    """The expression of an output, in its unit."""
    from formulas.economics import tiers as equations
    from formulas.nomenclature import schedule_symbols as symbols

    again = PER_MILLION * equations.remake_cost.rhs
    if name == "miss":
        return again
    if plan.answer.plan is None or plan.answer.plan.choice == "recompute":
        return symbols.p_hit * again
    store = symbols.C_store / symbols.n_share
    return PER_MILLION * (store + symbols.p_hit * symbols.C_fetch)


class CacheProblem(Problem["CacheScenario"]):
    """What to do with a cache between two requests."""

    kind = "cache"
    version = 1
    plan_type = records.CachePlan
    outputs = (
        Output("cost", "USD per million tokens", ("price",), equation=partial(_by, "cost")),
        Output("miss", "USD per million tokens", equation=partial(_by, "miss")),
        Output("prefill_time", "s", ("ttft",)),
    )

    def parameters(self, question: CacheScenario) -> list[Parameter]:
        """What a scenario gives, each varied as `--set` would."""
        price = resolve_cache(question).price.value
        values = {path: self.value(question, path) for path in UNITS} | {"price": price}
        rows = [
            Parameter(path, values[path], unit, "prices" if path == "price" else "cache")
            for path, unit in UNITS.items()
            if values[path]
        ]
        if question.hold is not None and len(question.hold) == 1:
            rows.append(Parameter("hold", question.hold[0], "s", "cache"))
        listed = question.tiers if isinstance(question.tiers, tuple) else ()
        rows += [
            Parameter(f"tiers.{place}.price", tier.price[0], "USD/(byte*s)", "prices")
            for place, tier in enumerate(listed)
            if tier.price is not None and tier.price[0] is not None
        ]
        return [row for each in rows if (row := settable(question, each)) is not None]

    def search(
        self, question: CacheScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The cheapest choice at the first hold time."""
        point = self._point(question, traced=False)
        return Search(values_in(self.outputs, point), point.choice, point.cost, point)

    def answer(self, question: CacheScenario) -> records.CachePlan:
        """The plan: every hold time, every tier, and the trace where one is given."""
        task = resolve_cache(question)
        point = self._point(question, traced=True)
        options = sum(len(each.options) + 1 for each in point.holds)
        fetched = min((each.fetch for each in point.tiers), default=0.0)
        answer = records.CacheAnswer(
            scenario=resolved(question),
            plan=point,
            bound=records.CacheBound(fetched * point.holds[0].hit),
            certificate=records.CacheCertificate(METHOD, options, point.cost),
            elasticities=self._slopes(question, point.cost),
            provenance=Provenance(data=task.data, warnings=task.warnings),
        )
        return records.CachePlan(KnownAnswer(answer))

    def _point(self, question: CacheScenario, *, traced: bool) -> records.CachePoint:
        """The plan; without its trace where only the numbers of the first hold time are wanted."""
        costs = TokenCosts(resolve_cache(question))
        holds = tuple(
            decision(costs, hold, chance, question.margin, question.chips)
            for hold, chance in question.holds
        )
        reuse, trace = question.reuse, None
        if traced and isinstance(reuse, Trace):
            uses = read_trace(reuse.trace.path, reuse.trace.written)
            trace = reused(costs, uses, reuse.block, reuse.ttl, tuple(reuse.capacity))
        first = holds[0]
        return records.CachePoint(
            choice=first.choice if first.tier is None else f"{first.choice} ({first.tier})",
            kv_bytes_per_token=costs.task.values["b_kv"],
            miss=costs.miss * PER_MILLION,
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
            there = self._point(lower, traced=False).cost
            slopes[row.path] = math.log(there / cost) / math.log1p(-STEP)
        return slopes

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The question, what to do by hold time, the tiers, the trace."""
        assert isinstance(plan, records.CachePlan)
        return sections(plan)

    def picture(self, plan: Plan) -> ValueRows:
        """What each tier and computing again cost, at every hold time."""
        from planner.problems.cache.presentation import costs_picture

        assert isinstance(plan, records.CachePlan)
        return costs_picture(plan)

    def listed(self, question: CacheScenario, path: str) -> ListedRange:
        """The listed rents of the chip."""
        systems = (resolved_system(question.system),) if path == "price" else ()  # type: ignore[arg-type]
        return rent_range(systems, path)


PROBLEM = CacheProblem()
