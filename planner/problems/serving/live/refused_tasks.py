"""What a page cannot search by itself, and why: its sliders are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.problems.serving.search.admitted_layouts import layouts_of
from planner.problems.serving.search.batch import memory_rises
from planner.problems.serving.step.drafting import resident
from planner.problems.serving.step.engine_effects import slows
from planner.problems.serving.step.step import Step

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task, TaskPair


def refused_task(task: Task) -> str:
    """Why a page cannot search a task by itself; empty if it can."""
    if task.prefer_simple:
        return "whether the simplest plan is near enough to be preferred is looked at in Python"
    if task.uses_bound and task.arrivals is not None:
        return "the roofline knows no queue: what load its plan bears is worked out in Python"
    if task.uses_bound and memory_rises(Step(task, layouts_of(task), bound=True)).any():
        return "on-chip memory holds all weights: the price on the roofline turns with the batch"
    if task.load == "most" and not task.pooled:
        return "how much the promises let a fleet serve is sought by bisection in Python"
    if task.static:
        return "of a static batch all prompts are read in one go"
    if task.engine and slows(task):
        return "the engine's older kernels slow a step in a way that follows the batch"
    if task.conversations:
        return "room for caches is counted by chance, which this page does not"
    return ""


def refused_pair(pair: TaskPair) -> str:
    """Why a page cannot search two pools by itself; empty if it can."""
    first, last = pair.tasks
    if pair.demand is None and first.arrivals is not None:
        return "how much the promises let two pools serve is sought by bisection in Python"
    if first.objective in ("latency", "energy") or first.electricity or last.electricity:
        return (
            "two pools of least latency or energy, or that pay their power, are weighed in Python"
        )
    if "e2e" in last.promises:
        return "a promise on the whole request ties two pools closer than this page does"
    if resident(first).get("R_bnd_mem"):
        return "of a drafter whose cache a window bounds, what is sent is worked out in Python"
    return ""
