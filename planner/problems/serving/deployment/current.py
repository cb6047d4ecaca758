"""The user's own layout, evaluated beside the chosen one, promises broken or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.problems.serving.deployment.candidate import evaluate
from planner.problems.serving.deployment.shortfalls import shortfalls_at
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.task.task import Task
from planner.scenario import Current
from planner.text.errors import FieldError


def current(scenario: Scenario, tasks: Sequence[Task]) -> dict[str, Any] | None:
    """The plan document of `current:`, with the promises it breaks; None if none was given.

    Raises
    ------
    FieldError
        If the layout cannot be that of this model on these chips.
    """
    mine = scenario.current
    if mine is None:
        return None
    if not tasks:
        told = "a layout of one pool cannot be set beside two; choose mode: aggregated as well"
        raise FieldError(("current", told))
    task = tasks[0].with_layout(redundant=mine.redundant_experts)
    layouts = _layouts(mine, task)
    replicas = int(layouts.replicas[0])
    total = mine.batch or (scenario.workload.concurrency or 0)
    if not total:
        told = "say how many sequences are in flight over all replicas"
        raise FieldError(("current.batch", told))
    batch = math.ceil(total / replicas)
    candidate = evaluate(task, layouts, batch, total / (batch * replicas))
    broken = shortfalls_at(task, candidate.chosen_by)
    return {**candidate.plan(), "bound": candidate.floor(), "breaks": broken}


def _layouts(mine: Current, task: Task) -> Layouts:
    sizes, whole = task.sizes, mine.tp * mine.dp_attention
    if sizes.n_q_heads % mine.tp:
        told = f"{mine.tp} does not divide the {sizes.n_q_heads} attention heads of {sizes.name}"
        raise FieldError(("current.tp", told))
    if not sizes.n_experts and (mine.ep or 1) * mine.dp_attention > 1:
        told = "no experts, so ep and dp_attention are 1; copies of a dense model are replicas"
        raise FieldError(("current", f"{sizes.name} has {told}"))
    if mine.pp > sizes.n_layers:
        raise FieldError(("current.pp", f"{sizes.name} has {sizes.n_layers} layers only"))
    ep, xtp = _experts(mine, whole) if sizes.n_experts else (1, 1)
    chips = task.chips[-1]
    most = chips // (whole * mine.cp * mine.pp)
    row = (mine.tp, mine.pp, mine.cp, mine.dp_attention, ep, xtp, mine.replicas or most, chips)
    return Layouts(*(np.array([value]) for value in row))


def _experts(mine: Current, whole: int) -> tuple[int, int]:
    """How experts are spread where one of the two numbers, or none, was given."""
    ep = mine.ep or (whole // mine.tp_expert if mine.tp_expert else mine.dp_attention)
    if whole % ep:
        raise FieldError(("current.ep", f"{ep} does not divide tp * dp_attention = {whole}"))
    return ep, whole // ep
