"""What is not looked at, counted: pairs of pools that cannot win."""

from __future__ import annotations

import pytest

import planner

FLEET = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 2000,
    "price": "$2/hour", "workload": {"input_tokens": 500, "output_tokens": 100},
    "promises": {"tpot": "50 ms"}, "choose": {"mode": "disaggregated"},
    "estimate": "bound",
}  # fmt: skip


@pytest.mark.slow
def test_of_a_large_fleet_few_pairs_of_pools_are_split():
    """Where chips are many, what a pair promises at best it nearly keeps: few are looked at.

    All pairs were split once, in seconds. Before contexts were cut over ranks it was a fortieth.
    """
    certificate = planner.solve(FLEET).document["certificate"]
    assert certificate["layouts_considered"] > 3e6
    assert certificate["points_evaluated"] < certificate["layouts_considered"] / 35
