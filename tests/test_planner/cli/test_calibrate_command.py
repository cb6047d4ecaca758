"""`planner calibrate`: what it prints and writes, what uses the file, what it refuses."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from planner.benchmark.record import toml
from planner.catalogue.profile import COEFFICIENTS, profile, profile_names
from planner.cli.app import main
from planner.measurements.readers.own_table import COLUMNS
from tests.cases.calibration import PLACEHOLDER, known, known_file, made_up, settings
from tests.paths import EXAMPLES
from tests.test_planner.benchmark.test_record_file import found as measured
from tests.test_planner.cli.conftest import Run

CHANGED = {"e_w": 0.8, "t_layer": 1.5}
SCENARIO = """problem: serving
model: llama-3.1-70b
system: hgx-h200
chips: 8
profile: {profile}
workload: {{input_tokens: 1024, output_tokens: 256}}
promises: {{tpot: 50 ms}}
choose: {{weights: fp8, mode: aggregated}}
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four runs of a dense model with two coefficients changed."""
    lines = settings(tp=(2, 8))
    return made_up(tmp_path_factory.mktemp("rows") / "own.csv", lines, CHANGED)


@pytest.fixture(scope="module")
def mine(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile fitted on them."""
    path = tmp_path_factory.mktemp("profile") / "mine.toml"
    like = str(known_file(path.parent))
    with pytest.raises(SystemExit) as exit_:
        main(["calibrate", str(rows), "--name", "ours", "--out", str(path), "--like", like])
    assert not exit_.value.code
    return path


@pytest.fixture
def calibrated(run: Run, tmp_path: Path) -> Run:
    """Runs `planner calibrate` on files, with a name and a place for the profile."""

    def ran(*words: object) -> tuple[int, str, str]:
        like = () if "--like" in words else ("--like", known_file(tmp_path))
        return run("calibrate", *words, "--name", "ours", "--out", tmp_path / "ours.toml", *like)

    return ran


