"""Training layouts as a problem kind: outputs, parameters, search, slopes, days against dollars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from planner.problems.training.answer import answer, missed_promises, rated_layout, resolve_task
from planner.problems.training.outputs import OUTPUTS, parameters, slopes_of_layout, training_point
from planner.problems.training.plan import TrainingPlan
from planner.problems.training.presentation import head, sections
from planner.problems.training.question import TrainingLimits, TrainingQuestion
from planner.problems.training.resolve import resolve_training
from planner.problems.training.search import FAST_OUTPUTS, chip_counts, search_layouts
from planner.problems.training.step.step_times import step_times, usable
from planner.problems.training.step.training_task import LayoutTable
from planner.problems.training.worth import ChipCount
from planner.protocol.document import to_document
from planner.protocol.output import output_values
from planner.protocol.plan import Provenance
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.trade_off import DEFAULT_POINTS, ParetoFrontier
from planner.scenario import resolve_keys
from planner.scenario.keys.training_fields import DAY
from planner.text.errors import FieldError
from planner.text.tolerances import REL_TOL


@dataclass(frozen=True)
class Front:
    """Pareto front in days and USD, shape (n,), of the layouts seen; the fastest first."""

    days: np.ndarray = field(default_factory=lambda: np.empty(0))
    usd: np.ndarray = field(default_factory=lambda: np.empty(0))
    layouts: tuple[tuple[ChipCount, LayoutTable], ...] = ()

    def with_chunk(self, chips: ChipCount, chunk: LayoutTable) -> Front:
        """The front of these and the layouts of a chunk that fit into memory."""
        case = chips.case
        times = step_times(case.task, chunk, FAST_OUTPUTS)
        step, used = (np.broadcast_to(np.asarray(x), chunk.shape) for x in (times.step, times.used))
        places = np.flatnonzero(used <= usable(case.task))
        again = np.asarray(case.forward_again)[np.asarray(chunk.recompute)]
        worth = chips.worth(
            step.ravel()[places], np.broadcast_to(again, chunk.shape).ravel()[places]
        )
        days, usd = np.asarray(worth["T_run"]) / DAY, np.asarray(worth["K_run"])
        chosen = nondominated_points(days, usd)
        layouts = [*self.layouts, *((chips, chunk.at(int(places[i]))) for i in chosen)]
        both = np.concatenate([self.days, days[chosen]]), np.concatenate([self.usd, usd[chosen]])
        order = nondominated_points(*both)
        return Front(both[0][order], both[1][order], tuple(layouts[i] for i in order))


def nondominated_points(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Places of the points (n,) that no other betters in both, by rising `first`."""
    order = np.lexsort((second, first))
    least = np.minimum.accumulate(np.concatenate([[np.inf], second[order]]))[:-1]
    return order[second[order] < least * (1 - REL_TOL)]


def _row(chips: ChipCount, layout: LayoutTable) -> dict[str, Any]:
    rated = rated_layout(chips, layout)
    values = output_values(OUTPUTS, training_point(rated))
    return {**values, "choice": f"{chips.paid} chips: {rated.choice}"}


class Training(Problem[TrainingQuestion, TrainingPlan]):
    """The layout of least time, cost or energy."""

    kind = "training"
    version = 1
    plan_type = TrainingPlan
    outputs = OUTPUTS
    slow = True
    most_lines = 30  # its table of one step is the answer
    parameters = staticmethod(parameters)
    answer = staticmethod(answer)
    head = staticmethod(head)
    sections = staticmethod(sections)

    def check(self, question: TrainingQuestion) -> None:
        """Validate the look-ups and choices of a question; raises FieldError."""
        resolve_task(question)

    def search(
        self, question: TrainingQuestion, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """The best layout of all, nothing proved."""
        tally = search_layouts(resolve_training(question))
        considered = {"layouts_seen": tally.seen, "layouts_fitting": tally.fitting}
        ranked = tally.ranked(1)
        if not ranked:
            missed = partial(missed_promises, question, tally)
            return replace(NO_PLAN, considered=considered, missed=missed)
        best = ranked[0]
        plan = training_point(best)
        words = best.words
        holds = [f"choose.{key}={str(value).lower()}" for key, value in words.items()]
        if plan.chips != max(question.chips) or len([*question.chips]) > 1:
            holds.append(f"chips={plan.chips}")
        return Search(
            output_values(self.outputs, plan), best.choice, best.score, plan, holds=tuple(holds),
            considered=considered, gap=0.0,
        )  # fmt: skip

    def slopes(self, question: TrainingQuestion, output: str) -> Mapping[str, tuple[float, float]]:
        """Slopes of the equations, the layout held."""
        ranked = search_layouts(resolve_training(question)).ranked(1)
        return slopes_of_layout(question, ranked[0], output) if ranked else {}

    def frontier(self, question: TrainingQuestion, points: int | None) -> ParetoFrontier:
        """The layouts that no other betters in both days and dollars, the fastest first.

        Every layout that fits is compared, of every number of chips asked about; limits of the run
        are left aside, as they are traded. At most `points` are listed, spread evenly.

        Raises FieldError without the tokens of a run.
        """
        if question.work.tokens is None:
            raise FieldError(("work.tokens", "days and dollars of a run need its tokens"))
        free = question.model_copy(update={"limits": TrainingLimits()})
        resolution = resolve_training(free)
        front = Front()
        for chips, blocks in chip_counts(resolution):
            for block in blocks:
                for chunk in block.chunks():
                    front = front.with_chunk(chips, chunk)
        rows = [_row(chips, layout) for chips, layout in front.layouts]
        most = DEFAULT_POINTS if points is None else points
        if len(rows) > most:
            rows = [rows[i] for i in np.linspace(0, len(rows) - 1, most).round().astype(int)]
        days, usd = (next(x for x in OUTPUTS if x.name == name) for name in ("days", "usd"))
        shown = [x for x in OUTPUTS if x.applies is None or x in (days, usd)]
        provenance = to_document(Provenance(data=resolution.data, warnings=resolution.warnings))
        missed = None if rows else missed_promises(free, search_layouts(resolution))
        return ParetoFrontier(
            question.problem, shown, days, usd, resolve_keys(question), provenance, rows, missed,
            warnings=resolution.warnings,
        )  # fmt: skip


PROBLEM = Training()
