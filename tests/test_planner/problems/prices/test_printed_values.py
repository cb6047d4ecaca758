"""What the text of a price sheet prints: every reading's interval by the plan's fields."""

from __future__ import annotations

import pytest

import planner
from tests.cases.printed import lines, numbers

SHEET = {
    "input": "$3/Mtok", "output": "$15/Mtok", "cached": "$0.30/Mtok",
    "write": [{"hold": "5 min", "price": "$3.75/Mtok"}, {"hold": "1 hour", "price": "$6/Mtok"}],
    "tiers": [{"name": "fast", "price": "6x", "speed": "2.5x"}],
}  # fmt: skip
ASKED = {"problem": "prices", "sheet": SHEET,
         "chips": [{"like": "hgx-h100", "price": "$2/hour"}],
         "given": {"n_active": "100B", "context": ["10k", "30k"]}}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """A sheet with writes and a fast mode."""
    return planner.solve(ASKED)


def test_what_prices_alone_say(plan):
    """Holding, writes and modes by hand, from listed prices."""
    values = {row.name: row for row in plan.answer.plan.inferences if row.reading is not None}
    hold = (6.0 - 3.75) / 3300
    for name, value in {
        "hold_price": hold * 1e-6, "hold_over_input": hold / 3.0,
        "break_even_reads": hold / (3.0 - 0.3), "fixed_share": 5.0 / 14.0,
        "batch_over_normal": 1 / 15.0, "speed_limit": 14.0 / 5.0,
        "break_even_requests": (6.0 - 0.3) / (3.0 - 0.3),
    }.items():  # fmt: skip
        assert values[name].ends == pytest.approx((value, value)), name


def test_intervals_are_printed_as_they_are(plan):
    """The size by the input price and memory over arithmetic, with both ends."""
    text = str(plan)
    first = {}
    for row in plan.answer.plan.inferences:
        if row.reading is not None:
            first.setdefault(row.name, row)
    printed = (("active parameters", "n_active", 0), ("all parameters", "n_total", 0),
               ("memory time vs compute", "memory_over_arithmetic", 0))  # fmt: skip
    table = text.partition("\nReading")[2]
    for label, name, nth in printed:
        (low, near), (high, half), *_ = numbers(lines(table, label)[nth])
        row = first[name]
        assert abs(low - row.low) <= near, label
        assert abs(high - row.high) <= half, label
        assert row.mid == pytest.approx((row.low * row.high) ** 0.5)
    shares = numbers(lines(table, "fixed share of a step")[0])
    assert shares[0][0] == pytest.approx(5 / 14, abs=5e-4)
