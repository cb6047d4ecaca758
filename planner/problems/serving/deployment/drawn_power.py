"""Where the power of a plan's chips comes from, and how far off measured power may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from planner.catalogue.profile import Band
    from planner.problems.serving.point import ServingPoint
    from planner.problems.serving.task.task import Task


def power_from(tasks: Sequence[Task]) -> str | None:
    """As `power_from` of a point; of two kinds of chips the less sure, None where it is unknown."""
    if any(task.power is None for task in tasks):
        return None
    draws = [task.draw for task in tasks if task.draw is not None]
    if len(draws) < len(tasks):
        return "given"
    if tasks[0].uses_bound:
        return "least"
    return "measured" if all(draw.measured for draw in draws) else "shared"


def drawn_bands(
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
    """What the objective counts of a chip that draws so much: J/s, or USD/s."""
    if task.objective == "energy":
        return watts
    if task.draw is None or task.uses_bound or not task.power:
        return task.price
    return task.price + task.electricity * (watts / task.power - 1)


def drawn_in_use(task: Task, watts: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Power of a chip that is in use, of a mean over all of which a share is `used` [J/s]."""
    if task.draw is None or task.uses_bound:
        return watts
    idle = task.draw.idle * task.site
    return idle + (watts - idle) / used
