"""What a given, and the batch, do to the wait before a prompt is read, the replicas held."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.serving.step.queueing import queue
from planner.sensitivity.directional_derivatives import Directions, values_at

if TYPE_CHECKING:
    from formulas.numerics.tape import Tape
    from planner.problems.serving.task.task import Task

__all__ = ["ARRIVALS", "waits", "with_wait"]

ARRIVALS = "arrivals"  # requests per second, as if it were a symbol
STEP = 1e-5  # of a given, in logarithms


def waits(task: Task) -> bool:
    """Whether prompts wait: under open arrivals, in the estimate, where prompts are read."""
    return task.arrivals is not None and not task.uses_bound and task.mode != "decode"


def with_wait(
    task: Task,
    tape: Tape,
    row: Mapping[str, float],
    batch: float,
    directions: Directions,
    first: tuple[float, np.ndarray],
) -> tuple[float, np.ndarray]:
    """The time to first token with its wait [s], and its slopes; `first` is it without."""
    time, slopes = first
    wait = _wait(task, tape, row, batch)
    moved = []
    for symbols in directions.values():
        ends = [_wait(task, tape, _varied(row, symbols, sign * STEP), batch) for sign in (1, -1)]
        moved.append((ends[0] - ends[1]) / (2 * STEP))
    ends = [_wait(task, tape, row, batch * math.exp(sign * STEP)) for sign in (1, -1)]
    moved.append((ends[0] - ends[1]) / (2 * STEP))
    total = time + wait
    return total, (time * slopes + np.array(moved)) / total


def _varied(row: Mapping[str, float], symbols: Mapping[str, float], by: float) -> dict[str, float]:
    return {**row, **{name: row[name] * math.exp(power * by) for name, power in symbols.items()}}


def _wait(task: Task, tape: Tape, row: Mapping[str, float], batch: float) -> float:
    found = values_at(tape, row, batch)
    up = max(row["n_rep"] - task.spare, 1e-9)
    full = (1.0 - task.headroom) * row["r_fill"] / found["T_slot"]
    load = row[ARRIVALS] / up if task.loaded else full
    arrays = {name: np.array([value]) for name, value in found.items()}
    given = {name: np.array([value]) for name, value in {**row, "B": batch}.items()}
    return float(queue(given, arrays, np.array([load]))["wait"][0])
