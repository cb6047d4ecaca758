"""`planner fit` and `planner validate --memory`: exit status, JSON, what contradicts itself."""

import json

import pytest

import planner
from tests.cases.validation import RUN_HEAD, run_row, written
from tests.paths import EXAMPLES

COMMAND = ()
LAUNCH = "vllm serve openai/gpt-oss-120b --max-model-len 131072 --gpu-memory-utilization 0.95"


def test_launches_scenarios_and_options_ask_alike(run):
    """A quoted launch, with a share of its own; exit 1 where nothing fits; JSON."""
    status, out, _ = run("fit", LAUNCH, "--system", "hgx-h100", "--engine-version", "0.11")
    assert status == 1
    assert out.startswith("does not fit: gpt-oss-120b")
    status, out, _ = run("fit", EXAMPLES / "serve-deepseek-v3-gb200.yaml", "--format", "json")
    told = json.loads(out)
    assert (status, told["verdict"]) == (0, "fits")
    assert told["least_chips"] == told["layout"]["tp"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((LAUNCH, "--system", "hgx-h100", "--share", "0.9"), "--share 0.9: the launch says 0.95"),
        (("--model", "qwen3-8b", "--system", "h100", "--share", "1.2"), "--share 1.2: expected"),
        (("--model", "qwen3-8b", "--system", "h100", "--engine", "tgi"), "unknown engine"),
        (("--model", "qwen3-8b", "--system", "h100", "--engine-version", "x"), "no version 'x'"),
        (("--model", "qwen3-8b", "--system", "h100", "--tp", "0"), "--tp 0: expected at least 1"),
        (("--model", "qwen3-8b", "--system", "h100", "--room", "-1"), "--room -1: expected GiB"),
        (("--model", "qwen3-8b"), "--system missing: give them"),
        (("--model", "qwen3-8b", "--system", "h100", "--format", "x"), "--format x: expected"),
        ((LAUNCH, "--set", "a=1"), "--set: changes a scenario"),
    ],
)
def test_what_contradicts_itself_is_told(run, words, message):
    """One line, exit status 2."""
    status, _, error = run("fit", *words)
    assert status == 2
    assert message in error


def test_a_table_that_is_none_is_refused(run, tmp_path):
    """By its first line."""
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    status, _, error = run("validate", "--memory", path)
    assert status == 2
    assert "no table of starts" in error


def test_choices_are_scored_as_a_table_and_as_json(run, tmp_path):
    """Both name every rule; a chance is a share, not in percent."""
    path = written(tmp_path / "runs.csv", RUN_HEAD, run_row(), run_row(tpot=8.0, tp=8))
    assert run("validate", "--regret", path)[1].count("fewest chips") == 1
    status, out, _ = run("validate", "--regret", path, "--chance", "0.7", "--json")
    assert (status, len(json.loads(out)[str(path)])) == (0, 5)
    assert run("validate", "--regret", path, "--chance", "70")[0] == 2


def test_promises_let_through_what_a_plan_of_that_layout_serves(run):
    """Users and load are those of `solve` on the layout; a looser promise lets more through."""
    file, told = EXAMPLES / "serve-llama-70b-fast.yaml", {}
    words = ("--set", "engine=vllm", "--tp", "4", "--format", "json")
    for wanted, promise in (("users", "20 ms"), ("users", "40 ms"), ("load", "40 ms")):
        more = ("--for", wanted, "--set", f"promises.tpot={promise}")
        status, out, _ = run("fit", file, *words, *more)
        assert status == 0
        told[wanted, promise] = json.loads(out)["within"][wanted]
    assert 0 < told["users", "20 ms"] < told["users", "40 ms"]
    sets = ["engine=vllm", "chips=4", "choose.mode=aggregated", "choose.tp=4", "choose.pp=1",
            "choose.dp_attention=1", "choose.replicas=1", "promises.tpot=40 ms",
            "workload.demand=max"]  # fmt: skip
    served = planner.solve(file, sets).chosen["requests_per_s"]
    assert told["load", "40 ms"] == pytest.approx(served)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--model", "qwen3-8b", "--system", "h100", "--for", "users"),
            "reads promises of a scenario",
        ),
        ((EXAMPLES / "serve-llama-70b-fast.yaml", "--for", "user"), "one of users, load"),
    ],
)
def test_what_promises_are_asked_of_is_told(run, words, message):
    """A word that is neither, and a question without promises."""
    status, _, error = run("fit", *words)
    assert (status, message in error) == (2, True)
