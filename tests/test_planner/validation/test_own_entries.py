"""Measurements of one's own, and what load generators write, are scored like the open tables."""

from __future__ import annotations

import csv
import json

import pytest

from planner.report.text.validation_text import validation_text
from planner.text.errors import InputError
from planner.validation.estimates import predictions_text, read, scan_folder
from planner.validation.validation_document import document
from tests.cases.validation import RUN_HEAD, run_row, written

HEAD = "model,gpu,tp,users,isl,osl,precision,ttft_s,tpot_ms,tok_s,remark"
VLLM = {
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "completed": 100,
    "total_input_tokens": 100_000,
    "total_output_tokens": 20_000,
    "request_rate": "inf",
    "max_concurrency": 16,
    "mean_ttft_ms": 90.0,
    "mean_tpot_ms": 8.0,
    "mean_itl_ms": 8.0,
    "duration": 11.0,
}


def test_a_table_of_ones_own_is_predicted_in_its_own_units(tmp_path):
    """Seconds stay seconds, and a rate of the same steps has a band the other way round."""
    path = written(
        tmp_path / "own.csv",
        HEAD,
        "llama-3.1-8b,h100,1,16,1000,200,fp8,0.09,8,,mine",
        "llama-3.1-8b,h100,1,16,1000,200,fp8,,,2000,mine",
        "llama-3.1-8b,abacus,1,16,1000,200,fp8,0.09,8,,mine",
        "llama-3.1-8b,h100,1,16,1000,200,fp8,,,,mine",
    )
    held, entries = read(path)
    first, rate, unknown, bare = csv.DictReader(predictions_text(held, entries).splitlines())
    assert held.measured == ("ttft_s", "tpot_ms", "tok_s")
    assert 0.01 < float(first["estimate_ttft_s"]) < 1
    assert 2 < float(first["bound_tpot_ms"]) < float(first["estimate_tpot_ms"]) < 30
    assert first["estimate_tok_s"] == ""
    assert float(rate["bound_tok_s"]) > float(rate["estimate_tok_s"]) > float(rate["low_tok_s"])
    assert float(rate["estimate_tok_s"]) == pytest.approx(
        16e3 / float(first["estimate_tpot_ms"]), rel=1e-6
    )
    assert "abacus" in unknown["reason"]
    assert "no measured value" in bare["reason"]


def test_a_value_that_two_columns_state_counts_once(tmp_path):
    """Time per token and the rate of the same run are both predicted; one of them is scored."""
    path = written(tmp_path / "own.csv", HEAD, "llama-3.1-8b,h100,1,16,1000,200,fp8,,8,2000,")
    _, entries = read(path)
    assert [entry.column for entry in entries if entry.prediction] == ["tpot_ms", "tok_s"]
    assert [entry.column for entry in entries if entry.scored] == ["tpot_ms"]


def test_results_of_a_load_generator_need_facts(tmp_path):
    """A file of vLLM says neither chips nor layout: they are asked for, and then it is scored."""
    path = tmp_path / "vllm.json"
    path.write_text(json.dumps(VLLM), encoding="utf-8")
    with pytest.raises(InputError, match="missing column system or chip"):
        read(path)
    held, entries = read(path, facts={"chip": "h100", "tp": "1"})
    assert held.kind == "vllm"
    assert {entry.quantity for entry in entries if entry.scored} == {"tpot", "ttft"}
    with pytest.raises(InputError, match="no CSV table"):
        predictions_text(held, entries)
    assert scan_folder(tmp_path).paths == (path,)


def test_a_table_that_says_everything_takes_no_facts(tmp_path):
    """Facts would be silently ignored otherwise."""
    path = written(tmp_path / "runs.csv", RUN_HEAD, run_row())
    with pytest.raises(InputError, match="says tp itself"):
        read(path, facts={"tp": "4"})


def test_engines_that_no_fit_saw_are_named(tmp_path):
    """Their rows are predicted with what engines share, which the answer says."""
    head, row = HEAD.replace("remark", "engine"), "llama-3.1-8b,h100,1,16,1000,200,fp8,,8,,"
    path = written(tmp_path / "own.csv", head, f"{row}abacus", f"{row}vllm", row)
    found = document("auto", [read(path)])
    assert found.files[0].engines_unseen == {"abacus": 1, "unknown": 1}
    assert "values of engines that no fit saw: abacus (1), unknown (1)" in validation_text(found)
