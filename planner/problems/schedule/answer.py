"""The answer to a schedule: closed form, exact distribution and event simulation side by side."""

import math
from collections.abc import Mapping

from planner.problems.schedule import plan as records
from planner.problems.schedule.bulk_queue import (
    SimulatedTimes,
    left_behind,
    root_sum,
    seated_times,
    simulated_intervals,
)
from planner.problems.schedule.question import ScheduleScenario
from planner.protocol.plan import BindingLimit, MissedPromise, Provenance
from planner.scenario import resolved
from planner.scenario.keys.uncertain import LEFT_ASIDE
from planner.text.errors import SolverError
from planner.text.tolerances import AGREE

METHOD = (
    "mean from the inner roots of z^K = exp(rho K (z - 1)), values of Lambert's W; beside it the "
    "sum over the distribution by a discrete Fourier transform, and a simulation of every request"
)
CANCELLED = 1e-9  # of the seats: a shorter queue is a difference of numbers as large as they
PERCENTS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def symbol_values(question: ScheduleScenario) -> dict[str, float]:
    """Values of the equations' symbols, without a queue where seats are without end."""
    values = {"T_step": question.interval, "one_seq": 1.0}
    if question.arrivals is None or math.isinf(question.capacity):
        return values
    seats, load = int(question.capacity), question.load
    return values | {
        "lam_arr": question.arrivals,
        "K_seats": float(seats),
        "rho_seat": load,
        "S_root": root_sum(seats, load),
    }


def outputs_at(question: ScheduleScenario) -> dict[str, float]:
    """Load, mean queue and mean time by their equations [base units]."""
    from formulas.economics import schedule as equations

    values = symbol_values(question)
    if "S_root" not in values:
        mean = float(equations.mean_wait.numpy()(T_step=question.interval))
        return {"load": question.load, "queue": 0.0, "mean": mean}
    queue = float(equations.left_behind.numpy()(**_values(equations.left_behind, values)))
    # Where hardly anybody is left behind the two terms cancel.
    if queue < CANCELLED * question.capacity:
        queue = left_behind(int(question.capacity), question.load)
    values["Q_left"] = queue
    mean = float(equations.mean_time_seated.numpy()(**_values(equations.mean_time_seated, values)))
    return {"load": question.load, "queue": queue, "mean": mean}


def _values(equation: object, values: Mapping[str, float]) -> dict[str, float]:
    """The values that an equation takes."""
    names = {symbol.name for symbol in equation.rhs.free_symbols}  # type: ignore[attr-defined]
    return {name: value for name, value in values.items() if name in names}


def point_of(question: ScheduleScenario, outputs: Mapping[str, float]) -> records.DepartingBatches:
    """The plan: every number in base units.

    Raises SolverError where closed form and distribution differ.
    """
    interval, seats, load = question.interval, question.capacity, question.load
    unlimited = math.isinf(seats)
    times = None if unlimited else seated_times(int(seats), load)
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
    return records.DepartingBatches(
        load=load,
        mean=outputs["mean"],
        over_interval=outputs["mean"] / interval,
        worst=2 * interval if unlimited else None,
        exact=exact,
        quantiles=records.TimeQuantiles(**quantiles) if quantiles else None,
        queue=outputs["queue"],
        left_out=0.0 if unlimited else times.left_out if times else None,
        simulation=_simulated(question, outputs["mean"]),
    )


def _simulated(question: ScheduleScenario, mean: float) -> SimulatedTimes | None:
    """The event simulation, None where none is asked for or nobody comes in its time."""
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
    """What is missed where more arrive than depart; empty where the queue is stable."""
    if question.load < 1:
        return ()
    words = f"{question.load:.3g} requests arrive for each seat: the queue grows without end"
    return (MissedPromise("capacity", question.load, words),)


def answer(question: ScheduleScenario, elasticities: Mapping[str, float]) -> records.ScheduleAnswer:
    """The whole answer; `elasticities` are those of the mean by path."""
    missed = shortfall(question)
    outputs = {} if missed else outputs_at(question)
    point = None if missed else point_of(question, outputs)
    difference = None
    if point is not None and point.exact is not None:
        difference = abs(point.exact / point.mean - 1)
    binds = {"capacity", "arrivals"} & elasticities.keys() if point and point.queue else set()
    warnings: tuple[str, ...] = (LEFT_ASIDE,) if question.uncertain is not None else ()
    if point is not None and point.quantiles is None:
        warnings += ("so long a queue has too many states: no quantiles, the mean stands",)
    if point is not None and question.arrivals and question.draws and point.simulation is None:
        warnings += ("so few come that none came in the time of the simulation: it is left out",)
    return records.ScheduleAnswer(
        gap=0.0 if point else None,
        scenario=resolved(question),
        plan=point,
        bound=records.ScheduleBound(1.5 * question.interval),
        certificate=records.ScheduleCertificate(
            METHOD, None if point is None else point.mean, difference
        ),
        binding=tuple(BindingLimit(name, elasticities[name]) for name in sorted(binds)),
        elasticities=elasticities,
        infeasible=missed or None,
        provenance=Provenance(warnings=warnings),
    )
