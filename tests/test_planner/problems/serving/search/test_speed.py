"""What is not looked at, counted: pairs of pools that cannot win."""

from __future__ import annotations

import planner

FLEET = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 2000,
    "price": "$2/hour", "workload": {"input_tokens": 500, "output_tokens": 100},
    "promises": {"tpot": "50 ms"}, "choose": {"mode": "disaggregated"},
    "estimate": "bound",
}  # fmt: skip


def test_of_a_large_fleet_few_pairs_of_pools_are_split():
    """It has 634,368 of them; where chips are many, what a pair promises at best it nearly keeps.

    All of them were split once, in seconds.
    """
    certificate = planner.solve(FLEET).document["certificate"]
    assert certificate["points_evaluated"] < 634_368 / 10
