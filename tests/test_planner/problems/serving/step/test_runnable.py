"""Which engines run a pool, why others do not, and what would work: pools of round numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.architecture.counts import InnerWidth, model_sizes
from planner.catalogue import models
from planner.problems.serving.step.engine_rules import engine_tables
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.runnable import (
    copies_dense,
    cut_otherwise,
    engine_pool,
    engines_loading_checkpoint,
    refusal_location,
    refusal_text,
    refusals,
    stamps,
    supporting_engines,
    supports,
    task_refusal,
)
from tests.cases.engine_pools import FULL, H100, MI300, MODEL, pool_with
from tests.cases.serving import dense, question, sparse

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
    every = supports(pool, table, ("vllm", "sglang", "trtllm"))
    assert every.tolist() == [VLLM + SGLANG + TRTLLM, SGLANG, 0]
    assert supports(pool, table, ("vllm", "trtllm")).tolist() == [VLLM + TRTLLM, 0, 0]
    assert engines_loading_checkpoint(pool, ["trtllm", "vllm"]) == (
        "vllm",
    )  # it converts no bf16 checkpoint
    assert engines_loading_checkpoint(pool_with({}), ["trtllm", "vllm"]) == ("trtllm", "vllm")
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
    assert supporting_engines([(drafting(), plain)]) == names
    assert supporting_engines([(drafting(), plain), (drafting(), odd)]) == names[:2]
    assert supporting_engines([(drafting(), odd), (drafting(engines=None), plain)]) is None
    assert supporting_engines([(drafting(engines=("sglang",)), plain)]) == ("sglang",)
    assert supporting_engines([(drafting(engines=()), plain)]) == ()
    assert supporting_engines([(drafting(model={"max_context": 1202}), plain)]) == names
    assert supporting_engines([(drafting(model={"max_context": 1201}), plain)]) == ()
    longer = drafting(input_tokens=1001.0, model={"max_context": 1202})
    assert (
        supporting_engines([(replace(longer, input_tokens=1000.0), plain), (longer, plain)]) == ()
    )
    # Without blocks that predict, nobody loads it for drafting.
    assert supporting_engines([(drafting(model={"mtp_blocks": 0}), plain)]) == ()


def test_a_pool_is_asked_about_in_the_words_of_rules():
    """Its role where it does one phase alone, the weights of its experts, copies and drafts."""
    task = drafting(redundant=2, drafting="eagle")
    pool = engine_pool(task)
    assert (pool.role, pool.copies, pool.drafts, pool.method) == ("", 2, 2, "eagle")
    assert engine_pool(replace(task, mode="decode")).role == "decode"
    kinds = {**MODEL.weight_dtype, "routed": "fp4", "dense_ffn": "fp8"}
    model = replace(MODEL, weight_dtype=kinds)
    assert engine_pool(replace(task, sizes=model)).weights == "fp4"
    assert engine_pool(replace(task, sizes=replace(model, n_experts=0))).weights == "fp8"


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
     ({"mtp_blocks": 1, "method": "n-gram"}, "drafting by n-gram is not written")],
)  # fmt: skip
def test_an_engine_says_why_it_does_not_draft(changes, said):
    """No blocks, blocks that it does not run, or a method that is not written."""
    (reason,) = reasons({"drafts": 1, **changes}, {}, "vllm")
    assert said in reason[0]


def test_all_engines_refuse_by_the_layout_that_each_comes_nearest_to():
    """Of a layout that breaks two rules and one that breaks one, the latter's is told."""
    table = rows({"tp": 5, "halves": 2}, {"halves": 2})
    said = refusal_text(pool_with(WHOLE), table, ["trtllm"])
    stamp = engine_tables()["trtllm"].stamp
    assert said == (
        f"no engine that was read runs this; {stamp}: {stamp} has no option that lets two "
        "half-batches overlap; what would work: choose.overlap=none; "
        "or engine: none, for your own"
    )
    both = refusal_text(pool_with(WHOLE), rows({"tp": 5}), ["vllm", "sglang"])
    names = " and ".join(engine_tables()[name].stamp for name in ("vllm", "sglang"))
    assert f"; {names}: tp 5 does not divide" in both
    task = drafting(model={"kv_dtype": "int8"})
    assert "no int8 KV cache" in task_refusal(task)
    assert task_refusal(drafting()) == task_refusal(replace(task, engines=None)) == ""
    assert (
        task_refusal(replace(task, any_layout=True))
        == task_refusal(replace(task, engines=()))
        == ""
    )


def test_an_error_stands_where_the_remedy_does():
    """At the choice that was made and would mend it, else at the first made, else at the remedy."""
    words = "tp 3; what would work: choose.ep=2, or choose.tp=4"
    assert refusal_location(["kv", "tp"], words) == ("choose.tp", words)
    assert refusal_location(["kv", "mode"], words)[0] == "choose.kv"
    assert refusal_location([], words)[0] == "choose.ep"
    assert refusal_location([], "another model")[0] == "choose"


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
    values = {"S_fixed": whole, "M_fixed": 2 * whole, "N_attn_pf": 1e9}
    layouts = rows({}, {"dp_attention": 4})
    shared = cut_otherwise(task, layouts, values, bound=False)
    assert shared["S_fixed"].tolist() == [whole, whole - part * 3 / 4]
    assert shared["M_fixed"].tolist() == [2 * whole, 2 * whole - part * 3 / 4]
    assert shared["N_attn_pf"].tolist() == [1e9, 1e9]
    for other, where in ((task, rows({"tp": 4})), (question(sparse()), layouts)):
        alone = cut_otherwise(other, where, values, bound=False)
        assert np.all(alone["S_fixed"] == whole)
        assert np.all(alone["M_fixed"] == 2 * whole)


def test_down_projections_and_routers_are_whole_on_every_chip():
    """DeepSeek-V3: 61 x 7168 x (1536 + 576) of latent attention, 58 x 7169 x 256 of routers.

    Eight chips hold and multiply eight times as much of it as one; the bound lets them cut it.
    """
    task = question(model_sizes(models.load("deepseek-v3")))
    parameters = 61 * 7168 * (1536 + 576) + 58 * 7169 * 256
    assert task.sizes.copied[0] == parameters
    assert task.sizes.copied[1] == pytest.approx(61 * 7168 * 2112 + 2 * 58 * 7168 * 256, rel=2e-3)
    values = {"S_fixed": 1e10, "M_fixed": 1e10, "N_attn_pf": 1e10}
    eight = rows({"tp": 8})
    cut = cut_otherwise(task, eight, values, bound=False)
    assert cut["N_attn_pf"].tolist() == [1e10 + 7 * parameters]
    assert cut["M_fixed"].tolist() == [1e10 + 7 * task.sizes.copied[1]]
    assert cut_otherwise(task, eight, values, bound=True)["N_attn_pf"].tolist() == [1e10]
