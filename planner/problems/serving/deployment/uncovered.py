"""Where a pool leaves the rows that its profile was fitted on, and how much of its time that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.catalogue.hull import HullDimension, Value, names_at
from planner.catalogue.profile import Place
from planner.problems.serving.step.layouts import OVERLAP
from planner.problems.serving.step.shares import shares
from planner.protocol.plan import Outside

if TYPE_CHECKING:
    from planner.problems.serving.deployment.pool import EvaluatedPool


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
