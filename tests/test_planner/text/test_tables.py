"""CSV that a spreadsheet may open: a text is never a formula there, a number stays a number."""

from __future__ import annotations

import csv
import io

import pytest

from planner.scenario.grid import parse_grid
from planner.sweep import sweep
from planner.sweep.formats import load_columns
from planner.text.tables import csv_cell, csv_text

RUN = ("=1+1", "+cmd", "-x", "@cf/m", "\t=1", "\r=1", "-1+1", "=-1", "+", "--1", "'=1", "''@")
KEPT = ("", "a=1", "a", "'", "'a", "1+1", " =1", "-1", "+2.5", "-1e-7", "-.5", "x\n=1")


def cells(text: str) -> list[str]:
    """The cells of a row as any reader of CSV has them."""
    return next(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", RUN)
def test_a_text_that_would_run_begins_with_an_apostrophe_and_comes_back(text):
    """Also one that begins with apostrophes already: what is read is what was written."""
    (cell,) = cells(csv_text([[text]]))
    assert cell == f"'{text}"
    assert csv_cell(cell) == text


@pytest.mark.parametrize("text", KEPT)
def test_other_texts_and_numbers_in_words_stay(text):
    """Nothing else is changed, by the writer or by the reader."""
    assert cells(csv_text([[text, ""]]))[0] == text
    assert csv_cell(text) == text


def test_numbers_stay_numbers():
    """A negative number is no formula."""
    assert csv_text([["x", "y"], [-1.5, None], [-2, True]]) == "x,y\n-1.5,\n-2,True\n"


def test_a_model_file_of_such_a_name_is_no_formula_in_a_sweep(tmp_path, monkeypatch):
    """The cell of the user's own name is quoted in the file, and read back as it was typed."""
    import json

    from planner.catalogue import models

    monkeypatch.chdir(tmp_path)
    folder = models.__file__.rpartition("/")[0] + "/models/mistral-7b.json"
    with open(folder, encoding="utf-8") as shipped:
        whole = json.load(shipped)
    (tmp_path / "=1+1.json").write_text(json.dumps(whole.get("config", whole)))
    scenario = {
        "problem": "serving", "model": "mistral-7b", "system": "hgx-h100", "chips": 1,
        "price": "$2/hour", "workload": {"input_tokens": 500, "output_tokens": 100},
    }  # fmt: skip
    over = {"model": ["=1+1.json", "mistral-7b"]}
    assert parse_grid(over).count == 2
    sweep(scenario, over, out=tmp_path / "a.csv")
    assert "'=1+1.json" in (tmp_path / "a.csv").read_text()
    assert load_columns(tmp_path / "a.csv")["model"] == ["=1+1.json", "mistral-7b"]
