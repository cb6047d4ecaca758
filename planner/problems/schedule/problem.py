"""Departing batches as a problem kind: closed form, exact distribution, simulation side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from planner.problems.schedule.bulk_queue import (
    SimulatedTimes,
    mean_queue_after_service,
    root_sum,
    simulated_intervals,
    sojourn_time_distribution,
)
from planner.problems.schedule.question import ScheduleScenario
from planner.protocol.document import Second, Share, Unit
from planner.protocol.output import Output
from planner.protocol.parameter import Parameter, settable
from planner.protocol.plan import Answer, BindingLimit, KnownAnswer, MissedPromise, Plan, Provenance
from planner.protocol.problem import NO_PLAN, Problem, Search
from planner.protocol.section import BROKEN, AnswerHead, Line, Section
from planner.scenario import resolve_keys
from planner.scenario.keys.uncertain import IGNORED_NOTE
from planner.text.errors import InputError, SolverError
from planner.text.tolerances import AGREE
from planner.text.wording import percent, quantity

if TYPE_CHECKING:
    import sympy as sp

    from planner.report.pictures.value_rows import ValueRows


Sequences = Annotated[float, Unit("seq")]


@dataclass(frozen=True)
class TimeQuantiles:
    """Quantiles of the sojourn time, from arrival to the end of service."""

    p50: Second
    p95: Second
    p99: Second


@dataclass(frozen=True)
class DepartingBatches:
    """Times from arrival to the end of the ride, and who waits for a seat.

    `mean` is the closed form, `exact` the same summed over the distribution of the queue; `worst`
    is null where no time is the longest, `exact` and `quantiles` where the distribution has too
    many states to be summed. `over_interval` is the mean in intervals.
    """

    load: Share
    mean: Second
    over_interval: Share
    worst: Second | None
    exact: Second | None
    quantiles: TimeQuantiles | None
    queue: Sequences
    left_out: Share | None
    simulation: SimulatedTimes | None


@dataclass(frozen=True)
class ScheduleBound:
    """The mean time with seats without end, which no capacity goes below."""

    mean: Second


@dataclass(frozen=True)
class ScheduleCertificate:
    """Relative difference between the closed form and the sum over the distribution."""

    method: str
    objective: float | None
    difference: Share | None


@dataclass(frozen=True, kw_only=True)
class ScheduleAnswer(Answer):
    """The whole answer to a schedule."""

    problem: str = "schedule"
    plan: DepartingBatches | None = None
    bound: ScheduleBound | None = None
    certificate: ScheduleCertificate


class SchedulePlan(Plan[ScheduleAnswer]):
    """The answer to a schedule of departing batches."""

    kind = "schedule"
    cost_of = "mean"  # mean time from arrival to the end of the ride [s]
    answer_type = ScheduleAnswer


METHOD = (
    "mean from the inner roots of z^K = exp(rho K (z - 1)), values of Lambert's W; beside it the "
    "sum over the distribution by a discrete Fourier transform, and a simulation of every request"
)
# Queue over capacity below which the closed form loses its digits to cancellation.
CANCELLATION_TOLERANCE = 1e-9
PERCENTS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def evaluate_outputs(question: ScheduleScenario) -> dict[str, float]:
    """Load, mean queue and mean time by their equations [base units]."""
    from formulas.economics import schedule as equations

    values, load = {"T_step": question.interval, "one_seq": 1.0}, question.load
    if question.arrivals is None or math.isinf(question.capacity):  # seats without end: no queue
        return {"load": load, "queue": 0.0, "mean": equations.mean_wait.numpy().at(values)}
    seats = int(question.capacity)
    values |= {"lam_arr": question.arrivals, "K_seats": float(seats), "rho_seat": load}
    values["S_root"] = root_sum(seats, load)
    queue = equations.left_behind.numpy().at(values)
    # A short queue is the difference of two nearly equal terms: use Spitzer's identity.
    if queue < CANCELLATION_TOLERANCE * question.capacity:
        queue = mean_queue_after_service(seats, load)
    values["Q_left"] = queue
    return {"load": load, "queue": queue, "mean": equations.mean_time_seated.numpy().at(values)}


def batch_point(question: ScheduleScenario, outputs: Mapping[str, float]) -> DepartingBatches:
    """The plan: every number in base units.

    Raises SolverError where closed form and distribution differ.
    """
    interval, seats, load = question.interval, question.capacity, question.load
    unlimited = math.isinf(seats)
    times = None if unlimited else sojourn_time_distribution(int(seats), load)
    exact = outputs["mean"] if unlimited else times.mean * interval if times else None
    if exact and abs(exact / outputs["mean"] - 1) > AGREE:
        raise SolverError(
            f"the closed form gives {outputs['mean']:.6g} s, its distribution {exact:.6g} s"
        )
    quantiles = None
    if unlimited:
        quantiles = {name: (1 + share) * interval for name, share in PERCENTS.items()}
    elif times:
        quantiles = {name: times.quantile(p) * interval for name, p in PERCENTS.items()}
    return DepartingBatches(
        load=load,
        mean=outputs["mean"],
        over_interval=outputs["mean"] / interval,
        worst=2 * interval if unlimited else None,
        exact=exact,
        quantiles=TimeQuantiles(**quantiles) if quantiles else None,
        queue=outputs["queue"],
        left_out=0.0 if unlimited else times.left_out if times else None,
        simulation=_simulated(question, outputs["mean"]),
    )


def _simulated(question: ScheduleScenario, mean: float) -> SimulatedTimes | None:
    """Event simulation; None without `draws` or `arrivals`, or if no request departs."""
    if not question.draws or question.arrivals is None:
        return None
    interval = question.interval
    run = simulated_intervals(question.arrivals * interval, question.capacity, question.draws)
    if run is None:
        return None
    average, error, longest, requests = run
    off = average * interval / mean - 1
    return SimulatedTimes(average * interval, error * interval, longest * interval, requests, off)


def shortfall(question: ScheduleScenario) -> tuple[MissedPromise, ...]:
    """Missed capacity if the load is 1 or more; empty if the queue is stable."""
    if question.load < 1:
        return ()
    words = f"{question.load:.3g} requests arrive for each seat: the queue grows without end"
    return (MissedPromise("capacity", question.load, words),)


def answer(question: ScheduleScenario, elasticities: Mapping[str, float]) -> ScheduleAnswer:
    """The whole answer; `elasticities` are those of the mean by path."""
    missed = shortfall(question)
    outputs = {} if missed else evaluate_outputs(question)
    point = None if missed else batch_point(question, outputs)
    difference = None
    if point is not None and point.exact is not None:
        difference = abs(point.exact / point.mean - 1)
    binds = {"capacity", "arrivals"} & elasticities.keys() if point and point.queue else set()
    warnings: tuple[str, ...] = (IGNORED_NOTE,) if question.uncertain is not None else ()
    if point is not None and point.quantiles is None:
        warnings += ("so long a queue has too many states: no quantiles, the mean stands",)
    if point is not None and question.arrivals and question.draws and point.simulation is None:
        many = question.arrivals * question.interval > 1
        words = "many come that a simulation would hold too many at once"
        words = words if many else "few come that none came in the time of the simulation"
        warnings += (f"so {words}: it is left out",)
    return ScheduleAnswer(
        gap=0.0 if point else None,
        scenario=resolve_keys(question),
        plan=point,
        bound=ScheduleBound(1.5 * question.interval),
        certificate=ScheduleCertificate(METHOD, None if point is None else point.mean, difference),
        binding=tuple(BindingLimit(name, elasticities[name]) for name in sorted(binds)),
        elasticities=elasticities,
        infeasible=missed or None,
        provenance=Provenance(warnings=warnings),
    )


def _question_text(scenario: Mapping[str, object]) -> str:
    seats, interval, arrivals = (scenario[x] for x in ("capacity", "interval", "arrivals"))
    assert isinstance(interval, float)
    room = "unlimited seats" if seats == "forever" else f"{seats} seats"
    words = f"How long does a request take that boards a batch every {1e3 * interval:g} ms"
    return f"{words} with {room}{f', at {arrivals:g} requests/s' if arrivals else ''}?"


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


class ScheduleProblem(Problem[ScheduleScenario, SchedulePlan]):
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
        rows = (
            Parameter(path, self.value(question, path), unit, "schedule", whole=path == "capacity")
            for path, unit in UNITS.items()
        )
        return settable(question, rows)

    def search(
        self, question: ScheduleScenario, coefficients: Mapping[str, float] | None = None
    ) -> Search:
        """Load, queue and mean time by their closed forms; there is nothing to choose."""
        if missed := shortfall(question):
            return replace(NO_PLAN, missed=lambda: missed)
        outputs = evaluate_outputs(question)
        return Search(outputs, "closed form", outputs["mean"], outputs, gap=0.0)

    def answer(self, question: ScheduleScenario) -> SchedulePlan:
        """The plan with its exact distribution and its simulation."""
        slopes = {} if shortfall(question) else self._slopes(question)
        return SchedulePlan(KnownAnswer(answer(question, slopes)))

    def head(self, plan: SchedulePlan) -> AnswerHead:
        """Head: sojourn times, mean with unlimited seats, share that finds the next batch full."""
        scenario, point, bound = plan.scenario, plan.answer.plan, plan.answer.bound
        title = _question_text(scenario)
        if point is None or bound is None:
            missed = tuple(each.expression for each in plan.infeasible)
            return AnswerHead(f"{BROKEN} NO PLAN: {title}", limit=missed)
        tails = vars(point.quantiles).items() if point.quantiles else ()
        words = [f"{quantity(point.mean, 's')} on average"]
        words += [f"{name} {quantity(value, 's')}" for name, value in tails if name != "p50"]
        words += [f"at worst {quantity(point.worst, 's')}"] if point.worst is not None else []
        run = point.simulation
        simulated = "no simulation was asked for" if run is None else (
            f"a simulation of {run.requests:,} requests gives {quantity(run.mean, 's')}"
        )  # fmt: skip
        full = f"seats: {percent(point.left_out or 0.0, 3)} of requests find the next batch full"
        if point.left_out is None:
            full = f"seats: {quantity(point.queue, 'seq')} are left behind on average"
        endless = scenario["capacity"] == "forever"
        unlimited = f"unlimited seats: {quantity(bound.mean, 's')} on average"
        return AnswerHead(
            title,
            run=(", ".join(words),),
            against=() if endless else (unlimited,),
            promises=("none asked",),
            certainty=(f"exact; {simulated}",),
            limit=(full if point.queue and point.left_out != 0 else "no seat is ever missing",),
            next=("planner sweep FILE --over arrivals=LOW..HIGH --of mean --out sweep.csv",),
            labels={"run": "Wait", "against": "Instead"},
        )

    def sections(self, plan: SchedulePlan) -> Sequence[Section]:
        """Sections: the question, times in a row, simulation against the closed form."""
        point = plan.answer.plan
        title = _question_text(plan.scenario)
        if point is None:
            missed = (Line(each.promise, each.expression) for each in plan.infeasible)
            return (Section(title, tuple(missed)),)
        lines = [Line("mean", point.mean, "s", f"{point.over_interval:.4g} intervals, closed form")]
        if point.exact is not None:
            lines.append(Line("  exact", point.exact, "s", "summed over the queue's distribution"))
        if point.worst is not None:
            lines.append(Line("worst", point.worst, "s", "just after a departure"))
        if point.quantiles is not None:
            lines += [Line(name, value, "s") for name, value in vars(point.quantiles).items()]
        lines += [Line("load", percent(point.load, 3)), Line("left behind", point.queue, "seq")]
        if point.left_out:
            full = percent(point.left_out, 3)
            lines.append(Line("next batch full", full, "", "of requests that arrive"))
        times = {"mean": point.mean, **(vars(point.quantiles) if point.quantiles else {})}
        row = ("arrival to end of ride", *(quantity(value, "s") for value in times.values()))
        table = Section("", heads=("", *times), cells=(row,), shown=True)
        return (Section(title, tuple(lines)), table, *_simulation(point))

    def picture(self, plan: SchedulePlan) -> ValueRows:
        """Picture of the sojourn times: mean, quantiles, worst, and the simulated values."""
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
        return {
            row.path: slope
            for row in self.parameters(question)
            if (slope := self._slope(question, row)) is not None
        }

    def _slope(self, question: ScheduleScenario, row: Parameter) -> float | None:
        """Elasticity of the mean time to a parameter [-]; None beside one that has no answer."""
        value = row.value or 0.0
        step = 1.0 if row.whole else value * STEP
        ends = [value - step, value + step]
        means = []
        for end in ends:
            if not end:
                return None
            try:
                varied = self.varied(question, row.path, int(end) if row.whole else end)
            except InputError:  # beyond the largest value
                return None
            if shortfall(varied):
                return None
            means.append(evaluate_outputs(varied)["mean"])
        return math.log(means[1] / means[0]) / math.log(ends[1] / ends[0])


def _simulation(point: DepartingBatches) -> tuple[Section, ...]:
    run = point.simulation
    if run is None:
        return ()
    note = f"standard error {run.error:.2g} s; {percent(run.off)} off the closed form"
    lines = (Line("mean", run.mean, "s", note), Line("longest", run.worst, "s"))
    return (Section(f"event simulation of {run.requests:,} requests", lines),)


PROBLEM = ScheduleProblem()
