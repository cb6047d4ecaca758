"""Two methods that answer the same question of a parameter give the same elasticity."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import planner
from planner.protocol.elasticity import EVERYTHING_FOLLOWS, LAYOUT_HELD
from planner.sensitivity.elasticities import elasticity_table

CLOSE = 2e-3  # the program has its tangents at a whole batch, the slopes are taken at a real one
ONE_POOL = {
    "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 8,
    "price": "$2.50/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
    "promises": {"tpot": "25 ms"}, "choose": {"mode": "aggregated", "weights": "fp8"},
}  # fmt: skip
# Prompts so short that decoding alone sets the rate.
TWO_POOLS = ONE_POOL | {
    "chips": 16, "workload": {"input_tokens": 600, "output_tokens": 1000},
    "choose": {"mode": "disaggregated", "weights": "fp8"},
}  # fmt: skip


@cache
def tabled(two: bool) -> Any:
    """The table of one of the two questions."""
    return elasticity_table(TWO_POOLS if two else ONE_POOL, switches=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "question"),
    [(TWO_POOLS, EVERYTHING_FOLLOWS), (ONE_POOL, LAYOUT_HELD)],
    ids=["two pools", "one pool"],
)
def test_multipliers_are_slopes_of_the_same_question(source, question):
    """`--why` prints duals of the plan's program, `sensitivity` slopes of its equations."""
    duals = planner.solve(source).elasticities
    table = tabled(source is TWO_POOLS)
    slopes = {
        row.path: each
        for row in table.rows
        for each in (row, *row.beside)
        if each.question == question
    }
    shared = duals.keys() & slopes.keys()
    assert len(shared) >= 7
    for path in shared:
        assert slopes[path].right == pytest.approx(duals[path], abs=CLOSE), path


def test_two_questions_have_two_answers():
    """With the layout held nothing else gives way to a shorter promise, so it costs more."""
    rows = {row.path: row for row in tabled(True).rows}
    (follows,) = rows["promises.tpot"].beside
    assert rows["promises.tpot"].question == LAYOUT_HELD
    assert follows.question == EVERYTHING_FOLLOWS
    assert rows["promises.tpot"].right < follows.right < 0
