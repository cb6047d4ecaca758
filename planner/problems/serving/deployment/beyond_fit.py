"""Where a plan leaves the rows that its profile was fitted on, and how much of its time that is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.catalogue.hull import Value
from planner.problems.serving.deployment.uncovered import pool_outside
from planner.protocol.plan import Outside

if TYPE_CHECKING:
    from planner.problems.serving.deployment.candidate import Candidate

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
