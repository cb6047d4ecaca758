"""A model's whole life as a problem kind: outputs, parameters, search, and abilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.ranges import ListedRange, rent_range
from planner.problems.lifecycle.answer import answer
from planner.problems.lifecycle.comparisons import optimum_point
from planner.problems.lifecycle.elasticities import lifecycle_rows, parameters
from planner.problems.lifecycle.plan import LifecyclePlan
from planner.problems.lifecycle.presentation import head, sections
from planner.problems.lifecycle.resolve import resolve_life
from planner.problems.lifecycle.search.best_size import cheapest_life
from planner.protocol.document import to_document
from planner.protocol.output import Output, output_values
from planner.protocol.parameter import Parameter
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.section import Section
from planner.scenario.keys.system_keys import resolved_system
from planner.token_costs.optimum import extrapolation_warnings
from planner.token_costs.outputs import OUTPUTS, at_limit, formula
from planner.token_costs.parameters import scenario_rows
from planner.token_costs.phase_costs import listed_of_phases
from planner.token_costs.presentation import COLUMNS

if TYPE_CHECKING:
    from planner.problems.lifecycle.question import LifecycleScenario
    from planner.token_costs.picture import LifePicture

_COST = Output(
    "cost.total.usd", "USD", ("cost", "cost.total"), equation=formula("served_life_cost")
)
_FLOP = Output("cost.total.flop", "flop", equation=formula("done_arithmetic"))
_SERVED = Output("cost.inference.usd", "USD", equation=formula("served_life_cost", "D_pt", "D_rl"))
_PRICE = Output("usd_per_mtok", "USD per million tokens", ("price",))


class Lifecycle(Problem["LifecycleScenario", LifecyclePlan]):
    """The model whose whole life costs least at the quality asked for."""

    kind = "lifecycle"
    version = 1
    plan_type = LifecyclePlan
    columns = COLUMNS
    slow = True
    outputs = (_COST, _FLOP, OUTPUTS[3], _SERVED, *OUTPUTS[5:], _PRICE)
    varied = staticmethod(at_limit)
    answer = staticmethod(answer)
    head = staticmethod(head)
    elasticities = staticmethod(lifecycle_rows)

    def parameters(self, question: LifecycleScenario) -> list[Parameter]:
        """Parameters of a scenario, each varied as by `--set`; empty if no life is feasible."""
        best = cheapest_life(resolve_life(question))
        return [] if best is None else scenario_rows(question, parameters(best))

    def check(self, question: LifecycleScenario) -> None:
        """Refuse unknown names; if extrapolation is forbidden, search to check the law's range."""
        if question.extrapolate is False:
            self.search(question)
        else:
            resolve_life(question)

    def search(
        self, question: LifecycleScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best size over all sparsities, its serving layout among all layouts."""
        best = cheapest_life(resolve_life(question))
        if best is None:
            return replace(NO_PLAN, missed=lambda: answer(question).infeasible)
        extrapolation_warnings(best.outside, question.extrapolate)
        plan = to_document(optimum_point(best))
        choice = f"sparsity {plan['sparsity']:g}, {best.served.candidate.choice.words}"
        return Search(output_values(self.outputs, plan), choice, best.whole.total, plan)

    def sections(self, plan: LifecyclePlan) -> Sequence[Section]:
        """The question with its numbers, sizes at the same quality, then what else is known."""
        return sections(plan, self.outputs)

    def picture(self, plan: LifecyclePlan) -> LifePicture:
        """Picture as for a budget, with the sizes tried by the serving planner."""
        from planner.token_costs.picture import CostCurve, LifePicture, cut_curve, plotted_point

        answer, question, point = plan.answer, plan.question, plotted_point(plan.answer)
        rows = [(row.n_active, row.pretrain, row.training_usd, row.serving_usd)
                for row in answer.curve or ()]  # fmt: skip
        evaluated = ((row.n_active, row.serving_usd) for row in answer.evaluated or ())
        return LifePicture(
            point, resolve_life(question).law,
            cut_curve(CostCurve(*np.array(rows).reshape(-1, 4).T)),
            answer.band, answer.heuristic, question.data.unique,
            rewarded=question.rl.reward is not None,
            evaluated=tuple((size, usd) for size, usd in evaluated if usd),
        )  # fmt: skip

    def listed(self, question: LifecycleScenario, path: str) -> ListedRange:
        """Listed rents of training and of serving, and the MFU of published runs."""
        if path != "serving.price":
            return listed_of_phases(question.phases, path)
        choice = question.serving.system
        systems = choice if isinstance(choice, tuple) else (choice,)
        return rent_range(tuple(map(resolved_system, systems)), path)


PROBLEM = Lifecycle()
