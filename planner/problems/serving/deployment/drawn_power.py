"""Source of the power figure of a plan's chips, cost of power, and error bands of power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.step.kernels import BILLING, FOLLOWS, LOAD_COUNTED

if TYPE_CHECKING:
    from planner.catalogue.profile import Band
    from planner.problems.serving.point import ServingPoint
    from planner.problems.serving.step.step import Step
    from planner.problems.serving.task.task import Task

# Outputs that depend on actual decode power, by objective and by source of the power.
COUNTS_POWER = {
    ("energy", LOAD_COUNTED): "joule_per_request",
    ("energy", BILLING): "joule_per_request",
    ("cost", BILLING): "usd_per_request",
}


def power_output(step: Step) -> str | None:
    """Output that scores plans, if it depends on the actual decode power; else None."""
    return COUNTS_POWER.get((step.task.objective, step.model.powered))


def power_source(tasks: Sequence[Task]) -> str | None:
    """As `power_from` of a point; of two kinds of chips the less sure, None where it is unknown."""
    if any(task.power is None for task in tasks):
        return None
    draws = [task.draw for task in tasks if task.draw is not None]
    if len(draws) < len(tasks):
        return "given"
    if tasks[0].uses_bound:
        return "least"
    return "measured" if all(draw.measured for draw in draws) else "shared"


def power_bands(
    tasks: Sequence[Task], plan: ServingPoint, time: Band
) -> dict[str, tuple[float, float]]:
    """Ranges of power, energy and carbon by the fields of a band; power that is given has none.

    Chip time and power are off independently of each other, so their logarithms add as squares.
    `time` is the range of chip time per token, as ratios.
    """
    watts, joules = plan.watts_per_chip, plan.joule_per_token
    if watts is None or joules is None:
        return {}

    def spent(low: float, high: float) -> dict[str, tuple[float, float]]:
        of = {"joule_per_token": joules, "grams_per_mtok": plan.grams_per_mtok}
        return {name: (x * low, x * high) for name, x in of.items() if x is not None}

    draws = [task.draw for task in tasks if task.draw is not None]
    if not draws:
        return spent(time.low, time.high)
    draw = max(draws, key=lambda law: law.high / law.low)
    most = max(watts, draw.rated * tasks[0].site)
    low = math.exp(-math.hypot(math.log(time.low), math.log(draw.low)))
    high = math.exp(math.hypot(math.log(time.high), math.log(draw.high)))
    return {"watts_per_chip": (watts * draw.low, min(watts * draw.high, most)), **spent(low, high)}


def chip_cost(task: Task, watts: np.ndarray | float) -> np.ndarray | float:
    """Cost of a chip with power draw `watts` in the objective: J/s, or USD/s."""
    if task.objective == "energy":
        return watts
    if task.draw is None or task.uses_bound or not task.power:
        return task.price
    return task.price + task.electricity * (watts / task.power - 1)


def cost_in_use(step: Step, rows: np.ndarray, watts: np.ndarray) -> np.ndarray:
    """Cost of a chip in use [J/s or USD/s], from mean `watts` over all chips of each layout."""
    task, values, layouts = step.task, step.take(rows).values(np.ones(rows.size)), step.layouts
    powered = step.model.powered
    if powered in FOLLOWS:
        idle = values["P_idle"] * values["x_site"]
        watts = (
            idle + (watts - idle) / (layouts.replicas * layouts.replica_chips / layouts.chips)[rows]
        )
    if task.objective == "energy":
        return watts
    if powered != BILLING:
        return np.asarray(values["p_chip"])
    return np.asarray(values["p_rent"] + values["p_joule"] * watts)
