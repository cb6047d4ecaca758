"""`planner validate`: what it says of a file, what it writes beside it, what it refuses."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from planner.catalogue.models import record
from planner.catalogue.profile import profile
from tests.cases.validation import (
    RUN_HEAD,
    STEADY_HEAD,
    TRAINING_HEAD,
    run_row,
    steady_row,
    written,
)

COMMAND = ("validate",)
RATES = [
    steady_row("time", "step_ms", 6.0),
    steady_row("rate", "tok_s_total", 1333.3333),
    steady_row("mfu", "mfu", 0.5, phase="prefill"),
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Five runs: two that can be told, a repeat, one of an unknown chip, one without a time."""
    return written(
        tmp_path / "runs.csv",
        RUN_HEAD,
        run_row(),
        run_row(300, 15, concurrency=64),
        run_row(130, 13, date="2026-02-02"),
        run_row(system="abacus"),
        run_row(120, 0, concurrency=32),
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scores_stand_beside_baselines(run, runs):
    """Rows, repeats, coverage, errors, baselines, band and the profile's own errors are told."""
    status, out, _ = run("--data", runs)
    assert status == 0
    assert "1 repeats left out; 3 of 4 predicted" in out
    for told in ("plain roofline", "constant x roofline", "band", "abacus", "TPOT, left out"):
        assert told in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_document_holds_what_the_text_says(run, runs):
    """One JSON value; every row is scored, repeated or refused with a reason."""
    status, out, _ = run("--data", runs, "--json")
    document = json.loads(out)
    assert (status, document["status"]) == (0, "scored")
    tpot = next(s for s in document["files"][0]["sections"] if s["quantity"] == "tpot")
    assert tpot["rows"] == tpot["predicted"] + sum(tpot["refused"].values()) == 4
    assert tpot["scores"]["estimate"]["n"] == len(tpot["points"]) == 2
    assert set(tpot["by"]) == {"engine", "chip", "model"}


def test_groupings_are_those_asked_for(run, runs):
    """`--by` leaves the others out; an unknown one is refused with the nearest."""
    document = json.loads(run("--data", runs, "--json", "--by", "chip")[1])
    assert set(document["files"][0]["sections"][0]["by"]) == {"chip"}
    status, _, err = run("--data", runs, "--by", "chips")
    assert status == 2
    assert "did you mean 'chip'" in err


def test_a_prediction_file_is_the_input_with_columns_beside(run, runs, tmp_path):
    """Columns and rows as they were, then bound, estimate, low, high of both times, then why."""
    out = tmp_path / "out.csv"
    assert run("--data", runs, "--predictions", out)[0] == 0
    given, found = _rows(runs), _rows(out)
    added = [f"{kind}_{name}" for name in ("tpot_ms", "ttft_ms")
             for kind in ("bound", "estimate", "low", "high")]  # fmt: skip
    assert list(found[0]) == [*given[0], *added, "reason"]
    assert [{name: row[name] for name in given[0]} for row in found] == given
    told = [float(found[0][name]) for name in added]
    assert told[0] < told[1]
    assert told[2] < told[1] < told[3]
    assert found[2]["reason"] == ""
    # The same run of another day: the engine is another by some months' work.
    again, first = (float(found[i]["estimate_tpot_ms"]) for i in (2, 0))
    assert again == pytest.approx(first, rel=0.2)
    assert "abacus" in found[3]["reason"]
    assert found[3]["estimate_tpot_ms"] == ""
    assert found[4]["estimate_tpot_ms"] == ""
    assert found[4]["estimate_ttft_ms"] != ""


def test_the_bound_of_a_rate_is_the_most_it_can_be(run, tmp_path):
    """One step as a time and as a rate: the products agree, and the band changes ends."""
    path, out = written(tmp_path / "s.csv", STEADY_HEAD, *RATES), tmp_path / "out.csv"
    assert run("--data", path, "--predictions", out)[0] == 0
    time, rate, mfu = _rows(out)
    for end, other in (("bound", "bound"), ("estimate", "estimate"), ("low", "high")):
        product = float(time[f"{end}_value"]) * float(rate[f"{other}_value"])
        assert product == pytest.approx(6.0 * 1333.3333, rel=1e-6)
    assert float(rate["bound_value"]) > float(rate["estimate_value"])
    assert float(rate["low_value"]) < float(rate["high_value"])
    # Twice the peak of bf16 in fp8, and no arithmetic for embeddings, which the measure counts.
    assert 2 < float(mfu["bound_value"]) < 2.3


def test_predictions_are_not_predicted_again(run, runs, tmp_path):
    """A file that has our columns is refused, and stays as it is."""
    out = tmp_path / "out.csv"
    run("--data", runs, "--predictions", out)
    status, _, err = run("--data", out, "--predictions", tmp_path / "again.csv")
    assert status == 2
    assert "has the column bound_tpot_ms already" in err
    assert not (tmp_path / "again.csv").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--data", "{runs}", "--predictions", "{runs}"), "is read, or written already"),
        (("--data", "{runs}", "--out", "{runs}"), "is read, or written already"),
        (("--data", "{runs}", "--data", "{runs}"), "is given twice"),
        (("--fact", "tp=8"), "--fact needs measurements"),
        (("--models", "."), "--models needs measurements"),
        (("--data", "{runs}", "--models", "{runs}"), "is no folder"),
        (("--predictions", "out.csv"), "--predictions takes one file"),
        (("--data", "none.csv"), "cannot be read"),
        (("--data", "{runs}", "--profile", "engines-2062"), "no profile"),
        (("--data", "{runs}", "--predictions", "{runs}/x.csv"), "cannot be written"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(run, runs, words, told):
    """Exit status 2, one message, no traceback."""
    status, _, err = run(*(word.format(runs=runs) for word in words))
    assert status == 2
    assert told in err
    assert "Traceback" not in err
    assert [each.name for each in runs.parent.iterdir()] == ["runs.csv"]


def test_a_folder_names_what_it_passes_over(run, runs):
    """Files that cannot be read, each with why: aloud, in the text, the document and the page."""
    written(runs.parent / "prices.csv", "a,b", "1,2")
    written(runs.parent / "bare.csv", RUN_HEAD)
    written(runs.parent / "own.csv", "model,chip,isl,tpot_ms", "qwen3-8b,h100,1000,8")
    (runs.parent / "sheet.csv").write_bytes(b"PK\x03\x04")
    page = runs.parent / "page.html"
    status, out, err = run("--data", runs.parent, "--json", "--out", page)
    document = json.loads(out)
    why = {each["name"]: each["why"] for each in document["skipped"]}
    assert status == 0
    assert [each["name"] for each in document["files"]] == [runs.name]
    assert list(why) == ["bare.csv", "prices.csv", "sheet.csv", "own.csv"]
    assert "missing column output_tokens" in why["own.csv"]
    assert why["bare.csv"] == "a header and no row"
    assert "is an archive" in why["sheet.csv"]
    text = run("--data", runs.parent)[1]
    for name, reason in why.items():
        assert f"planner: skipped {name}: {reason}" in err
        assert f"<td>{name}</td>" in page.read_text(encoding="utf-8")
        assert f"{name}: {reason[:20]}" in " ".join(text.split())
    status, _, err = run("--data", runs.parent / "own.csv")
    assert status == 2
    assert "missing column output_tokens" in err


def test_models_of_configurations_are_named(run, runs):
    """In the text, the document and the page; the folder is given, or stands beside."""
    folder = runs.parent / "shapes" / "Gale"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dict(record("qwen3-8b").config)))
    written(runs, RUN_HEAD, run_row(model="windy/Gale"))
    page = runs.parent / "page.html"
    status, out, _ = run("--data", runs, "--models", folder.parent, "--out", page)
    path = str(folder / "config.json")
    assert status == 0
    assert f"    {path} for windy/Gale" in out
    assert path in page.read_text(encoding="utf-8")


