"""A question in flags is the question of a file: the same scenario, or a refusal that says why."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import planner
from planner.cli.options import as_changes
from planner.text.errors import InputError
from tests.loops import for_all

SMALL = ("--model", "llama-3.1-8b", "--system", "hgx-h100")


@for_all(
    ("typed", "changes"),
    [
        (["--users", "200"], ["workload.concurrency=200"]),
        (["--max-concurrency=200"], ["workload.concurrency=200"]),
        (["--rate", "25"], ["workload.demand=25 requests/s"]),
        (["--rate", "90 requests/min"], ["workload.demand=90 requests/min"]),
        (["--isl", "3k", "--osl", "800"],
         ["workload.input_tokens=3k", "workload.output_tokens=800"]),
        (["--ttft-p95", "2s"], ["promises.ttft_p95=2s"]),
        (["--speed", "30"], ["promises.tokens_per_s_per_user=30"]),
        (["--two-pools"], ["choose.mode=disaggregated"]),
        (["--chips", "8..64"], ["chips={from: 8, to: 64}"]),
        (["--system", "hgx-h100", "--nodes", "1..4"],
         ["system=hgx-h100", "chips={from: 8, to: 32}"]),
    ],
)  # fmt: skip
def test_each_flag_is_a_change(typed: list[str], changes: list[str]) -> None:
    """In the order in which they are typed; aliases of other tools are understood."""
    expected = [word for change in changes for word in ("--set", change)]
    assert as_changes(typed, ()) == expected


def test_flags_of_the_command_itself_and_all_after_two_dashes_stay() -> None:
    """`--engine` of `export` is its own."""
    words = ["a.yaml", "--engine", "vllm", "--", "--users", "3"]
    assert as_changes(words, {"--engine"}) == words


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--tpot", "33"], "--tpot 33: 33 ms or 33 s?"),
        (["--ttft"], "--ttft: expected a value, such as --ttft 2s"),
        (["--nodes", "4"], "--nodes needs --system"),
        (["--chips", "many"], "--chips: expected a number or A..B, got 'many'"),
    ],
)
def test_what_could_be_meant_in_two_ways_is_refused(typed: list[str], told: str) -> None:
    """A bare time is milliseconds elsewhere and seconds here."""
    with pytest.raises(InputError, match=re.escape(told)):
        as_changes(typed, ())


def test_flags_alone_are_answered_as_the_file_they_stand_for(run: Any, tmp_path: Any) -> None:
    """With 4,000 tokens in and 1,000 out where nothing says otherwise; over a file they win."""
    asked = ("--chips", "8", "--users", "64", "--tpot", "30ms", "--json")
    status, out, _ = run("solve", *SMALL, *asked)
    assert status == 0
    found = json.loads(out)
    scenario = {
        "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 8,
        "workload": {"concurrency": 64, "input_tokens": 4000, "output_tokens": 1000},
        "promises": {"tpot": "30 ms"},
    }  # fmt: skip
    assert found["plan"] == planner.solve(scenario).to_json()["plan"]
    file = tmp_path / "q.yaml"
    file.write_text(json.dumps(scenario | {"chips": 4}), encoding="utf-8")
    status, out, _ = run("solve", file, "--chips", "8", "--json")
    assert json.loads(out)["plan"] == found["plan"]


def test_a_plan_in_which_requests_wait_for_a_place_is_answered_and_explained(run: Any) -> None:
    """Memory holds fewer than the requests in flight: the wait is part of TTFT, and said so."""
    asked = ("--chips", "2", "--weights", "bf16", "--input", "60k", "--users", "100")
    for extra in (("--more",), ("--more", "--why")):
        status, out, err = run("solve", *SMALL, *asked, *extra)
        assert (status, "fault of ours" in err) == (0, False)
        assert "each waits" in " ".join(out.split())
        assert "no queue" not in out


def test_what_explains_a_plan_is_worked_out_where_it_is_asked_for(
    run: Any, monkeypatch: Any
) -> None:
    """Neither reasons nor sources cost an answer without --why and --sources anything."""
    monkeypatch.setattr("planner.problems.serving.plan.ServingPlan.why", None)
    assert run("solve", *SMALL, "--chips", "2")[0] == 0


def test_ascii_alone_is_printed_where_it_is_asked_for(run: Any) -> None:
    """`--ascii` on either side of the command: marks, signs and dashes of ASCII, JSON untouched."""
    shown = run("--ascii", "solve", *SMALL, "--chips", "2", "--speed", "30")[1]
    assert shown.isascii()
    assert "<= 33.3 ms" in shown
    assert run("solve", *SMALL, "--chips", "2", "--speed", "30", "--ascii")[1] == shown


def test_without_file_and_flags_what_is_missing_is_named(run: Any) -> None:
    """Model, system and chips, and exit status 2."""
    status, out, err = run("solve")
    assert (status, out) == (2, "")
    assert [key for key in ("model", "system", "chips") if f"'{key}'" not in err] == []
    assert all(flag in err for flag in ("--model deepseek-v3", "--system hgx-h200", "--nodes 4"))
    status, _, err = run("solve", "--model", "deepseek-v3")
    assert (status, "--model" in err, "--system hgx-h200" in err) == (2, False, True)
    assert run("solve", "--short", "--more", *SMALL)[0] == 2
    status, _, err = run("solve", *SMALL, "--chips", "2", "--out", "800")
    assert (status, "tokens are --output 800" in err) == (2, True)
