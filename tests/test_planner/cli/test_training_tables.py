"""`planner validate` and `planner calibrate` on a table of training layouts of one's own."""

import json
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

from planner.catalogue.training.training_stacks import training_stack
from planner.cli.app import app
from planner.measurements.readers.training_rows import training_rows
from planner.measurements.training_steps import predicted_seconds
from tests.test_planner.measurements.test_training_rows import COLUMNS, GPT


def written(path, seconds):
    """A table of runs of three widths in four layouts that took these times."""
    lines = [",".join(COLUMNS)]
    for index, time in enumerate(seconds):
        hidden, tp, micro = (2048, 3072, 4096)[index // 4], 1 + index % 2, (1, 4)[index // 2 % 2]
        row = {
            "model": f"gpt-{hidden}", "hidden": str(hidden), "ffn": str(4 * hidden),
            "heads": str(hidden // 128), "tp": str(tp), "dp": str(8 // tp),
            "micro_batch": str(micro), "value": f"{time:.4f}", "framework": "mine",
        }  # fmt: skip
        lines.append(",".join({**GPT, **row}.get(name, "") for name in COLUMNS))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def slower_runs(path):
    """Runs that take a fifth longer than physics alone says, give or take three percent."""
    rows = training_rows(written(path, [1.0] * 12))
    noise = np.exp(np.random.default_rng(1).normal(0, 0.03, 12))
    physical = training_stack("physical")
    return written(
        path, [1.2 * predicted_seconds(r, physical) * x for r, x in zip(rows, noise, strict=True)]
    )


@pytest.fixture
def table(tmp_path):
    return slower_runs(tmp_path / "runs.csv")


@pytest.mark.slow
def test_a_stack_is_calibrated_and_named_as_a_profile(table, tmp_path):
    out = tmp_path / "mine.toml"
    result = CliRunner().invoke(app, ["calibrate", str(table), "--name", "mine", "--out", str(out)])
    assert result.exit_code == 0, result.output
    raw = tomllib.loads(out.read_text(encoding="utf-8"))
    assert raw["rows"] == 12
    assert raw["varied"] == ["tp", "dp", "micro_batch"]
    median, mean, *_ = raw["errors"]["dense, random half"]
    assert median < 12
    assert training_stack(str(out)).models == ("gpt-2048", "gpt-3072", "gpt-4096")
    assert mean < 12


def test_rows_are_predicted_by_the_shipped_stack_of_their_chip(table):
    result = CliRunner().invoke(app, ["validate", "--data", str(table), "--json"])
    assert result.exit_code == 0, result.output
    assert "aa-scaling-2023" in result.stdout


def test_rows_are_predicted_by_the_stack_that_is_named(table):
    """The rows are a fifth slower than physics alone: it calls them a sixth too fast."""
    arguments = ["validate", "--data", str(table), "--profile", "physical", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    (file,) = json.loads(result.stdout)["files"]
    assert file["profiles"] == ["physical"]
    assert file["sections"][0]["scores"]["estimate"]["mean"] == pytest.approx(1 / 6, abs=0.02)


def test_a_profile_that_says_nothing_of_training_is_refused(table):
    more = ["--profile", "vllm-2026"]
    result = CliRunner().invoke(app, ["validate", "--data", str(table), *more])
    assert result.exit_code != 0
    assert "no training stack 'vllm-2026'" in str(result.exception) + result.output
