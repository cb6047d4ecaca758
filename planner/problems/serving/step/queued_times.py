"""The outputs of a step with the waits of a load, a closed loop or a static batch in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from planner.problems.serving.step.engine_effects import gathered_first_token, loop_tails
from planner.problems.serving.step.kernels import feed, get_kernel
from planner.problems.serving.step.occupancy import TAILS, queue

if TYPE_CHECKING:
    from planner.problems.serving.step.step import Step

Symbols: TypeAlias = Mapping[str, float | np.ndarray]  # values by the names of the equations


def queued_times(
    step: Step, symbols: Symbols, values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The outputs with the waits of a load, or of a closed loop or a static batch."""
    task = step.task
    if step.crowds:
        values = {**values, "crowded": step.crowding(values)[1]}
    if task.load != "none":
        return {**values, **_waiting(step, symbols, values)}
    first = gathered_first_token(task, symbols, values, step.prompts_gather)
    if first is not values["first"]:
        values = {**values, **_late(step, symbols, values, first, 0.0)}
    looped = step.prompts_gather and not task.static
    # Without a queue, every quantile of the time to first token equals the mean.
    tails = dict.fromkeys(TAILS, values["ttft"])
    return {**values, **tails, **(loop_tails(task, symbols, values) if looped else {})}


def _waiting(
    step: Step, symbols: Symbols, values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Waits of open arrivals [s], and the times with them. The bound knows no queue."""
    if step.bound or step.task.mode == "decode":
        late = dict.fromkeys(("readers", "wait"), np.zeros_like(values["slot"]))
        return {**late, **dict.fromkeys(TAILS, values["ttft"])}
    late = queue({
        **symbols, "T_pf_busy": values["busy"], "T_dec": values["step"],
        "x_load": values["arrivals"],
    })  # fmt: skip
    first = values["first"]
    waits = np.stack([late[tail] for tail in TAILS])
    latest = np.asarray(get_kernel("first_token_tails")(T_ttft=first, T_tail=waits)["T_first"])
    tails = dict(zip(TAILS, latest, strict=True))
    return {**late, **_late(step, symbols, values, first, late["wait"]), **tails}


def _late(
    step: Step,
    symbols: Symbols,
    values: Mapping[str, np.ndarray],
    first: np.ndarray,
    wait: np.ndarray | float,
) -> dict[str, np.ndarray]:
    """Outputs derived from the time to prefill a prompt and the wait before it [s]."""
    every = {
        **symbols, "T_ttft": first, "T_wait": wait, "T_tpot": values["tpot"],
        "X_seq": values["requests"],
    }  # fmt: skip
    return feed(get_kernel("waiting", step.model.mode), every)
