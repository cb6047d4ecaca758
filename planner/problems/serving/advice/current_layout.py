"""The user's own layout compared with the plan: times, price, broken promises.

The price that no plan of any mode goes below under a given load.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.missed_promises import exceeded_promises
from planner.problems.serving.deployment.pool import evaluate, pool_formats
from planner.problems.serving.deployment.questions import searches_with_best_point
from planner.problems.serving.deployment.scored_points import best_point
from planner.problems.serving.plan import CurrentPoint
from planner.problems.serving.point import ServingPoint
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.layouts import HALVES, Layouts
from planner.problems.serving.step.runnable import on_engines
from planner.problems.serving.task.plan_limits import LIMITS
from planner.problems.serving.task.requests import LAYOUT_KEYS, arrivals, checked_promises
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import Task
from planner.scenario.keys.workload import Current, PoolChoice, Promises
from planner.text.errors import FieldError

T = TypeVar("T")
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


def current_candidate(scenario: Scenario, tasks: Sequence[Task]) -> Candidate | None:
    """Return the user's own layout, evaluated; None if not given.

    Raises FieldError if the layout cannot be that of this model on these chips.
    """
    current = scenario.current
    if current is None:
        return None
    if current.prefill is not None:
        return _pools_in_use(scenario, current)
    if not tasks:
        words = "a layout of one pool cannot be set beside two; choose mode: aggregated as well"
        raise FieldError(("current", words))
    formats = _formats_in_use(scenario, current, tasks)
    tasks = resolve(_choosing(scenario, formats)).tasks if formats else tasks
    named = [(task.mode, task.chip.name) for task in tasks]
    tasks = [
        x for x in tasks if current.mode in (None, x.mode) and current.chip in (None, x.chip.name)
    ]
    if not tasks:
        words = ", ".join(" on ".join(pair) for pair in dict.fromkeys(named))
        raise FieldError(("current", f"its mode and chip are none of those asked about: {words}"))
    layouts = _layouts_of(current, tasks[0])
    replicas = int(layouts.replicas[0])
    total = current.batch or scenario.workload.concurrency
    total = total or replicas * (current.batch_per_replica or 0)
    if not total:
        words = "say how many sequences are in flight over all replicas"
        raise FieldError(("current.batch", words))
    batch = current.batch_per_replica or math.ceil(total / replicas)
    if total > batch * replicas:
        words = f"{replicas} replicas of {batch} hold fewer than the {total} in flight"
        raise FieldError(("current.batch_per_replica", words))
    # Depths that are left free are tried on the layout too: the best at its batch.
    alike = (tasks[0].sizes, tasks[0].chip, tasks[0].mode)
    depths = {x.drafts: x for x in reversed(tasks) if (x.sizes, x.chip, x.mode) == alike}
    pools = [
        evaluate(task, on_engines(task, layouts), batch, total / (batch * replicas))
        for task in (x.with_layout(redundant=current.redundant_experts) for x in depths.values())
    ]
    return Candidate((min(pools, key=lambda depth: depth.chosen_by["slot"]),))


def current_layout(scenario: Scenario, tasks: Sequence[Task]) -> CurrentPoint | None:
    """Evaluate the user's own layout, with the promises it breaks; None if not given.

    Raises FieldError if the layout cannot be that of this model on these chips.
    """
    candidate = current_candidate(scenario, tasks)
    if candidate is None:
        return None
    limits, values = candidate.task.limits, candidate.outputs
    if candidate.joint:
        values = {**candidate.pools[0].chosen_by, **candidate.last.chosen_by, **values}
        sides = [checked_promises(x.task.mode, scenario, pooled=True) for x in candidate.pools]
        limits = {LIMITS[name].step: limit for each in sides for name, limit in each.items()}
    point, bound = _without_end(candidate.plan()), candidate.floor(price_lower_bound(scenario))
    return CurrentPoint(**vars(point), bound=bound, breaks=exceeded_promises(limits, values))


def _formats_in_use(
    scenario: Scenario, current: Current, tasks: Sequence[Task]
) -> dict[str, tuple[str | int, ...]]:
    """Formats of the layout in use that are chosen among several, or are not the checkpoint's."""
    plain = [(*pool_formats(task), task.sizes.activation_dtype, int(task.chunk)) for task in tasks]
    stated = ((key, place, getattr(current, key)) for place, key in enumerate(FORMATS))
    return {
        key: (value,)
        for key, place, value in stated
        if value is not None
        and (getattr(scenario.choose, key) or value not in {names[place] for names in plain})
    }


def _choosing(scenario: Scenario, choices: Mapping[str, object]) -> Scenario:
    return scenario.model_copy(update={"choose": scenario.choose.model_copy(update=choices)})


def _pools_in_use(scenario: Scenario, current: Current) -> Candidate:
    """The two pools in use: each keeps its layout, and as many sequences as serve most.

    Raises FieldError if they have no room for the model, or carry nothing of the load.
    """
    choices: dict[str, object] = dict.fromkeys((*LAYOUT_KEYS, "overlap"))
    choices |= {"mode": ("disaggregated",), "redundant_experts": (current.redundant_experts,)}
    choices["batch"] = current.batch and (current.batch,)
    for role in ("prefill", "decode"):
        stated = {key: value for key, value in getattr(current, role) if value is not None}
        choices[role] = PoolChoice(**stated)
    scenario = _choosing(scenario.model_copy(update={"current": None}), choices)
    pairs = resolve(scenario).pools
    formats = _formats_in_use(scenario, current, [pair.decode for pair in pairs])
    for promises in (scenario.promises, Promises()):
        pinned = _choosing(scenario.model_copy(update={"promises": promises}), formats)
        if point := best_point(searches_with_best_point(resolve(pinned))):
            return point.candidate
    raise FieldError(("current", "the two pools do not hold the model and carry the load"))


def _without_end(point: ServingPoint) -> ServingPoint:
    """Copy of the point with infinite times replaced by None (its queue is unstable)."""

    def ending(part: T) -> T:
        endless = {name: None for name, value in vars(part).items() if value == math.inf}
        return replace(part, **endless)  # type: ignore[type-var]

    return point if point.demand is None else ending(replace(point, demand=ending(point.demand)))


def _layouts_of(current: Current, task: Task) -> Layouts:
    sizes, whole = task.sizes, current.tp * current.dp_attention
    if sizes.n_q_heads % current.tp:
        heads = f"the {sizes.n_q_heads} attention heads of {sizes.name}"
        raise FieldError(("current.tp", f"{current.tp} does not divide {heads}"))
    for key in ("ep", "tp_expert"):
        if not sizes.n_experts and (getattr(current, key) or 1) > 1:
            raise FieldError((f"current.{key}", f"{sizes.name} has no experts, so {key} is 1"))
    if current.pp > sizes.n_layers:
        raise FieldError(("current.pp", f"{sizes.name} has {sizes.n_layers} layers only"))
    ep = 1
    if sizes.n_experts:
        cut = current.tp_expert
        ep = current.ep or (max(1, whole // cut) if cut else current.dp_attention)
        if ep * (cut or whole // ep) != whole:
            words = f"{cut or ep} does not divide tp * dp_attention = {whole} into ep {ep}"
            raise FieldError(("current.tp_expert" if cut else "current.ep", words))
    xtp = whole // ep if sizes.n_experts else 1
    replica = whole * current.cp * current.pp
    replicas = current.replicas or task.chips[-1] // replica
    # Of several sizes it is paid for the least that holds it.
    chips = min(size for size in task.chips if size >= replica * replicas)
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
