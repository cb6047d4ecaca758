"""Nothing that was measured cleanly is faster than the bound."""

import csv

import pytest

from planner.measurements.readers import steadies
from planner.measurements.roofline_bound import row_bounds
from tests.paths import shared

# Clean rows below the bound, each with what is wrong with it. There is none.
EXPLAINED: dict[str, str] = {}
COMPUTED = 750


@pytest.fixture(scope="module")
def table():
    """Clean rows, and the reasons of clean rows without a prediction."""
    steady = shared("serving_steady.csv")
    with steady.open(encoding="utf-8", newline="") as file:
        clean = {row["id"] for row in csv.DictReader(file) if row["quality"].startswith("clean")}
    readings = steadies(steady)
    rows, refused = readings.rows, readings.refused
    return [r for r in rows if r.id in clean], [r.reason for r in refused if r.id in clean]


@pytest.fixture(scope="module")
def ratios(table):
    """Measured over bound, by row."""
    bounds = row_bounds(table[0])
    return {row.id: row.seconds / bound for row, bound in zip(table[0], bounds, strict=True)}


def test_no_clean_row_beats_the_bound(ratios):
    """A measurement below the bound is bad data or a bug, and is listed either way."""
    assert {name for name, ratio in ratios.items() if ratio < 1} == set(EXPLAINED)


def test_coverage_does_not_fall(ratios):
    """The bound is computed for at least the rows it was once computed for."""
    assert len(ratios) >= COMPUTED


def test_no_clean_row_is_left_out(table):
    """Every chip, model and layout of a clean row is known."""
    assert table[1] == []


def test_the_bound_is_not_idle(ratios):
    """A tenth of the clean rows come within half of the bound, so it is no trivial one."""
    assert sorted(ratios.values())[len(ratios) // 10] < 1.5
