"""The layouts of a question: those that the given limits, memory and an engine's rules admit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.search.paid_counts import on_paid_counts
from planner.problems.serving.step.layouts import OVERLAP, Layouts, enumerate_layouts
from planner.problems.serving.step.runnable import (
    copies_dense,
    engine_pool,
    on_engines,
    refusal_location,
    refusal_text,
)
from planner.text.errors import FieldError

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task


def admissible_layouts(task: Task) -> Layouts:
    """Return every admissible layout of a task; raises FieldError if empty.

    Where none fills machines evenly, as when another was asked for, any may be.
    """
    if task.whole_machines:
        with suppress(FieldError):
            return _layouts_of(task)
    return _layouts_of(task.with_layout(whole_machines=0))


def grows(task: Task) -> bool:
    """True if the load decides the number of chips paid: replicas free, objective not latency."""
    open_ended = task.limits_of.get("replicas") is None and task.objective != "latency"
    return task.loaded and len(task.chips) > 1 and open_ended


def _layouts_of(task: Task) -> Layouts:
    limits_of = {k: v for k, v in task.limits_of.items() if k != "replicas" or not task.pooled}
    if task.uses_bound:
        # A roofline overlaps all there is.
        limits_of.setdefault("halves", (1,))
    layouts = _admitted(task, limits_of)
    if not (grows(task) or task.pooled):
        layouts = on_paid_counts(task, layouts)
    layouts = layouts.take(_cuttable(task, layouts))
    if not len(layouts):
        raise FieldError(_none_admitted(task, limits_of))
    if task.engines is None or task.any_layout:
        return layouts
    layouts = on_engines(task, layouts)
    if not layouts.engines.any():
        raise FieldError(
            refusal_location(task.limits_of, refusal_text(engine_pool(task), layouts, task.engines))
        )
    return layouts.take(layouts.engines > 0)


def _admitted(task: Task, limits_of: Mapping[str, tuple[int, ...]]) -> Layouts:
    """Layouts that model, machine and limits admit."""
    return enumerate_layouts(
        heads=task.sizes.n_q_heads,
        layers=task.sizes.n_layers,
        experts=task.sizes.n_experts and task.sizes.n_experts + task.redundant,
        domain=task.machine.chips_per_domain,
        chips=(task.chips[-1],),
        joined=task.machine.scale_out is not None,
        tiled=task.tiled,
        copied="dp_attention" in limits_of or copies_dense(task),
        machine=task.whole_machines,
        kv_heads=cut_heads(task),
        limits=frozenset(limits_of.items()),
    )


def cut_heads(task: Task) -> int:
    """KV heads over which ranks of a group shard caches by tokens; 0 if caches are not cut.

    What reads prompts alone holds them whole, and what is ideal or the lecture's has no copies.
    """
    whole = task.mode == "prefill" or task.ideal or task.lecture
    return 0 if whole else task.sizes.n_cut_heads


def _none_admitted(task: Task, limits_of: Mapping[str, tuple[int, ...]]) -> tuple[str, str]:
    """Return the key of the limit that excludes all layouts, and a message with valid values."""
    place, remedy = "choose", ""
    names = {k: "overlap" if k == "halves" else k for k in task.limits_of}
    for key in task.limits_of:
        free = _admitted(task, {k: v for k, v in limits_of.items() if k != key})
        wanted, values = task.limits_of[key], np.unique(getattr(free, key))
        near = (*values[values < min(wanted)][-1:], *values[values > max(wanted)][:1])
        if near:
            place = f"choose.{names[key]}"
            texts = (f"{place}={OVERLAP[n] if key == 'halves' else n}" for n in near)
            remedy = f"; what would work: {', or '.join(texts)}"
            break
    halves = [OVERLAP[n] for n in task.limits_of.get("halves", ())]
    limits = ", ".join(
        f"{names[k]} {halves if k == 'halves' else list(v)}" for k, v in task.limits_of.items()
    )
    return place, (
        f"no layout of {task.sizes.name} on {task.chips[-1]} chips admits {limits or 'nothing'}; "
        f"tp divides the {task.sizes.n_q_heads} attention heads, tp * dp_attention fits into "
        f"or is a multiple of the domain of {task.machine.chips_per_domain} chips, "
        f"ep * tp_expert = tp * dp_attention, pp is at most {task.sizes.n_layers}"
        + ", overlap takes dp_attention and ep above 1, and two sequences a rank" * bool(halves)
        + remedy
    )


def _cuttable(task: Task, layouts: Layouts) -> np.ndarray:
    """True for layouts whose half-batches hold a sequence each, by the batches that are given.

    The fastest step is that of one sequence, which nothing cuts; a prompt is cut anywhere.
    """
    whole = layouts.halves == 1
    if task.mode == "prefill":
        return whole | True
    if task.batches is not None:
        groups = layouts.group * (1 if task.pooled else layouts.replicas)
        return whole | (max(task.batches) > groups)
    return whole | (task.objective != "latency")
