"""What the text of a budget prints, number by number, from the fields of the plan."""

from __future__ import annotations

import pytest

import planner
from tests.cases.printed import lines, numbers, shows

PHASES = {
    name: {"system": "hgx-h100", "mfu": mfu, "price": "$2/hour"}
    for name, mfu in (("pretrain", 0.4), ("rl", 0.25), ("inference", 0.2))
}
ROWS = {"Pre-training": "pretrain", "RL": "rl", "Serving": "inference"}


@pytest.fixture(scope="module")
def plan():
    """As good as a compute-optimal 13B, for the least money."""
    return planner.solve({
        "problem": "budget", "law": "besiroglu-2024", "draws": 0, "objective": "cost",
        "quality": {"like": {"n_active": 13e9}}, "inference": {"tokens": 2e12},
        "rl": {"tokens": 1e11}, "phases": PHASES,
    })  # fmt: skip


def test_the_head_is_the_plan(plan):
    """Size, tokens, tokens a parameter, cost, what Chinchilla's choice would cost."""
    point, text = plan.answer.plan, str(plan)
    size, trained = point.n_active, point.tokens.pretrain
    shows(text, "Build", (size, trained, 1e11, trained / size))
    other = plan.answer.compute_optimal
    usd = point.cost.total.usd
    shows(text, "Instead", (13e9, other.tokens.pretrain, other.cost, other.cost / usd - 1))
    (cost, half), *_ = numbers(lines(text, "Cost")[0])
    assert abs(cost - usd) <= half


def test_rows_of_phases_are_the_plan(plan):
    """Dollars, share, FLOP done and rented, chip-hours; sums and shares."""
    point, text = plan.answer.plan, str(plan)
    total = point.cost.total
    flop = {"pretrain": 6 * point.tokens.pretrain, "rl": 3e11, "inference": 4e12}
    for label, name in ROWS.items():
        row = getattr(point.cost, name)
        printed = numbers(lines(text, f"{label} ")[-1])
        wanted = (row.usd, row.usd / total.usd, row.flop, row.flop_paid, row.chip_hours)
        for (number, half), value in zip(printed, wanted, strict=True):
            assert abs(number - value) <= half, label
        assert row.flop == pytest.approx(flop[name] * point.n_active)
        assert row.flop_paid == pytest.approx(row.flop / PHASES[name]["mfu"])
        assert row.usd == pytest.approx(row.chip_hours * 2.0)
    parts = [getattr(point.cost, name) for name in ROWS.values()]
    for key in ("usd", "flop", "flop_paid", "chip_hours"):
        summed = sum(getattr(part, key) for part in parts)
        assert summed == pytest.approx(getattr(total, key))
