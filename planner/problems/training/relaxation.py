"""What no layout goes below: each term of a step at its least over all layouts that fit.

The least of a sum is not below the sum of the least: of the rows with some layout that keeps
memory and limits, every term is taken where it is smallest, whichever layout that is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.problems.training.lattice import FLAGS, ROWS
from planner.problems.training.search import RatedRows, Tally
from planner.problems.training.step.layouts import TrainingLayouts
from planner.problems.training.step.step import step_times
from planner.problems.training.worth import ChipCount

LIGHT = ("recompute", "offload")  # whose first value makes every term least: nothing done again
MOST = 300_000


def relaxed_steps(tally: Tally) -> Iterator[tuple[ChipCount, float]]:
    """For each number of chips the relaxed time of a step [s]; none where no layout fits."""
    least: dict[int, tuple[ChipCount, dict[str, float]]] = {}
    for rows in tally.best:
        chips, terms = least.setdefault(id(rows.chips), (rows.chips, {}))
        for name, value in _least_terms(rows).items():
            terms[name] = min(value, terms.get(name, value))
    for chips, terms in least.values():
        if terms:
            yield chips, sum(terms.values())


def _least_terms(rows: RatedRows) -> dict[str, float]:
    """The least of each term [s] over the rows that fit."""
    fitting = np.flatnonzero(np.isfinite(rows.score))
    if not fitting.size:
        return {}
    columns = rows.chunk.columns()
    flags = np.stack([np.asarray(columns[name])[0] for name in FLAGS], axis=1)
    light = np.all([
        flags[:, FLAGS.index(name)] == flags[:, FLAGS.index(name)].min() for name in LIGHT
    ], axis=0)  # fmt: skip
    chosen = flags[light].T[:, None, :]
    named = {name: np.asarray(columns[name])[fitting] for name in ROWS}
    layouts = TrainingLayouts(**named, **dict(zip(FLAGS, chosen, strict=True)))
    terms = step_times(rows.chips.case.task, layouts, ("step", "terms")).terms
    return {name: float(np.min(value)) for name, value in terms.items()}
