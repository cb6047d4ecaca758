"""Where a plan leaves the rows that its profile was fitted on, and how much of its time that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.bands.coefficient_spread import KNOWN
from planner.catalogue.hull import HullDimension, Value, names_at
from planner.catalogue.profile import Place
from planner.problems.serving.step.layouts import OVERLAP
from planner.problems.serving.step.shares import shares
from planner.protocol.plan import Outside

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.pool import EvaluatedPool
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task


ROLES = ("prefill", "decode")


def outside_fit(candidate: Candidate) -> tuple[Outside, ...]:
    """What of a plan no row of the profile covers, the largest share of its time first.

    Empty for a bound, which rests on no row.
    """
    if candidate.task.uses_bound:
        return ()
    merged: dict[tuple[str, Value], Outside] = {}
    roles = ROLES if candidate.joint else ("",)
    for role, pool in zip(roles, candidate.pools, strict=True):
        for dimension, part in pool_outside(pool):
            key = dimension.name, part.value
            if key in merged:
                merged[key] = max(merged[key], part, key=lambda part: part.share)
            elif role and dimension.unit:
                merged[key] = replace(part, words=f"{part.words} to {role}")
            else:
                merged[key] = part
    return tuple(sorted(merged.values(), key=lambda part: -part.share))


def dimensions_outside(pool: EvaluatedPool) -> tuple[HullDimension, ...]:
    """The dimensions in which a pool lies outside; none of a profile that does not say its hull."""
    hull = pool.task.profile.hull
    return () if hull is None else hull.outside(_point(pool))


def pool_outside(pool: EvaluatedPool) -> list[tuple[HullDimension, Outside]]:
    """The dimensions in which a pool lies outside, and what that says of its own time."""
    out, point, coefficients = dimensions_outside(pool), _point(pool), pool.task.profile.values
    if not out:
        return []
    groups = [{c for c in coefficients if one.holds(c)} for one in out]
    parts = shares(pool.step, pool.batch, groups)
    return [
        (each, _outside(pool, each, point[each.name], {k: float(v[i]) for k, v in parts.items()}))
        for i, each in enumerate(out)
    ]


def _outside(
    pool: EvaluatedPool, dimension: HullDimension, value: Value, parts: Mapping[str, float]
) -> Outside:
    """One dimension in words; of both times the one that it is said of, the larger for prompts."""
    hull, times = pool.task.profile.hull, [("step", parts["tpot"]), ("first token", parts["ttft"])]
    if not (pool.prefills and pool.decodes):
        times = times[pool.prefills :][:1]
    elif not dimension.prompts:
        times = times[:1]
    of, share = max(times, key=lambda pair: pair[1])
    fitted = hull.fitted(dimension.name) if hull else ()
    return Outside(dimension.title, fitted, share, of, dimension.asking(value), value)


def distances(pools: Sequence[EvaluatedPool]) -> dict[str, np.bool_]:
    """The kinds of distance at which numbers of some pool lie beyond the rows; all of them hold."""
    every = [distances_at(x.task, x.layouts, np.array([x.batch])) for x in pools]
    return {kind: np.True_ for each in every for kind, holds in each.items() if holds.any()}


def farther(regime: str, beyond: Iterable[str]) -> str:
    """The kind of distance of a place, or where the place is known that of its numbers."""
    return next(iter(beyond), regime) if regime == KNOWN else regime


def distances_at(task: Task, layouts: Layouts, batch: np.ndarray) -> dict[str, np.ndarray]:
    """The kinds of distance, and whether numbers lie so; of tasks that hold arrays for each."""
    hull = task.profile.hull
    return {} if hull is None else hull.beyond(_numbers(task, layouts, batch))


def _point(pool: EvaluatedPool) -> dict[str, Value]:
    """Where a pool lies, by dimension of a hull."""
    task, layouts = pool.task, pool.layouts
    engine = "" if task.profile.engine == "any" else task.profile.engine
    place = Place.of(task.sizes, task.chip, engine=engine)
    point = names_at(place, experts=bool(task.sizes.n_experts))
    point["overlap"] = OVERLAP[int(layouts.halves[0])]
    numbers = _numbers(task, layouts, np.array([pool.batch]))
    return point | {name: float(np.ravel(value)[0]) for name, value in numbers.items()}


def _numbers(task: Task, layouts: Layouts, batch: np.ndarray) -> dict[str, np.ndarray]:
    """The numbers of a pool, by dimension."""
    chips = layouts.replica_chips * 1.0
    numbers = {"chips": chips, "domains": np.ceil(chips / task.machine.chips_per_domain)}
    if task.sizes.n_experts:
        numbers["ep"] = layouts.ep * 1.0
    if task.mode != "decode":
        numbers["prompt"] = np.asarray(task.input_tokens * (1 - task.cached_input))
    if task.mode != "prefill":
        numbers["batch"] = np.maximum(batch / layouts.dp_attention, 1.0)
        numbers["context"] = np.asarray(task.context)
        numbers["drafts"] = np.asarray(task.positions_per_step - 1)
    return numbers
