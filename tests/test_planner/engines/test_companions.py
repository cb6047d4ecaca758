"""Options that engines want together stand together in a launch, and are read back as one thing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import planner
from planner.engines import ENGINES
from planner.engines.deployment import Deployment, checkpoint, deployments
from planner.engines.imported import scenario_from_launch
from planner.scenario import check_tree
from planner.scenario.tree import Tree
from tests.paths import ROOT

QUESTION = {
    "problem": "serving", "model": "deepseek-v3", "system": "hgx-h200", "chips": 32,
    "price": "$3/hour", "estimate": "bound", "engine": "sglang",
    "workload": {"input_tokens": 2000, "output_tokens": 500},
    "choose": {"mode": "disaggregated", "prefill": {"tp": 1, "pp": 2, "dp_attention": 8, "ep": 8},
               "decode": {"tp": 1, "pp": 1, "dp_attention": 16, "ep": 16}},
}  # fmt: skip
SAID = ("system=hgx-h200", "workload.input_tokens=1000", "workload.output_tokens=200")


@cache
def pools() -> tuple[Deployment, ...]:
    """Two stages that prefill, one that decodes."""
    plan = planner.solve(QUESTION)
    question = check_tree(Tree("scenario", dict(QUESTION)), ROOT)
    return deployments(question, checkpoint(question), plan.chosen)


def options(engine: str, pool: Deployment) -> dict[str, object]:
    """The options of a launch by name."""
    assert not ENGINES[engine].reasons(pool)
    return {each.name: each.value for each in ENGINES[engine].launch(pool).options}


def with_layout(pool: Deployment, **layout: object) -> Deployment:
    """The pool in another layout."""
    return replace(pool, layout={**pool.layout, **layout})


def test_overlapping_batches_have_an_exchange_that_overlaps():
    """vLLM's microbatches and SGLang's two batches run DeepEP, on NVIDIA chips."""
    first, last = (with_layout(pool, overlap="two-batch") for pool in pools())
    assert options("vllm", first)["--all2all-backend"] == "deepep_high_throughput"
    assert options("vllm", last)["--all2all-backend"] == "deepep_low_latency"
    assert options("sglang", last)["--moe-a2a-backend"] == "deepep"
    alone = with_layout(last, overlap="none")
    assert "--all2all-backend" not in options("vllm", alone)
    assert "--moe-a2a-backend" not in options("sglang", alone)


def test_both_sides_push_where_stages_prefill():
    """The connector that pulls reads the first stage alone."""
    for pool in pools():
        assert "NixlPushConnector" in str(options("vllm", pool)["--kv-transfer-config"])
    first, last = pools()
    layout = {**first.whole["prefill"]["layout"], "pp": 1}
    whole = {**first.whole, "prefill": {**first.whole["prefill"], "layout": layout}}
    for pool in (with_layout(replace(first, whole=whole), pp=1), replace(last, whole=whole)):
        assert '"NixlConnector"' in str(options("vllm", pool)["--kv-transfer-config"])


def test_stages_that_decode_are_one_or_as_many_as_prefill():
    """SGLang refuses three behind two; one and two it takes."""
    last = pools()[1]
    refused = {pp: list(ENGINES["sglang"].reasons(with_layout(last, pp=pp))) for pp in (1, 2, 3)}
    assert not refused[1]
    assert not refused[2]
    assert "behind prefill pp 2" in refused[3][0].what


def test_dense_layers_are_whole_or_cut_over_the_stage():
    """--moe-dense-tp-size is 1 or left out."""
    last = pools()[1]
    assert options("sglang", last)["--moe-dense-tp-size"] == 1
    cut = with_layout(last, tp=2, dp_attention=8)
    assert "--moe-dense-tp-size" not in options("sglang", cut)


def test_heads_and_models_of_their_own_draft():
    """EAGLE-3 heads are to be named, a catalogue model is; both are read as drafts again."""
    last = replace(pools()[1], drafts=3)
    eagle, own = replace(last, method="eagle-3"), replace(last, method="llama-3.2-1b")
    words = str(options("vllm", eagle)["--speculative-config"])
    assert '"eagle3"' in words
    assert "REPLACE-BY" in words
    assert any("REPLACE-BY" in note for note in ENGINES["vllm"].launch(eagle).notes)
    words = str(options("vllm", own)["--speculative-config"])
    assert '"draft_model", "model": "meta-llama/Llama-3.2-1B"' in words
    assert options("sglang", eagle)["--speculative-algorithm"] == "EAGLE3"
    line = f"vllm serve openai/gpt-oss-120b --speculative-config '{words}'"
    assert "3 drafts a step" in " ".join(scenario_from_launch([line], SAID).notes)
    assert "does not run" not in " ".join(scenario_from_launch([line], SAID).notes)


def test_a_companion_alone_says_nothing_of_the_plan():
    """A backend without overlap is no overlap; SGLang's spreads experts over tp-size."""
    line = "vllm serve openai/gpt-oss-120b -tp 4 --all2all-backend deepep_low_latency"
    assert scenario_from_launch([line], SAID).data["current"]["overlap"] == "none"
    line = "python3 -m sglang.launch_server --model-path openai/gpt-oss-120b --tp 4"
    current = scenario_from_launch([f"{line} --moe-a2a-backend deepep"], SAID).data["current"]
    assert (current["ep"], current["overlap"], current["dp_attention"]) == (4, "none", 1)
    line = 'vllm serve openai/gpt-oss-120b --speculative-config \'{"method": "ngram"}\''
    assert "--speculative-config: of a kind" in " ".join(scenario_from_launch([line], SAID).notes)
