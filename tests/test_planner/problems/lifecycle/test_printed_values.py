"""What the text of a whole life prints, number by number, from the fields of the plan."""

from __future__ import annotations

import pytest

import planner
from tests.cases.printed import lines, numbers, shows

TOKENS, RENT = 2e13, 3.0
ASKED = {
    "problem": "lifecycle", "law": "besiroglu-2024", "draws": 0, "quality": {"loss": 2.1},
    "inference": {"tokens": TOKENS}, "family": {"attention": "gqa"},
    "serving": {"system": "hgx-h200", "chips": 8, "price": f"${RENT}/hour",
                "workload": {"input_tokens": 3000, "output_tokens": 600},
                "promises": {"tpot": "50 ms"},
                "choose": {"weights": "fp8", "tp": 1, "mode": "aggregated"}},
    "phases": {"pretrain": {"system": "hgx-h100", "mfu": 0.4, "price": "$2/hour"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """A model of one loss for so many tokens."""
    return planner.solve(ASKED)


def test_the_table_of_sizes_is_the_plan(plan):
    """Each size with its tokens, both bills and their sum, and how much more it costs."""
    table = str(plan).partition(" size  tokens")[2].partition("\n\n")[0].splitlines()[1:]
    rows = {f"{row.n_active / 1e9:.3g}": row for row in plan.answer.evaluated}
    best = plan.answer.plan.cost.total.usd
    assert sum("plan" in line for line in table) == 1
    for line in table:
        (size, _), *printed = numbers(line)
        row = rows[f"{size / 1e9:.3g}"]
        wanted = (row.pretrain, row.training_usd, row.usd_per_mtok, row.serving_usd, row.total_usd,
                  row.total_usd / best - 1)  # fmt: skip
        assert len(printed) == len(wanted) - ("plan" in line)
        for (number, half), value in zip(printed, wanted, strict=False):
            assert abs(number - value) <= half, line
        assert row.total_usd == pytest.approx(row.training_usd + row.serving_usd)
        assert row.serving_usd == pytest.approx(row.usd_per_mtok * TOKENS / 1e6)
        assert row.total_usd >= best * (1 - 1e-9)


def test_the_head_is_the_plan(plan):
    """Size and tokens, both bills with their shares, what Chinchilla's choice would cost."""
    point, text = plan.answer.plan, str(plan)
    build = lines(text, "Build")[0].partition(";")[0]
    (size, near), (trained, half), *_ = numbers(build)
    assert abs(size - point.n_active) <= near
    assert abs(trained - point.tokens.pretrain) <= half
    cost = point.cost
    whole = cost.total.usd
    shows(text, "Cost", (whole, cost.pretrain.usd, cost.pretrain.usd / whole, cost.inference.usd,
                         cost.inference.usd / whole))  # fmt: skip
    assert cost.pretrain.usd + cost.inference.usd == pytest.approx(whole)
    hours = TOKENS / point.chips.inference.tokens_per_s_per_unit * 8 / 3600
    assert cost.inference.usd == pytest.approx(hours * RENT)
    assert cost.inference.chip_hours == pytest.approx(hours)
