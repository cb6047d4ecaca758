"""Token budgets as a problem kind: outputs, parameters, search, and abilities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.catalogue.ranges import ListedRange, mfu_range, no_range, rent_range
from planner.problems.budget.answer import answer
from planner.problems.budget.cost_sections import COLUMNS
from planner.problems.budget.outputs import point_of
from planner.problems.budget.parameters import parameters
from planner.problems.budget.plan import BudgetPlan
from planner.problems.budget.resolve import resolve_budget
from planner.problems.budget.search.optimum import BudgetOptimum, NoBudget, solve_many
from planner.protocol.document import document_of
from planner.protocol.output import Output, values_in
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import Plan
from planner.protocol.problem import NO_PLAN, MissedPromise, Room, Search
from planner.protocol.section import Section
from planner.scenario.keys.fields import QuestionRecord

if TYPE_CHECKING:
    from planner.problems.budget.picture import LifePicture
    from planner.problems.budget.question import BudgetScenario
    from planner.protocol.elasticity import Elasticity

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
        from planner.problems.budget.cost_sections import sections
        from planner.problems.budget.presentation import question_text

        question = question_text(plan.question, plan.answer.demand)
        return sections(" ".join(question.split()), self.outputs, plan)

    def picture(self, plan: Plan) -> LifePicture:
        """Cost against size, pools, equal loss and equal cost."""
        assert isinstance(plan, BudgetPlan)
        from planner.problems.budget.picture import picture_of

        return picture_of(plan)

    def listed(self, question: BudgetScenario, path: str) -> ListedRange:
        """Listed rents, and the MFU of published runs."""
        return listed_of_phases(question, path)

    def elasticities(self, question: BudgetScenario, output: str) -> list[Elasticity]:
        """Multipliers of the objective; anything else by solving again, choices held."""
        from planner.problems.budget.elasticities import budget_rows

        return budget_rows(question, output)


def listed_of_phases(question: QuestionRecord, path: str) -> ListedRange:
    """What the catalogues know of the phases of a scenario: rents, and the MFU of training."""
    name, _, key = path.removeprefix("phases.").partition(".")
    phases = getattr(question, "phases", None) if path.startswith("phases.") else None
    phase = getattr(phases, name, None)
    if phase is None:
        raise no_range(path)
    if key == "mfu":
        return mfu_range(phase.dtype, path)
    return rent_range(phase.systems() if key == "price" else (), path)


def scenario_rows(question: object, rows: Iterable[Parameter]) -> list[Parameter]:
    """Those rows that a file may set; a law's coefficients stand in none but as a whole."""
    settled = (settable(question, row) for row in rows if row.group != "law")
    return [row for row in settled if row is not None]


PROBLEM = Budget()
