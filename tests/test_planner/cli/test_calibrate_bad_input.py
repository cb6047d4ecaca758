"""`planner calibrate` on rows and options that are wrong: named, counted, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.catalogue.profile import profile
from tests.cases.calibration import made_up, settings, table
from tests.test_planner.cli.conftest import Run

CHANGED = {"e_w": 0.8, "t_layer": 1.5}
LIKE = "engines-2026"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four runs of a dense model with two coefficients changed."""
    lines = settings(tp=(2, 8))
    return made_up(tmp_path_factory.mktemp("rows") / "own.csv", lines, CHANGED)


@pytest.fixture
def calibrated(run: Run, tmp_path: Path) -> Run:
    """Runs `planner calibrate` on files, with a name and a place for the profile."""

    def ran(*words: object) -> tuple[int, str, str]:
        return run("calibrate", *words, "--name", "ours", "--out", tmp_path / "ours.toml")

    return ran


def test_rows_left_out_are_named_and_counted(calibrated, tmp_path):
    """Zero, negative, in another unit, faster than the bound, impossible, unknown, repeated."""
    good = made_up(tmp_path / "own.csv", settings(tp=(2, 8)), CHANGED).read_text().splitlines()
    head = "llama-3.1-70b,hgx-h200,vllm,fp8"
    bad = [
        f"{head},2,1,1024,256,0,20",
        f"{head},2,2,1024,256,100,-3",
        f"{head},2,1,2048,256,200,0.002",
        f"{head},8,1,1024,384,100,1.2",
        f"{head},8,1,1024,512,100,7000000",
        "deepseek-r1,hgx-h200,vllm,fp8,1,1,1024,256,100,20",
        "llama-3.1-70b,abacus,vllm,fp8,2,1,1024,256,100,20",
        good[1],
    ]
    path = tmp_path / "bad.csv"
    path.write_text("\n".join([*good, *bad]) + "\n")
    status, out, _ = calibrated(path, "--json")
    found = json.loads(out)
    rows = found["rows"]
    assert status == 0
    assert rows["lines"] == 32
    assert rows["used"] + sum(rows["left_out"].values()) == rows["values"]
    reasons = " | ".join(f"{n} {why}" for why, n in rows["left_out"].items())
    for told in ("1 ttft_ms is zero or negative", "1 tpot_ms is zero or negative",
                 "1 tpot is far below the bound: seconds given as ms?",
                 "1 tpot is far above the bound: ms given as seconds?", "1 faster than the bound",
                 "do not fit on 1 h200", "no chip figures for 'abacus'",
                 "2 a repeat of another row"):  # fmt: skip
        assert told in reasons


def test_layouts_that_cannot_be_are_refused_by_row_with_one_that_could(calibrated, run, tmp_path):
    """SGLang counts the chips of all copies in its --tp: eight copies of tp 8 are not eight chips.

    The line stands beside the reason in what is fitted and in what is validated.
    """
    head = "model,chip,weights,n_chips,tp,dp_attention,ep,concurrency,input_tokens,output_tokens"
    path = tmp_path / "own.csv"
    rows = ["8,8,8,8", "8,8,1,3", "1,1,1,1", "8,8,1,8"]
    lines = [f"deepseek-v3,h200,fp8,{row},16,1000,500,30" for row in rows]
    path.write_text("\n".join([f"{head},tpot_ms", *lines]) + "\n")
    readings = [
        "tp 1 in each of 8 copies",
        "ep 1 with tensor parallelism of 8",
        "8 would hold them",
    ]
    _, out, _ = calibrated(path)
    _, scored, _ = run("validate", "--data", path)
    for line, reading in enumerate(readings, start=2):
        for text, place in ((out, f"(own.csv:{line})"), (scored, f"(line {line})")):
            reason = " ".join(text.split()).split(place)[1].split(" left out (")[0]
            assert reading in reason.split(" without (")[0]


def test_one_run_is_enough_and_every_answer_says_so(calibrated, run, tmp_path):
    """There is no row to test on, and none is claimed; a plan by the profile warns."""
    path = made_up(tmp_path / "one.csv", settings(tp=(2,))[:1], {})
    status, out, _ = calibrated(path, "--json")
    document = json.loads(out)
    assert status == 0
    assert document["status"] == "fitted"
    assert document["rows"]["runs"] == 1
    assert {each["after"] for each in document["errors"].values()} == {None}
    assert any("one run leaves none to test on" in note for note in document["notes"])
    mine = tmp_path / "ours.toml"
    assert profile(str(mine)).runs == 1
    file = tmp_path / "plan.yaml"
    assert run("init", "serving", "--out", file)[0] == 0
    _, out, _ = run("solve", file, "--json", "--set", f"profile={mine}")
    warnings = json.loads(out)["provenance"]["warnings"]
    assert any("fitted on one run of one's own" in warning for warning in warnings)


def test_rows_below_their_bound_are_refused(calibrated, tmp_path):
    """Times that no chip of the kind can reach identify nothing, and the sentence says so."""
    lines = [(*line, "1000", "1.5") for line in settings(tp=(2, 4), requests=(1, 4))]
    status, out, err = calibrated(table(tmp_path / "fast.csv", lines))
    assert status == 1
    assert "faster than the bound" in out
    assert "check chip, formats, layout and units" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("{rows}", "--name", "auto", "--out", "x.toml"), "--name auto: is the name of a profile"),
        (("{rows}", "--name", LIKE, "--out", "x.toml"), f"--name {LIKE}: is the name of a prof"),
        (("{rows}", "--name", " ", "--out", "x.toml"), "--name: expected a name"),
        (("{rows}", "--name", "a", "--out", "x.yaml"), "--out x.yaml: expected a file that ends"),
        (("{rows}", "--name", "a", "--out", "x.toml", "--like", "enginees-2026"), "no profile"),
        (("{rows}", "--name", "a", "--out", "x.toml", "--as-of", "soon"), "--as-of soon: expected"),
        (("{rows}", "--name", "a", "--out", "x.toml", "--fact", "tp"), "--fact tp: expected NAME"),
        (("{rows}", "{rows}", "--name", "a", "--out", "x.toml"), "is given twice"),
        (("nobody.csv", "--name", "a", "--out", "x.toml"), "nobody.csv"),
        (("{rows}", "--name", "a", "--out", "x.toml", "--measured", "none.toml"), "none.toml"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(run, rows, tmp_path, monkeypatch, words, told):
    """Status 2, one message, no file."""
    monkeypatch.chdir(tmp_path)
    status, _, err = run("calibrate", *(word.replace("{rows}", str(rows)) for word in words))
    assert status == 2
    assert told in err
    assert not list(tmp_path.glob("x.*"))


def test_columns_that_are_missing_are_all_named(calibrated, tmp_path):
    """Every column that is needed and not there, in one message."""
    path = tmp_path / "thin.csv"
    path.write_text("model,tp,concurrency,tpot_ms\nllama-3.1-70b,8,4,20\n")
    status, _, err = calibrated(path)
    assert status == 2
    for told in ("missing column system or chip", "missing column input_tokens",
                 "missing column output_tokens"):  # fmt: skip
        assert told in err
