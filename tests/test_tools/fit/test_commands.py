"""`python -m tools.fit`: what it prints of rows left out, and what it refuses."""

import json

import pytest

from tests.cases.validation import RUN_HEAD, run_row, written
from tests.paths import shared
from tests.test_planner.cli.test_training_tables import slower_runs
from tools.fit.__main__ import main


@pytest.mark.slow
def test_refitted_scores_are_by_what_was_left_out(tmp_path, capsys):
    """A fit without each width, layout and half; the text says the same as the JSON."""
    table = slower_runs(tmp_path / "runs.csv")
    assert main(["refit", "models", str(table), "--json"]) == 0
    (score,) = json.loads(capsys.readouterr().out)["stacks"]
    assert (score["stack"], score["part"], score["n"]) == ("mine", "dense", 12)
    assert list(score["errors"]) == ["random half", "model out", "width out"]
    assert score["below_bound"] == 0
    assert main(["refit", "models", str(table)]) == 0
    assert "0 of 12 rows below the bound" in capsys.readouterr().out


def test_mistakes_are_told(tmp_path, capsys):
    """Exit status 2, one message, no traceback."""
    runs = written(tmp_path / "runs.csv", RUN_HEAD, run_row())
    for words, told in (
        (["refit", "models", str(runs)], "rows of two models or more are needed"),
        (["refit", "models", str(runs), "--by", "moon"], "--by moon"),
        (["deployments", str(runs)], "runs.csv"),
    ):
        assert main(words) == 2
        assert told in capsys.readouterr().err


def test_a_deployment_is_answered_by_its_id(capsys):
    """One line of figures, and what was free."""
    assert main(["deployments", str(shared("serving_steady.csv")), "no such id"]) == 2
    assert "no such id" in capsys.readouterr().err
