"""Every layout that is offered can be run: engines' own rules, written down once more from sources.

The checker below shares nothing with the table that the search reads: it takes the published
`config.json` and one layout in plain numbers, and says what an engine asserts while it starts.

vLLM 0.33: config/model.py (query heads), layers/linear.py (KV heads divided or copied evenly),
quantization/fp8.py (whole blocks on every rank), vocab_parallel_embedding.py (padded to 64),
fused_moe/config.py (expert parallelism over all ranks, or off), config/vllm.py (two half-batches
exchange by DeepEP, of 1 to 7 or 8, 16, 24, ... ranks; dcp divides tp over KV heads, and is 1 or tp
where NIXL brings caches of latent attention). SGLang 0.5:
the same checks over attention's own ranks, experts evenly over ep-size, two-batch overlap of some
models' layers, dcp of latent attention. TensorRT-LLM 1.2: attention data parallelism on all ranks
or none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import planner
from planner.catalogue import models
from planner.engines import ENGINES, export
from planner.engines.deployment import checkpoint, deployments
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.step.engine_rules import RULES, engine_tables
from planner.problems.serving.task.resolve import resolve
from planner.scenario import check_tree
from planner.scenario.tree import Tree
from planner.text.errors import Infeasible, InputError
from tests.loops import for_all
from tests.paths import ROOT
from tests.sizes import first, seldom

MODELS = (
    "deepseek-v3", "kimi-k2", "minimax-m2", "glm-4.5-air", "qwen3-235b-a22b-fp8", "qwen3-30b-a3b",
    "gpt-oss-120b", "mixtral-8x22b", "llama-3.3-70b", "qwen3-32b-fp8", "phi-4", "qwen2.5-7b",
)  # fmt: skip
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-b200", "gb200-nvl72", "mi300x-8")
MACHINE = {"gb200-nvl72": 4}  # chips under one operating system, where not 8
OVERLAPPED = ("deepseek_v3", "kimi_k2", "qwen3_moe")
KV = {"vllm": {"bf16", "fp16", "fp8"}, "sglang": {"bf16", "fp8"}, "trtllm": {"bf16", "fp8"}}


def starts(
    engine: str, config: Mapping[str, Any], x: Mapping[str, int], role: str, kv: str, system: str
) -> str:
    """The first thing that an engine would refuse of one pool; empty if it starts."""
    tp, dp, ep, cut, pp = (x[k] for k in ("tp", "dp_attention", "ep", "tp_expert", "pp"))
    heads, latent = config["num_attention_heads"], "kv_lora_rank" in config
    kv_heads = config.get("num_key_value_heads", heads)
    named = ("n_routed_experts", "num_experts", "num_local_experts")
    experts = next((config[k] for k in named if config.get(k)), 0)
    block = (config.get("quantization_config") or {}).get("weight_block_size", [1])[0]
    inner = config["intermediate_size"]
    expert = config.get("moe_intermediate_size", inner)
    vocabulary = -(-config["vocab_size"] // 64) * 64
    dense = not experts or config.get("first_k_dense_replace", 0) > 0
    copied = config["model_type"] in ("llama", "qwen2", "qwen3")
    shared = (config.get("n_shared_experts") or 0) * expert
    beside = {"vllm": tp, "sglang": tp * dp if cut > 1 else 1, "trtllm": 1}[engine]
    across = tp if engine != "sglang" or (experts and tp == 1) else tp * dp
    machine, chips = MACHINE.get(system, 8), tp * dp * x["cp"] * pp
    nodes = -(-chips // machine)
    each, rest = divmod(chips, nodes)
    stage = chips // pp
    ragged = nodes > 1 and (rest or (each % stage and stage % each))
    deep = tp * dp >= 8 and tp * dp % 8 > 0
    halves, ranks, copied_heads = x["overlap"] == "two-batch", x["dcp"], 1 if latent else kv_heads
    helix = (
        role == "decode" and system in ("hgx-b200", "gb200-nvl72") and tp // ranks <= copied_heads
    )
    return next((word for word, broken in {
        "query heads": heads % tp,
        "kv heads": not latent and kv_heads % tp and tp % kv_heads,
        "dense width": dense and across > 1 and inner % (across * block)
            and (engine != "trtllm" or not experts),
        "expert width": experts and cut > 1 and expert % (cut * block),
        "shared width": shared and beside > 1 and shared % (beside * block),
        "vocabulary": engine != "trtllm" and vocabulary % tp,
        "experts": experts and experts % ep and engine != "vllm",
        "all or none": engine == "vllm" and ep > 1 and cut > 1,
        "attention": engine == "trtllm" and tp > 1 and dp > 1,
        "dense copies": not experts and dp > 1 and not (engine == "sglang" and copied),
        "context": x["cp"] > 1 and not (engine == "sglang" and role == "prefill"),
        "ranks": ranks > 1 and ((tp % (copied_heads * ranks) and engine != "trtllm")
            or "layer_types" in config or (engine == "sglang" and not latent)
            or (engine == "trtllm" and not helix)
            or (engine == "vllm" and system == "mi300x-8" and (kv == "fp8" or not latent))
            or (engine == "vllm" and role == "decode" and not (latent and ranks == tp))),
        "pipeline": engine == "vllm" and pp > 1
            and (role == "decode" or (role == "prefill" and "layer_types" in config)),
        "overlap": halves and (engine == "trtllm" or cut > 1),
        "DeepEP": halves and (deep or (experts and experts % ep)) and system != "mi300x-8",
        "overlapped": engine == "sglang" and halves
            and (config["model_type"] not in OVERLAPPED or system == "mi300x-8"),
        "ragged": ragged,
        "cache": kv not in KV[engine],
    }.items() if broken), "")  # fmt: skip


def scenario(seed: int, most: int) -> dict[str, Any]:
    """A random question: model, machines, lengths, promises and an engine, or any."""
    rng = random.Random(seed)
    drawn = {
        "problem": "serving", "model": rng.choice(MODELS), "system": rng.choice(SYSTEMS),
        "chips": rng.choice([n for n in (1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 64) if n <= most]),
        "price": "$3/hour", "engine": rng.choice(("any", "any", "vllm", "sglang", "trtllm")),
        "workload": {"input_tokens": rng.choice((200, 2000, 30000)),
                     "output_tokens": rng.choice((50, 500))},
    }  # fmt: skip
    if rng.random() < 0.5:
        drawn["promises"] = {"tpot": f"{rng.choice((10, 30, 100))} ms"}
    if rng.random() < 0.3:
        drawn["choose"] = {"kv": "fp8"}
    return drawn


def config_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was published of the model."""
    return dict(models.record(asked["model"]).config)


