"""Every layout that is offered can be run: engines' own rules, written down once more from sources.

The checker below shares nothing with the table that the search reads: it takes the published
`config.json` and one layout in plain numbers, and says what an engine asserts while it starts.

vLLM 0.33: config/model.py (query heads), layers/linear.py (KV heads divided or copied evenly),
quantization/fp8.py (whole blocks on every rank), vocab_parallel_embedding.py (padded to 64),
fused_moe/config.py (expert parallelism over all ranks, or off). SGLang 0.5: the same checks over
attention's own ranks, experts evenly over ep-size. TensorRT-LLM 1.2: attention data parallelism on
all ranks or none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planner
from planner.architecture.counts import InnerWidth
from planner.catalogue import models
from planner.engines import ENGINES, export
from planner.engines.deployment import checkpoint, deployments
from planner.problems.serving.search.batch import layouts_of
from planner.problems.serving.step.engine_rules import RULES, engine_tables
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.runnable import (
    copies_dense,
    engines_of,
    feed_forward_shared,
    loaded_by,
    misfit,
    pool_of,
    refusals,
    refused,
    run_by,
    stamps,
    unfit_for,
)
from planner.problems.serving.task.resolve import resolve
from planner.scenario import checked
from planner.scenario.tree import Tree
from planner.text.errors import Infeasible, InputError
from tests.cases.engine_pools import FULL, H100, MI300, MODEL, pool_with
from tests.cases.serving import dense, question, sparse
from tests.paths import ROOT

MODELS = (
    "deepseek-v3", "kimi-k2", "minimax-m2", "glm-4.5-air", "qwen3-235b-a22b-fp8", "qwen3-30b-a3b",
    "gpt-oss-120b", "mixtral-8x22b", "llama-3.3-70b", "qwen3-32b-fp8", "phi-4", "qwen2.5-7b",
)  # fmt: skip
SYSTEMS = ("hgx-h100", "hgx-h200", "hgx-b200", "gb200-nvl72", "mi300x-8")
EVEN = {"vllm": False, "sglang": True, "trtllm": True}
KV = {"vllm": {"bf16", "fp16", "fp8"}, "sglang": {"bf16", "fp8"}, "trtllm": {"bf16", "fp8"}}


WHOLE = {"inner": ()}  # widths are not known, so nothing is cut
VLLM, SGLANG, TRTLLM = (1 << place for place in range(3))


def rows(*layouts: Mapping[str, int]) -> Layouts:
    """A table of layouts, one chip of everything that is not said."""
    return Layouts.joined([Layouts.of(**each) for each in layouts])


def reasons(changes: dict[str, Any], layout: dict[str, int], engine: str) -> list[tuple[str, str]]:
    """Why an engine refuses a layout of a pool, each with what would work."""
    return [*refusals(pool_with(changes), Layouts.of(**layout), engine_tables()[engine])]


def test_a_column_of_layouts_is_judged_at_once():
    """A bit for each engine that was asked about and runs the layout, whatever it loads."""
    table = rows({}, {"tp": 2, "dp_attention": 2, "ep": 2, "tp_expert": 2}, {"tp": 5})
    pool = pool_with({**WHOLE, "weights": "fp8"})
    assert tuple(engine_tables()) == ("vllm", "sglang", "trtllm")
    every = run_by(pool, table, ("vllm", "sglang", "trtllm"))
    assert every.tolist() == [VLLM + SGLANG + TRTLLM, SGLANG, 0]
    assert run_by(pool, table, ("vllm", "trtllm")).tolist() == [VLLM + TRTLLM, 0, 0]
    assert loaded_by(pool, ["trtllm", "vllm"]) == ("vllm",)  # it converts no bf16 checkpoint
    assert loaded_by(pool_with({}), ["trtllm", "vllm"]) == ("trtllm", "vllm")
    assert stamps(["vllm"]) == f"vLLM {engine_tables()['vllm'].version}"
    assert stamps([]).startswith("none of those read")


def drafting(**changes: Any) -> Any:
    """A question to all engines of a model that drafts with blocks of its own."""
    own = {"family": "deepseek_v3", "mtp_blocks": 1, "inner": (), "max_context": None}
    model = replace(MODEL, **{**own, **changes.pop("model", {})})
    every = {"engines": ("vllm", "sglang", "trtllm"), "chip": H100, "positions_per_step": 3.0}
    task = question(sparse(), **{**every, **changes})
    bf16 = dict.fromkeys(model.weight_dtype, "bf16")
    return replace(task, sizes=replace(model, weight_dtype=bf16), chip=H100)


def test_all_pools_of_a_plan_are_run_by_one_engine():
    """Requests of 1000 tokens, 200 more and two drafts beyond them fit the model, or none does."""
    plain, odd = Layouts.of(), Layouts.of(tp=2, dp_attention=2, ep=4)
    names = ("vllm", "sglang", "trtllm")
    assert engines_of([(drafting(), plain)]) == names
    assert engines_of([(drafting(), plain), (drafting(), odd)]) == names[:2]
    assert engines_of([(drafting(), odd), (drafting(engines=None), plain)]) is None
    assert engines_of([(drafting(engines=("sglang",)), plain)]) == ("sglang",)
    assert engines_of([(drafting(engines=()), plain)]) == ()
    assert engines_of([(drafting(model={"max_context": 1202}), plain)]) == names
    assert engines_of([(drafting(model={"max_context": 1201}), plain)]) == ()
    longer = drafting(input_tokens=1001.0, model={"max_context": 1202})
    assert engines_of([(replace(longer, input_tokens=1000.0), plain), (longer, plain)]) == ()
    # Without blocks that predict, nobody loads it for drafting.
    assert engines_of([(drafting(model={"mtp_blocks": 0}), plain)]) == ()


def test_a_pool_is_asked_about_in_the_words_of_rules():
    """Its role where it does one phase alone, the weights of its experts, copies and drafts."""
    task = drafting(redundant=2, drafting="eagle")
    pool = pool_of(task)
    assert (pool.role, pool.copies, pool.drafts, pool.method) == ("", 2, 2, "eagle")
    assert pool_of(replace(task, mode="decode")).role == "decode"
    kinds = {**MODEL.weight_dtype, "routed": "fp4", "dense_ffn": "fp8"}
    model = replace(MODEL, weight_dtype=kinds)
    assert pool_of(replace(task, sizes=model)).weights == "fp4"
    assert pool_of(replace(task, sizes=replace(model, n_experts=0))).weights == "fp8"


def test_an_engine_says_what_would_work():
    """The next smaller and the next larger size that break no rule, and a word where none does."""
    # Of 12 heads and 4 KV heads tp may be 1, 2, 4 or 12; 3 blocks of an expert leave 1.
    assert ("choose.tp=4, or choose.tp=12") in reasons(WHOLE, {"tp": 5}, "vllm")[0][1]
    (said, remedy), *others = reasons({}, {"tp": 5}, "vllm")
    assert said == f"tp 5 does not divide the 12 attention heads of {MODEL.name}"
    assert remedy == "choose.tp=1"
    cut = {"tp": 5, "tp_expert": 5}
    (expert,) = [each for each in reasons({}, cut, "vllm") if "width of an expert" in each[0]]
    assert expert[1] == "another model, or another engine"  # no ep is whole beside tp 5
    assert any("768 in blocks of 128, is not whole on each of tp 5" in text for text, _ in others)
    narrow = {"inner": (InnerWidth("dense_ffn", 768, 1), InnerWidth("shared", 768, 1))}
    texts = [text for text, _ in reasons(narrow, {"tp": 5}, "vllm")]
    assert "the feed-forward width, 768, is not whole on each of tp 5 chips" in texts
    # Experts that lie over the whole stage follow it: eight of them over four chips, not twelve.
    spread = reasons(WHOLE, {"tp": 5, "ep": 5}, "trtllm")
    assert spread[0][1] == "choose.tp=4 with choose.ep=4"
    # Of twelve chips 1, 2, 4 share eight experts evenly, and 3 do not.
    (even,) = reasons(WHOLE, {"tp": 12, "ep": 3, "tp_expert": 4}, "trtllm")
    assert even == ("8 experts do not divide over ep 3", "choose.ep=2, or choose.ep=4")
    assert reasons({"chip": MI300, "kv_dtype": "int8"}, {}, "trtllm") == [
        (f"{MI300.title} is not among the chips its options were read for (NVIDIA)",
         "a system with chips of NVIDIA"),
        (f"it has no int8 KV cache for {MODEL.name}", "choose.kv=bf16 or fp8"),
    ]  # fmt: skip
    (converts,) = reasons({"weights": "fp8"}, {}, "trtllm")
    assert "the plan takes fp8 weights" in converts[0]
    engine, pool = engine_tables()["trtllm"], pool_with({"weights": "fp8"})
    assert not [*refusals(pool, Layouts.of(), engine, checkpoint=False)]
    # Seven heads over seven chips, but a width of half a block over one alone.
    alone = {"inner": (InnerWidth("dense_ffn", 1, 2),), "n_experts": 0, "family": "llama",
             "n_q_heads": 7, "caches": (replace(FULL, heads=7),), "vocab": 374}  # fmt: skip
    assert reasons(alone, {"tp": 7}, "trtllm")[0][1] == "choose.tp=1"
    for layout, remedy in (({"halves": 2}, "choose.overlap=none"), ({"cp": 2}, "choose.cp=1")):
        assert [text for _, text in reasons(WHOLE, layout, "trtllm")] == [remedy]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"mtp_blocks": 0}, "has no blocks for multi-token prediction"),
     ({"mtp_blocks": 1}, "does not run the multi-token prediction blocks of mixtral"),
     ({"mtp_blocks": 1, "method": "mtp"}, "prediction blocks of mixtral"),
     ({"mtp_blocks": 1, "method": "eagle"}, "drafting by eagle is not written")],
)  # fmt: skip
def test_an_engine_says_why_it_does_not_draft(changes, said):
    """No blocks, blocks that it does not run, or a method that is not written."""
    (reason,) = reasons({"drafts": 1, **changes}, {}, "vllm")
    assert said in reason[0]


def test_all_engines_refuse_by_the_layout_that_each_comes_nearest_to():
    """Of a layout that breaks two rules and one that breaks one, the latter's is told."""
    table = rows({"tp": 5, "halves": 2}, {"halves": 2})
    said = refused(pool_with(WHOLE), table, ["trtllm"])
    stamp = engine_tables()["trtllm"].stamp
    assert said == (
        f"no engine that was read runs this; {stamp}: {stamp} has no option that lets two "
        "half-batches overlap; what would work: choose.overlap=none; "
        "or engine: none, for your own"
    )
    both = refused(pool_with(WHOLE), rows({"tp": 5}), ["vllm", "sglang"])
    names = " and ".join(engine_tables()[name].stamp for name in ("vllm", "sglang"))
    assert f"; {names}: tp 5 does not divide" in both
    task = drafting(model={"kv_dtype": "int8"})
    assert "no int8 KV cache" in unfit_for(task)
    assert unfit_for(drafting()) == unfit_for(replace(task, engines=None)) == ""
    assert unfit_for(replace(task, any_layout=True)) == unfit_for(replace(task, engines=())) == ""


