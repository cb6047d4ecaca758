"""Paths of a serving scenario that are numbers of the equations: arrays may stand in their place.

Any other path (a system, a layout, a network) changes what is looked up, and is bound value by
value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from planner.catalogue.chips import MATH
from planner.problems.serving.task.requests import context, promised

if TYPE_CHECKING:
    import numpy as np

    from planner.problems.serving.task.task import Task
    from planner.scenario import Scenario

__all__ = ["BATCHES", "LENGTHS", "WHOLE", "is_dial", "turned"]

BATCHES = ("choose.batch", "workload.concurrency")
WHOLE = (*BATCHES, "choose.chunk")  # dials that are whole numbers
LENGTHS = {
    f"workload.{name}{end}": name
    for name in ("input_tokens", "output_tokens")
    for end in ("", ".mean")
}
RENTS = ("price", "system.price")
PROMISES = {f"promises.{name}": name for name in ("ttft", "tpot", "e2e", "tokens_per_s_per_user")}
CHIP = {f"system.{name}": name for name in ("memory", "memory_bandwidth")}
PEAKS = "system.flops."
PLAIN = {
    "workload.cached_input": "cached_input",
    "workload.routing_skew": "skew",
    "choose.chunk": "chunk",
}


def is_dial(name: str) -> bool:
    """Whether the path with this dotted name is one number of the equations."""
    known = (*BATCHES, *LENGTHS, *RENTS, *PROMISES, *CHIP, *PLAIN)
    return name in known or name.startswith(PEAKS)


def turned(task: Task, scenario: Scenario, values: Mapping[str, np.ndarray]) -> Task:
    """The task with arrays of shape (n,) in place of the numbers that the paths mean.

    `scenario` is one of the points, from which what is not varied is taken; batches are no part of
    a task.
    """
    changes: dict[str, Any] = {PLAIN[n]: v for n, v in values.items() if n in PLAIN}
    for name in RENTS:
        if name in values:
            changes["price"] = values[name] + task.electricity
    changes |= _lengths(task, scenario, values)
    made = {PROMISES[name]: value for name, value in values.items() if name in PROMISES}
    if made:
        promises = scenario.promises.model_copy(update=made)
        changes["promises"] = promised(task.mode, promises, pooled=False)
    chip: dict[str, Any] = {CHIP[name]: value for name, value in values.items() if name in CHIP}
    peaks = {MATH[n.removeprefix(PEAKS)]: v for n, v in values.items() if n.startswith(PEAKS)}
    if peaks:
        chip["flops"] = MappingProxyType({**task.chip.flops, **peaks})
    if chip:
        changes["chip"] = replace(task.chip, **chip)
    return replace(task, **changes)


def _lengths(task: Task, scenario: Scenario, values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Lengths of prompts and answers, and the context that follows from them."""
    load = scenario.workload
    varied = {LENGTHS[name]: value for name, value in values.items() if name in LENGTHS}
    if not varied:
        return {}
    both = {name: replace(getattr(load, name), mean=value) for name, value in varied.items()}
    load = load.model_copy(update=both)
    prompt = load.input_tokens.mean
    return {**varied, "context": prompt if task.mode == "prefill" else context(load)}
