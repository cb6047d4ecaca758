"""Tables are read as people save them, and what is added stands beside what was there."""

from __future__ import annotations

import json

import pytest

from planner.measurements.readers import detect_file_kind, read
from planner.measurements.readers.sheets import Documents, open_tables, sheet
from planner.text.errors import InputError
from planner.validation.estimates import predictions_text
from planner.validation.estimates import read as predicted
from tests.cases.validation import RUN_HEAD, run_row

HEAD = "model,gpu,tp,users,isl,osl,ttft_ms,tpot_ms"
ROW = "llama-3.1-8b,h100,1,16,1000,200,90,8"


@pytest.fixture
def saved(tmp_path):
    """A maker of files from bytes."""

    def make(content, name="own.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize(
    "content",
    [
        f"{HEAD}\n{ROW}\n",
        f"{HEAD}\r\n{ROW}\r\n",
        f"{HEAD}\r{ROW}\r",
        f"\ufeff{HEAD}\n{ROW}",
        f"{HEAD}\n{ROW}\n".replace(",", ";"),
        f"{HEAD}\n{ROW}\n".replace(",", "\t"),
        f"{HEAD},notes\n{ROW},\"a, b\nc\"\n",
        f"{HEAD}\n{ROW}\n\n\n",
    ],
)  # fmt: skip
def test_ways_to_save_a_table_give_the_same_run(saved, content):
    """Line ends, a mark of the encoding, separators, quoted cells and blank lines at the end."""
    readings = read(saved(content.encode()))
    assert [row.seconds for row in readings.rows] == [0.09, 0.008]
    assert (readings.lines, readings.refused) == (1, ())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_predictions_keep_every_byte_of_the_input(saved, separator, end):
    """Quotes, spaces, marks and line ends stand as they were; short rows are filled."""
    lines = [
        "\ufeff" + HEAD.replace(",", separator) + separator + " remark ",
        ROW.replace(",", separator) + separator + '"quoted for nothing"',
        separator.join(['"llama-3.1-8b"', "h100"]),
        ROW.replace(",", separator) + separator + f'"two{end}lines ""and"" a{separator}"',
    ]
    path = saved((end.join(lines) + end).encode())
    made = predictions_text(*predicted(path))
    added = [line[len(old) :] for old, line in zip(lines, sheet_texts(made, path), strict=True)]
    assert all(text.startswith(separator) and text.endswith(end) for text in added)
    assert made.encode().startswith(b"\xef\xbb\xbfmodel")
    assert {len(row) for row in sheet(saved(made.encode(), "again.csv")).rows} == {9 + 9}


def sheet_texts(made, path):
    """The rows of a prediction file as text."""
    again = path.with_name("made.csv")
    again.write_bytes(made.encode())
    return sheet(again).texts


def test_a_file_is_read_once(saved, monkeypatch):
    """So that measurements may come through a pipe."""
    path = saved(f"{HEAD}\n{ROW}\n".encode())
    reads = []
    whole = type(path).read_bytes
    monkeypatch.setattr(type(path), "read_bytes", lambda self: reads.append(self) or whole(self))
    predictions_text(*predicted(path))
    assert reads.count(path) == 1


def test_json_is_known_by_how_it_opens(saved):
    """Whatever the file is called: a pipe has no ending."""
    held = {"model_id": "x", "completed": 1, "total_input_tokens": 1, "max_concurrency": 1}
    path = saved(b"\n " + json.dumps(held).encode(), "stdin")
    assert isinstance(open_tables(path), Documents)
    assert detect_file_kind(path) == "vllm"


@pytest.mark.parametrize(
    ("text", "hint"),
    [("30,5", True), ("1,234.5", True), ("1 234", True), ("1.234,5", True), ("fast", False)],
)
def test_numbers_that_could_mean_two_things_are_refused(saved, text, hint):
    """A comma may stand for decimals or between thousands: the reason says what to write."""
    row = ROW.rsplit(",", 1)[0] + f',"{text}"'
    refused = read(saved(f"{HEAD}\n{row}\n".encode())).refused
    assert [each.quantity for each in refused] == ["tpot"]
    assert ("a point stands before decimals" in refused[0].reason) is hint


