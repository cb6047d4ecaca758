"""What the text of a cache question prints, number by number, from the fields of the plan."""

from __future__ import annotations

import pytest

import planner
from tests.cases.printed import lines, numbers, shows

HOUR = 3600.0
ASKED = {
    "problem": "cache", "model": "llama-3.1-8b", "system": "hgx-h200", "price": "$4/hour",
    "chips": 1, "weights": "bf16", "prefix": 8000, "margin": 0.5,
    "tiers": [{"name": "flash", "price": "$0.2/GB/month", "capacity": "30 TB",
               "read_rate": "14 GB/s"}],
    "reuse": {"1 min": 0.9, "5 min": 0.5, "30 hours": 0.1},
}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """A prefix with one tier beside HBM."""
    return planner.solve(ASKED)


def test_the_head_is_the_plan(plan):
    """Costs of a miss and of holding, and what a hit saves of the wait."""
    point, text = plan.answer.plan, str(plan)
    first = point.holds[0]
    printed = numbers(lines(text, "Cost")[0].replace("/Mtok", ""))
    assert {round(x, 12) for x, _ in printed} >= {
        round(float(f"{value:.3g}"), 12) for value in (point.miss, first.cost)
    }
    shows(text, "TTFT", (point.prefill_time, first.ttft_saved))
    assert point.cost == first.cost


def test_rows_of_hold_times_are_the_plan(plan):
    """Chance of a hit, cost, the cost of computing again, price of a hit, chance that pays."""
    table = str(plan).partition("Read again")[2].partition("\n\n")[0].splitlines()[1:]
    for line, hold in zip(table, plan.answer.plan.holds, strict=True):
        (_, hit, cost, again, *rest) = numbers(line)
        wanted = [hold.hit, hold.cost, hold.recompute]
        if hold.tier is not None:
            wanted += [hold.floor, hold.price, hold.hit_chance_needed]
        for (number, half), value in zip((hit, cost, again, *rest), wanted, strict=True):
            assert abs(number - value) <= half, line
        assert hold.recompute == pytest.approx(hold.hit * plan.answer.plan.miss)


def test_rows_of_tiers_are_the_plan(plan):
    """Price of a GB for an hour, how long holding pays, reads an hour that pay."""
    point, text = plan.answer.plan, str(plan)
    for tier in point.tiers:
        row = lines(text.partition("$/GB/hour")[2], f"{tier.name} ")[0]
        (price, half), (hold, near), (reads, about), *rest = numbers(row.replace("reads/hour", ""))
        assert abs(price - tier.usd_per_gb_hour) <= half
        assert abs(hold - tier.break_even_hold) <= near
        assert abs(reads - tier.reads_per_hour) <= about
        assert tier.reads_per_hour == pytest.approx(HOUR / tier.break_even_hold)
        assert [x for x, _ in rest] == pytest.approx([tier.drain_time] if rest else [], rel=5e-3)
