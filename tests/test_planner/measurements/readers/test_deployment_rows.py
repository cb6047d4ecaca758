"""Published serving points: empty is not stated, `?` uncertain, ways may count cores."""

from __future__ import annotations

import pytest

from planner.catalogue.chips import chip
from planner.measurements.measurement import skip_reason
from planner.measurements.published_names import BadRow
from planner.measurements.readers import detect_file_kind, read
from planner.measurements.readers.steady_batches import deployments, stated_layout
from tests.paths import shared

NAMES = ("chip figures", "network", "shape", "number format")


def test_the_table_is_recognised_and_no_row_is_refused_for_want_of_a_name():
    """54 rows; what is refused lacks a number that no prediction can do without."""
    path = shared("deployments.csv")
    assert detect_file_kind(path) == "deployments"
    readings = read(path)
    assert readings.lines == 54
    assert len({row.id for row in readings.rows}) >= 32
    assert not any(skip_reason(row) for row in readings.rows)
    assert not [x for x in readings.refused if any(name in x.reason for name in NAMES)]


@pytest.mark.parametrize(
    ("text", "phase", "name", "chips", "meant"),
    [
        ("DP4TP2_EP", "serve", "ironwood", 4, (1, 4, 4)),  # eight cores, two of a chip by tensors
        ("DP8_EP", "serve", "ironwood", 4, (1, 4, 4)),  # eight cores, each a copy
        ("TP4 EP4", "serve", "h100", 4, (4, 1, 4)),
        ("TP8 prefill + TP8 decode", "prefill", "h800", 8, (8, 1, 1)),
    ],
)
def test_layouts_are_read_in_chips(text, phase, name, chips, meant):
    """Cores of one chip share its memory; of two pools the one that the row times."""
    ways = stated_layout(text, phase, chip(name), chips, 128)
    assert (ways["tp"], ways["dp_attention"], ways["ep"]) == meant
    assert ways["tp"] * ways["dp_attention"] == ways["tp_expert"] * ways["ep"] == chips


def test_a_layout_that_does_not_multiply_is_refused():
    """Three ways on four chips are no layout of them, nor of their cores."""
    with pytest.raises(BadRow, match="not stated in ways: TP3"):
        stated_layout("TP3", "serve", chip("h100"), 4, 0)


def test_times_are_those_of_the_row():
    """A prompt of 8,192 tokens read alone on eight H800: 212.05 ms, a static batch of one."""
    row = next(each for each in deployments(shared("deployments.csv")).rows if each.id == "dp052")
    assert (row.quantity, row.seconds, row.prompt) == ("ttft", pytest.approx(0.21205), 8192)
    assert (row.looped, row.batch, row.chips) == (False, 1.0, 8)
