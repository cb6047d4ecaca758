"""Which of two pools is full, and that one more token of its kind alone is paid for."""

from __future__ import annotations

from typing import Any

import pytest

import planner

ASKED: dict[str, Any] = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h200", "price": "$3/hour",
    "promises": {"ttft": "1 s", "tpot": "25 ms"}, "choose": {"mode": "disaggregated"},
}  # fmt: skip
SIDES = {  # by the pool that is full: chips that leave it the fewer, and lengths
    "prefill": {"chips": 6, "workload": {"input_tokens": 6000, "output_tokens": 100},
                "choose": {"mode": "disaggregated", "prefill": {"tp": 1, "replicas": 1},
                           "decode": {"tp": 1, "replicas": 4}}},
    "decode": {"chips": 6, "workload": {"input_tokens": 200, "output_tokens": 1500},
               "choose": {"mode": "disaggregated", "prefill": {"tp": 1, "replicas": 4},
                          "decode": {"tp": 1, "replicas": 1}}},
}  # fmt: skip


@pytest.mark.parametrize("full", SIDES)
def test_the_full_pool_bears_the_bill(full):
    """The kind of token whose pool is full has the whole rent, the other is free."""
    plan = planner.solve(ASKED | SIDES[full])
    point, load = plan.point, SIDES[full]["workload"]  # type: ignore[attr-defined]
    marginal = point.marginal
    busy = {name: pool.utilisation for name, pool in point.phases.items()}
    assert max(busy, key=busy.__getitem__) == full == marginal.full
    paid, free = ("input", "output") if full == "prefill" else ("output", "input")
    rent = point.usd_per_hour / 3600 / point.requests_per_s
    assert getattr(marginal, f"this_fleet_{free}") == 0
    each = rent / load[f"{paid}_tokens"] * 1e6
    assert getattr(marginal, f"this_fleet_{paid}") == pytest.approx(each, rel=1e-9)
    words = f"extra {free} is free, extra {paid} ${each:.3g}"
    assert words in " ".join(plan.text("more").split())
