"""Nothing that was measured cleanly is faster than the bound."""

import csv
from pathlib import Path

import pytest

from planner.calibration.adapters import read_steady
from planner.calibration.ideal import bound_of

STEADY = Path(__file__).parents[2] / "shared" / "data" / "serving_steady.csv"

# Clean rows below the bound, each with what is wrong with it. There is none.
EXPLAINED: dict[str, str] = {}
COMPUTED = 672
UNCOMPUTED = ("no chip figures",)


@pytest.fixture(scope="module")
def table():
    """Clean rows, and the reasons of clean rows without a prediction."""
    if not STEADY.exists():
        pytest.skip("the measurements are not here")
    with STEADY.open(encoding="utf-8", newline="") as file:
        clean = {row["id"] for row in csv.DictReader(file) if row["quality"].startswith("clean")}
    rows, refused = read_steady(STEADY)
    return [r for r in rows if r.id in clean], [r.reason for r in refused if r.id in clean]


@pytest.fixture(scope="module")
def ratios(table):
    """Measured over bound, by row."""
    return {row.id: row.seconds / bound_of(row) for row in table[0]}


def test_no_clean_row_beats_the_bound(ratios):
    """A measurement below the bound is bad data or a bug, and is listed either way."""
    assert {name for name, ratio in ratios.items() if ratio < 1} == set(EXPLAINED)


def test_coverage_does_not_fall(ratios):
    """The bound is computed for at least the rows it was once computed for."""
    assert len(ratios) >= COMPUTED


def test_every_row_left_out_says_why(table):
    """Clean rows without a bound are those of chips without published figures."""
    assert all(reason.startswith(UNCOMPUTED) for reason in table[1])


def test_the_bound_is_not_idle(ratios):
    """A tenth of the clean rows come within half of the bound, so it is no trivial one."""
    assert sorted(ratios.values())[len(ratios) // 10] < 1.5
