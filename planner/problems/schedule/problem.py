"""Departing batches as a problem kind: outputs, parameters, search, sections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from planner.problems.schedule.answer import answer, outputs_at, shortfall
from planner.problems.schedule.plan import SchedulePlan
from planner.protocol.output import Output
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import KnownAnswer, Plan
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.section import Line, Section
from planner.text.wording import percent, quantity

if TYPE_CHECKING:
    import sympy as sp

    from planner.problems.schedule.plan import DepartingBatches
    from planner.problems.schedule.question import ScheduleScenario
    from planner.report.pictures.value_rows import ValueRows

UNITS = {"interval": "s", "arrivals": "seq/s", "capacity": "seq"}
STEP = 1e-4  # of a logarithm, for slopes of the closed form


def _expression(name: str, plan: Plan) -> sp.Expr | None:
    """The expression of an output; with seats without end the mean has its own, others none."""
    from formulas.economics import schedule as equations

    endless = plan.scenario["capacity"] == "forever"
    if endless:
        return equations.mean_wait.rhs if name == "mean" else None
    rows = {
        "mean": equations.mean_time_seated,
        "queue": equations.left_behind,
        "load": equations.seats_taken,
    }
    return rows[name].rhs


class ScheduleProblem(Problem["ScheduleScenario"]):
    """Times of requests that board departing batches."""

    kind = "schedule"
    version = 1
    plan_type = SchedulePlan
    outputs = (
        Output("mean", "s", ("cost", "latency", "time"), equation=partial(_expression, "mean")),
        Output("queue", "seq", equation=partial(_expression, "queue")),
        Output("load", "1", equation=partial(_expression, "load")),
    )

    def parameters(self, question: ScheduleScenario) -> list[Parameter]:
        """Interval, arrivals and seats, each varied as `--set` would."""
        values = {path: self.value(question, path) for path in UNITS}
        rows = (
            Parameter(path, values[path], unit, "schedule", whole=path == "capacity")
            for path, unit in UNITS.items()
            if values[path] is not None
        )
        return [row for each in rows if (row := settable(question, each)) is not None]

    def search(
        self, question: ScheduleScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """Load, queue and mean time by their closed forms; there is nothing to choose."""
        if missed := shortfall(question):
            return replace(NO_PLAN, missed=lambda: missed)
        outputs = outputs_at(question)
        return Search(outputs, "closed form", outputs["mean"], outputs, gap=0.0)

    def answer(self, question: ScheduleScenario) -> SchedulePlan:
        """The plan with its exact distribution and its simulation."""
        slopes = {} if shortfall(question) else self._slopes(question)
        return SchedulePlan(KnownAnswer(answer(question, slopes)))

    def sections(self, plan: Plan) -> Sequence[Section]:
        """The question, times in a row, the simulation beside the closed form."""
        assert isinstance(plan, SchedulePlan)
        scenario, point = plan.scenario, plan.answer.plan
        seats = scenario["capacity"]
        room = "as many as come" if seats == "forever" else f"{seats} seats"
        interval, arrivals = scenario["interval"], scenario["arrivals"]
        assert isinstance(interval, float)
        title = f"a batch departs every {1e3 * interval:g} ms with {room}"
        if arrivals:
            title += f", {arrivals:g} requests/s arrive"
        if point is None:
            missed = (Line(each.promise, each.expression) for each in plan.infeasible)
            return (Section(title, tuple(missed)),)
        return (Section(title, _times(point)), *_simulation(point))

    def picture(self, plan: Plan) -> ValueRows:
        """The mean, the quantiles and the worst of the times, the simulation beside them."""
        from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows

        head, *others = self.sections(plan)
        named = [(x.label.strip(), x) for x in head.lines if x.unit == "s"]
        named += [(f"{x.label}, simulated", x) for each in others for x in each.lines]
        rows = [
            ValueRow(label, float(x.value), float(x.value), quantity(x.value, "s"),
                     chosen=label == "mean")
            for label, x in named
            if isinstance(x.value, int | float)
        ]  # fmt: skip
        title = "from arrival to the end of the ride"
        return ValueRows(head.title, [ValuePanel(title, "s", rows)] if rows else [])

    def _slopes(self, question: ScheduleScenario) -> dict[str, float]:
        """d ln mean / d ln parameter; of seats between one less and one more."""
        return {
            row.path: slope
            for row in self.parameters(question)
            if (slope := self._slope(question, row)) is not None
        }

    def _slope(self, question: ScheduleScenario, row: Parameter) -> float | None:
        """The slope of one parameter, None where nothing stands beside it."""
        value = row.value or 0.0
        step = 1.0 if row.whole else value * STEP
        ends = [value - step, value + step]
        means = []
        for end in ends:
            if not end:
                return None
            varied = self.varied(question, row.path, int(end) if row.whole else end)
            if shortfall(varied):
                return None
            means.append(outputs_at(varied)["mean"])
        return math.log(means[1] / means[0]) / math.log(ends[1] / ends[0])


def _times(point: DepartingBatches) -> tuple[Line, ...]:
    """Every number of the plan."""
    lines = [Line("mean", point.mean, "s", f"{point.over_interval:.4g} intervals, closed form")]
    if point.exact is not None:
        lines.append(Line("  exact", point.exact, "s", "summed over the queue's distribution"))
    if point.worst is not None:
        lines.append(Line("worst", point.worst, "s", "just after a departure"))
    if point.quantiles is not None:
        lines += [Line(name, value, "s") for name, value in vars(point.quantiles).items()]
    lines += [Line("load", percent(point.load, 3)), Line("left behind", point.queue, "seq")]
    if point.left_out:
        lines.append(Line("find no seat", percent(point.left_out, 3), "", "in the next departure"))
    return tuple(lines)


def _simulation(point: DepartingBatches) -> tuple[Section, ...]:
    """The simulated mean with its error."""
    run = point.simulation
    if run is None:
        return ()
    note = f"standard error {run.error:.2g} s; {percent(run.off)} off the closed form"
    lines = (Line("mean", run.mean, "s", note), Line("longest", run.worst, "s"))
    return (Section(f"event simulation of {run.requests:,} requests", lines),)


PROBLEM = ScheduleProblem()