def test_a_full_disk_is_a_failure_of_ours(run, runs):
    """Exit status 3 with the reason."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    status, _, err = run("--data", runs, "--predictions", "/dev/full")
    assert status == 3
    assert "No space left" in err


def test_nothing_to_score_is_no_answer(run, tmp_path):
    """Exit status 1 with the reasons; the document is printed all the same."""
    path = written(tmp_path / "t.csv", RUN_HEAD, run_row(system="abacus"))
    status, out, err = run("--data", path, "--json")
    assert (status, json.loads(out)["status"]) == (1, "nothing to score")
    assert "the reasons are listed" in err


def test_training_runs_have_bounds_alone(run, tmp_path):
    """The bound stands in the column of the time that was measured, and the reason beside it."""
    cells = "GPT,12288,96,96,49152,2048,51200,A100,312,64,8,8,1,64,full,13.75,,s,"
    path, out = written(tmp_path / "t.csv", TRAINING_HEAD, f"a,{cells}"), tmp_path / "out.csv"
    assert run("--data", path, "--predictions", out)[0] == 1
    row = _rows(out)[0]
    assert float(row["bound_measured_iter_time_s"]) == pytest.approx(6.99, rel=1e-2)
    assert row["estimate_measured_iter_time_s"] == row["bound_iter_time_derived_s"] == ""
    assert row["reason"]


def test_without_data_profiles_tell_their_own_errors(run):
    """The errors on rows left out that every shipped profile records, collectives among them.

    Every way of leaving out has its line for each quantity, with the figures of the profile.
    """
    status, out, _ = run()
    assert status == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for row in profile("engines-2026").left_out:
        figures = f"{row['rows']:,} {row['groups']} {row['median']:.1%} {row['mean']:.1%}"
        assert any(line.startswith(f"{row['word']} {figures}") for line in lines)
    assert "TPOT, rows left out" in out
    assert "unseen chips" in out
    assert max(map(len, out.splitlines())) <= 80
    document = json.loads(run("--json")[1])
    assert (document["status"], document["files"]) == ("recorded", [])


def test_a_page_stands_alone_and_holds_no_measurement(run, tmp_path):
    """No address is loaded, every picture is sound XML, the numbers are those of the document."""
    values = [113.77, 12.345, 301.19, 15.678]
    path = written(
        tmp_path / "runs.csv",
        RUN_HEAD,
        *(run_row(values[0], values[1], concurrency=n) for n in (1, 2, 4)),
        *(run_row(values[2], values[3], concurrency=n, system="b200_sxm") for n in (8, 16, 32)),
    )
    page = tmp_path / "page.html"
    status, out, _ = run("--data", path, "--out", page, "--json")
    told = page.read_text(encoding="utf-8")
    assert status == 0
    assert not re.search(r"(src|href)=\"(?!#)", told)
    assert "@import" not in told
    pictures = re.findall(r"<svg.*?</svg>", told, re.DOTALL)
    assert len(pictures) >= 8
    for picture in pictures:
        ElementTree.fromstring(picture)
    inner = re.search(r'id="numbers">(.*?)</script>', told, re.DOTALL)
    numbers = json.loads(inner[1])
    document = json.loads(out)
    for shown, full in zip(
        numbers["files"][0]["sections"], document["files"][0]["sections"], strict=True
    ):
        assert shown["scores"] == full["scores"]
    assert not any(str(value) in told for value in values)


def test_cells_are_shown_and_never_obeyed(run, tmp_path):
    """Neither escape sequences on the terminal nor markup on the page."""
    head = "model,gpu,engine,tp,users,isl,osl,precision,tpot_ms"
    engine = "<script>alert(1)</script>\x1b[31m"
    path = written(tmp_path / "own.csv", head, f"llama-3.1-8b,h100,{engine},1,16,1000,200,fp8,8")
    page = tmp_path / "page.html"
    status, out, _ = run("--data", path, "--out", page)
    told = page.read_text(encoding="utf-8")
    assert status == 0
    assert "\x1b" not in out
    assert "<script>alert" not in told
    assert told.count("<script") == 1
