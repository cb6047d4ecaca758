"""The table that `planner.sweep` returns: columns with units, rows, pandas, and how it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.sweep.table import Table
from planner.text.errors import InputError
from tests.test_planner.sweep.test_vectorized import FIXED

OVER = {"workload.input_tokens": "lin(1000..8000,15)", "system": ["hgx-h200", "hgx-h100"]}


@pytest.fixture(scope="module")
def table() -> Table:
    """Thirty points of a fixed layout."""
    return planner.sweep(FIXED, OVER)


def test_columns_rows_and_units(table):
    """By name, one after the other, and chosen by value."""
    assert len(table) == 30
    assert table["workload.input_tokens"][:3] == [1000.0, 1000.0, 1500.0]
    assert [row["system"] for row in table][:2] == ["hgx-h200", "hgx-h100"]
    assert len(table.rows(system="hgx-h100")) == 15
    assert table.units["workload.input_tokens"] == "token"
    assert table.units["tpot"] == "s"
    assert table.meta["method"] == "closed form"
    assert sum(table.statuses().values()) == 30


def test_a_row_is_what_solve_answers(table):
    """The same price as a plan of one's own."""
    row = table.rows(system="hgx-h200")[3]
    plan = planner.solve(FIXED, [f"workload.input_tokens={row['workload.input_tokens']}"])
    assert row["usd_per_mtok"] == pytest.approx(plan.cost)
    assert row["bottleneck"] == plan.chosen["bottleneck"]


def test_a_column_that_is_not_there_is_refused(table):
    """With what was meant."""
    with pytest.raises(InputError, match="did you mean 'usd_per_mtok'"):
        table["usd_per_mtk"]


def test_it_shows_itself(table):
    """Words and units, both ends and the best, how many more; the same as HTML."""
    shown = repr(table).splitlines()
    assert shown[0].startswith("Price against input length and system: 30 points, ")
    assert all(head in " ".join(shown[2:5]) for head in ("input length", "$/Mtok", "TPOT"))
    more = next(line for line in shown if line.endswith("more rows)"))
    rows = 30 - int(more.split()[0][1:])
    assert rows in (10, 11)
    assert " ".join(shown).endswith("columns.")
    assert table._repr_html_().count("<tr>") == rows + 1


def test_to_pandas_keeps_units(table):
    """A frame with a column for each."""
    pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert list(frame["system"][:2]) == ["hgx-h200", "hgx-h100"]
    assert frame["usd_per_mtok"].dtype == float
    assert frame.attrs["units"]["ttft"] == "s"


def test_a_table_in_a_file_is_read_when_it_is_needed(tmp_path, table):
    """`out` writes it; `Table.read` finds it again; resumed, it is not computed twice."""
    file = tmp_path / "t.jsonl"
    written = planner.sweep(FIXED, OVER, out=file)
    before = file.stat().st_mtime_ns
    again = planner.sweep(FIXED, OVER, out=file, resume=True)
    assert file.stat().st_mtime_ns == before
    for one in (written, again, Table.read(file)):
        assert one["usd_per_mtok"] == table["usd_per_mtok"]
        assert one["layout"] == table["layout"]
        assert one.units == table.units
    with pytest.raises(InputError, match="no unfinished sweep of this scenario and grid"):
        planner.sweep(FIXED, {**OVER, "chips": [16]}, out=file, resume=True)


def test_a_file_that_is_no_sweep_is_refused(tmp_path):
    """Whatever is in it."""
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is no table of a sweep"):
        Table.read(other)


def test_a_picture_is_written(tmp_path, table):
    """By the file's ending; a bad one is refused before anything is drawn."""
    pytest.importorskip("matplotlib")
    table.plot(tmp_path / "a.svg", "tpot")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(InputError, match=r"a file that ends in one of \.svg, \.png, \.pdf"):
        table.plot(Path(tmp_path / "a.gif"))
