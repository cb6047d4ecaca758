"""The run to measure next: its commands work, and what they bring back tells."""

import itertools
import json
import shlex

import pytest

import planner
from planner.cli.app import main

FAR = {
    "problem": "serving", "model": "llama-2-70b", "system": "hgx-h100", "chips": 8,
    "price": "$2/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
    "choose": {"mode": "aggregated", "weights": "fp8", "kv": "fp8", "tp": 4, "replicas": 2,
               "batch": 128},
}  # fmt: skip
EXPERTS = {
    **FAR, "model": "kimi-k2", "chips": 16, "choose": {"mode": "aggregated", "batch": 64},
}  # fmt: skip
WIDE = {
    **FAR, "model": "deepseek-v3", "system": "hgx-h200", "chips": 16,
    "choose": {"mode": "aggregated", "batch": 128, "tp": 1, "dp_attention": 16, "ep": 16,
               "overlap": "two-batch"},
    "workload": {"input_tokens": 20000, "output_tokens": 500},
}  # fmt: skip


def result_of(command: str, ttft: float, tpot: float) -> dict:
    """What the load generator writes of such a run [ms], as vLLM's does."""
    words = shlex.split(command)
    assert words[:3] == ["vllm", "bench", "serve"]
    options = dict(itertools.pairwise(words))
    requests, into, out = (
        int(options[f"--{name}"])
        for name in ("num-prompts", "random-input-len", "random-output-len")
    )
    facts = dict(word.split("=") for word in words[words.index("--metadata") + 1 :])
    return {
        **facts, "model_id": options["--model"], "request_rate": "inf", "completed": requests,
        "max_concurrency": int(options["--max-concurrency"]), "backend": "openai",
        "total_input_tokens": requests * into, "total_output_tokens": requests * out,
        "mean_ttft_ms": ttft, "mean_tpot_ms": tpot, "mean_itl_ms": tpot,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("question", "what"),
    [(FAR, "model"), (EXPERTS, "model"), (WIDE, "context")],
    ids=["dense", "experts", "two batches"],
)
def test_its_commands_make_a_profile_that_has_seen_what_was_new(
    question, what, tmp_path, monkeypatch
):
    """What is printed is run; the answer by what it wrote is outside in nothing the run was of."""
    monkeypatch.chdir(tmp_path)
    plan = planner.solve(question)
    assert what in {each.what for each in plan.outside}
    run = plan.answer.narrow
    load, read = run.commands
    assert load.split()[-1] in plan.text("more")
    assert read in plan.text("more")
    (tmp_path / "run.json").write_text(json.dumps(result_of(load, 900.0, 1.4e3 * plan.tpot)))
    with pytest.raises(SystemExit) as exit_:
        main(shlex.split(read)[1:])
    assert exit_.value.code == 0
    mine = planner.solve({**question, "profile": str(tmp_path / "own.toml")})
    assert not {each.what for each in mine.outside} & {what, "chips", "number format"}
    assert mine.answer.provenance.warnings
    assert mine.tpot != plan.tpot


def test_what_a_run_cannot_tell_it_is_not_said_to():
    """Where the overlap of two batches alone is new, no loop of whole requests would tell it."""
    plan = planner.solve({**WIDE, "workload": FAR["workload"]})
    assert [each.what for each in plan.outside] == ["overlap"]
    assert plan.answer.narrow is None
    off = planner.solve(WIDE)
    assert off.answer.narrow.overlap_off
    text = off.text("more")
    assert "benchmark of one exported replica with its overlap off" in text
    assert max(map(len, text.splitlines())) <= 80


def test_inside_there_is_nothing_to_narrow():
    """Nor on a bound."""
    inside = {**FAR, "model": "llama-3.1-70b"}
    assert planner.solve(inside).answer.narrow is None
    assert planner.solve({**FAR, "estimate": "bound"}).answer.narrow is None


def test_the_run_is_of_the_pool_and_dimension_that_most_rests_on():
    """Few drafted tokens matter less than a model that nobody ran."""
    plan = planner.solve(FAR)
    assert plan.answer.narrow.narrows == "model"
    assert 0 < plan.answer.narrow.sigma < 1
    assert plan.document["narrow"]["commands"] == list(plan.answer.narrow.commands)
