"""The picture of a plan: bars of what adds up, named as the plan names them."""

from __future__ import annotations

import pytest

import planner
from planner.report.pictures.section_bars import draw_plan_bars
from planner.text.errors import InputError
from tests.paths import ROOT

pytest.importorskip("matplotlib")


QUESTION = {
    "problem": "serving", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 16,
    "workload": {"input_tokens": 1000, "output_tokens": 1000},
    "promises": {"tpot": "25 ms"}, "choose": {"mode": "disaggregated"},
}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """Two pools under promises."""
    return planner.solve(QUESTION)


def test_every_part_of_a_plan_has_a_bar(plan, monkeypatch):
    """The widths of a bar are the numbers of the plan, and fill it; paths of what matters stand."""
    from matplotlib.axes import Axes

    drawn: list[tuple[str, float]] = []
    barh = Axes.barh

    def recorded(self, y, width, *rest, **options):
        if "label" in options:
            drawn.append((options["label"].split()[0], float(width)))
        return barh(self, y, width, *rest, **options)

    monkeypatch.setattr(Axes, "barh", recorded)
    draw_plan_bars(plan, "svg")
    point = plan.answer.plan
    step = {name: value for name, value in vars(point.time_per_step).items() if value}
    assert dict(drawn[: len(step)]) == step
    memory = vars(point.decode.memory_per_chip)
    last = {name: value for name, value in memory.items() if value and name != "capacity"}
    assert dict(drawn[-len(last) :]) == last
    assert sum(last.values()) == pytest.approx(memory["capacity"])


def test_the_same_plan_draws_the_same_bytes(plan):
    """As every picture does."""
    assert draw_plan_bars(plan, "svg") == draw_plan_bars(plan, "svg")


def test_a_plan_of_which_nothing_adds_up_is_not_drawn():
    """An infeasible question has neither parts nor slopes."""
    plan = planner.solve(ROOT / "examples" / "infeasible.yaml")
    with pytest.raises(InputError, match="this plan has no parts that add up"):
        draw_plan_bars(plan, "svg")
