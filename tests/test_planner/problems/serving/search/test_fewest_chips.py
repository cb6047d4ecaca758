"""The fewest chips of a question that keep its promises, against trying all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.problems.serving.search.sizing import minimize_feasible_chips
from planner.problems.serving.step.layouts import Layouts


@dataclass(frozen=True)
class Chips:
    """A step of which only layouts and the chips asked about matter."""

    layouts: Layouts
    chips: tuple[int, ...]

    @property
    def task(self) -> Any:
        return SimpleNamespace(chips=self.chips, machine=SimpleNamespace(chips_per_domain=8))

    def take(self, rows: np.ndarray) -> Chips:
        return replace(self, layouts=self.layouts.take(rows))

    def on(self, table: Layouts) -> Chips:
        return replace(self, layouts=table)


@pytest.mark.parametrize("chips", [(4, 8, 16, 24, 40), (16, 4, 16), (8,)])
def test_the_fewest_chips_that_are_approved_by_trying_all(chips):
    """Of each layout; those that none approves stay on the most, with the replicas of it."""
    stage = np.array([1, 2, 4, 3, 8, 16, 5, 6])
    needs = np.array([1, 1, 1, 15, 3, 2, 50, 1])  # replicas
    one = np.ones(stage.size, np.int64)
    step = Chips(Layouts(stage, *[one] * 8), chips)

    def keeps(part: Chips) -> np.ndarray:
        table = part.layouts
        return table.replicas >= needs[np.argmax(table.tp[:, None] == stage, axis=1)]

    table = minimize_feasible_chips(step, keeps).layouts
    for row, (of, need) in enumerate(zip(stage.tolist(), needs.tolist(), strict=True)):
        enough = [n for n in sorted(chips) if replicas(n, of) >= need]
        paid = enough[0] if enough else max(chips)
        assert (table.chips[row], table.replicas[row]) == (paid, replicas(paid, of))


def replicas(chips: int, stage: int) -> int:
    """Replicas of one stage on so many chips in domains of eight."""
    if stage > 8:
        return chips // stage
    return chips // 8 * (8 // stage) + chips % 8 // stage
