"""Reinforcement learning as a problem kind: outputs, parameters, search, sections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from planner.problems.rl.answer import answer, missed_of, point_of
from planner.problems.rl.plan import RlPlan
from planner.problems.rl.presentation import picture, sections
from planner.problems.rl.resolve import resolve_rl
from planner.problems.rl.search import require_pools, search_pools, step_equation
from planner.protocol.output import Output, values_in
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import Plan
from planner.protocol.problem import Problem, Search
from planner.protocol.section import Section

if TYPE_CHECKING:
    import sympy as sp

    from planner.problems.rl.question import RlQuestion
    from planner.report.pictures.value_rows import ValueRows

UNITS = {"work.prompt": "token", "work.answer": "token", "work.most": "token"}


def _expression(name: str, plan: Plan) -> sp.Expr | None:
    """The expression of an output of a plan."""
    from formulas.training import reinforcement as equations

    assert isinstance(plan, RlPlan)
    step = getattr(equations, step_equation(plan.question))
    return step.rhs if name == "step_time" else equations.step_cost.rhs.subs(step.lhs, step.rhs)


class Rl(Problem["RlQuestion"]):
    """The pools of least time."""

    kind = "rl"
    version = 1
    plan_type = RlPlan
    slow = True
    outputs = (
        Output("step_time", "s", ("time", "step"), equation=partial(_expression, "step_time")),
        Output("usd_per_step", "USD", ("cost", "price"), equation=partial(_expression, "cost")),
        Output("tokens_per_s", "token/s", ("rate",), rises=True),
        Output("tokens_per_s_per_chip", "token/(s*chip)", rises=True),
        Output("idle", "1"),
        Output("days", "day"),
        Output("usd", "USD"),
    )

    def check(self, question: RlQuestion) -> None:
        """Refuse what cannot be looked up."""
        require_pools(resolve_rl(question))

    def parameters(self, question: RlQuestion) -> list[Parameter]:
        """What a scenario gives, each varied as `--set` would vary it."""
        resolution = resolve_rl(question)
        system, dtype = resolution.system, question.training.precision
        rows = [
            Parameter("price", resolution.price.value, "USD/(chip*s)", "prices"),
            *(Parameter(path, self.value(question, path), unit, "workload")
              for path, unit in UNITS.items()),
            Parameter(f"system.flops.{dtype}", system.chip.peak(dtype), "flop/s", "chip"),
            Parameter("system.memory_bandwidth", system.chip.memory_bandwidth, "byte/s", "chip"),
            Parameter("system.scale_up", system.scale_up, "byte/s", "chip"),
            Parameter("system.scale_out", system.scale_out, "byte/s", "chip"),
        ]  # fmt: skip
        settled = (settable(question, row) for row in rows)
        return [row for row in settled if row is not None]

    def search(
        self, question: RlQuestion, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best pools of all."""
        tally = search_pools(resolve_rl(question))
        considered = {"pools_seen": tally.seen, "pools_fitting": tally.fitting}
        if not tally.ranked:
            return Search({}, "no plan", math.inf, considered=considered,
                          missed=partial(missed_of, tally))  # fmt: skip
        best = tally.ranked[0]
        plan, replica = point_of(best), best.rollouts.replica
        holds = [f"rollout.tp={replica.tp}", f"rollout.pp={replica.pp}"]
        if question.policy == "off":
            holds.append(f"split={best.rollouts.chips}")
        return Search(values_in(self.outputs, plan), best.choice, best.seconds, plan,
                      holds=tuple(holds), considered=considered, gap=0.0)  # fmt: skip

    def answer(self, question: RlQuestion) -> RlPlan:
        """The plan with its certificate and its provenance."""
        return answer(question)

    def sections(self, plan: Plan) -> Sequence[Section]:
        """Step, pools, other pools."""
        assert isinstance(plan, RlPlan)
        return sections(plan)

    def picture(self, plan: Plan) -> ValueRows:
        """A step on a time axis, a lane for each pool; steps of other pools."""
        assert isinstance(plan, RlPlan)
        return picture(plan)


PROBLEM = Rl()
