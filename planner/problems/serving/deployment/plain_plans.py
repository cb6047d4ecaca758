"""Of plans that are about as good, which is the plainer; and the best that is plain altogether.

A plan is plain where measured runs cover it, and where its replicas have neither pipeline stages,
nor contexts cut over chips, nor overlapping half-batches: what every engine runs as its documents
show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.hull import MAX_EXTRAPOLATION
from planner.problems.serving.deployment.beyond_fit import extrapolated_shares
from planner.problems.serving.step.layouts import AXES
from planner.problems.serving.step.shares import coefficient_shares

if TYPE_CHECKING:
    from planner.problems.serving.search.batch import LayoutSearchResult
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.step.step import Step

BLOCK_SIZE = 50_000  # layouts per block of the check against measured runs
OUTSIDE_FIT, DOMAINS, STAGES, HALVES = 10**8, 10**4, 10**3, 10**2  # digits of how odd a layout is
MAX_DOMAINS = 9_999


def is_covered(step: Step, batch: np.ndarray) -> np.ndarray:
    """True if measured runs cover a layout at its batch, shape (n_layouts,); all on a bound."""
    inside = np.ones(len(step.layouts), dtype=bool)
    if step.bound or step.task.uses_bound:
        return inside
    for rows, part in step.by_task():
        for at in _parts(part.layouts.halves):
            piece, sizes = part.take(at), batch[rows[at]]
            out = extrapolated_shares(
                piece.task, piece.layouts, sizes, coefficient_shares(piece, sizes)
            )
            for shares in out.values():
                inside[rows[at]] &= np.maximum.reduce([*shares.values()]) <= 0
    return inside


def _parts(halves: np.ndarray) -> Iterator[np.ndarray]:
    for number in np.unique(halves):
        rows = np.flatnonzero(halves == number)
        for k in range(0, rows.size, BLOCK_SIZE):
            yield rows[k : k + BLOCK_SIZE]


def oddness(step: Step, batch: np.ndarray) -> np.ndarray:
    """Distance of layouts at their batches from plain ones, shape (n_layouts,), less is plainer.

    First counts whether measured runs cover them, then over how many domains of the fast network a
    replica lies, whether it has stages, whether ranks share contexts, whether half-batches overlap,
    and sizes that are no powers of two. Numbers of two pools add up.
    """
    layouts, domain = step.layouts, step.task.machine.chips_per_domain
    domains = np.minimum(-(-layouts.replica_chips // domain) - 1, MAX_DOMAINS)
    uneven = np.zeros(len(layouts), dtype=np.int64)
    for axis in AXES:
        sizes = getattr(layouts, axis)
        uneven += (sizes & (sizes - 1)) > 0
    return np.asarray(
        OUTSIDE_FIT * ~is_covered(step, batch) + DOMAINS * domains + STAGES * (layouts.pp > 1)
        + STAGES * (layouts.dcp > 1) + HALVES * (layouts.halves > 1) + uneven
    )  # fmt: skip


def coarse_oddness(step: Step, batch: np.ndarray | None = None) -> np.ndarray:
    """`oddness` of layouts of two pools, whether sizes are powers of two left out; 0 of a bound.

    A load fixes the bill, so that many are as good. Of layouts that read prompts it is told of
    their smallest pass, whatever the batch; without one of a single sequence.
    """
    layouts = step.layouts
    if step.task.uses_bound:
        return np.zeros(len(layouts), np.int64)
    if step.task.mode == "prefill":
        batch = (layouts.pp * layouts.dp_attention).astype(float)
    odd = oddness(step, np.ones(len(layouts)) if batch is None else batch)
    return odd - odd % HALVES


def plain_layouts(layouts: Layouts) -> np.ndarray:
    """Mask of the layouts with one stage, whole contexts and no half-batches."""
    whole = (layouts.cp == 1) & (layouts.dcp == 1)
    return np.asarray((layouts.pp == 1) & whole & (layouts.halves == 1))


def largest_measured(step: Step) -> np.ndarray | float:
    """The largest batch of a replica of each layout that measured runs reach, or nearly."""
    hull = step.task.profile.hull
    if hull is None or "batch" not in hull.ranges:
        return np.inf
    return np.floor(hull.ranges["batch"][1] * MAX_EXTRAPOLATION) * step.layouts.dp_attention


def plainest_first(step: Step, points: LayoutSearchResult, tie: float) -> np.ndarray:
    """The order of points found, those about as good as the best by how plain they are."""
    tied = np.flatnonzero(points.score <= points.score[:1] * (1 + tie))
    order = np.arange(points.score.size)
    if tied.size > 1:
        part = step.take(points.rows[tied])
        odd = oddness(part, points.batch[tied])
        keys = tied, odd, part.layouts.chips, odd >= OUTSIDE_FIT
        order[: tied.size] = tied[np.lexsort(keys)]
    return order