def test_more_cells_than_columns_are_a_mistake_wherever_they_are_read(saved):
    """A comma within a number shifts every later cell."""
    path = saved(f"{HEAD}\n{ROW}\n{ROW},5\n".encode())
    for reader in (read, predicted):
        with pytest.raises(InputError, match="3:1  9 cells in a row, 8 columns in the header"):
            reader(path)


def test_blank_lines_between_rows_keep_their_numbers(saved):
    """They are counted as lines, and are no runs."""
    path = saved(f"{HEAD}\n\n{ROW}\n,,,,,,,\n".encode())
    readings = read(path)
    assert {row.id for row in readings.rows} == {"3"}
    assert [x.reason for x in readings.refused] == ["the line is blank"] * 2
    held, entries = predicted(path)
    assert held.lines == (3, 4)
    assert entries[-1].reason == "the line is blank"


def test_columns_beside_those_that_are_needed_are_let_be(saved):
    """A median beside the mean, or a note, is no misspelt column; a lone median is."""
    more = f"{HEAD},notes,node_name,median_ttft_ms,p99_tpot_ms".encode()
    assert len(read(saved(more + f"\n{ROW},a,b,80,9\n".encode())).rows) == 2
    lone = HEAD.replace("ttft_ms", "median_ttft_ms")
    with pytest.raises(InputError, match="unknown column 'median_ttft_ms'; did you mean"):
        read(saved(f"{lone}\n{ROW}\n".encode()))


def test_a_run_told_in_another_unit_is_left_out_as_a_whole(saved):
    """Prompts may queue for a minute, but not beside tokens of eight seconds."""
    path = saved(f"{HEAD}\n{ROW}\n".replace("_ms", "_s").encode())
    reasons = [each.reason for each in read(path).refused]
    assert len(reasons) == 2
    assert all("ms given as seconds?" in reason for reason in reasons)
    slow = f"{HEAD}\n{ROW.replace(',90,', ',90000,')}\n".encode()
    assert not read(saved(slow)).refused


def test_a_column_tells_its_own_reason(saved):
    """What is wrong with one value is not told of the other."""
    _, entries = predicted(saved(f"{HEAD}\n{ROW[:-1]}x\n".encode()))
    assert [bool(entry.reason) for entry in entries] == [False, True]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (",1,16,", ",3,16,", "tp 3 does not divide the 32 attention heads"),
        (",1,16,", ",1,0,", "neither concurrency nor batch is given but 0"),
    ],
)
def test_what_no_engine_runs_is_refused(saved, old, new, told):
    """A layout that no engine starts, and no request at all."""
    assert told in read(saved(f"{HEAD}\n{ROW.replace(old, new)}\n".encode())).refused[0].reason


def test_a_fact_of_any_name_is_checked(saved):
    """Also one that is called as a parameter of ours is."""
    path = saved(f"{HEAD}\n{ROW}\n".encode())
    for name in ("path", "source", "folders"):
        with pytest.raises(InputError, match=f"unknown fact '{name}'"):
            read(path, **{name: "x"})


def test_runs_of_a_published_table_may_stand_between_semicolons(saved):
    """The column sets are known whatever stands between the cells."""
    path = saved(f"{RUN_HEAD}\n{run_row()}\n".replace(",", ";").encode())
    assert len(read(path).rows) == 2


@pytest.mark.parametrize(
    ("date", "sound"), [("2026-01-31", True), ("2026-01", True), ("", True), ("31.01.2026", False)]
)
def test_a_date_is_written_in_one_way(saved, date, sound):
    """Others could mean two days, and refuse their row alone."""
    text = f"{RUN_HEAD}\n{run_row(date=date)}\n{run_row(tpot=13.0)}\n"
    readings = read(saved(text.encode()))
    assert len(readings.rows) == (4 if sound else 2)
    assert sound or "measured_on is no date such as 2026-01-31" in readings.refused[0].reason


@pytest.mark.parametrize("length", ["0.5", "1e-300", "1e12", "-3"])
def test_lengths_that_no_request_has_are_refused(saved, length):
    """Less than a token, or more than any context."""
    text = f"{HEAD}\n{ROW.replace(',200,', f',{length},')}\n"
    assert read(saved(text.encode())).refused[0].reason.startswith("output_tokens is ")
