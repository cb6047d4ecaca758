"""Share of a time that depends on some coefficients of a profile, by removing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.profile import COEFFICIENTS, NEUTRAL

if TYPE_CHECKING:
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.step.step import Step
    from planner.problems.serving.task.task import Task

QUANTITIES = ("tpot", "ttft")
REST = 1e-9  # of the time of a coefficient that is switched off
TINY_TIME = 1e-30  # s
DIGITS = 9  # decimals of a share; further digits depend on the other rows of an array


def coefficient_shares(step: Step, batch: np.ndarray) -> dict[str, np.ndarray]:
    """Shares of both times by coefficient, each of shape (n_coefficients, n).

    For times that are sums it is d ln time / d ln coefficient. All are of one evaluation, in which
    what rests on no coefficient is computed once.

    Args:
        step: of one layout, at n values of other numbers where `batch` has shape (n,).
    """
    values = step.task.profile.values
    names = [name for name in COEFFICIENTS if step.rests_on(name)]
    counted = [*map(COEFFICIENTS.index, names)]
    off = np.eye(len(counted) + 1, len(counted), dtype=bool)  # the last row is none
    switched = {
        name: np.where(off[:, k, None], value / REST if NEUTRAL[name] else value * REST, value)
        for k, (name, value) in enumerate((x, values[x]) for x in names)
    }
    every = step.under(switched).work(batch)
    rows: dict[str, np.ndarray] = {}
    for quantity in QUANTITIES:
        times = np.atleast_2d(every[quantity])
        times = np.broadcast_to(times, (len(off), times.shape[1]))
        parts = np.abs(1 - times[:-1] / np.maximum(times[-1], TINY_TIME))
        rows[quantity] = np.zeros((len(COEFFICIENTS), times.shape[1]))
        rows[quantity][counted] = np.minimum(parts, 1.0).round(DIGITS)
    return rows


def extrapolation_masks(task: Task, layouts: Layouts, batch: np.ndarray) -> dict[str, np.ndarray]:
    """Masks of points outside the profile's hull, by kind of distance; empty without a hull."""
    hull = task.profile.hull
    return {} if hull is None else hull.beyond(hull_numbers(task, layouts, batch))


def hull_numbers(task: Task, layouts: Layouts, batch: np.ndarray) -> dict[str, np.ndarray]:
    """The numbers of a pool, by dimension of a hull; of those with levels their places."""
    chips = layouts.replica_chips.astype(float)
    numbers = {"chips": chips, "domains": np.ceil(chips / task.machine.chips_per_domain)}
    numbers |= {"stages": layouts.pp.astype(float), "overlap": layouts.halves - 1}
    numbers["ranks"] = (layouts.dcp > 1).astype(int)
    if task.sizes.n_experts:
        stored = task.sizes.n_experts + task.redundant
        numbers |= {"ep": layouts.ep.astype(float), "uneven": (stored % layouts.ep > 0).astype(int)}
    if task.mode != "decode":
        numbers["prompt"] = np.asarray(task.input_tokens * (1 - task.cached_input))
    if task.mode != "prefill":
        numbers["batch"] = np.maximum(batch / layouts.dp_attention, 1.0)
        numbers["context"] = np.asarray(task.context)
        numbers["drafts"] = np.asarray(task.positions_per_step - 1)
    return numbers