def test_errors_fall_and_stand_beside_baselines(calibrated, rows):
    """Of rows left out: the shipped profile as it is, one's own, a constant, the roofline."""
    status, out, _ = calibrated(rows, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["status"] == "fitted"
    assert found["rows"] == {
        "lines": 24, "values": 48, "used": 48, "runs": 24, "left_out": {},
        "left_out_rows": {},
    }  # fmt: skip
    tpot = found["errors"]["tpot"]
    assert tpot["after"]["median"] < 0.05 < tpot["before"]["median"]
    assert tpot["after"]["median"] < tpot["constant"]["median"] < tpot["roofline"]["median"]
    assert tuple(each["name"] for each in found["coefficients"]) == COEFFICIENTS


def test_the_text_tells_rows_errors_coefficients_and_bands(calibrated, rows):
    """Every part is there, in lines of at most 80 columns."""
    status, out, err = calibrated(rows)
    assert status == 0
    for told in ("24 lines of own.csv", "48 of 48 values used", "plain roofline", "e_w", "moved",
                 "80 % of runs to come", "from rows left out", "known as it is"):  # fmt: skip
        assert told in out
    assert max(map(len, out.splitlines())) <= 80 or "profile: /" in out
    assert "wrote" in err


def test_two_runs_give_the_same_file(calibrated, rows, tmp_path):
    """The same rows on the same day, to the last digit."""
    made = []
    for _ in range(2):
        assert calibrated(rows, "--as-of", "2026-11-21")[0] == 0
        made.append((tmp_path / "ours.toml").read_bytes())
    assert made[0] == made[1]


def test_the_file_is_read_as_it_was_fitted(mine):
    """Name, scope, rows, intervals around coefficients, and bands of every kind of place."""
    raw, found = tomllib.loads(mine.read_text()), profile(str(mine))
    assert raw["name"] == "ours"
    assert raw["started_from"] == "known"
    assert (found.engine, found.chips, found.rows) == ("vllm", ("h200",), 48)
    assert {"llama-3.1-70b", "llama-3.1-70b-fp8"} <= set(found.models)
    assert found.values["e_w"] < known().values["e_w"]
    for name, (low, high) in found.intervals.items():
        assert low <= found.values[name] <= high
    own, strange = (found.all_bands[kind]["any"]["tpot"] for kind in ("known", "new_model"))
    assert strange.low <= own.low < own.high <= strange.high


def test_a_plan_uses_it_beside_the_scenario(run, mine):
    """By a path in the file, and by --set; the plan says which profile it took."""
    for given, sets in (("mine.toml", ()), ("auto", ("--set", "profile=./mine.toml"))):
        path = mine.parent / "plan.yaml"
        path.write_text(SCENARIO.format(profile=given))
        assert run("check", path, *sets)[0] == 0
        status, out, _ = run("solve", path, *sets, "--json")
        found = json.loads(out)
        assert status == 0
        assert found["provenance"]["profile"] == "mine"
        assert found["scenario"]["profile"].endswith("mine.toml")


def test_a_plan_by_it_is_slower_and_surer(run, mine):
    """The rows were slower than the profile before and scattered less: so is what a plan says."""
    path = mine.parent / "compare.yaml"
    found = {}
    for name in ("mine.toml", "known.toml"):
        path.write_text(SCENARIO.format(profile=name))
        fixed = ("--set", "choose={weights: fp8, mode: aggregated, tp: 8, batch: 32}")
        found[name] = json.loads(run("solve", path, *fixed, "--json")[1])["plan"]
    assert found["mine.toml"]["tpot"] > 1.05 * found["known.toml"]["tpot"]


def test_it_is_validated_like_any_other(run, rows, mine):
    """`planner validate` scores it on the rows, and shows the errors that it records of itself."""
    status, out, _ = run("validate", "--data", rows, "--profile", mine, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["recorded"][0]["name"] == "mine"
    assert found["recorded"][0]["errors"]["tpot_rows"] == 24


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("nobody.toml", "no profile file 'nobody.toml' is found"),
        ("engines-2062", "unknown profile 'engines-2062'; did you mean 'engines-2026'?"),
        ("broken.toml", "broken.toml: is no profile"),
        ("negative.toml", "e_w is -0.5, expected an efficiency above 0 and not above 1.1"),
        ("banded.toml", "is no sound profile: the band known.any.tpot"),
        ("plan.csv", "expected a .toml file that planner calibrate wrote"),
        ("7", "expected a profile such as auto, got 7"),
    ],
)
def test_a_file_that_is_no_profile_is_a_mistake_with_its_place(run, mine, tmp_path, given, told):
    """`planner check` says file, line and column, and leaves with 2."""
    text = mine.read_text()
    first = next(line for line in text.splitlines() if line.startswith("e_w = "))
    (tmp_path / "broken.toml").write_text("e_w = \n")
    (tmp_path / "negative.toml").write_text(text.replace(first, "e_w = -0.5", 1))
    band = text.partition("[bands.known.any]\n")[2].splitlines()[0]
    (tmp_path / "banded.toml").write_text(text.replace(band, "tpot = [1.2, 0.8]", 1))
    (tmp_path / "plan.csv").write_text("a,b\n")
    path = tmp_path / "plan.yaml"
    path.write_text(SCENARIO.format(profile=given))
    status, out, err = run("check", path)
    assert status == 2
    assert out == ""
    assert err.startswith(f"{path}:5:10  profile: ")
    assert told in err


def test_a_lifecycle_reads_it_alike(run, mine, tmp_path):
    """The serving part of a lifecycle takes the same names and files."""
    path = tmp_path / "life.yaml"
    assert run("init", "lifecycle", "--out", path)[0] == 0
    assert run("check", path, "--set", f"serving.profile={mine}")[0] == 0
    status, _, err = run("check", path, "--set", "serving.profile=nobody.toml")
    assert status == 2
    assert "serving.profile: no profile file 'nobody.toml' is found" in err