def test_an_error_stands_where_the_remedy_does():
    """At the choice that was made and would mend it, else at the first made, else at the remedy."""
    words = "tp 3; what would work: choose.ep=2, or choose.tp=4"
    assert misfit(["kv", "tp"], words) == ("choose.tp", words)
    assert misfit(["kv", "mode"], words)[0] == "choose.kv"
    assert misfit([], words)[0] == "choose.ep"
    assert misfit([], "another model")[0] == "choose"


def test_attention_of_a_dense_model_is_copied_where_something_does():
    """SGLang does for Llama, a mesh of one's own for any whose widths are known."""
    task = question(dense())
    assert copies_dense(task)
    assert copies_dense(replace(task, engines=("vllm", "sglang")))
    assert not copies_dense(replace(task, engines=("vllm",)))
    assert copies_dense(replace(task, engines=("vllm",), any_layout=True))
    assert not copies_dense(replace(task, lecture=True))
    assert not copies_dense(replace(task, sizes=replace(task.sizes, inner=())))
    assert not copies_dense(question(sparse()))


def test_a_feed_forward_part_is_shared_by_the_copies_of_attention():
    """Four copies hold a fourth of it each beside all the rest."""
    task = question(dense())
    whole, part = 1e12, task.sizes.weight_bytes["dense_ffn"]
    values = {"S_fixed": whole, "M_fixed": 2 * whole, "M_routed": 0.0}
    layouts = rows({}, {"dp_attention": 4})
    shared = feed_forward_shared(task, layouts, values)
    assert shared["S_fixed"].tolist() == [whole, whole - part * 3 / 4]
    assert shared["M_fixed"].tolist() == [2 * whole, 2 * whole - part * 3 / 4]
    assert set(shared) == {"S_fixed", "M_fixed"}
    assert feed_forward_shared(task, rows({"tp": 4}), values) == {}
    assert feed_forward_shared(question(sparse()), layouts, values) == {}


