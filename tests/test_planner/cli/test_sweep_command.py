"""`planner sweep`: what is written, what is refused before anything runs, what can be resumed."""

from __future__ import annotations

import csv
import errno
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from planner.protocol.problem import get_problem
from planner.sweep import chunk as solving
from planner.sweep import run as run_module
from planner.sweep import table as parts_module
from planner.sweep.table import Table

SMALL = """\
problem: serving
model: llama-3.1-8b
system: hgx-h100
chips: 1
price: $2.50/hour
workload: {input_tokens: 500, output_tokens: 100}
promises: {ttft: 2 s, tpot: 50 ms}
"""
OVER = ("--over", "promises.tpot=20 ms,1 us,50 ms", "--over", "system=hgx-h100,hgx-h200")
FIXED = ("--set", "choose.batch=32", "--set", "choose.mode=aggregated")

COMMAND = ("sweep", "small.yaml")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: Any) -> None:
    """Runs sweeps of the small scenario in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)


def rows(file: str) -> list[dict[str, str]]:
    """The rows of a CSV file, timings apart."""
    with Path(file).open(newline="") as lines:
        return [
            {name: text for name, text in row.items() if name not in ("elapsed_s", "gap")}
            for row in csv.DictReader(lines)
        ]


def test_a_row_for_every_point_in_order(run):
    """Inputs in base units, the last axis fastest; a point without answer says why."""
    status, out, err = run(*OVER, "--out", "a.csv")
    assert (status, err) == (0, "")
    assert out.startswith("Price against promised TPOT and system: 6 points, 4 with a plan\n")
    assert "✗ TPOT missed by" in out
    best = out[out.index("The lowest price") :]
    assert best.split("at promised TPOT")[1].startswith(" 50.0 ms, system hgx-h200")
    table = rows("a.csv")
    inputs = [(row["promises.tpot"], row["system"]) for row in table]
    assert inputs == [(t, s) for t in ("0.02", "1e-06", "0.05") for s in ("hgx-h100", "hgx-h200")]
    assert [row["reason"] for row in table] == ["", "", "tpot", "tpot", "", ""]
    assert float(table[2]["short_by"]) > 1000
    assert table[0]["layout"] == "TP1"
    assert float(table[5]["usd_per_mtok"]) < float(table[1]["usd_per_mtok"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("fixed", [(), FIXED], ids=["solver", "closed form"])
def test_every_kind_of_file_holds_the_same(run, kind, fixed):
    """Columns, units, version and digest can be read back from each."""
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    over = (*OVER[:2], "--over", "price=lin($1/hour..$3/hour,2)")
    assert run(*over, *fixed, "--out", f"a.{kind}")[0] == 0
    assert run(*over, *fixed, "--out", "b.csv")[0] == 0
    table, other = Table.read(f"a.{kind}"), Table.read("b.csv")
    assert table.meta["version"] == version("token-planner")
    assert table.meta["digest"] == other.meta["digest"]
    assert table.units["price"] == "USD/(chip*s)"
    assert table.units["ttft"] == "s"
    for ours, theirs in zip(table, other, strict=True):
        del ours["elapsed_s"], theirs["elapsed_s"]
        assert list(ours) == list(theirs)
        for name, value in ours.items():
            same = pytest.approx(value) if isinstance(value, float) else value
            assert theirs[name] == same, name
    assert not Path(f"a.{kind}.parts").exists()


@pytest.mark.parametrize(
    ("over", "told"),
    [
        (["chps=1,2"], "--over chps=1  chps: unknown key 'chps'; did you mean 'chips'?"),
        (["system=hgx-h20o"], "unknown system 'hgx-h20o'; did you mean 'hgx-h20'?"),
        (["promises.tpot=20 GB"], "expected a time"),
        (["chips=log(1..8,3)"], "expected a whole number"),
        (["chips=lin(1..9,1000000000000)"], "1,000,000,000,000 points"),
        (["chips=lin(1..9,999999999999)", "price=lin(1..9,999999999999)"], "1e+24 points"),
        ([], "no axis is given"),
    ],
)
def test_mistakes_are_said_before_anything_runs(run, over, told):
    """Exit 2 with a suggestion or a count, and nothing is written."""
    words = [word for each in over for word in ("--over", each)]
    status, out, err = run(*words, "--out", "a.csv")
    assert (status, out) == (2, "")
    assert told in err
    assert not [file for file in Path().iterdir() if file.name != "small.yaml"]


def test_many_solves_are_asked_about(run):
    """More points than can be meant need --yes; the count is shown."""
    status, _, err = run("--over", "workload.input_tokens=lin(1..2000,200000)", "--out", "a.csv")
    assert status == 2
    assert "200,000 points, each of which is solved" in err
    assert "--yes" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--out is missing"),
        (("--out", "a.xlsx"), ".parquet, .csv, .jsonl"),
        (("--out", "a.csv", "--workers", "0"), "at least 1"),
        (("--out", "a.csv", "--scheduler", "tcp://x:1", "--workers", "2"), "of its own"),
        (("--out", "."), "ends in one of"),
    ],
)
def test_options_that_cannot_be_are_refused(run, words, told):
    """Exit 2 and what would be right."""
    status, _, err = run("--over", "chips=1", *words)
    assert status == 2
    assert told in err


def test_what_was_computed_survives_an_interruption(run, monkeypatch):
    """Ctrl-C: status 130, how to go on; --resume computes the rest only, each point once."""
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "serially", lambda chunks: _stopping(chunks, 3))
        status, _, err = run(*OVER, "--out", "a.csv")
    assert status == 130
    assert "3 of 6 points are kept in a.csv.parts; go on with the same command and --resume" in err
    assert not Path("a.csv").exists()
    assert len(rows(str(next(Path("a.csv.parts").glob("*.csv"))))) == 1
    assert run(*OVER, "--out", "a.csv")[0] == 2
    status, out, err = run(*OVER, "--out", "a.csv", "--resume", "--json")
    assert "3 of 6 points were solved before" in err
    assert json.loads(out)["resumed"] == 3
    assert run(*OVER, "--out", "b.csv")[0] == 0
    assert rows("a.csv") == rows("b.csv")
    assert run(*OVER, "--out", "a.csv", "--resume")[1].endswith("\na.csv: is complete already\n")


def test_a_part_of_another_sweep_is_refused_by_name(run, monkeypatch):
    """Another scenario, or another grid: the file that is not ours is named."""
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "serially", lambda chunks: _stopping(chunks, 2))
        run(*OVER, "--out", "a.csv")
    part = sorted(Path("a.csv.parts").glob("*.csv"))[0]
    for other in (("--set", "chips=2"), ("--over", "chips=1,2")):
        status, _, err = run(*OVER, *other, "--out", "a.csv", "--resume")
        assert status == 2
        assert str(part) in err
        assert "another scenario or grid" in err


def test_a_torn_part_is_computed_again(run, monkeypatch):
    """What a failing disk left half written does not end up in the table."""
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "serially", lambda chunks: _stopping(chunks, 3))
        run(*OVER, "--out", "a.csv")
    part = sorted(Path("a.csv.parts").glob("*.csv"))[1]
    part.write_bytes(b"")
    (part.parent / ".x.part").write_text("half")
    status, _, err = run(*OVER, "--out", "a.csv", "--resume")
    assert status == 0
    assert f"{part}: is torn" in err
    assert len(rows("a.csv")) == 6


def test_a_full_disk_keeps_what_was_computed(run, monkeypatch):
    """Exit 3, and the same way on."""
    real, written = parts_module.write, []

    def write(path: Path, content: Any) -> None:
        if len(written) == 4:
            from planner.text.errors import SolverError

            raise SolverError(f"{path} cannot be written: {errno.errorcode[errno.ENOSPC]}")
        written.append(path)
        real(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(parts_module, "write", write)
        status, _, err = run(*OVER, "--out", "a.csv")
    assert status == 3
    assert "3 of 6 points are kept" in err
    assert run(*OVER, "--out", "a.csv", "--resume")[0] == 0


def test_two_runs_do_not_write_one_sweep(run, monkeypatch, tmp_path):
    """A second run is refused while the first holds the folder."""
    from planner.sweep.table import SweepParts
    from planner.text.errors import InputError

    meta = {"digest": "0" * 64, "version": "1", "points": 2}
    first = SweepParts(tmp_path / "x.csv", meta, resume=True)
    with pytest.raises(InputError, match="another run is at work"):
        SweepParts(tmp_path / "x.csv", meta, resume=True)
    first.close()
    SweepParts(tmp_path / "x.csv", meta, resume=True).close()


def test_a_list_is_one_value_and_said_so(run):
    """`chips=[1,2]` lets one plan choose; the note says how two points are written."""
    status, out, err = run("--over", "chips=[1,2]", "--out", "a.csv")
    assert (status, len(rows("a.csv"))) == (0, 1)
    assert "1 points" in out
    assert "write chips=1,2" in err


def test_a_long_table_prints_its_ends_and_its_best(run):
    """At most 20 points are printed; of more both ends and the cheapest, and how many are left."""
    over = ("--over", "price=lin($3.6/hour..$7.2/hour,30)", *FIXED, "--out", "a.csv")
    out = run(*over)[1]
    assert out.count("TP1") == 10
    assert "(20 more rows)" in out
    assert "The lowest price is" in out
    assert max(map(len, out.splitlines())) <= 78


def test_a_fault_at_one_point_is_a_row(run, monkeypatch):
    """Status failed with the reason; the other points have their answers."""
    real = get_problem("serving").search_many

    def search_many(questions: Any, coefficients: Any = None) -> Any:
        if any(question.systems()[0].name == "hgx-h200" for question in questions):
            raise ZeroDivisionError("by  zero")
        return real(questions, coefficients)

    monkeypatch.setattr(get_problem("serving"), "search_many", search_many)
    assert run(*OVER, "--out", "a.csv")[0] == 0
    failed = [row for row in rows("a.csv") if row["status"] == "failed"]
    assert len(failed) == 3
    assert failed[0]["reason"] == "a fault of ours: ZeroDivisionError: by zero"


def test_a_picture_is_drawn_beside_the_table(run):
    """By its ending; what cannot be drawn is refused before anything is computed."""
    pytest.importorskip("matplotlib")
    over = ("--over", "price=lin($3.6/hour..$7.2/hour,3)", *FIXED, "--out", "a.csv")
    assert run(*over, "--plot", "a.svg", "--of", "usd_per_hour")[0] == 0
    assert "usd_per_hour [USD/hour]" in Path("a.svg").read_text()
    for words, told in (
        (("--plot", "b.gif"), "one of .svg, .png, .pdf"),
        (("--plot", "b.svg", "--over", "chips=1,2", "--over", "promises.tpot=1 s,2 s"), "3 axes"),
    ):
        status, _, err = run(*over, *words)
        assert status == 2
        assert told in err
    assert not Path("b.svg").exists()


def test_quiet_says_nothing_but_the_answer(run):
    """No note of what was kept."""
    assert run("--over", "price=$3.6/hour,$7.2/hour", *FIXED, "--quiet", "--out", "a.csv")[2] == ""


def _stopping(chunks: Any, after: int) -> Any:
    """Solves some chunks, then is interrupted."""
    for number, chunk in enumerate(chunks):
        if number == after:
            raise KeyboardInterrupt
        yield chunk, solving.solved(chunk)