def test_few_rows_keep_the_band_before(calibrated, tmp_path):
    """Below ten values no band of one's own has both its ends: the one before stays, and says."""
    path = made_up(tmp_path / "few.csv", settings(tp=(2,), lengths=((1024, 256),)), CHANGED)
    status, out, _ = calibrated(path)
    band = profile(str(tmp_path / "ours.toml")).all_bands["known"]["any"]["tpot"]
    assert status == 0
    assert "kept from known: fewer than 10 values" in out
    assert "8 values for " in out
    assert band.high / band.low > 1.1


@pytest.mark.slow
def test_a_measured_chip_limits_what_is_fitted(calibrated, rows, tmp_path):
    """No efficiency of memory is above what the chip sustains; another chip's file is refused."""
    chip = tmp_path / "chip.toml"
    chip.write_text(toml(measured(bandwidth=2.4e12)))
    status, out, err = calibrated(rows, "--measured", chip, "--json")
    found = json.loads(out)
    assert status == 0, err
    most = found["limits"]["e_w"]
    assert most == pytest.approx(0.5, rel=0.02)
    assert profile(str(tmp_path / "ours.toml")).values["e_w"] <= most * 1.001
    (each,) = (each for each in found["coefficients"] if each["name"] == "e_w")
    assert each["state"] == "limited"
    chip.write_text(toml(measured()).replace('chip = "h200"', 'chip = "h100"'))
    status, _, err = calibrated(rows, "--measured", chip)
    assert status == 2
    assert "chip.toml: it was measured on 'NVIDIA H200'" in err


def test_the_same_file_under_two_names_counts_once(calibrated, rows, tmp_path):
    """Rows of a second file that repeat those of a first are left out."""
    (tmp_path / "again.csv").write_bytes(rows.read_bytes())
    found = json.loads(calibrated(rows, tmp_path / "again.csv", "--json")[1])
    assert found["rows"]["used"] == 48
    assert found["rows"]["left_out"] == {"a repeat of another row": 48}


def test_a_load_generator_and_facts_are_read(calibrated, tmp_path):
    """Results of vLLM with what they do not say given by --fact."""
    line = [(*each, *PLACEHOLDER) for each in settings(tp=(4,), lengths=((1024, 256),))]
    (tmp_path / "run.jsonl").write_text(
        "\n".join(
            json.dumps(
                {
                    "model_id": "meta-llama/Llama-3.1-70B-Instruct",
                    "request_rate": "inf", "max_concurrency": int(each[5]), "completed": 100,
                    "total_input_tokens": 102400, "total_output_tokens": 25600,
                    "request_throughput": 1.0, "mean_ttft_ms": 100.0 * int(each[5]),
                    "mean_tpot_ms": 15.0 + int(each[5]) / 8, "mean_itl_ms": 15.0,
                }
            )
            for each in line
        )
    )  # fmt: skip
    facts = [w for f in ("system=hgx-h200", "tp=4", "weights=fp8") for w in ("--fact", f)]
    status, out, err = calibrated(tmp_path / "run.jsonl", *facts, "--json")
    assert status == 0, err
    assert json.loads(out)["rows"]["runs"] == 4
    status, _, err = calibrated(tmp_path / "run.jsonl")
    assert status == 2
    assert "missing column system or chip" in err


def test_the_example_is_made_up_and_gains_by_its_own_profile(calibrated):
    """Every row says that no engine was timed; what it was made slower by is found."""
    path = EXAMPLES / "calibrate-own-runs.csv"
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    assert all(line.endswith("made up: no engine was timed") for line in lines)
    found = json.loads(calibrated(path, "--like", "auto", "--json")[1])
    assert found["rows"]["used"] == 2 * len(lines)
    assert found["like"] in profile_names()
    tpot = found["errors"]["tpot"]
    assert tpot["after"]["mean"] < tpot["before"]["mean"]


def test_the_help_names_the_columns_that_are_read(run):
    """Every column of a table of one's own stands in --help, values by their names without unit."""
    told = run("calibrate", "--help")[1]
    hidden = ("speculated", "assumed")
    for name in COLUMNS:
        if name not in hidden:
            assert (name if name == "tokens_per_s" else name.rpartition("_")[0] or name) in told
