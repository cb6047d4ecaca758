"""Token budgets as a problem kind: outputs, parameters, search, and abilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.catalogue.ranges import ListedRange, mfu_range, no_range, rent_range
from planner.problems.budget.answer import BudgetPlan, answer, plan_of
from planner.problems.budget.cost_sections import COLUMNS
from planner.problems.budget.life_givens import life_givens
from planner.problems.budget.optimum import BudgetOptimum, NoBudget, solve_many
from planner.problems.budget.resolve import resolve_budget
from planner.protocol.output import Output, values_in
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import Plan
from planner.protocol.problem import NO_PLAN, MissedPromise, Room, Search
from planner.protocol.section import Section

if TYPE_CHECKING:
    from planner.problems.budget.question import BudgetScenario
    from planner.protocol.elasticity import Elasticity

__all__ = ["OUTPUTS", "PROBLEM", "Budget"]

OUTPUTS = (
    Output("cost.total.usd", "USD", ("cost", "cost.total"), applies=lambda q: q.in_usd),
    Output("cost.total.flop", "flop", ("cost", "cost.total"), applies=lambda q: not q.in_usd),
    Output("cost.pretrain.usd", "USD"),
    Output("cost.inference.usd", "USD"),
    Output("n_active", "param", ("size", "parameters")),
    Output("n_total", "param"),
    Output("tokens.pretrain", "token", ("tokens",)),
    Output("tokens.rl", "token"),
    Output("over_training", "1"),
    Output("tokens_per_parameter", "token/param"),
    Output("loss", "nat"),
)


class Budget(Room["BudgetScenario"]):
    """The size, sparsity and tokens of least cost, or of least loss."""

    kind = "budget"
    version = 1
    plan_type = BudgetPlan
    columns = COLUMNS
    outputs = OUTPUTS

    def parameters(self, question: BudgetScenario) -> list[Parameter]:
        """What a scenario gives, each varied as `--set` would vary it."""
        solved = [
            one
            for one in solve_many(resolve_budget(question).questions)
            if isinstance(one, BudgetOptimum)
        ]
        if not solved:
            return []
        best = min(solved, key=lambda one: one.score)
        return scenario_rows(question, life_givens(question, best.question))

    def search(
        self, question: BudgetScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best budget on the first-order conditions alone."""
        questions = resolve_budget(question)
        if not questions.questions:
            plan: Mapping[str, Any] = answer(question).chosen
            return Search(values_in(OUTPUTS, plan), "by rule", math.nan, plan) if plan else NO_PLAN
        solved = solve_many(questions.questions)
        answers = [one for one in solved if isinstance(one, BudgetOptimum)]
        considered = {"points_considered": len(solved)}
        if not answers:
            missed = [one for one in solved if isinstance(one, NoBudget)]
            nearest = min(missed, key=lambda one: one.short_by)
            return Search(
                NO_PLAN.outputs, NO_PLAN.choice, NO_PLAN.score, considered=considered,
                missed=lambda: [MissedPromise(nearest.promise, nearest.short_by, nearest.reason)],
            )  # fmt: skip
        best = min(answers, key=lambda one: one.score)
        plan = plan_of(best)
        return Search(
            values_in(OUTPUTS, plan), f"sparsity {plan['sparsity']:g}", best.score, plan,
            holds=(f"choose.sparsity={plan['sparsity']!r}",), considered=considered,
        )  # fmt: skip

    def answer(self, question: BudgetScenario) -> Plan:
        """The plan with its certificate, its comparisons and its provenance."""
        return answer(question)

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The question with its numbers, and what the cost adds up from."""
        from planner.problems.budget.cost_sections import sections
        from planner.problems.budget.question_text import question as asked

        return sections(" ".join(asked(plan.document).split()), self.outputs, plan)

    def listed(self, question: BudgetScenario, path: str) -> ListedRange:
        """Listed rents, and the MFU of published runs."""
        return listed_of_phases(question, path)

    def elasticities(self, question: BudgetScenario, output: str) -> list[Elasticity]:
        """Multipliers of the objective; anything else by solving again, choices held."""
        from planner.problems.budget.elasticities import budget_rows

        return budget_rows(question, output)


def listed_of_phases(question: Any, path: str) -> ListedRange:
    """What the catalogues know of the phases of a scenario: rents, and the MFU of training."""
    name, _, key = path.removeprefix("phases.").partition(".")
    phase = getattr(question.phases, name, None) if path.startswith("phases.") else None
    if phase is None:
        raise no_range(path)
    if key == "mfu":
        return mfu_range(phase.dtype, path)
    return rent_range(phase.systems() if key == "price" else (), path)


def scenario_rows(question: Any, rows: Sequence[Parameter]) -> list[Parameter]:
    """Those rows that a file may set; a law's coefficients stand in none but as a whole."""
    return [
        found for row in rows
        if row.group != "law" and (found := settable(question, row)) is not None
    ]  # fmt: skip


PROBLEM = Budget()
