"""Provenance of an answer: version, assumptions, sources with their dates, warnings."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from planner.problems.serving.plan import ServingProvenance

if TYPE_CHECKING:
    from planner.catalogue.profile import Profile
    from planner.problems.serving.point import PlannedPool, ServingPoint
    from planner.problems.serving.question import Scenario
    from planner.problems.serving.task.resolve import ServingTasks

# Maximum over mean experts per rank; a smaller imbalance is not reported.
IMBALANCE_SHOWN = 1.05


def provenance(scenario: Scenario, tasks: ServingTasks, profile: Profile) -> ServingProvenance:
    """Provenance of an answer: assumptions, estimate, profile, dated sources, warnings."""
    return ServingProvenance(
        assumptions=scenario.assumptions,
        estimate=scenario.estimate if scenario.assumptions == "physical" else "bound",
        profile=profile.name,
        queueing=_queueing(scenario),
        data=tasks.data,
        warnings=tuple(tasks.warnings),
    )


def _queueing(scenario: Scenario) -> str:
    looped = scenario.workload.concurrency is not None
    if looped and scenario.assumptions != "lecture" and scenario.estimate != "bound":
        return "ttft includes the prompts of others, of ten requests that each user sends"
    if scenario.workload.arrivals is None:
        return "ttft excludes queueing: no demand was given"
    if scenario.assumptions == "lecture" or scenario.estimate == "bound":
        return "ttft excludes queueing: the bound knows none"
    return "ttft includes the mean wait before a prompt is read, Poisson arrivals dealt at random"


def imbalance(point: ServingPoint, experts: int) -> tuple[str, ...]:
    """A warning for each pool of a plan whose fullest expert rank is well above the mean."""
    pools: dict[str, PlannedPool | ServingPoint] = {"": point} if point.layout else {}
    pools |= {f"{name} ": pool for name, pool in point.phases.items()}
    warnings = []
    for name, pool in pools.items():
        ep, stored = pool.layout.ep if pool.layout else 1, experts + (pool.redundant_experts or 0)
        fullest = ceil(stored / ep)
        if fullest * ep < stored * IMBALANCE_SHOWN:
            continue
        warnings.append(
            f"{stored} experts are uneven on {name}ep {ep}: the fullest rank has {fullest}, "
            f"{fullest * ep / stored - 1:.0%} more than the mean, and sets the pace; "
            f"choose.redundant_experts: {fullest * ep - experts} would even them out in the same "
            "memory"
        )
    return tuple(dict.fromkeys(warnings))
