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
from planner.protocol.plan import LEAST_SHARE, Outside

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.pool import EvaluatedPool
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

ROLES = ("prefill", "decode")
TIMES = {"tpot": "step", "ttft": "first token"}


def outside_fit(candidate: Candidate) -> tuple[Outside, ...]:
    """What of a plan no row of the profile covers, what widens its band most first.

    Empty for a bound, which rests on no row.
    """
    if candidate.task.uses_bound:
        return ()
    merged: dict[tuple[str, Value], tuple[float, Outside]] = {}
    roles = ROLES if candidate.joint else ("",)
    for role, pool in zip(roles, candidate.pools, strict=True):
        for variance, dimension, part in pool_outside(pool):
            key = dimension.name, part.value
            if key in merged:
                merged[key] = max(merged[key], (variance, part), key=lambda pair: pair[1].share)
            elif role and dimension.unit:
                merged[key] = variance, replace(part, words=f"{part.words} to {role}")
            else:
                merged[key] = variance, part
    ranked = sorted(merged.values(), key=lambda pair: (-pair[0], -pair[1].share))
    return tuple(part for _, part in ranked)


def pool_outside(pool: EvaluatedPool) -> list[tuple[float, HullDimension, Outside]]:
    """The dimensions in which a pool lies outside, and what that says of its own time.

    Each comes with the variance of the logarithm of that time [1] that rests on coefficients which
    no row there told. Those of which neither the time nor the band has any part are left out.
    """
    hull, point = pool.task.profile.hull, _point(pool)
    if hull is None:
        return []
    beyond, parts = distances([pool]), []
    for dimension in hull.outside(point):
        time, shares = _rests(pool, dimension)
        share = min(sum(shares.values()), 1.0)
        if share < LEAST_SHARE and not _widens(pool, time, dimension, beyond):
            continue
        variance = sum((x * hull.widths.get(name, 1.0)) ** 2 for name, x in shares.items())
        value, fitted = point[dimension.name], hull.fitted(dimension.name)
        words = dimension.asking(value)
        part = Outside(dimension.title, fitted, share, TIMES[time], value, words)
        parts.append((variance, dimension, part))
    return parts


def _rests(pool: EvaluatedPool, dimension: HullDimension) -> tuple[str, dict[str, float]]:
    """Shares of a time by coefficient that rows there would have told.

    Of both times it is the one that a dimension is said of, the larger share for prompts.
    """
    times = [name for name, has in (("tpot", pool.decodes), ("ttft", pool.prefills)) if has]
    if not dimension.prompts:
        times = times[:1]
    rests = {
        name: {c: x for c, x in pool.rests_on[name].items() if dimension.holds(c)} for name in times
    }
    return max(rests.items(), key=lambda pair: sum(pair[1].values()))


def _widens(
    pool: EvaluatedPool, time: str, dimension: HullDimension, beyond: Mapping[str, np.bool_]
) -> bool:
    """Whether the band of a time would be narrower at the same distance but for a dimension."""
    if dimension.regime not in beyond:
        return False
    rests, profile = pool.rests_on[time], pool.task.profile
    others = {kind: holds for kind, holds in beyond.items() if kind != dimension.regime}
    return profile.band(time, rests, beyond) != profile.band(time, rests, others)


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
