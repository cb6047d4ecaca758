"""What may be varied in a training question, and what one percent of it does to a fixed layout."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from planner.problems.training.outputs import OUTPUTS, point_of
from planner.problems.training.question import TrainingQuestion
from planner.problems.training.resolve import TrainingCase, resolve_training
from planner.problems.training.search import RatedLayout
from planner.problems.training.step.step_times import step_times
from planner.problems.training.worth import ChipCount
from planner.protocol.output import values_in
from planner.protocol.parameter import Parameter, settable
from planner.text.errors import InputError

STEP = 1e-4  # of a parameter, in logarithms, to either side
OF_SYSTEM = ("memory", "memory_bandwidth", "scale_up", "scale_out")
UNITS = {
    "memory": "byte", "memory_bandwidth": "byte/s", "scale_up": "byte/s", "scale_out": "byte/s",
}  # fmt: skip


def parameters(question: TrainingQuestion) -> list[Parameter]:
    """Every number of a question, each varied as `--set` would vary it."""
    case = resolve_training(question).cases[0]
    return settable(question, _rows(question, case))


def _rows(question: TrainingQuestion, case: TrainingCase) -> Iterator[Parameter]:
    """The numbers that a question gives or a catalogue stands in for."""
    yield Parameter("price", case.price.value, "USD/(chip*s)", "prices")
    yield Parameter("power_price", question.power_price, "USD/J", "prices")
    yield Parameter("pue", question.pue, "1", "prices")
    yield Parameter("work.tokens", question.work.tokens, "token", "workload")
    for name, value in question.state:
        yield Parameter(f"state.{name}", value, "byte/param", "state")
    for name, value in question.reliability or ():
        yield Parameter(f"reliability.{name}", value, "s", "reliability")
    yield Parameter("limits.days", question.limits.days, "day", "limits")
    yield Parameter("limits.usd", question.limits.usd, "USD", "limits")
    if isinstance(question.system, tuple):
        return
    system = case.system
    peak = system.chip.peak(question.precision)
    yield Parameter(f"system.flops.{question.precision}", peak, "flop/s", "chip")
    for name in OF_SYSTEM if system.file is None else OF_SYSTEM[:2]:  # a file has its own links
        owner = system.chip if name == "memory_bandwidth" else system
        # What the driver reports is what a step may fill, and what a varied memory stands for.
        value = case.task.machine.memory if name == "memory" else getattr(owner, name)
        yield Parameter(f"system.{name}", value, UNITS[name], "chip")


def outputs_of_layout(question: TrainingQuestion, best: RatedLayout) -> Mapping[str, float]:
    """The outputs of a question when its chips run one layout; empty where it is refused."""
    try:
        cases = resolve_training(question).cases
    except InputError:
        return {}
    case = next(x for x in cases if x.system.name == best.chips.case.system.name)
    chips = ChipCount(question, case, best.chips.paid, best.chips.used)
    step = float(np.asarray(step_times(case.task, best.layout, ("step",)).step))
    rated = RatedLayout(chips, best.layout, math.nan, step, best.used)
    return values_in(OUTPUTS, point_of(rated))


def slopes_of_layout(
    question: TrainingQuestion, best: RatedLayout, output: str
) -> dict[str, tuple[float, float]]:
    """d ln output / d ln parameter to the left and to the right, the layout held, by path."""
    at = outputs_of_layout(question, best).get(output)
    slopes: dict[str, tuple[float, float]] = {}
    if not at:
        return slopes
    for row in parameters(question):
        sides = []
        for step in (-STEP, STEP):
            assert row.to is not None
            value = outputs_of_layout(row.to(math.exp(step)), best).get(output)
            sides.append(math.log(value / at) / step if value else math.nan)
        slopes[row.path] = (sides[0], sides[1])
    return slopes


def layout_slopes(question: TrainingQuestion, best: RatedLayout) -> dict[str, float]:
    """d ln objective / d ln parameter, the layout held; those that are zero left out."""
    objective = objective_of(question)
    slopes = slopes_of_layout(question, best, objective)
    return {
        path: right for path, (_, right) in slopes.items()
        if not math.isnan(right) and abs(right) > STEP / 10
    }  # fmt: skip


def objective_of(question: TrainingQuestion) -> str:
    """The name of the output that is made small."""
    return next(x.name for x in OUTPUTS if x.applies is not None and x.applies(question))