def starts(engine: str, config: Mapping[str, Any], x: Mapping[str, int], role: str, kv: str) -> str:
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
    across = tp if engine != "sglang" or experts else tp * dp
    return next((word for word, broken in {
        "query heads": heads % tp,
        "kv heads": not latent and kv_heads % tp and tp % kv_heads,
        "dense width": dense and across > 1 and inner % (across * block)
            and (engine != "trtllm" or not experts),
        "expert width": experts and cut > 1 and expert % (cut * block)
            and config["model_type"] != "gpt_oss",
        "shared width": shared and beside > 1 and shared % (beside * block),
        "vocabulary": engine != "trtllm" and vocabulary % tp,
        "experts": experts and EVEN[engine] and experts % ep,
        "all or none": engine == "vllm" and ep > 1 and cut > 1,
        "attention": engine == "trtllm" and tp > 1 and dp > 1,
        "dense copies": not experts and dp > 1 and not (engine == "sglang" and copied),
        "context": x["cp"] > 1 and not (engine == "sglang" and role == "prefill"),
        "pipeline": engine == "vllm" and pp > 1
            and (role == "decode" or (role == "prefill" and "layer_types" in config)),
        "overlap": x["overlap"] == "two-batch" and (engine == "trtllm" or cut > 1),
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


@pytest.mark.parametrize("seed", range(60))
def test_no_layout_that_is_searched_is_one_its_engines_refuse(seed):
    """Of random questions a sample of all layouts: just what the sources refuse is left out."""
    asked = scenario(seed, 64)
    question = checked(Tree("scenario", asked), ROOT)
    if asked["engine"] == "trtllm" and asked["system"] == "mi300x-8":
        with pytest.raises(InputError, match=r"NVIDIA|was made for"):
            resolve(question)
        return
    tasks = resolve(question)
    config, rng = config_of(asked), np.random.default_rng(seed)
    for task in [*tasks.tasks, *(each for pair in tasks.pools for each in pair.tasks)]:
        role = "" if task.mode == "aggregated" else task.mode
        every = layouts_of(task.with_layout(engines=None))
        sample = rng.choice(len(every), min(len(every), 60), replace=False)
        offered = layouts_of(task)
        runs = {(*offered.split(k), int(offered.halves[k])): offered.engines[k]
                for k in range(len(offered))}  # fmt: skip
        for k in sample.tolist():
            key = (*every.split(k), int(every.halves[k]))
            bits = int(runs.get(key, 0))
            for place, name in enumerate(engine_tables()):
                if name in (task.engines or ()):
                    told = starts(name, config, every.row(k), role, task.sizes.kv_dtype)
                    assert bool(bits >> place & 1) == (not told), (name, every.row(k), told)


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
    question = checked(Tree("scenario", asked), ROOT)
    if any("was made for" in warning for warning in answer.warnings):
        assert not whole["plan"]["engines"]
        with pytest.raises(Infeasible, match="was made for"):
            deployments(question, checkpoint(question), whole["plan"])
        return 0
    for plan in (whole["plan"], *whole["alternatives"]):
        assert plan["engines"] or asked["engine"] == "any"
        for name in plan["engines"]:
            for role, pool in pools_of(plan):
                assert not starts(name, config_of(asked), pool["layout"], role, pool["kv"])
            for pool in deployments(question, checkpoint(question), plan):
                assert not ENGINES[name].reasons(pool)
                ENGINES[name].launch(pool)
    for name in whole["plan"]["engines"]:
        assert export(answer, name).files
    return 1 + len(whole["alternatives"])


@pytest.mark.parametrize("seed", range(8))
def test_plans_are_run_by_the_engines_that_they_name(seed):
    """The plan, its runners-up, and the files that start it."""
    judged(seed, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1064))
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
    """What prefills under one engine and decodes under another is no plan."""
    asked = {**scenario(0, 8), "model": "deepseek-v3", "system": "hgx-h200", "chips": 16,
             "engine": "any", "workload": {"input_tokens": 2000, "output_tokens": 500},
             "choose": {"mode": "disaggregated"}}  # fmt: skip
    best = {name: planner.solve({**asked, "engine": name}) for name in ("any", *engine_tables())}
    prices = {name: plan.document["plan"]["usd_per_mtok"] for name, plan in best.items()}
    assert prices["any"] == pytest.approx(min(prices[name] for name in engine_tables()), rel=1e-9)
