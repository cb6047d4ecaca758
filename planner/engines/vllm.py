"""vLLM: a plan as `vllm serve`, options as of the release named here.

Experts are spread over all tensor * data parallel ranks or each cut over all of them, nothing
between; a data parallel rank is one copy of attention with its own scheduler, so its batch and
token budget are per copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import MappingProxyType

from planner.engines.deployment import Deployment
from planner.engines.engine_limits import cache_dtype, general
from planner.engines.launch import (
    HOST,
    LEADER,
    MODEL,
    RANK,
    Launch,
    Option,
    Reason,
    Release,
    budget,
    drafted,
    lengths,
    notes,
    parallel,
    shared,
)

PORT = 8000
RELEASE = Release(
    name="vllm",
    title="vLLM",
    version="0.33.0",
    as_of="2026-11-21",
    sources=(
        "Python package vllm 0.33.0: vllm/engine/arg_utils.py, vllm/entrypoints/common/cli_args.py",
        "the same, vllm/config: parallel.py, scheduler.py, cache.py, speculative.py, model.py",
        "the same: vllm/model_executor/layers/fused_moe/expert_map_manager.py, vllm/envs.py",
        "the same: vllm/distributed/kv_transfer/kv_connector/v1/nixl/connector.py",
    ),
    options=frozenset(
        {
            "--data-parallel-size",
            "--enable-chunked-prefill",
            "--enable-expert-parallel",
            "--enable-prefix-caching",
            "--gpu-memory-utilization",
            "--headless",
            "--host",
            "--kv-cache-dtype",
            "--kv-transfer-config",
            "--master-addr",
            "--max-model-len",
            "--max-num-batched-tokens",
            "--max-num-seqs",
            "--nnodes",
            "--node-rank",
            "--pipeline-parallel-size",
            "--port",
            "--quantization",
            "--speculative-config",
            "--tensor-parallel-size",
        }
    ),
    variables=frozenset({"VLLM_NIXL_SIDE_CHANNEL_HOST"}),
    vendors=MappingProxyType(
        {"NVIDIA": "vllm/vllm-openai:v0.33.0", "AMD": "vllm/vllm-openai-rocm:v0.33.0"}
    ),
)
ROLES = MappingProxyType({"prefill": "kv_producer", "decode": "kv_consumer"})
CACHES = MappingProxyType({"bf16": "bfloat16", "fp16": "float16", "fp8": "fp8", "nvfp4": "nvfp4"})
ONLINE = MappingProxyType({"fp8": "fp8"})
PREDICTING = frozenset(
    {
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_v4",
        "glm4_moe",
        "glm4_moe_lite",
        "glm_moe_dsa",
        "nemotron_h",
        "qwen3_5_moe_text",
        "qwen3_5_text",
        "qwen3_next",
    }
)


def reasons(plan: Deployment) -> Iterator[Reason]:
    """Why vLLM cannot run the plan; nothing if it can."""
    yield from general(
        plan, RELEASE, caches=CACHES, online=ONLINE, predicting=PREDICTING, unpacks_fp4=True
    )
    layout = plan.layout
    if layout["ep"] > 1 and layout["tp_expert"] > 1:
        yield Reason(
            f"ep {layout['ep']} with expert tp {layout['tp_expert']}: its expert parallelism is "
            f"always tp * dp attention = {plan.stage}, or off",
            f"choose.ep={plan.stage}, or choose.ep=1",
        )
    if layout["pp"] > 1 and (plan.role == "decode" or (plan.role and plan.checkpoint.hybrid)):
        what = "from a pipeline of layers of several kinds"
        place = "into a pipeline" if plan.role == "decode" else what
        yield Reason(f"pp {layout['pp']}: NixlConnector moves no caches {place}", "choose.pp=1")
    blocks = plan.checkpoint.prediction_blocks
    if blocks and plan.drafts > blocks and plan.drafts % blocks:
        yield Reason(
            f"{plan.drafts} drafts are no multiple of the {blocks} prediction blocks",
            f"speculation.drafts={blocks}",
        )


def launch(plan: Deployment) -> Launch:
    """`vllm serve` for one replica; the plan must have passed `reasons`."""
    return Launch(
        release=RELEASE,
        program=("vllm", "serve", MODEL),
        options=tuple(_options(plan)),
        followers=(Option("--headless", None, "only the first node answers requests"),)
        if plan.nodes > 1
        else (),
        port=PORT,
        nodes=plan.nodes,
        local=plan.local,
        environment=(Option("VLLM_NIXL_SIDE_CHANNEL_HOST", HOST, "where the other pool finds it"),)
        if plan.role
        else (),
        notes=tuple(_notes(plan)),
        role=plan.role,
    )


def _options(plan: Deployment) -> Iterator[Option]:
    layout = plan.layout
    yield Option("--host", "0.0.0.0", "every interface; keep it behind a gateway")
    yield Option("--port", PORT, "where it answers")
    yield from parallel(
        plan,
        tp=("--tensor-parallel-size", layout["tp"]),
        pp="--pipeline-parallel-size",
        dp=("--data-parallel-size", layout["dp_attention"]),
    )
    if layout["ep"] > 1:
        note = f"ep {layout['ep']}: experts over all tp * dp attention chips"
        yield Option("--enable-expert-parallel", None, note)
    yield Option("--max-num-seqs", plan.sequences, shared(plan))
    yield Option("--enable-chunked-prefill", None, "long prompts in chunks")
    note = budget(plan)
    if plan.role == "decode":
        note = f"{note}; room for a prompt whose cache did not arrive"
    yield Option("--max-num-batched-tokens", max(plan.step_tokens, plan.chunk), note)
    yield Option("--max-model-len", plan.longest, lengths(plan))
    yield Option("--gpu-memory-utilization", plan.share["all"], "all but the plan's reserve")
    yield Option(
        "--kv-cache-dtype", cache_dtype(plan, CACHES), f"KV cache {plan.pool['kv']} in the plan"
    )
    if plan.converted:
        note = f"{plan.checkpoint.weights} weights made {plan.pool['weights']} while loading"
        yield Option("--quantization", ONLINE[plan.pool["weights"]], note)
    if plan.cached_input:
        note = f"the plan has {plan.cached_input:.0%} of the input cached"
        yield Option("--enable-prefix-caching", None, note)
    if plan.drafts:
        document = json.dumps({"method": "mtp", "num_speculative_tokens": plan.drafts})
        yield Option("--speculative-config", document, f"{drafted(plan)} per step")
    if plan.role:
        document = json.dumps({"kv_connector": "NixlConnector", "kv_role": ROLES[plan.role]})
        yield Option("--kv-transfer-config", document, f"the pool that {plan.role}s")
    if plan.nodes > 1:
        yield Option("--nnodes", plan.nodes, f"{plan.local} chips of a replica on each node")
        yield Option("--node-rank", RANK, "which node this is")
        yield Option("--master-addr", LEADER, "the first node")


def _notes(plan: Deployment) -> Iterator[str]:
    yield from notes(plan)
    if plan.role:
        yield (
            "requests come through a proxy that asks a prefill server first and hands its answer "
            "to a decode server; caches travel by NIXL, which must be installed"
        )
        if plan.whole["prefill"]["layout"]["tp"] != plan.whole["decode"]["layout"]["tp"]:
            yield "the pools differ in tp: see whether NixlConnector reads this model's caches then"
    if plan.layout["ep"] > 1:
        yield (
            "experts exchange tokens by all-gather and reduce-scatter unless --all2all-backend "
            "names kernels that are installed; the plan counts an all-to-all"
        )
    elif plan.layout["tp_expert"] > 1:
        yield (
            f"expert tp {plan.layout['tp_expert']} has no option: without --enable-expert-parallel "
            "every expert is cut over all tp * dp attention chips"
        )
    if not plan.cached_input and plan.role != "decode":
        yield "the prefix cache is on by default; the plan counts on nothing from it"
