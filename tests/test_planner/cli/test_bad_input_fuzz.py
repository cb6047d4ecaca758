"""Whatever is asked ends in an answer, an infeasible document or a mistake; never otherwise."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from planner.cli.app import main
from planner.scenario.kinds import starter

SMALL = """\
problem: serving
model: llama-3.1-8b
system: hgx-h100
chips: 2
price: $2.50/hour
workload:
  input_tokens: 500
  output_tokens: 100
promises:
  tpot: 50 ms
"""

PLAIN: dict[str, Any] = YAML(typ="safe", pure=True).load(starter()) | {
    "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 2, "price": "$2/hour",
}  # fmt: skip
NODES = [
    (), *((key,) for key in PLAIN),
    *((key, below) for key in ("workload", "promises") for below in PLAIN[key]),
]  # fmt: skip
WORDS = ["8", "50 ms", "5 GB", "-3", "1e400", "fp8", "hgx-h200", "nan", "decode", "$1/h", "null",
         "llama-2-7b", "{like: hgx-h100, memory: 40 GB}", "{mean: 9, cv: 1}", "bound"]  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**7), st.floats(), st.text(max_size=8),
    st.sampled_from(WORDS), st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.sampled_from(["like", "mean", "cv", "tp", "x"]), st.integers(0, 9)),
)  # fmt: skip
KEYS = st.one_of(
    st.sampled_from(["current", "choose", "speculation", "pue", "power_price", "tpott", "mode"]),
    st.text(max_size=6),
)
EDITS = st.tuples(
    st.sampled_from(["drop", "rename", "replace", "add", "swap"]), st.sampled_from(NODES), KEYS,
    VALUES,
)  # fmt: skip
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "choose": st.fixed_dictionaries(
            {},
            optional={
                "tp": st.integers(1, 4), "pp": st.integers(1, 3), "batch": st.integers(1, 300),
                "mode": st.sampled_from(["decode", "prefill", "aggregated", "disaggregated"]),
                "weights": st.sampled_from(["fp8", "int4", "bf16", "nvfp4"]),
                "kv": st.sampled_from(["fp8", "bf16", "int4"]), "chunk": st.integers(1, 9000),
                "replicas": st.integers(1, 3), "cp": st.integers(1, 2),
            },
        ),
        "current": st.fixed_dictionaries(
            {"tp": st.integers(1, 4)},
            optional={"pp": st.integers(1, 3), "batch": st.integers(1, 100_000),
                      "ep": st.integers(1, 2), "replicas": st.integers(1, 3)},
        ),
        "objective": st.sampled_from(["cost", "throughput", "latency", "energy"]),
        "estimate": st.sampled_from(["bound", "calibrated"]),
        "assumptions": st.sampled_from(["physical", "lecture"]),
        "speculation": st.fixed_dictionaries(
            {"drafts": st.integers(0, 9), "acceptance": st.floats(0, 1)}),
        "chips": st.sampled_from([1, 2, [1, 2], {"from": 1, "to": 4}]),
        "model": st.sampled_from(["llama-3.1-8b", "mistral-7b", "qwen3-30b-a3b", "gpt-oss-20b",
                                  {"total_params": "8B"}, {"like": "llama-3.1-8b", "kv": "fp8"}]),
        "promises": st.fixed_dictionaries({}, optional={
            "tpot": st.sampled_from(["1 us", "10 ms", "1 s"]),
            "ttft": st.sampled_from(["1 us", "100 ms", "5 s"]),
            "e2e": st.sampled_from(["1 ms", "10 s"])}),
        "workload": st.fixed_dictionaries({
            "input_tokens": st.sampled_from([1, 100, 5000, 10**6, {"mean": 900, "cv": 0.7}]),
            "output_tokens": st.sampled_from([1, 2, 100, 10**5])}, optional={
            "concurrency": st.integers(1, 3000), "cached_input": st.floats(0, 0.99)}),
    },
)  # fmt: skip
QUICK = settings(
    max_examples=6, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
LONG = settings(QUICK, max_examples=50)


def edited(document: dict[str, Any], edits: list[tuple[str, tuple[str, ...], str, Any]]) -> Any:
    """The document with nodes dropped, renamed, replaced, added or exchanged."""
    document = copy.deepcopy(document)
    for kind, path, key, value in edits:
        holder: Any = document
        for part in path[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or not path:
            document["x" if kind != "add" else key] = value
        elif kind == "drop":
            holder.pop(path[-1], None)
        elif kind == "rename":
            holder[key] = holder.pop(path[-1], None)
        elif kind == "swap":
            holder[path[-1]], document["chips"] = document.get("chips"), holder.get(path[-1])
        elif kind == "add" and isinstance(holder.get(path[-1]), dict):
            holder[path[-1]][key] = value
        else:
            holder[path[-1]] = value
    return document


def assert_ends_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, name: str
) -> int:
    """The exit status; one of 0, 1, 2, with what belongs to it on the two streams."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(SystemExit) as exit_:
        main(["solve", str(file), "--json", "--quiet"])
    told = capsys.readouterr()
    status = int(exit_.value.code or 0)
    assert status in (0, 1, 2), told.err
    if status == 2:
        assert told.out == ""
        assert told.err.strip()
    else:
        assert told.err == ""
        assert (json.loads(told.out)["status"] == "infeasible") == bool(status)
    return status


