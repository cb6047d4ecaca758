"""Serving as a problem kind: its outputs, its parameters, its search, and its abilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from planner.catalogue.ranges import ListedRange, rent_range
from planner.problems.serving.make_or_buy import offers
from planner.problems.serving.outputs import OUTPUTS, PROMISE_OUTPUTS
from planner.problems.serving.parameters import BATCHES, INTEGER_PATHS, is_array
from planner.problems.serving.plan import ServingPlan
from planner.problems.serving.plan_sections import COLUMNS, plan_row
from planner.problems.serving.profiled import coefficient, with_profile_values
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.task.resolve import resolve
from planner.protocol import problem
from planner.protocol.live_page import LivePage
from planner.protocol.output import output_values
from planner.protocol.parameter import Parameter, lookup_value
from planner.protocol.section import AnswerHead, Section
from planner.text.tolerances import REL_TOL

if TYPE_CHECKING:
    import numpy as np

    from planner.problems.serving.choice import Choice
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.frontier import Frontier
    from planner.problems.serving.deployment.questions import Question
    from planner.problems.serving.deployment.scored_points import PlanPoint
    from planner.problems.serving.make_or_buy.comparison_text import CostRatioChart
    from planner.problems.serving.point import ServingPoint
    from planner.problems.serving.question import Scenario
    from planner.protocol.elasticity import Elasticity
    from planner.report.pictures.section_bars import SectionBars


# Modules for search and answers are imported on use: checking a scenario needs neither.
class ServingProblem(problem.Problem["Scenario", ServingPlan]):
    """The cheapest, fastest or thriftiest layouts and batches that keep the promises."""

    kind = "serving"
    version = 2
    plan_type = ServingPlan
    columns = COLUMNS
    more_columns = offers.COLUMNS
    whole, batches = INTEGER_PATHS, BATCHES
    outputs, limited = OUTPUTS, PROMISE_OUTPUTS

    def parameters(self, question: Scenario) -> list[Parameter]:
        """Every parameter of a scenario, its catalogues' figures among them."""
        from planner.problems.serving.slopes.serving import all_parameters

        return all_parameters(question)

    def check(self, question: Scenario) -> None:
        """Raise InputError if a lookup fails, or FieldError if pinned values admit no layout."""
        from planner.problems.serving.answer import serving_tasks

        _, tasks = serving_tasks(question)
        for task in (*tasks.tasks, *(task for pair in tasks.pools for task in pair.tasks)):
            admissible_layouts(task)

    def search(
        self, question: Scenario, coefficients: Mapping[str, float] | None = None
    ) -> problem.Search:
        """Best layouts and batches, without a proof of optimality."""
        return self.search_many([question], [coefficients or {}])[0]

    def search_many(
        self,
        questions: Sequence[Scenario],
        coefficients: Sequence[Mapping[str, float]] | None = None,
    ) -> list[problem.Search]:
        """`search` of several questions; layouts of similar questions are evaluated together."""
        from planner.problems.serving.deployment.questions import all_searches_batched

        values = coefficients if coefficients is not None else [{}] * len(questions)
        pairs = zip(questions, values, strict=True)
        searched = all_searches_batched(
            [with_profile_values(resolve(q), profile) for q, profile in pairs]
        )
        return [self._best(*pair) for pair in zip(questions, searched, strict=True)]

    def _best(self, question: Scenario, searched: Sequence[Question]) -> problem.Search:
        """The best point of a question whose pools were searched."""
        from planner.problems.serving.advice.current_layout import price_lower_bound
        from planner.problems.serving.deployment.missed_promises import missed_promises
        from planner.problems.serving.deployment.pool import Lazy
        from planner.problems.serving.deployment.questions import best_plans
        from planner.problems.serving.deployment.scored_points import tie_gap

        _, points = best_plans([*searched])
        if not points:
            return replace(problem.NO_PLAN, missed=lambda: missed_promises(searched))
        best = points[0].candidate
        choice, plan = best.choice, cache(best.plan)
        return problem.Search(
            Lazy(lambda: output_values(self.outputs, plan())),
            choice.words,
            points[0].score,
            counts=choice.counts,
            ties=_ties(choice, points),
            holds=choice.holds(question),
            gap=tie_gap(searched, points[0].score),
            row=lambda: {
                **plan_row(best, plan(), price_lower_bound(question)),
                **_bought(question, best, plan()),
            },
        )

    def answer(self, question: Scenario) -> ServingPlan:
        """The plan with its certificate, its rivals and its provenance."""
        from planner.problems.serving.answer import answer

        return answer(question)

    def sections(self, plan: ServingPlan) -> Sequence[Section]:
        """The question with its numbers, one step, the memory of a chip, the next best plans."""
        from planner.problems.serving.plan_sections import sections

        return sections(plan)

    def head(self, plan: ServingPlan) -> AnswerHead:
        """Layout, bill, promises, a smaller fleet, certainty, the limit."""
        from planner.problems.serving.head import head

        return head(plan.answer)

    def value(self, question: Scenario, path: str) -> float | None:
        """Value of a scenario, or of its catalogue data, at a path; None if absent."""
        value = lookup_value(question, path)
        if isinstance(value, int | float) and value > 0:
            return float(value)
        return {row.path: row.value for row in self.parameters(question)}.get(path)

    def elasticities(self, question: Scenario, output: str) -> list[Elasticity]:
        """Slopes of the equations along every parameter, layouts held."""
        from planner.problems.serving.slopes.serving import serving_rows

        return serving_rows(question, output)

    def is_array(self, path: str) -> bool:
        """True if a path is a single number in the equations."""
        return is_array(path)

    def array_model(
        self, question: Scenario, ends: Mapping[str, np.ndarray]
    ) -> problem.ArrayModel | None:
        """The model of one layout and one batch; None if there is a choice."""
        if question.buy is not None:
            return None  # hosts are compared point by point
        choose, load = question.choose, question.workload
        fixed = choose.batch is not None or load.concurrency is not None
        if load.arrivals is not None or not (fixed or tuple(choose.mode or ()) == ("prefill",)):
            return None  # no model without a fixed batch: return before the equations load
        from planner.problems.serving.arrays import build_vectorized_model

        return build_vectorized_model(question, ends)

    def coefficient(self, question: Scenario, path: str) -> problem.UncertainCoefficient | None:
        """The coefficient of the profile that a path names."""
        return coefficient(question, path)

    def listed(self, question: Scenario, path: str) -> ListedRange:
        """The listed rents of the system."""
        return rent_range(question.systems() if path in ("price", "system.price") else (), path)

    def picture(self, plan: ServingPlan) -> CostRatioChart | SectionBars:
        """Chart of cost ratios by demand and rent if hosts are compared; else bars of the plan."""
        from planner.problems.serving.make_or_buy.comparison_text import CostRatioChart, buy_answer
        from planner.report.pictures.section_bars import SectionBars

        buy = buy_answer(plan.answer)
        return CostRatioChart(buy) if buy else SectionBars(plan)

    def live_page(self, question: Scenario, plan: ServingPlan) -> LivePage:
        """The search as a page carries it, or why it does not."""
        from planner.problems.serving.live.page_model import PageModel

        return PageModel(question, resolve(question), plan).page()

    def frontier(self, question: Scenario, points: int | None) -> Frontier:
        """The cheapest plan at each speed, with the listed tiers among them."""
        from planner.problems.serving.deployment.frontier import DEFAULT_POINTS, frontier

        return frontier(question, DEFAULT_POINTS if points is None else points)


def _bought(question: Scenario, best: Candidate, plan: ServingPoint) -> dict[str, object]:
    if question.buy is None:
        return {}
    from planner.problems.serving.make_or_buy.comparison import make_or_buy_row
    from planner.problems.serving.make_or_buy.host_prices import host_list

    return {**make_or_buy_row(question, best, plan, host_list(question))}


def _ties(best: Choice, points: Sequence[PlanPoint]) -> tuple[tuple[str, problem.Counts], ...]:
    close = (point for point in points[1:] if point.score <= points[0].score * (1 + REL_TOL))
    choices = [best, *(point.candidate.choice for point in close)]
    return tuple((choice.words, choice.counts) for choice in choices)


PROBLEM = ServingProblem()
