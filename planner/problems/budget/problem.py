"""Token budgets as a problem kind: outputs, parameters, search, and abilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.catalogue.ranges import ListedRange
from planner.problems.budget.answer import answer
from planner.problems.budget.outputs import point_of
from planner.problems.budget.plan import BudgetPlan
from planner.problems.budget.resolve import resolve_budget
from planner.protocol.document import document_of
from planner.protocol.output import values_in
from planner.protocol.parameter import Parameter
from planner.protocol.plan import Plan
from planner.protocol.problem import NO_PLAN, MissedPromise, Room, Search
from planner.protocol.section import Section
from planner.token_costs.optimum import BudgetOptimum, NoBudget, solve_many
from planner.token_costs.outputs import OUTPUTS
from planner.token_costs.parameters import parameters, scenario_rows
from planner.token_costs.phase_costs import listed_of_phases
from planner.token_costs.presentation import COLUMNS

if TYPE_CHECKING:
    from planner.problems.budget.question import BudgetScenario
    from planner.protocol.elasticity import Elasticity
    from planner.token_costs.picture import LifePicture


class Budget(Room["BudgetScenario"]):
    """The size, sparsity and tokens of least cost, or of least loss."""

    kind = "budget"
    version = 1
    plan_type = BudgetPlan
    columns = COLUMNS
    outputs = OUTPUTS

    def parameters(self, question: BudgetScenario) -> list[Parameter]:
        """What a scenario gives, each varied as `--set` would vary it."""
        solved = solve_many(resolve_budget(question).tasks)
        optima = [each for each in solved if isinstance(each, BudgetOptimum)]
        if not optima:
            return []
        best = min(optima, key=lambda row: row.score)
        return scenario_rows(question, parameters(best.task, question.inference, question.rl))

    def search(
        self, question: BudgetScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best budget on the first-order conditions alone."""
        tasks = resolve_budget(question).tasks
        if not tasks:
            plan = answer(question).chosen
            return Search(values_in(OUTPUTS, plan), "by rule", math.nan, plan) if plan else NO_PLAN
        solved = solve_many(tasks)
        optima = [each for each in solved if isinstance(each, BudgetOptimum)]
        considered = {"points_considered": len(solved)}
        if not optima:
            misses = [each for each in solved if isinstance(each, NoBudget)]
            nearest = min(misses, key=lambda row: row.short_by)
            return Search(
                NO_PLAN.outputs, NO_PLAN.choice, NO_PLAN.score, considered=considered,
                missed=lambda: [MissedPromise(nearest.promise, nearest.short_by, nearest.reason)],
            )  # fmt: skip
        best = min(optima, key=lambda row: row.score)
        plan = document_of(point_of(best))
        sparsity = best.task.sparsity
        return Search(
            values_in(OUTPUTS, plan), f"sparsity {sparsity:g}", best.score, plan,
            holds=(f"choose.sparsity={sparsity!r}",), considered=considered,
        )  # fmt: skip

    def answer(self, question: BudgetScenario) -> BudgetPlan:
        """The plan with its certificate, its comparisons and its provenance."""
        return answer(question)

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The question with its numbers, and what the cost adds up from."""
        assert isinstance(plan, BudgetPlan)
        from planner.problems.budget.presentation import question_text
        from planner.token_costs.presentation import sections

        question = question_text(plan.question, plan.answer.demand)
        return sections(question, self.outputs, plan.answer)

    def picture(self, plan: Plan) -> LifePicture:
        """Cost against size, pools, equal loss and equal cost."""
        assert isinstance(plan, BudgetPlan)
        from planner.problems.budget.picture import picture_of

        return picture_of(plan)

    def listed(self, question: BudgetScenario, path: str) -> ListedRange:
        """Listed rents, and the MFU of published runs."""
        return listed_of_phases(question.phases, path)

    def elasticities(self, question: BudgetScenario, output: str) -> list[Elasticity]:
        """Multipliers of the objective; anything else by solving again, choices held."""
        from planner.problems.budget.elasticities import budget_rows

        return budget_rows(question, output)


PROBLEM = Budget()
