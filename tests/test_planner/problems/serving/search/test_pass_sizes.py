"""How many prompts share a pass, against trying every number of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.problems.serving.search.sizing import (
    fastest_prefill_batch,
    min_batch_for_load,
    pass_sizes,
)
from planner.problems.serving.step.layouts import Layouts


@dataclass(frozen=True)
class Passes:
    """Layouts that read prompts; what they say of a batch is in tables by prompts of a rank."""

    layouts: Layouts
    prompts_of_a_pass: np.ndarray
    limits: dict[str, Any]
    values: dict[str, np.ndarray]
    bound: bool = False

    @property
    def task(self) -> Any:
        return SimpleNamespace(mode="prefill", limits=self.limits, chance=None)

    def take(self, rows: np.ndarray) -> Passes:
        limits = {k: v[rows] if np.ndim(v) else v for k, v in self.limits.items()}
        values = {name: value[rows] for name, value in self.values.items()}
        return replace(self, layouts=self.layouts.take(rows), limits=limits, values=values)

    def __call__(self, batch: np.ndarray) -> dict[str, Any]:
        each = batch / (self.layouts.pp * self.layouts.dp_attention)
        at = each.astype(int) - 1
        assert (each == at + 1).all()
        return {name: value[np.arange(batch.size), at] for name, value in self.values.items()}


def passes(seed: int, count: int = 40) -> Passes:
    """Random ones, with ties."""
    rng = np.random.default_rng(seed)
    one, ranks = np.ones(count, np.int64), rng.integers(1, 4, (2, count))
    table = Layouts(one, ranks[0], one, ranks[1], *[one] * 5)
    values = {name: rng.integers(1, 7, (count, 40)) / 4 for name in ("load", "ttft", "need")}
    limits = {"load": rng.integers(2, 5, count) / 4, "ttft": 1.25, "need": 1.25}
    return Passes(table, rng.choice([1.0, 2.0, 9.0, 10.0, 40.0], count), limits, values)


def sizes_tried(room: int) -> list[int]:
    """Every number up to eight, then a quarter more at a time, and the last that there is."""
    sizes = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33]
    return [*(size for size in sizes if size < room), room]


@pytest.mark.parametrize("bound", [False, True])
def test_numbers_of_prompts_that_are_tried(bound):
    """Of each layout its own, for every rank and stage; the roof has nothing to share."""
    step = replace(passes(1), bound=bound)
    rows, batch = pass_sizes(step)
    assert rows[: len(step.layouts)].tolist() == list(range(len(step.layouts)))
    for row in range(len(step.layouts)):
        ranks = step.layouts.pp[row] * step.layouts.dp_attention[row]
        room = 1 if bound else int(step.prompts_of_a_pass[row])
        assert batch[rows == row].tolist() == [n * ranks for n in sizes_tried(room)]
    none = step.take(np.arange(0))
    assert [x.size for x in pass_sizes(replace(none, prompts_of_a_pass=np.ones(0)))] == [0, 0]


@pytest.mark.parametrize("seed", range(3))
def test_the_earliest_first_token_under_a_load_by_loops(seed):
    """Those that keep every promise first, then the earliest, then the fewest; 0 where none."""
    step = passes(seed)
    best = []
    for row in range(len(step.layouts)):
        ranks = step.layouts.pp[row] * step.layouts.dp_attention[row]
        tried = []
        for n in sizes_tried(int(step.prompts_of_a_pass[row])):
            load, first, need = (step.values[k][row, n - 1] for k in ("load", "ttft", "need"))
            if load <= step.limits["load"][row]:
                late = first > 1.25 or need > 1.25
                tried.append((late, first, n * ranks))
        best.append(min(tried)[2] if tried else 0)
    assert fastest_prefill_batch(step).tolist() == best
    assert min_batch_for_load(step, 5).tolist() == best
    assert 0 in best
