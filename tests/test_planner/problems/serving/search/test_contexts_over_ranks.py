"""Contexts cut over ranks of a tensor-parallel group: what is held, sent, chosen, run, written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planner
from planner.engines import export
from planner.engines.imported import scenario_from_launch
from planner.problems.serving.bounds.lower_bound import relaxation
from planner.problems.serving.pairs.pool_matching import shards
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import search
from planner.problems.serving.search.promise_limits import PromiseLimits
from planner.problems.serving.step.kernels import feed
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import Task
from planner.text.errors import InputError
from tests.loops import for_all

HOURLY = {"hgx-h200": "$3.50/hour", "hgx-b200": "$5/hour", "gb200-nvl72": "$6/hour"}


def asked(model: str, system: str, chips: int, prompt: int, **more: Any) -> dict[str, Any]:
    """A scenario in which a pool decodes, unless more is said."""
    lengths = {"input_tokens": prompt, "output_tokens": 1000}
    return {"problem": "serving", "model": model, "system": system, "chips": chips,
            "price": HOURLY[system], "workload": lengths, "choose": {"mode": "decode"},
            **more}  # fmt: skip


def task_of(*question: Any, **more: Any) -> Task:
    return resolve(planner.load(asked(*question, **more))).tasks[0]


def ranks(dcp: int, tp: int = 8) -> Layouts:
    return Layouts.of(tp=tp, dcp=dcp, tp_expert=tp, chips=tp)


def test_one_rank_is_what_was_before_there_were_any():
    """To the last bit: cache bytes read, and held, in the equations without ranks."""
    for model in ("deepseek-v3.2", "llama-3.1-405b", "gpt-oss-120b"):
        step = Step(task_of(model, "hgx-h200", 8, 8000), ranks(1), bound=False)
        x = {**step.values(np.array([7.0])), **feed(step.model.lowered("every_symbol"),
                                                  step.values(np.array([7.0])))}  # fmt: skip
        read = x["b_rank"] * (x["b_kv"] * x["L_ctx"] + x["R_bnd"]) * x["f_heads"] / x["cp"]
        assert x["V_kv_dec"] == read + x["b_own"] * 2 * x["R_state"] / x["tp"]
        assert x["T_cp"] == x["T_gather"] == 0.0


# KV capacity over dcp 1: plain MLA, of aisimulate's pull request 240, on 8 B200 in vLLM; beside it
# 1.68 of vLLM's pull request 57431, whose index keys are 0.23 of what is cut.
MEASURED = {2: 1.98, 4: 3.96, 8: 7.85}


@pytest.mark.parametrize("dcp", MEASURED)
def test_ranks_hold_a_share_of_the_cache_and_all_index_keys(dcp: int):
    """Held within 10 % of what was measured; what is not cut by tokens is whole on every rank."""
    plain, indexed = (task_of(m, "hgx-b200", 8, 100_000) for m in ("deepseek-v3", "deepseek-v3.2"))
    held = {n: [float(Step(task, ranks(n), bound=False)(np.array([8.0]))["memory.kv"][0])
                for task in (plain, indexed)] for n in (1, dcp)}  # fmt: skip
    assert held[1][0] / held[dcp][0] == pytest.approx(MEASURED[dcp], rel=0.1)
    same = indexed.sizes.index_bytes_per_token
    share = same / (indexed.sizes.kv_bytes_per_token - same)
    expected = (1 + share) / (1 / dcp + share)
    assert held[1][1] / held[dcp][1] == pytest.approx(expected, rel=1e-3)
    assert dcp > 2 or expected == pytest.approx(1.68, rel=0.1)


def test_what_ranks_answer_each_other_takes_what_a_peer_measured():
    """5 ms a step of DeepSeek-V3 on 8 B200, dcp 8, batch 32 (aisimulate, pull request 240)."""
    step = Step(task_of("deepseek-v3", "hgx-b200", 8, 32_768), ranks(8), bound=False)
    values = feed(step.model.lowered("every_symbol"), step.values(np.array([32.0])))
    assert float(values["T_cp"][0]) == pytest.approx(5e-3, rel=0.25)


H200, POOLS = {"tpot": "25 ms"}, {"tpot": "20 ms", "ttft": "10 s"}
GAINS = [
    (("deepseek-v3", "hgx-h200", 8, 120_000), {"promises": H200, "engine": "vllm"}, 0.25),
    (("deepseek-v3", "hgx-h200", 8, 120_000), {"promises": H200}, 0.2),
    (("deepseek-v3", "hgx-h200", 64, 32_000),
     {"promises": POOLS, "choose": {"mode": "disaggregated"}}, 0.02),
    (("deepseek-v3.1-nvfp4", "gb200-nvl72", 64, 1_000_000), {"promises": {"tpot": "12 ms"}}, None),
]  # fmt: skip


@pytest.mark.parametrize(("of", "more", "gain"), GAINS)
def test_long_contexts_are_cheaper(of: tuple[Any, ...], more: dict[str, Any], gain: float | None):
    """Than without ranks, or possible at all; the bound lies below, and the plan says so."""
    question = asked(*of, **more)
    free = planner.solve(question)
    held = planner.solve({**question, "choose": {**question["choose"], "dcp": 1}})
    pool = free.chosen["decode"] or free.chosen
    assert pool["layout"]["dcp"] > 1
    assert held.feasible == (gain is not None)
    if gain is not None:
        assert free.chosen["usd_per_mtok"] < held.chosen["usd_per_mtok"] * (1 - gain)
    assert free.certificate.gap >= 0
    assert any("ranks" in part.words for part in free.outside)
    assert f"TP{pool['layout']['tp']} (DCP{pool['layout']['dcp']})" in str(free)


@pytest.mark.parametrize(
    ("model", "promise", "prompt"),
    [("deepseek-v3", {"tpot": "50 ms"}, 120_000), ("minimax-m2", {"tpot": "30 ms"}, 60_000)],
)
def test_no_layout_at_any_batch_is_cheaper(model: str, promise: dict[str, str], prompt: int):
    """The search against every batch of every layout, ranks among them; the relaxation below."""
    task = task_of(model, "hgx-h200", 16, prompt, promises=promise, engine="none")
    step = Step(task, admissible_layouts(task), bound=False)
    found, best = search(step), np.inf
    for number in range(1, int(found.largest.max()) + 2):
        batch = np.full(len(step.layouts), float(number))
        values = step(batch)
        kept = PromiseLimits(step, batch).hold(values)
        best = min(best, np.where(kept, task.score(values), np.inf).min())
    assert (step.layouts.dcp > 1).any()
    assert found.score[0] == pytest.approx(best, rel=1e-12)
    assert relaxation(step, found, 2 * best).value <= best * (1 + 1e-7)


def test_ranks_are_tried_where_they_hold_less_and_nowhere_else():
    """As many KV heads as a domain has chips: none; pools that read alone, and parts: none."""
    assert (admissible_layouts(task_of("llama-3.1-405b", "hgx-h200", 8, 120_000)).dcp == 1).all()
    one = {"mode": "aggregated"}
    few = admissible_layouts(
        task_of("qwen3-235b-a22b", "hgx-h200", 8, 32_000, engine="vllm", choose=one)
    )
    assert {*zip(few.tp[few.dcp > 1], few.dcp[few.dcp > 1], strict=True)} == {(8, 2)}
    latent = admissible_layouts(task_of("deepseek-v3", "hgx-h200", 16, 1_000_000))
    assert ((latent.dcp == 1) | (latent.cp == 1)).all()
    assert (latent.tp % latent.dcp == 0).all()
    reading = task_of("deepseek-v3", "hgx-h200", 16, 120_000, choose={"mode": "prefill"})
    assert (admissible_layouts(reading).dcp == 1).all()
    step = Step(task_of("qwen3-235b-a22b", "hgx-h200", 16, 120_000), ranks(2), bound=False)
    assert shards(step).tolist() == [8]


def test_prompts_of_one_pool_gather_what_ranks_hold():
    """The longer for more chunks, and nothing where a prompt is one chunk that finds no cache."""

    def read(chunk: int, **load: float) -> float:
        task = task_of("deepseek-v3", "hgx-h200", 8, 32_000,
                       choose={"mode": "aggregated", "chunk": chunk})  # fmt: skip
        step = Step(task.with_layout(**load), ranks(8), bound=False)
        return float(feed(step.model.lowered("every_symbol"),
                         step.values(np.array([8.0])))["T_gather"][0])  # fmt: skip

    assert read(32_000) == 0.0
    assert read(4000) == pytest.approx(7 * read(16_000), rel=1e-9)
    assert read(32_000, cached_input=0.5) > read(16_000)


REFUSED = [
    ("qwen3-235b-a22b", "hgx-h200", "vllm", 4), ("qwen3-235b-a22b", "hgx-h200", "sglang", 2),
    ("deepseek-v3.2", "hgx-h200", "vllm", 8), ("deepseek-v3.2", "hgx-b200", "sglang", 8),
    ("gpt-oss-120b", "hgx-h200", "vllm", 2), ("deepseek-v3", "hgx-b200", "trtllm", 8),
]  # fmt: skip


@pytest.mark.parametrize(("model", "system", "engine", "dcp"), REFUSED)
def test_what_an_engine_does_not_run_is_refused(model: str, system: str, engine: str, dcp: int):
    """By the key of the choice, with what would work."""
    choose = {"mode": "aggregated", "tp": 8, "dcp": dcp}
    with pytest.raises(InputError, match=r"choose\.dcp"):
        planner.solve(asked(model, system, 8, 8000, choose=choose, engine=engine))


SENT = {"tp": 8, "ep": 1, "dp_attention": 1}
RECEIVED = {**SENT, "pp": 1, "dcp": 8}


@for_all(
    ("engine", "sent", "received", "runs"),
    [
        ("vllm", {"pp": 1}, {}, True), ("vllm", {"pp": 2}, {}, False),
        ("vllm", {"pp": 2}, {"dcp": 1}, True), ("any", {"pp": 2}, {}, True),
        ("sglang", {"pp": 2}, {}, True), ("sglang", {"pp": 1, "cp": 2}, {}, False),
        ("sglang", {"pp": 1, "cp": 2}, {"dcp": 1}, True), ("sglang", {"pp": 1}, {"dcp": 4}, True),
    ],
)  # fmt: skip
def test_what_sends_caches_to_ranks(engine: str, sent: Any, received: Any, runs: bool):
    """vLLM pushes them from no stages, SGLang from no parts: such pools are not paired."""
    choose = {"mode": "disaggregated", "prefill": {**SENT, **sent},
              "decode": {**RECEIVED, **received}}  # fmt: skip
    plan = planner.solve(asked("deepseek-v3", "hgx-h200", 64, 32_000, choose=choose, engine=engine))
    assert bool(plan.feasible) is runs
    assert not runs or plan.chosen["engines"] == (["sglang"] if engine == "any" else [engine])


@pytest.mark.parametrize(
    ("system", "kv", "dcp", "kernels"),
    [("hgx-h200", "bf16", 8, "flashinfer"), ("hgx-h200", "fp8", 8, "triton"),
     ("hgx-h200", "bf16", 1, None), ("hgx-b200", "bf16", 8, None)],
)  # fmt: skip
def test_kernels_of_ranks_are_named_where_the_default_has_none(system, kv, dcp, kernels):
    """Of SGLang on Hopper."""
    choose = {"mode": "aggregated", **RECEIVED, "tp": 16, "dcp": dcp, "kv": kv}
    question = asked("deepseek-v3", system, 16, 32_000, choose=choose, engine="sglang")
    launch = export(planner.solve(question), "sglang").launches[0]
    assert {x.name: x.value for x in launch.options}.get("--attention-backend") == kernels


WRITTEN = {"vllm": "--decode-context-parallel-size", "sglang": "--dcp-size",
           "trtllm": "context_parallel_size: 8"}  # fmt: skip


@pytest.mark.parametrize("engine", WRITTEN)
def test_a_launch_with_ranks_is_read_back(engine: str, tmp_path: Path):
    """Of TensorRT-LLM the pool that decodes, whose chips of tp it counts without ranks."""
    pooled = engine == "trtllm"
    ways = {"tp": 8, "dcp": 8, "pp": 1, "dp_attention": 1, "cp": 1}
    choose = {"mode": "disaggregated", "decode": ways} if pooled else {"mode": "aggregated", **ways}
    question = asked("deepseek-v3", "hgx-b200", 16 if pooled else 8, 60_000, choose=choose,
                     engine=engine)  # fmt: skip
    plan = planner.solve(question)
    files = export(plan, engine).files
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert any(WRITTEN[engine] in text for text in files.values())
    sets = ["system=hgx-b200", "price=$5/hour", "workload.input_tokens=60000",
            "workload.output_tokens=1000", "memory_utilisation=0.9"]  # fmt: skip
    data = scenario_from_launch(sorted(tmp_path.glob("*.sh")), sets, 1).data
    again = data["choose"]["decode"] if pooled else data["current"]
    assert (again["tp"], again["dcp"]) == (8, 8)
    if not pooled:
        point = planner.solve({**question, **data}).document["current"]
        assert point["layout"]["dcp"] == 8
