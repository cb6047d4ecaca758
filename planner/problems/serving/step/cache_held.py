"""Contents of the KV cache of a plan's replica, as its engine counts blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.memory.engine_fit import FitQuestion, held_requests
from planner.memory.engine_room import EngineLimits, ReplicaLayout
from planner.memory.engine_table import chip_memory
from planner.memory.held_requests import HeldRequests
from planner.problems.serving.step.memory_terms import charged_engine, pool_context

if TYPE_CHECKING:
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task


def requests_held(
    task: Task, layouts: Layouts, batch: float, activations: float
) -> HeldRequests | None:
    """Requests that fit one replica's KV cache under the step limits that its launch writes.

    The verdict is of a start, which wants room for one request. None where no engine is charged,
    and where chips share the context of a request, but not an index into it.

    Args:
        layouts: one layout.
        batch: sequences in flight on a replica [seq].
        activations: of one chip, which lie outside a share of a pool [byte].
    """
    charged, split = int(charged_engine(task, layouts)[0]), layouts.row(0)
    rules = task.memory_rules[charged][1] if charged >= 0 else None
    indexed = any(cache.kind == "index" for cache in task.sizes.caches)
    if rules is None or split["cp"] > 1 or (split["dcp"] > 1 and indexed):
        return None
    tp, pp, copies = split["tp"], split["pp"], split["dp_attention"]
    running = math.ceil(batch / copies)
    answers = math.ceil(running / pp) * (1 + task.drafts) if task.mode != "prefill" else 0
    seats, chunk = task.max_num_seqs or running, int(task.chunk)
    least = max(chunk * (task.mode != "decode") + answers, seats, chunk)
    budget = task.max_num_batched_tokens or least
    share = task.utilisation
    if rules.rules["meaning"] == "pool":
        share -= activations / (task.chip.memory - pool_context(task.chip))
    experts = split["tp_expert"] if task.sizes.n_experts else None
    question = FitQuestion(
        task.sizes,
        replace(chip_memory(task.chip), visible=task.chip.memory),
        task.chip.name,
        rules,
        ReplicaLayout(tp, pp, copies, split["ep"], experts),
        EngineLimits(tp, pp, copies, share, seats, budget, dcp=split["dcp"]),
        math.ceil(task.input_tokens + task.output_tokens),
    )
    return held_requests(question)
