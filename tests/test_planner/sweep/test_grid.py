"""SPECs are read as people write them, and points of a grid are counted without being listed."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.scenario.grid import parse_grid, split_number
from planner.text.errors import InputError
from tests.loops import for_all


def values(spec: str) -> list[str]:
    """What `--set` would take, one after the other."""
    axis = parse_grid([f"chips={spec}"]).axes[0]
    return [axis.set_to(i).removeprefix("chips=") for i in range(len(axis))]


@for_all(
    ("spec", "read"),
    [
        ("8,16,32", ["8", "16", "32"]),
        ("1..4", ["1", "2", "3", "4"]),
        ("lin(1..2,3)", ["1", "1.5", "2"]),
        ("lin(20 ms..10 ms,3)", ["20 ms", "15 ms", "10 ms"]),
        ("log(1..1000,4)", ["1", "10", "100", "1000"]),
        ("log(1k..100k,3)", ["1000", "10000", "100000"]),
        ("log($2/hour..$8/hour,3)", ["$2/hour", "$4/hour", "$8/hour"]),
        ("lin(1..4 TB/s,2)", ["1 TB/s", "4 TB/s"]),
        ("hgx-h200, gb200-nvl72", ["hgx-h200", "gb200-nvl72"]),
        ("20 ms,50 ms", ["20 ms", "50 ms"]),
        ("[1,2],{from: 1, to: 3},'a,b'", ["[1,2]", "{from: 1, to: 3}", "'a,b'"]),
    ],
)
def test_a_spec_lists_its_values(spec, read):
    """Lists are taken as written, spans have both their ends."""
    assert values(spec) == read


@for_all(
    ("spec", "told"),
    [
        ("", "no value"),
        ("8,,16", "an empty value"),
        ("8,16,8", "8 is given twice"),
        ("9..3", r"did you mean 3\.\.9"),
        ("log(0..10,3)", "above zero"),
        ("log(a..10,3)", "'a' is no number"),
        ("lin(1 ms..1 s,3)", "one end is in ms, the other in s"),
        ("lin(1..10,1)", "give 2 or more"),
        ("lin(1..10,0)", "0 points"),
        ("lin(5..5,3)", "both ends are 5"),
        ("log(1,10)", r"expected log\(FIRST\.\.LAST,POINTS\)"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(spec, told):
    """The message says what was wrong and how it is written."""
    with pytest.raises(InputError, match=told):
        values(spec)


def test_everything_wrong_is_said_at_once():
    """One line for each axis, and for axes that overwrite each other."""
    with pytest.raises(InputError) as told:
        parse_grid(
            ["chips=", "B=1,2", "choose.batch=3", "system.memory=1 GB", "system=hgx-h200", "x"]
        )
    lines = str(told.value).splitlines()
    assert len(lines) == 4
    assert "choose.batch: is given twice" in lines[2]
    assert "would overwrite system.memory" in lines[3]


def test_nothing_to_vary_is_refused():
    """A sweep over nothing is one scenario."""
    with pytest.raises(InputError, match="no axis is given"):
        parse_grid([])


def test_a_grid_beyond_counting_is_counted():
    """Nothing is listed before it is asked for."""
    grid = parse_grid([f"choose.{name}=lin(1..2,999999999999)" for name in "abcdefgh"])
    assert grid.count == 999999999999**8
    assert grid.sets(grid.count - 1) == [f"choose.{name}=2" for name in "abcdefgh"]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_points_are_the_product_with_the_last_axis_fastest(sizes):
    """Point by point the grid is itertools.product."""
    grid = parse_grid({f"a{i}": list(range(size)) for i, size in enumerate(sizes)})
    found = [grid.places(i) for i in range(grid.count)]
    assert found == list(product(*map(range, sizes)))


def test_values_of_python_are_taken_as_they_are():
    """Numbers, texts, mappings and None; a text alone is a SPEC."""
    grid = parse_grid({"a": [8, 1.5, None, "20 ms", {"like": "hgx-h200"}], "b": "1..3", "B": 7})
    assert grid.axes[0].set_to(4) == 'a={"like": "hgx-h200"}'
    assert grid.axes[0].set_to(2) == "a=null"
    assert len(grid.axes[1]) == 3
    assert grid.axes[2].name == "choose.batch"


@pytest.mark.parametrize("word", ["hgx-h200", "", "1..2", "nan", "3-4"])
def test_what_is_no_number_is_none(word):
    """Words stay words."""
    assert split_number(word) is None
