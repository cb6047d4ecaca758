"""Copies of attention of a dense model over chips that share its feed-forward part.

Where tp exceeds the KV heads the cache is spread over sequences instead of being copied. What
follows attention works as an expert that every token takes, cut over all chips of a stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.problems.serving.step.engine_rules import engine_tables

if TYPE_CHECKING:
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task


def copies_dense(task: Task) -> bool:
    """Whether something copies attention over chips that share a dense feed-forward part.

    A mesh of one's own does, wherever the widths are known.
    """
    if task.lecture or task.sizes.n_experts or not task.sizes.inner:
        return False
    if task.engines is None or task.any_layout:
        return True
    return any(task.sizes.family in engine_tables()[x].dense_copies for x in task.engines)


def feed_forward_shared(task: Task, layouts: Layouts, values: Mapping[str, Any]) -> dict[str, Any]:
    """Weights [byte] of a dense model whose copies of attention share its feed-forward part.

    Each of dp copies holds and reads its share of that part, as an expert cut over the stage; none
    where attention is not copied, or a model has experts, whose dense layers follow attention.
    """
    dp = layouts.dp_attention
    if task.sizes.n_experts or not (dp > 1).any():
        return {}
    saved = task.sizes.weight_bytes["dense_ffn"] * (1 - 1 / dp)
    return {name: np.asarray(values[name] - saved) for name in ("S_fixed", "M_fixed")}
