"""Files of measurements are known by their columns, or refused with what is wrong and where."""

from __future__ import annotations

import pytest

from planner.measurements.readers import detect_file_kind
from planner.measurements.readers.file_kinds import table
from planner.text.errors import InputError
from planner.validation.estimates import scan_folder
from tests.cases.validation import (
    COLLECTIVE_HEAD,
    EXCHANGE_HEAD,
    RUN_HEAD,
    STEADY_HEAD,
    TRAINING_HEAD,
    run_row,
    written,
)
from tests.loops import for_all


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (RUN_HEAD, "serving runs"),
        (STEADY_HEAD, "steady batches"),
        (COLLECTIVE_HEAD, "collectives"),
        (EXCHANGE_HEAD, "exchanges"),
        (TRAINING_HEAD, "training runs"),
    ],
)
def test_a_table_is_known_by_its_columns(tmp_path, head, kind):
    """The five column sets are told apart, in any order and with more columns."""
    names = [*reversed(head.split(",")), "remark"]
    assert detect_file_kind(written(tmp_path / "t.csv", ",".join(names))) == kind


def test_short_rows_are_filled_and_blank_lines_skipped(tmp_path):
    """Cells that a row lacks are blank; a line with nothing on it is no row."""
    path = written(tmp_path / "t.csv", RUN_HEAD, "a/b,h200_sxm", "", run_row())
    found = table(path, {})
    assert [len(row) for row in found.rows] == [22, 22]
    assert found.lines == (2, 4)
    assert next(found.numbered)[2]["tpot_ms"] == ""


@for_all(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (RUN_HEAD.encode(), "holds a header and no row"),
        (b"a,b\n1,2\n", "of no known table of measurements"),
        (RUN_HEAD.replace("tpot_ms,", "").encode() + b"\nx\n", "without the column 'tpot_ms'"),
        (RUN_HEAD.encode() + b",isl\n1\n", "column 'isl' stands here twice"),
        (RUN_HEAD.encode() + b"\n" + b"," * 40, "2:1"),
        (b"\xff\xfe\x00a", "UTF-16, expected UTF-8"),
        (b"a\n\xe9t\xe9", "2:1  is no text in UTF-8: save it as CSV UTF-8"),
        (b"PK\x03\x04", "save the sheet as CSV"),
        (RUN_HEAD.encode() + b'\n\n"open', "3:1  no CSV: a quotation mark is never closed"),
    ],
)
def test_a_file_that_is_no_table_says_what_is_wrong(tmp_path, content, told):
    """Empty, headless, ragged or foreign files are mistakes of the input."""
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        table(path, {})


def test_a_missing_file_is_a_mistake_of_the_input(tmp_path):
    """The path and the reason are told."""
    with pytest.raises(InputError, match=r"none\.csv cannot be read: No such file"):
        table(tmp_path / "none.csv", {})


def test_a_folder_gives_its_tables_and_nothing_else(tmp_path):
    """Other files are passed over by name; a folder without a table is refused."""
    written(tmp_path / "prices.csv", "a,b", "1,2")
    with pytest.raises(InputError, match="holds no measurements"):
        scan_folder(tmp_path)
    one = written(tmp_path / "z.csv", RUN_HEAD, run_row())
    other = written(tmp_path / "a.csv", TRAINING_HEAD, "x")
    files = scan_folder(tmp_path)
    assert files.paths == (one, other)
    assert [str(each) for each in files.skipped] == [
        "skipped prices.csv: holds no kind of measurements that is known"
    ]
