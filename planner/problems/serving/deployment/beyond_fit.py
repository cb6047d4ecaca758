"""Where a plan leaves the rows that its profile was fitted on, and how much of its time that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.catalogue.hull import HullDimension, Value, names_at
from planner.catalogue.profile import Place
from planner.problems.serving.step.layouts import OVERLAP
from planner.problems.serving.step.shares import shares
from planner.protocol.plan import Outside

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate
    from planner.problems.serving.deployment.pool import EvaluatedPool

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


def pool_outside(pool: EvaluatedPool) -> list[tuple[HullDimension, Outside]]:
    """The dimensions in which a pool lies outside, and what that says of its own time."""
    hull = pool.task.profile.hull
    if hull is None:
        return []
    point = _point(pool)
    out = hull.outside(point)
    if not out:
        return []
    coefficients = pool.task.profile.values
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


def _point(pool: EvaluatedPool) -> dict[str, Value]:
    """Where a pool lies, by dimension of a hull."""
    task, layouts = pool.task, pool.layouts
    engine = "" if task.profile.engine == "any" else task.profile.engine
    place = Place.of(task.sizes, task.chip, engine=engine)
    point = names_at(place, experts=bool(task.sizes.n_experts))
    chips = int(layouts.replica_chips[0])
    point["chips"] = float(chips)
    point["domains"] = float(-(-chips // task.machine.chips_per_domain))
    point["overlap"] = OVERLAP[int(layouts.halves[0])]
    if task.sizes.n_experts:
        point["ep"] = float(layouts.ep[0])
    if pool.prefills:
        point["prompt"] = task.input_tokens * (1 - task.cached_input)
    if pool.decodes:
        point["batch"] = max(pool.batch / float(layouts.dp_attention[0]), 1.0)
        point["context"] = task.context
        point["drafts"] = task.positions_per_step - 1
    return point
