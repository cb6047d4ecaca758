"""Fleets as a problem kind: outputs, parameters, search, and abilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.problems.fleet.answer import answer, fleet_point
from planner.problems.fleet.cycles.column_pricing import priced_fleet
from planner.problems.fleet.plan import FleetPlan
from planner.problems.fleet.presentation import head, picture, sections
from planner.problems.fleet.resolve import resolve_fleet
from planner.problems.fleet.search import solve_min_cost
from planner.problems.fleet.shortage import shortfalls
from planner.programs.integer import NoPoint
from planner.protocol.output import Output, output_values
from planner.protocol.parameter import Parameter, settable
from planner.protocol.problem import NO_PLAN, Problem, ReplicaHours, Search

if TYPE_CHECKING:
    from planner.problems.fleet.question import FleetScenario

PRICES = ("on_demand.price", "reserved.price", "spot.price")


class FleetProblem(Problem["FleetScenario", FleetPlan]):
    """The cheapest machines and replicas that meet every model's demand."""

    kind = "fleet"
    version = 1
    plan_type = FleetPlan
    slow = True
    outputs = (
        Output("usd_per_hour", "USD/hour", ("cost", "bill")),
        Output("usd_per_day", "USD/day"),
        Output("usd_per_month", "USD/month"),
    )
    answer = staticmethod(answer)
    head = staticmethod(head)
    sections = staticmethod(sections)
    picture = staticmethod(picture)

    def parameters(self, question: FleetScenario) -> list[Parameter]:
        """Prices of contracts, demand, spare, each varied as `--set` would."""
        paths = [(f"pools.{p}.{x}", "USD/(chip*s)", "prices") for p in question.pools
                 for x in PRICES]  # fmt: skip
        paths += [(f"models.{m}.demand.mean", "seq/s", "demand") for m in question.models]
        paths += [("spare.headroom", "1", "spare"), ("spot_share", "1", "spare")]
        rows = (Parameter(x, self.value(question, x), unit, group) for x, unit, group in paths)
        return settable(question, rows)

    def check(self, question: FleetScenario) -> None:
        """Refuse what takes no search to refuse; raises InputError."""
        resolve_fleet(question)

    def search(
        self, question: FleetScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The cheapest fleet."""
        task = priced_fleet(question).resolution.task
        try:
            choice = solve_min_cost(task)
        except NoPoint:
            return Search({}, NO_PLAN.choice, math.inf, missed=lambda: shortfalls(task))
        point = fleet_point(task, choice)
        words = ", ".join(f"{n} {count} reserved" for n, count in point.reserved.items() if count)
        return Search(
            output_values(self.outputs, point), words or "nothing reserved", point.usd_per_hour,
            point,
            considered={"nodes": choice.nodes}, gap=choice.gap,
        )  # fmt: skip

    def replica_hours(self, plan: FleetPlan) -> Sequence[ReplicaHours]:
        """Replicas of each model and column over the hours, firm and spot in separate rows."""
        point = plan.answer.plan
        assert point is not None
        rows = []
        for used in plan.answer.columns:
            if not used.in_plan:
                continue
            every = point.replicas[used.model][used.column]
            spot = point.on_spot[used.model].get(used.column, (0,) * len(every))
            firm = tuple(x - y for x, y in zip(every, spot, strict=True))
            pool, region = plan.question.placed_pools[used.pool]
            machines = -(-used.chips // plan.question.pools[pool].machine)
            for contract, counts in (("firm", firm), ("spot", spot)):
                if any(counts):
                    labels = {"model": used.model, "column": used.column, "pool": used.pool,
                              "contract": contract}  # fmt: skip
                    labels |= {"region": region} if region else {}
                    name = f"{used.model} {used.column} {contract}"
                    rows.append(ReplicaHours(name, labels, machines, counts))
        return rows


PROBLEM = FleetProblem()
