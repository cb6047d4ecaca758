"""What an answer rests on: version, assumptions, sources with their dates, warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.problems.serving.plan import ServingProvenance

if TYPE_CHECKING:
    from planner.catalogue.profile import Profile
    from planner.problems.serving.question import Scenario
    from planner.problems.serving.task.resolve import ServingTasks


def provenance(scenario: Scenario, tasks: ServingTasks, profile: Profile) -> ServingProvenance:
    """What an answer rests on: version, assumptions, sources with their dates, warnings."""
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
