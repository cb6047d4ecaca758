"""Layouts as engines state them: ways multiply, weights fit, what cannot have run is refused."""

from __future__ import annotations

import pytest

from planner.catalogue.chips import chip
from planner.measurements.published_names import BadRow, published_sizes
from planner.measurements.readers import runs
from planner.measurements.readers.run_layouts import (
    capacity,
    parallel_sizes,
    require_fits_memory,
    worker_chips,
)
from tests.paths import shared

EXPERTS = 128


@pytest.mark.parametrize(
    ("tp", "copies", "tp_expert", "ep", "meant"),
    [
        ("1", "", "2", "1", (1, 2, 1, 2)),  # copies follow from the experts' ways
        ("1", "", "4", "1", (1, 4, 1, 4)),
        ("2", "", "4", "1", (2, 2, 1, 4)),
        ("2", "", "1", "2", (2, 1, 2, 1)),  # tp x dp = tp_expert x ep holds as it is
        ("8", "1", "1", "8", (8, 1, 8, 1)),
        ("1", "8", "1", "8", (1, 8, 8, 1)),
        ("8", "", "", "", (8, 1, 1, 8)),  # the experts' ways are not given
    ],
)
def test_ways_multiply(tp, copies, tp_expert, ep, meant):
    """For experts tp x dp = tp_expert x ep, whichever of them a table leaves out."""
    row = {"tp_size": tp, "attention_dp_size": copies, "moe_tp_size": tp_expert, "moe_ep_size": ep}
    layout = parallel_sizes(row, EXPERTS)
    assert tuple(layout[name] for name in ("tp", "dp_attention", "ep", "tp_expert")) == meant
    assert layout["tp"] * layout["dp_attention"] == layout["tp_expert"] * layout["ep"]


@pytest.mark.parametrize(
    ("tp", "copies", "tp_expert", "ep", "reason"),
    [
        ("2", "1", "4", "1", "tp 2 x dp 1 are 2 chips, .* are 4: dp 2 would"),
        ("3", "", "4", "1", "tp 3 does not divide"),
        ("4", "2", "3", "1", "are 8 chips, .* are 3$"),
    ],
)
def test_ways_that_do_not_multiply_are_refused_with_those_that_would(
    tp, copies, tp_expert, ep, reason
):
    """A layout that cannot be is named, with the copies that would make it one."""
    row = {"tp_size": tp, "attention_dp_size": copies, "moe_tp_size": tp_expert, "moe_ep_size": ep}
    with pytest.raises(BadRow, match=reason):
        parallel_sizes(row, EXPERTS)


def test_weights_beyond_the_memory_are_refused():
    """235 billion weights of a byte: not on one H200, on two they ran; the answer says which."""
    sizes, h200 = published_sizes("qwen3-235b-a22b", "fp8", "bf16"), chip("h200")
    with pytest.raises(BadRow, match=r"236 GB of weights do not fit on 1 h200 .*: 2 would"):
        require_fits_memory(sizes, h200, 1)
    require_fits_memory(sizes, h200, 2)


@pytest.mark.parametrize("name", ["h100", "h200", "b200", "gb200", "rtx-4080", "trainium1"])
def test_a_chip_holds_what_its_driver_reports_or_the_larger_reading(name):
    """Drivers report 0 to 9 % more than vendors list, and never less."""
    assert 1.0 <= capacity(chip(name)) / chip(name).memory <= 1.09


def test_rows_of_runs_fit_and_multiply():
    """No row of the published runs is read onto chips that cannot hold its weights."""
    for file in ("serving_runs_2.csv", "serving_more_runs.csv"):
        readings = runs(shared(file))
        assert not readings.refused
        for row in readings.rows:
            require_fits_memory(row.sizes, row.chip, row.chips)
            if row.sizes.n_experts:
                layout = row.layout
                assert layout["tp"] * layout["dp_attention"] == layout["tp_expert"] * layout["ep"]


def test_copies_left_out_of_the_open_rows_are_those_that_fit():
    """Rows with tp 1 and experts cut in two and four ran on two and four chips, not on one."""
    rows = [r for r in runs(shared("serving_runs_2.csv")).rows if r.layout["dp_attention"] > 1]
    assert {(r.layout["tp"], r.layout["dp_attention"]) for r in rows} == {(1, 2), (1, 4), (2, 2)}
    assert all(worker_chips(dict(r.layout)) == r.chips for r in rows)
