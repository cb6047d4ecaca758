"""Questions of two pools of small chips, and layouts of a phase written down by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.architecture.counts import ModelSizes
from planner.problems.serving.pairs.pool_pairs import Pair, search_pools
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.sizing import PhaseLayouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import TaskPair
from tests.cases.serving import question

NETWORK = 20e9  # byte/s


def pools_of(
    model: ModelSizes,
    *,
    chips: tuple[int, ...] = (4,),
    domain: int = 4,
    promises: dict[str, float] | None = None,
    objective: str = "cost",
    **others: Any,
) -> TaskPair:
    """The question of two pools of small chips; what is `second` is of the one that decodes."""
    made = promises or {}
    second, demand = others.pop("second", {}), others.pop("demand", None)
    common = {
        "chips": chips,
        "domain": domain,
        "objective": objective,
        "pooled": True,
        "batch": 6.0,
        **others,
    }
    first = question(
        model,
        mode="prefill",
        context=1000.0,
        promises={k: v for k, v in made.items() if k == "ttft"},
        **common,
    )
    other = question(
        model,
        mode="decode",
        promises={k: v for k, v in made.items() if k in ("tpot", "e2e")},
        **{**common, **second},
    )
    return TaskPair(first, other, NETWORK, 1e-5, together=not second, demand=demand)


def steps_of(pools: TaskPair) -> tuple[Step, Step]:
    """The models of both pools on all their layouts."""
    first, second = (
        Step(task, admissible_layouts(task), bound=task.uses_bound) for task in pools.tasks
    )
    return first, second


def solved(pools: TaskPair) -> tuple[tuple[Step, Step], list[Pair]]:
    """The steps of both pools and the pairs found."""
    steps = steps_of(pools)
    return steps, search_pools(pools, *steps)[0]


def phase(**columns: Any) -> PhaseLayouts:
    """Layouts of one phase by their columns: replicas of one chip, of domains of 8, if not said."""
    size = max(np.size(column) for column in columns.values())
    counts = {"rows": np.arange(size), "stage": 1, "stages": 1, "domain": 8, "engines": -1}
    numbers = {"batch": 1.0, "fill": 1.0, "slot": 1.0, "rate": 1.0, "latency": 1.0, "weight": 1.0}
    whole = {"group": 0, "count": 0, "slower": 0, "odd": 0}
    late = {"promised": columns.get("latency", 1.0)}
    every = {**counts, **numbers, **late, **whole, **columns}
    return PhaseLayouts(**{
        name: np.array(np.broadcast_to(column, (size,))) for name, column in every.items()
    })  # fmt: skip
