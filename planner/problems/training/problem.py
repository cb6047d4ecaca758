"""Training layouts as a problem kind: outputs, parameters, search, slopes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.problems.training.answer import answer, missed_of
from planner.problems.training.outputs import OUTPUTS, point_of
from planner.problems.training.parameters import parameters, slopes_of_layout
from planner.problems.training.plan import TrainingPlan
from planner.problems.training.presentation import sections
from planner.problems.training.resolve import resolve_training
from planner.problems.training.search import search_layouts
from planner.protocol.output import values_in
from planner.protocol.parameter import Parameter
from planner.protocol.plan import Plan
from planner.protocol.problem import Problem, Search
from planner.protocol.section import Section

if TYPE_CHECKING:
    from planner.problems.training.question import TrainingQuestion
    from planner.protocol.trade_off import TradeOff


class Training(Problem["TrainingQuestion"]):
    """The layout of least time, cost or energy."""

    kind = "training"
    version = 1
    plan_type = TrainingPlan
    outputs = OUTPUTS
    slow = True

    def check(self, question: TrainingQuestion) -> None:
        """Refuse what cannot be looked up and choices that do not go together."""
        resolve_training(question)

    def parameters(self, question: TrainingQuestion) -> list[Parameter]:
        """What a scenario gives, each varied as `--set` would vary it."""
        return parameters(question)

    def search(
        self, question: TrainingQuestion, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best layout of all, nothing proved."""
        tally = search_layouts(resolve_training(question))
        considered = {"layouts_seen": tally.seen, "layouts_fitting": tally.fitting}
        ranked = tally.ranked(1)
        if not ranked:
            return Search(
                {}, "no plan", math.inf, considered=considered,
                missed=lambda: missed_of(question, tally),
            )  # fmt: skip
        best = ranked[0]
        plan = point_of(best)
        words = best.words
        holds = [f"choose.{key}={str(value).lower()}" for key, value in words.items()]
        if plan.chips != max(question.chips) or len([*question.chips]) > 1:
            holds.append(f"chips={plan.chips}")
        return Search(
            values_in(self.outputs, plan), best.choice, best.score, plan, holds=tuple(holds),
            considered=considered,
        )  # fmt: skip

    def answer(self, question: TrainingQuestion) -> TrainingPlan:
        """The plan with its certificate, its alternatives and its provenance."""
        return answer(question)

    def slopes(self, question: TrainingQuestion, output: str) -> Mapping[str, tuple[float, float]]:
        """Slopes of the equations, the layout held."""
        ranked = search_layouts(resolve_training(question)).ranked(1)
        return slopes_of_layout(question, ranked[0], output) if ranked else {}

    def frontier(self, question: TrainingQuestion, points: int | None) -> TradeOff:
        """Days against dollars."""
        from planner.problems.training.run_frontier import frontier

        return frontier(question, points)

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The layout with its numbers, memory and time of a step that add up."""
        assert isinstance(plan, TrainingPlan)
        return sections(plan)


PROBLEM = Training()