def pools_of(plan: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The pools of a plan, with their roles."""
    if plan["layout"]:
        yield "", plan
    else:
        yield from ((role, plan[role]) for role in ("prefill", "decode"))


@for_all("seed", range(60))
def test_no_layout_that_is_searched_is_one_its_engines_refuse(seed):
    """Of random questions a sample of all layouts: just what the sources refuse is left out."""
    asked = scenario(seed, 64)
    question = check_tree(Tree("scenario", asked), ROOT)
    if asked["engine"] == "trtllm" and asked["system"] == "mi300x-8":
        with pytest.raises(InputError, match=r"NVIDIA|was made for"):
            resolve(question)
        return
    tasks = resolve(question)
    config, rng = config_of(asked), np.random.default_rng(seed)
    for task in [*tasks.tasks, *(each for pair in tasks.pools for each in pair.tasks)]:
        role = "" if task.mode == "aggregated" else task.mode
        every = admissible_layouts(task.with_layout(engines=None))
        sample = rng.choice(len(every), min(len(every), 60), replace=False)
        offered = admissible_layouts(task)
        runs = {(*offered.split(k), int(offered.halves[k])): offered.engines[k]
                for k in range(len(offered))}  # fmt: skip
        for k in sample.tolist():
            key = (*every.split(k), int(every.halves[k]))
            bits = int(runs.get(key, 0))
            for place, name in enumerate(engine_tables()):
                if name in (task.engines or ()):
                    told = starts(name, config, every.row(k), role, task.sizes.kv_dtype,
                                  asked["system"])  # fmt: skip
                    runs_it = (bits | bits >> len(ENGINES)) >> place & 1
                    assert bool(runs_it) == (not told), (name, every.row(k), told)


def judged(seed: int, most: int) -> int:
    """Plans of a question that were looked at: no engine that one names refuses it.

    Requests longer than the model was made for are warned of, run by none, and never exported.
    """
    asked = scenario(seed, most)
    try:
        answer = planner.solve(asked)
    except InputError:
        return 0
    if not answer.chosen:
        return 0
    whole = answer.document
    question = check_tree(Tree("scenario", asked), ROOT)
    if any("was made for" in warning for warning in answer.warnings):
        assert not whole["plan"]["engines"]
        with pytest.raises(Infeasible, match="context of"):
            deployments(question, checkpoint(question), whole["plan"])
        return 0
    for plan in (whole["plan"], *whole["alternatives"]):
        assert plan["engines"] or asked["engine"] == "any"
        for name in plan["engines"]:
            for role, pool in pools_of(plan):
                kv, system = pool["kv"], asked["system"]
                assert not starts(name, config_of(asked), pool["layout"], role, kv, system)
            for pool in deployments(question, checkpoint(question), plan):
                assert not ENGINES[name].reasons(pool)
                ENGINES[name].launch(pool)
        if plan["decode"] and "sglang" in plan["engines"]:
            stages = [plan[role]["layout"]["pp"] for role in ("prefill", "decode")]
            assert stages[1] in (1, stages[0])
        if plan["decode"] and plan["decode"]["layout"]["dcp"] > 1:
            sends = plan["prefill"]["layout"]
            assert sends["pp"] == 1 or "vllm" not in plan["engines"]
            assert sends["cp"] == 1 or "sglang" not in plan["engines"]
    for name in whole["plan"]["engines"]:
        assert export(answer, name).files
    return 1 + len(whole["alternatives"])


@for_all("seed", range(8))
def test_plans_are_run_by_the_engines_that_they_name(seed):
    """The plan, its runners-up, and the files that start it."""
    judged(seed, 8)


@pytest.mark.parametrize("seed", [*first(0, range(1000, 1016)), *seldom(range(1016, 1064))])
def test_more_random_plans_are_run_by_the_engines_that_they_name(seed):
    """The same on up to 32 chips."""
    judged(seed, 32)


def test_every_rule_of_the_table_has_a_meaning_and_a_source():
    """Names of rules are those of the code, each with where it was read."""
    for engine in engine_tables().values():
        assert set(engine.rules) <= set(RULES)
        assert all(engine.rules.values())
        assert engine.version
        assert engine.as_of
    assert set(RULES) == {name for engine in engine_tables().values() for name in engine.rules}


PINNED = {
    "expert width": ({"tp_expert": 7, "mode": "aggregated"}, "choose.tp_expert", "blocks of 128"),
    "heads": ({"tp": 3}, "choose.tp", "choose.tp=2, or choose.tp=4"),
    "cache": ({"kv": "int8"}, "choose.kv", "choose.kv=bf16"),
    "parts": ({"cp": 2, "mode": "aggregated"}, "choose.cp", "choose.cp=1"),
}


@pytest.mark.parametrize("case", PINNED)
def test_check_finds_what_no_engine_runs_at_its_place(case):
    """Without a search, with what would work; `engine: none` keeps to arithmetic."""
    choose, place, remedy = PINNED[case]
    asked = {**scenario(0, 8), "model": "deepseek-v3", "system": "hgx-h200", "chips": 16,
             "engine": "any", "choose": choose}  # fmt: skip
    with pytest.raises(InputError) as refused:
        planner.check(asked)
    assert place in str(refused.value)
    assert remedy in str(refused.value)
    if case != "heads":
        planner.check({**asked, "engine": "none"})


def test_check_finds_a_request_longer_than_the_model():
    """Engines refuse it; the answer of `solve` warns of it."""
    asked = {**scenario(0, 8), "workload": {"input_tokens": 200_000, "output_tokens": 10}}
    asked["model"] = "deepseek-v3"
    with pytest.raises(InputError, match=r"workload\.input_tokens: .*longer than the 163840"):
        planner.check(asked)


@pytest.mark.slow
def test_two_pools_are_run_by_one_engine():
    """What prefills under one engine and decodes under another is no plan, however cheap."""
    asked = {**scenario(0, 8), "model": "deepseek-v3", "system": "hgx-h200", "chips": 16,
             "engine": "any", "workload": {"input_tokens": 2000, "output_tokens": 500},
             "choose": {"mode": "disaggregated"}, "profile": "engines-2026"}  # fmt: skip
    best = {name: planner.solve({**asked, "engine": name}) for name in ("any", *engine_tables())}
    prices = {name: plan.document["plan"]["usd_per_mtok"] for name, plan in best.items()}
    assert best["any"].chosen["engines"]
    # An engine by itself is charged with its own memory, `any` with that of the first that runs it.
    assert prices["any"] == pytest.approx(min(prices[name] for name in engine_tables()), rel=0.02)
    assert prices["any"] >= min(prices[name] for name in engine_tables()) * (1 - 1e-9)
