"""The answer to a schedule, typed: load, times, queue; the simulation beside the closed form."""

from dataclasses import dataclass
from typing import Annotated

from planner.problems.schedule.bulk_queue import SimulatedTimes
from planner.protocol.document import Second, Share, Unit
from planner.protocol.plan import Answer, Plan

Sequences = Annotated[float, Unit("seq")]


@dataclass(frozen=True)
class TimeQuantiles:
    """Times from arrival to the end of the ride that so many percent do not exceed."""

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
    """How far the closed form is from the sum over the distribution, relative."""

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
