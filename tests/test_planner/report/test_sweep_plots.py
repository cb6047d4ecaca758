"""Pictures of sweeps: what is drawn for which axes, with units, regions and kinks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.report.pictures.sweep_axes import scale_column
from planner.report.pictures.sweep_lines import draw_sweep
from planner.sweep.table import Table
from planner.text.errors import InputError
from tests.loops import for_all

pytest.importorskip("matplotlib")


def table(over: dict[str, list[Any]], units: dict[str, str], **columns: list[Any]) -> Table:
    """A table of one's own, without anything solved."""
    meta = {"over": list(over), "units": units, "points": len(next(iter(over.values()))),
            "scenario": {"model": "deepseek-v3", "system": "hgx-h200"}}  # fmt: skip
    rows = {"status": ["optimal"] * meta["points"], "reason": [None] * meta["points"]}  # type: ignore[operator, list-item]
    return Table({**over, **rows, **columns}, meta, None)


def line(**columns: Any) -> Table:
    """A price that falls over five speeds of memory; the layout changes once."""
    given = {
        "usd_per_mtok": [5.0, 4.0, 3.0, 2.0, 1.0],
        "layout": ["(tp 8)", "(tp 8)", "(tp 4)", "(tp 4)", "(tp 4)"],
        "bottleneck": ["kv"] * 5,
        **columns,
    }
    over = {"system.memory_bandwidth": [1e12, 2e12, 4e12, 8e12, 16e12]}
    return table(over, {"system.memory_bandwidth": "byte/s", "ttft": "s"}, **given)


def texts(picture: bytes) -> str:
    """The words of an SVG, which stand as comments before their outlines."""
    return " | ".join(re.findall(r"<!-- (.*?) -->", picture.decode(), re.DOTALL))


def test_a_line_has_units_and_its_kink_is_named():
    """Base units become those people read; the new layout and where it begins stand below."""
    found = texts(draw_sweep(line(), "svg"))
    assert "system.memory_bandwidth [TB/s]" in found
    assert "1 | 2 | 4 | 8 | 16" in found  # the ticks are the points
    assert "kinks, where another layout is best:" in found
    assert "A  from 4 TB/s: (tp 4)" in found
    assert "usd_per_mtok: deepseek-v3 on hgx-h200" in found


def test_a_line_without_kinks_lists_none():
    """One layout and one bottleneck all along."""
    found = texts(draw_sweep(line(layout=["(tp 8)"] * 5), "svg"))
    assert "kinks" not in found


def test_band_and_bound_are_drawn_beside_a_line_that_is_alone():
    """Where the table has them."""
    low, high, bound = ([f * x for x in (5.0, 4.0, 3.0, 2.0, 1.0)] for f in (0.8, 1.3, 0.5))
    shown = line(usd_per_mtok_low=low, usd_per_mtok_high=high, usd_per_mtok_bound=bound)
    found = texts(draw_sweep(shown, "svg"))
    assert "band of the profile" in found
    assert "bound of the same plan" in found


def test_a_map_names_its_regions_and_what_keeps_no_promise():
    """Six by six cells: a layout on the left, another on the right, nothing above."""
    side = range(6)
    over = {
        "choose.batch": [2.0**j for j in side for _ in side],
        "workload.input_tokens": [10.0 * 4**i for _ in side for i in side],
    }
    answered = [j < 4 for j in side for _ in side]
    layouts = ["(tp 1)" if i < 3 else "(tp 2)" for _ in side for i in side]
    shown = table(
        over,
        {"choose.batch": "seq", "workload.input_tokens": "token"},
        usd_per_mtok=[1.0 + i if kept else None for i, kept in enumerate(answered)],
        layout=[name if kept else None for name, kept in zip(layouts, answered, strict=True)],
    )
    for column, value in (("status", "infeasible"), ("reason", "tpot, memory")):
        kept = shown.columns[column]
        shown.columns[column][:] = [  # type: ignore[index]
            old if yes else value for old, yes in zip(kept, answered, strict=True)
        ]
    found = texts(draw_sweep(shown, "svg"))
    assert "A  (tp 1) (33%)" in found
    assert "no plan keeps tpot (33%)" in found
    assert "choose.batch [seq]" in found
    assert "workload.input_tokens [token]" in found


def test_words_are_bars():
    """A value for each, and the layout it is reached with."""
    shown = table(
        {"system": ["hgx-h200", "hgx-h100", "hgx-h20"]},
        {},
        usd_per_mtok=[1.0, 2.0, None],
        layout=["(tp 1)", "(tp 2)", None],
    )
    found = texts(draw_sweep(shown, "svg"))
    assert "hgx-h200" in found
    assert "(tp 2)" in found


def test_the_same_table_draws_the_same_bytes():
    """No date and no random name."""
    assert draw_sweep(line(), "svg") == draw_sweep(line(), "svg")


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ("layout", "holds words"),
        ("usd_per_mtk", "did you mean 'usd_per_mtok'"),
        ("x y", "no column"),
    ],
)
def test_what_is_no_number_is_not_drawn(of, told):
    """The column is named, and what was meant."""
    with pytest.raises(InputError, match=told):
        draw_sweep(line(), "svg", of)


def test_three_axes_are_not_drawn():
    """A picture has two; one with a single value is none."""
    over = {name: [1.0, 2.0, 3.0] for name in "abc"}
    with pytest.raises(InputError, match="one or two axes, the sweep varies 3"):
        draw_sweep(table(over, {}, usd_per_mtok=[1.0, 2.0, 3.0]), "svg")
    one = {"a": [1.0, 2.0], "b": [1.0, 1.0]}
    assert draw_sweep(table(one, {}, usd_per_mtok=[1.0, 2.0]), "svg")


@for_all(
    ("unit", "values", "read"),
    [
        ("s", [0.02, 0.05], ("ms", (20.0, 50.0))),
        ("s", [2.0, 50.0], ("s", (2.0, 50.0))),
        ("byte", [80e9, 141e9], ("GB", (80.0, 141.0))),
        ("USD/(chip*s)", [3.6 / 3600, 7.2 / 3600], ("USD/(chip*hour)", (3.6, 7.2))),
        ("token", [1000.0, 2000.0], ("token", (1000.0, 2000.0))),
        ("token", [1e12, 2e13], ("trillion tokens", (1.0, 20.0))),
        ("USD", [2e6, 4e7], ("million USD", (2.0, 40.0))),
        ("param", [7e9, 7e10], ("billion parameters", (7.0, 70.0))),
        ("chip", [8.0, 16.0], ("chips", (8.0, 16.0))),
        ("J/s", [400.0, 700.0], ("W", (400.0, 700.0))),
    ],
)
def test_units_are_those_people_read(unit, values, read):
    """By the size of the middle value."""
    found = scale_column(table({"x": values}, {"x": unit}), "x")
    assert found.unit == read[0]
    assert found.values == pytest.approx(read[1])


def test_a_dollar_in_a_name_is_a_dollar():
    """Two of them are no formula: names come as they are written, whatever they hold."""
    named = line(layout=["a$x_{$", "a$x_{$", *["b $\\frac{$"] * 3])
    found = texts(draw_sweep(named, "svg"))
    assert "from 4 TB/s: b $\\frac{$" in found