def assert_edits_end_well(tmp_path: Path, capsys: Any, edits: Any) -> None:
    text = json.dumps(edited(PLAIN, edits))
    assert_ends_well(tmp_path, capsys, text, "s.json")


def assert_options_end_well(tmp_path: Path, capsys: Any, options: Any) -> None:
    assert_ends_well(tmp_path, capsys, json.dumps(PLAIN | options), "s.json")


def assert_text_ends_well(tmp_path: Path, capsys: Any, edits: Any) -> None:
    text = SMALL
    for start, length, new in edits:
        text = text[:start] + new + text[start + length :]
    assert_ends_well(tmp_path, capsys, text, "s.yaml")


TEXT_EDITS = st.lists(
    st.tuples(
        st.integers(0, len(SMALL)), st.integers(0, 6),
        st.text(alphabet="0123456789abm:{}[]-., \n\t#&*!'\"%", max_size=4) | st.text(max_size=2),
    ),
    min_size=1, max_size=3,
)  # fmt: skip


@QUICK
@given(edits=st.lists(EDITS, min_size=1, max_size=4))
def test_any_value_anywhere_ends_well(tmp_path, capsys, edits):
    """An answer, an infeasible document, or a mistake; never a failure of ours."""
    assert_edits_end_well(tmp_path, capsys, edits)


@pytest.mark.slow
@QUICK
@given(options=OPTIONS)
def test_any_sound_question_ends_well(tmp_path, capsys, options):
    """Whatever combination of sound values is asked for."""
    assert_options_end_well(tmp_path, capsys, options)


@QUICK
@given(edits=TEXT_EDITS)
def test_any_slip_of_the_keyboard_ends_well(tmp_path, capsys, edits):
    """Characters dropped, put in or replaced."""
    assert_text_ends_well(tmp_path, capsys, edits)


@pytest.mark.slow
@LONG
@given(edits=st.lists(EDITS, min_size=1, max_size=4))
def test_any_value_anywhere_ends_well_at_length(tmp_path, capsys, edits):
    """The same, many times over."""
    assert_edits_end_well(tmp_path, capsys, edits)


@pytest.mark.slow
@LONG
@given(options=OPTIONS)
def test_any_sound_question_ends_well_at_length(tmp_path, capsys, options):
    """The same, many times over."""
    assert_options_end_well(tmp_path, capsys, options)


@pytest.mark.slow
@LONG
@given(edits=TEXT_EDITS)
def test_any_slip_of_the_keyboard_ends_well_at_length(tmp_path, capsys, edits):
    """The same, many times over."""
    assert_text_ends_well(tmp_path, capsys, edits)
