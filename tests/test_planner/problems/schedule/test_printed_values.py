"""What the text of a schedule prints, number by number, from the fields of the plan."""

from __future__ import annotations

import pytest

import planner
from tests.cases.printed import shows

ASKED = {"problem": "schedule", "interval": "20 ms", "capacity": 16, "arrivals": "600 requests/s",
         "draws": 20_000}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """A train of sixteen seats, three quarters taken."""
    return planner.solve(ASKED)


def test_the_head_is_the_plan(plan):
    """Waits, those without a limit of seats, the simulation, and who is left behind."""
    point, text = plan.answer.plan, str(plan)
    late = point.quantiles
    # The names of two quantiles stand before their values.
    shows(text.replace("p95 ", "").replace("p99 ", ""), "Wait",
          (point.mean, late.p95, late.p99))  # fmt: skip
    shows(text, "Instead", (1.5 * 0.020,))
    shows(text, "How sure", (point.simulation.requests, point.simulation.mean))
    shows(text, "Limit", (point.left_out,))
    assert point.load == pytest.approx(600 * 0.020 / 16)
    assert point.over_interval == pytest.approx(point.mean / 0.020)


def test_the_table_is_the_plan(plan):
    """Mean and quantiles in their order."""
    point = plan.answer.plan
    late = point.quantiles
    row = (point.mean, late.p50, late.p95, late.p99)
    shows(str(plan), "arrival to end of ride", row)
    assert sorted(row[1:]) == list(row[1:])


def test_the_queue_and_the_wait_are_one():
    """Little's law: who is left behind waits an interval, beside the mean of one and a half."""
    point = planner.solve(ASKED).answer.plan
    assert point.mean / 0.020 == pytest.approx(1.5 + point.queue / (600 * 0.020), rel=1e-9)
