"""Why a frontier ends where it does: what a step of the fastest plan is made of, what holds the
cheapest one back from a larger batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.problems.serving.deployment.candidate import ROOFS, Candidate
from planner.problems.serving.deployment.pair import PairCandidate
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import PROMISES

FULL = 1 - 1e-3  # share of time from which on a pool is called busy


def fastest_end(candidate: Candidate | PairCandidate) -> dict[str, Any]:
    """Shares of one step of the fastest plan, largest first: with so few sequences a floor."""
    one = _decoding(candidate)
    if one.task.uses_bound:
        # Roofs overlap: a step takes as long as the highest.
        parts = {roof: one.bound[f"roof.{roof}"] for roof in ROOFS}
        whole = max(parts.values())
    else:
        parts = one.plan()["time_per_step"]
        whole = sum(parts.values())
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return {
        "batch_per_replica": int(one.batch),
        "step": whole,
        "shares": {name: value / whole for name, value in ordered if value > 0},
    }


def cheapest_end(candidate: Candidate | PairCandidate) -> dict[str, Any]:
    """What one more group of sequences would break; nothing where the price is flat or given."""
    one = _decoding(candidate)
    if one.task.batches is not None:
        return {"binds": ["batch"]}
    pair = candidate if isinstance(candidate, PairCandidate) else None
    if (pair.pools.demand if pair else one.task.arrivals) is not None:
        return {"binds": ["demand"]}
    task = one.task.with_layout(arrivals=None)
    step = Step(task, one.layouts, bound=task.uses_bound)
    group = int(one.layouts.pp[0] * one.layouts.dp_attention[0])
    values = step(np.array([(pair.pair.batch if pair else one.batch) + group]))
    binds = [
        PROMISES[name]
        for name, limit in task.limits.items()
        if float(np.ravel(values[name])[0]) > limit
    ]
    if pair and pair.readers.chosen_by.get("fill", pair.readers.fill) >= FULL:
        binds.append("prefill queue is stable")
    return {"binds": binds}


def _decoding(candidate: Candidate | PairCandidate) -> Candidate:
    return candidate.decoders if isinstance(candidate, PairCandidate) else candidate
