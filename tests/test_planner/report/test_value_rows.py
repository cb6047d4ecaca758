"""Values and ranges in rows: the numbers of the plan, in the order of the answer, none cut off."""

from __future__ import annotations

import math

import pytest

import planner
from planner.protocol.problem import get_problem
from planner.report.pictures.section_bars import draw_plan_bars
from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows
from planner.text.errors import InputError
from tests.paths import EXAMPLES

pytest.importorskip("matplotlib")


def picture(name: str) -> ValueRows:
    """The picture of an example."""
    plan = planner.solve(EXAMPLES / f"{name}.yaml")
    return get_problem(plan.kind).picture(plan)


def test_a_cache_shows_what_each_tier_costs_and_fills_the_cheapest() -> None:
    """Recompute among them; the dot that is filled is the plan's choice."""
    plan = planner.solve(EXAMPLES / "cache-deepseek-v3.yaml")
    panels = get_problem(plan.kind).picture(plan).panels
    for panel, hold in zip(panels, plan.answer.plan.holds, strict=True):
        costs = {row.label: row.low for row in panel.rows}
        assert costs.pop("recompute") == hold.recompute
        assert costs == {x.tier: x.cost for x in hold.options}
        (chosen,) = (row for row in panel.rows if row.chosen)
        assert chosen.low == hold.cost == min(row.low for row in panel.rows)


def test_a_schedule_shows_its_times_and_those_of_the_simulation() -> None:
    """In the order of the answer, in seconds."""
    (panel,) = picture("schedule-departing-train").panels
    rows = {row.label: row.low for row in panel.rows}
    assert rows["p50"] < rows["mean"] < rows["p95"] < rows["p99"]
    assert rows["mean, simulated"] == pytest.approx(rows["mean"], rel=0.02)


def test_a_sheet_shows_readings_of_one_quantity_beside_each_other() -> None:
    """Only of what more than one says something, with what is given."""
    panels = {panel.title: panel for panel in picture("prices-long-context").panels}
    rows = panels["active parameters"].rows
    assert [row.label for row in rows][-1] == "as given"
    assert all(row.low <= row.high for panel in panels.values() for row in panel.rows)
    assert all(len(panel.rows) > 1 for panel in panels.values())


def test_a_step_of_reinforcement_learning_is_lanes_on_one_time_axis() -> None:
    """Off policy both pools begin with the step; what is beside follows, weights end it."""
    plan = planner.solve(EXAMPLES / "rl-qwen3-32b-h100.yaml")
    point, (lanes, steps) = plan.answer.plan, get_problem(plan.kind).picture(plan).panels
    writing, learning, beside, sent = lanes.rows
    assert (writing.low, writing.high) == (0.0, point.rollouts.seconds)
    assert (learning.low, beside.low) == (0.0, learning.high)
    assert beside.high == point.learning.seconds + point.beside
    assert max(writing.high, beside.high) == pytest.approx(sent.low)
    assert sent.high == point.step_time == steps.rows[0].low == min(x.low for x in steps.rows)


def test_the_same_rows_draw_the_same_bytes_and_open_ends_reach_the_edge() -> None:
    """Ranges without an end, values alike and values far apart are drawn."""
    rows = (ValueRow("open", 0.0, 4.0, "up to 4"), ValueRow("from", 2.0, math.inf, "from 2"),
            ValueRow("one", 3.0, 3.0, "3", chosen=True))  # fmt: skip
    made = ValueRows("a question", [ValuePanel("a quantity", "s", rows)])
    assert made.draw("svg") == made.draw("svg")
    with pytest.raises(InputError, match="this plan has no alternatives"):
        ValueRows("a question", []).draw("svg")


@pytest.mark.parametrize("name", ["train-deepseek-v3-h800", "size-gpt-oss-120b"])
def test_names_below_a_bar_stay_inside_the_picture_and_above_the_next(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of names end before the title of what comes below, and before the right edge."""
    from matplotlib.figure import Figure

    seen: list[Figure] = []
    save = Figure.savefig

    def kept_figure(self: Figure, *rest: object, **options: object) -> None:
        seen.append(self)
        save(self, *rest, **options)

    monkeypatch.setattr(Figure, "savefig", kept_figure)
    draw_plan_bars(planner.solve(EXAMPLES / f"{name}.yaml"), "png")
    axes = seen[0].axes
    legends = [x.get_legend().get_window_extent() for x in axes if x.get_legend()]
    assert len(legends) >= 2
    titles = [x._left_title.get_window_extent() for x in axes]
    for place, box in enumerate(legends):
        assert box.x1 <= seen[0].bbox.x1
        below = titles[place + 1] if place + 1 < len(legends) else axes[-1].get_window_extent()
        assert box.y0 >= below.y1 - 1
