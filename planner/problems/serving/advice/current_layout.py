"""The user's own layout compared with the plan: times, price, broken promises.

The price that no plan of any mode goes below under a given load.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.missed_promises import exceeded_promises
from planner.problems.serving.deployment.pool import evaluate
from planner.problems.serving.deployment.questions import searches_with_best_point
from planner.problems.serving.deployment.scored_points import best_point
from planner.problems.serving.plan import CurrentPoint
from planner.problems.serving.point import ServingPoint
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.layouts import HALVES, Layouts
from planner.problems.serving.step.runnable import on_engines
from planner.problems.serving.task.requests import arrivals
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import Task
from planner.scenario.keys.workload import Current
from planner.text.errors import FieldError

WHOLE_MODES = {"aggregated", "disaggregated"}  # modes that do all of a request


def price_lower_bound(scenario: Scenario) -> float | None:
    """USD per million tokens that no plan of any mode goes below; None without a given load.

    A plan under a load pays its chips whatever they do, so that its own roofline costs what it
    does; the bound is that of the whole question, searched once more at efficiency one.
    """
    rate = arrivals(scenario)
    if rate is None or rate == float("inf"):
        return None
    choose = scenario.choose
    if choose.mode and WHOLE_MODES & {*choose.mode} and choose.prefill is choose.decode is None:
        choose = choose.model_copy(update={"mode": None})
    changes = {"estimate": "bound", "objective": "cost", "choose": choose}
    point = best_point(searches_with_best_point(resolve(scenario.model_copy(update=changes))))
    return None if point is None else point.candidate.usd_per_mtok


FORMATS = ("weights", "kv", "activations", "chunk")


def current_place(scenario: Scenario, tasks: Sequence[Task]) -> tuple[Current, Layouts, int] | None:
    """Return the user's own layout, and the sequences in flight on it; None if not given.

    Raises FieldError if the layout cannot be that of this model on these chips.
    """
    current = scenario.current
    if current is None:
        return None
    if not tasks:
        words = "a layout of one pool cannot be set beside two; choose mode: aggregated as well"
        raise FieldError(("current", words))
    layouts = _layouts_of(current, tasks[0])
    total = current.batch or (scenario.workload.concurrency or 0)
    if not total:
        words = "say how many sequences are in flight over all replicas"
        raise FieldError(("current.batch", words))
    return current, layouts, total


def current_layout(scenario: Scenario, tasks: Sequence[Task]) -> CurrentPoint | None:
    """Evaluate the user's own layout, with the promises it breaks; None if not given.

    Raises FieldError if the layout cannot be that of this model on these chips.
    """
    place = current_place(scenario, tasks)
    if place is None:
        return None
    current, layouts, total = place
    tasks = _of_its_formats(scenario, current) or tasks
    replicas = int(layouts.replicas[0])
    batch = math.ceil(total / replicas)
    # Depths that are left free are tried on the layout too: the best at its batch.
    alike = (tasks[0].sizes, tasks[0].chip, tasks[0].mode)
    depths = {x.drafts: x for x in reversed(tasks) if (x.sizes, x.chip, x.mode) == alike}
    pools = [
        evaluate(task, on_engines(task, layouts), batch, total / (batch * replicas))
        for task in (x.with_layout(redundant=current.redundant_experts) for x in depths.values())
    ]
    pool = min(pools, key=lambda depth: depth.chosen_by["slot"])
    candidate, least = Candidate((pool,)), price_lower_bound(scenario)
    broken = exceeded_promises(pool.task, pool.chosen_by)
    point = _without_end(candidate.plan())
    return CurrentPoint(**vars(point), bound=candidate.floor(least), breaks=broken)


def _of_its_formats(scenario: Scenario, current: Current) -> Sequence[Task]:
    """Tasks in the formats of the layout in use; empty if it specifies no formats.

    Raises FieldError if the model is not to be had in them.
    """
    says = {key: (value,) for key in FORMATS if (value := getattr(current, key)) is not None}
    if not says:
        return ()
    choose = scenario.choose.model_copy(update=says)
    return resolve(scenario.model_copy(update={"choose": choose})).tasks


def _without_end(point: ServingPoint) -> ServingPoint:
    """Copy of the point with infinite times replaced by None (its queue is unstable)."""
    if point.demand is None:
        return point
    demand = replace(
        point.demand,
        wait=_ending(point.demand.wait),
        ttft_p95=_ending(point.demand.ttft_p95),
        ttft_p99=_ending(point.demand.ttft_p99),
        in_flight=_ending(point.demand.in_flight),
    )
    return replace(point, demand=demand, ttft=_ending(point.ttft), e2e=_ending(point.e2e))


def _ending(value: float | None) -> float | None:
    return None if value == math.inf else value


def _layouts_of(current: Current, task: Task) -> Layouts:
    sizes, whole = task.sizes, current.tp * current.dp_attention
    if sizes.n_q_heads % current.tp:
        heads = f"the {sizes.n_q_heads} attention heads of {sizes.name}"
        raise FieldError(("current.tp", f"{current.tp} does not divide {heads}"))
    if not sizes.n_experts and (current.ep or 1) > 1:
        raise FieldError(("current.ep", f"{sizes.name} has no experts, so ep is 1"))
    if current.pp > sizes.n_layers:
        raise FieldError(("current.pp", f"{sizes.name} has {sizes.n_layers} layers only"))
    ep = 1
    if sizes.n_experts:
        cut = current.tp_expert
        ep = current.ep or (whole // cut if cut else current.dp_attention)
        if whole % ep:
            raise FieldError(("current.ep", f"{ep} does not divide tp * dp_attention = {whole}"))
    xtp = whole // ep if sizes.n_experts else 1
    chips = task.chips[-1]
    replicas = current.replicas or chips // (whole * current.cp * current.pp)
    if current.tp % current.dcp or (current.cp > 1 and current.dcp > 1):
        words = f"divides tp {current.tp}, and stands where cp is 1"
        raise FieldError(("current.dcp", f"{current.dcp}: what shares contexts inside tp {words}"))
    halves = HALVES[current.overlap]
    if halves > 1 and min(ep, current.dp_attention) == 1:
        words = "what two batches overlap is an exchange of dp_attention copies with ep experts"
        raise FieldError(("current.overlap", f"{words}, and both must be above 1"))
    ways = (current.tp, current.pp, current.cp, current.dp_attention, ep, xtp)
    columns = (np.array([value]) for value in (*ways, replicas, chips, halves))
    return replace(Layouts(*columns), dcp=np.array([current.dcp]))
