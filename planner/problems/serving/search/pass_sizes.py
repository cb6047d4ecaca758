"""Prompts that a pool which only reads takes into one pass, where it is not given.

The more share a pass the less each costs, and the later is its first token. Every number is tried
up to `EVERY`, then steps of a quarter, up to as many as fill a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.problems.serving.step.step import Step

EVERY, STEP = 8.0, 1.25  # prompts a rank, and the factor to the next number beyond


def pass_sizes(step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Layouts, as rows, and prompts of a replica in flight that are worth trying.

    Shapes (n_points,); every layout has one prompt per rank and stage as its first.
    """
    layouts = step.layouts
    ranks = (layouts.pp * layouts.dp_attention) * 1.0
    # No roof has anything that a pass costs once.
    room = np.ones(len(layouts)) if step.bound else step.prompts_of_a_pass
    rows, sizes = [np.arange(len(layouts))], [np.ones(len(layouts))]
    number = 1.0
    while number < room.max(initial=1.0):
        at = np.flatnonzero(room > number)
        number = np.floor(number * STEP) if number >= EVERY else number + 1
        rows.append(at)
        sizes.append(np.minimum(number, room[at]))
    tried = np.concatenate(rows)
    return tried, np.concatenate(sizes) * ranks[tried]


def quickest_pass(step: Step) -> np.ndarray:
    """Prompts in flight of each layout whose first token is earliest under its load, 0 if none.

    Where few share a pass they wait for it longer; where many do, for each other. Of those that
    carry the load the ones that keep every promise come first.
    """
    rows, batch = pass_sizes(step)
    part = step.take(rows)
    values = {name: np.broadcast_to(value, rows.shape) for name, value in part(batch).items()}
    carries = values["load"] <= part.limits["load"]
    in_time = np.all([values[name] <= limit for name, limit in part.limits.items()], axis=0)
    best = np.zeros(len(step.layouts))
    order = np.lexsort((batch, values["ttft"], ~in_time, rows))
    order = order[carries[order]]
    at, first = np.unique(rows[order], return_index=True)
    best[at] = batch[order[first]]
    return best
