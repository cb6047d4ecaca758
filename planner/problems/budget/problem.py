"""Token budgets as a problem kind: outputs, parameters, search, and abilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from planner.catalogue.ranges import ListedRange
from planner.problems.budget.answer import answer
from planner.problems.budget.outputs import budget_point
from planner.problems.budget.plan import BudgetPlan
from planner.problems.budget.presentation import head, sections
from planner.problems.budget.resolve import resolve_budget
from planner.protocol.document import to_document
from planner.protocol.elasticity import OFFSETS, STEP, Elasticity, one_sided
from planner.protocol.output import output_values
from planner.protocol.parameter import Parameter
from planner.protocol.plan import MissedPromise
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.section import Section
from planner.text.errors import InputError
from planner.token_costs import optimum as token_optimum
from planner.token_costs import parameters as quantities
from planner.token_costs.outputs import OUTPUTS, at_limit
from planner.token_costs.phase_costs import listed_of_phases
from planner.token_costs.presentation import COLUMNS

if TYPE_CHECKING:
    from planner.problems.budget.question import BudgetScenario
    from planner.token_costs.picture import LifePicture


def budget_rows(question: BudgetScenario, output: str) -> list[Elasticity]:
    """Elasticity of one output to every parameter of a budget with an answer.

    What a quantity does to what is made small comes from the envelope theorem. What it does to
    anything else moves the optimum: the budget is solved again a little off on either side, its
    sparsity held, and the difference is taken to second order on each side. Where the sides differ,
    a kink may lie within the step rather than at the point: ever smaller steps tell.
    """
    resolution = resolve_budget(question)
    scenario, tasks = resolution.scenario, resolution.tasks
    best = token_optimum.select_best(token_optimum.solve_many(tasks)) if tasks else None
    if not isinstance(best, token_optimum.BudgetOptimum):
        raise InputError("--of: a rule for an arithmetic has no optimum that could move")
    rows = list(quantities.parameters(best.task, scenario.inference, scenario.rl))
    if _judged_by(best, output):
        slopes = quantities.elasticities(best, scenario.inference, scenario.rl)
        pairs = [(slopes.get(row.path, 0.0),) * 2 for row in rows]
        return [quantities.elasticity_row(*each, "dual") for each in zip(rows, pairs, strict=True)]
    pairs = _again(best, rows, output)
    return [quantities.elasticity_row(*each, "re-solve") for each in zip(rows, pairs, strict=True)]


def _judged_by(best: token_optimum.BudgetOptimum, name: str) -> bool:
    task = best.task
    if task.aim == "quality":
        return name == "loss"
    flop = all(phase.mfu is None for phase in task.phases.values())
    return name == "cost.total.usd" if task.in_usd else name == "cost.total.flop" and flop


def _again(
    best: token_optimum.BudgetOptimum, rows: Sequence[quantities.BudgetParameter], name: str
) -> list[tuple[float, float]]:
    """Slopes of the logarithm of an output to the left and to the right of every parameter."""

    def log(optimum: token_optimum.BudgetOptimum) -> float:
        return math.log(output_values(OUTPUTS, to_document(budget_point(optimum)))[name])

    def solved(varied: Sequence[quantities.BudgetParameter], step: float) -> list[float | None]:
        """Logarithms of the output, of every parameter at every offset."""
        tasks = [row.to(math.exp(offset * step)) for row in varied if row.to for offset in OFFSETS]
        answers = token_optimum.solve_many(tasks)
        return [
            log(each) if isinstance(each, token_optimum.BudgetOptimum) else None for each in answers
        ]

    beside, at, count = solved(rows, STEP), log(best), len(OFFSETS)
    return [
        one_sided(at, beside[i * count : (i + 1) * count], partial(solved, [row]))
        for i, row in enumerate(rows)
    ]


def _search(question: BudgetScenario, solved: Sequence[token_optimum.Solved]) -> Search:
    """Best point over the choices of a question; by the law's rule if no task was solved."""
    if not solved:
        plan = answer(question).chosen
        return Search(output_values(OUTPUTS, plan), "by rule", math.nan, plan) if plan else NO_PLAN
    best, considered = token_optimum.select_best(solved), {"points_considered": len(solved)}
    if isinstance(best, token_optimum.NoBudget):
        missed = MissedPromise(best.promise, best.short_by, best.reason)
        return replace(NO_PLAN, considered=considered, missed=lambda: [missed])
    token_optimum.extrapolation_warnings(best.outside, question.extrapolate)
    plan = to_document(budget_point(best))
    sparsity = best.task.sparsity
    return Search(
        output_values(OUTPUTS, plan), f"sparsity {sparsity:g}", best.score, plan,
        holds=(f"choose.sparsity={sparsity!r}",), considered=considered, gap=-math.expm1(-best.gap),
    )  # fmt: skip


class Budget(Problem["BudgetScenario", BudgetPlan]):
    """The size, sparsity and tokens of least cost, or of least loss."""

    kind = "budget"
    version = 1
    plan_type = BudgetPlan
    columns = COLUMNS
    outputs = OUTPUTS
    varied = staticmethod(at_limit)
    answer = staticmethod(answer)
    head = staticmethod(head)
    elasticities = staticmethod(budget_rows)

    def parameters(self, question: BudgetScenario) -> list[Parameter]:
        """Parameters of a scenario, each varied as `--set` would vary it."""
        resolution = resolve_budget(question)
        question, tasks = resolution.scenario, resolution.tasks
        best = token_optimum.select_best(token_optimum.solve_many(tasks)) if tasks else None
        if not isinstance(best, token_optimum.BudgetOptimum):
            return []
        return quantities.scenario_rows(
            question, quantities.parameters(best.task, question.inference, question.rl)
        )

    def check(self, question: BudgetScenario) -> None:
        """Refuse unknown values and values beyond the law's range by solving for the optimum."""
        self.search(question)

    def search(
        self, question: BudgetScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best budget on the first-order conditions alone."""
        return self.search_many([question])[0]

    def search_many(
        self,
        questions: Sequence[BudgetScenario],
        coefficients: Sequence[Mapping[str, float]] | None = None,
    ) -> list[Search]:
        """The best budget of each question, all of them in one call."""
        tasks = [resolve_budget(question).tasks for question in questions]
        solved = iter(token_optimum.solve_many([task for each in tasks for task in each]))
        pairs = zip(questions, tasks, strict=True)
        return [_search(question, [next(solved) for _ in each]) for question, each in pairs]

    def sections(self, plan: BudgetPlan) -> Sequence[Section]:
        """The question with its numbers, ranges and costs, then what else is known."""
        return sections(plan, self.outputs)

    def picture(self, plan: BudgetPlan) -> LifePicture:
        """Cost against size, pools, equal loss and equal cost."""
        from planner.token_costs import picture as pictures

        answer, question, point = plan.answer, plan.question, pictures.plotted_point(plan.answer)
        tasks = [t for t in resolve_budget(question).tasks if t.sparsity == point.sparsity]
        best = token_optimum.select_best(token_optimum.solve_many(tasks)) if tasks else None
        if not isinstance(best, token_optimum.BudgetOptimum):
            raise InputError(pictures.NO_CURVE)
        curve = pictures.cut_curve(pictures.cost_curve(best.task, point))
        return pictures.LifePicture(
            point, best.task.law, curve, answer.band, answer.heuristic, question.data.unique,
            rewarded=question.rl.reward is not None,
        )  # fmt: skip

    def listed(self, question: BudgetScenario, path: str) -> ListedRange:
        """Listed rents, and the MFU of published runs."""
        return listed_of_phases(question.phases, path)


PROBLEM = Budget()
