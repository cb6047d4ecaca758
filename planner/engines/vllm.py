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
    budget,
    drafted,
    lengths,
    notes,
    parallel,
    release,
    shared,
)

PORT = 8000
RELEASE = release("vllm")
ROLES = MappingProxyType({"prefill": "kv_producer", "decode": "kv_consumer"})


def reasons(plan: Deployment) -> Iterator[Reason]:
    """Why vLLM cannot run the plan; nothing if it can."""
    yield from general(plan, RELEASE)
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
        "--kv-cache-dtype",
        cache_dtype(plan, RELEASE.caches),
        f"KV cache {plan.pool['kv']} in the plan",
    )
    if plan.converted:
        note = f"{plan.checkpoint.weights} weights made {plan.pool['weights']} while loading"
        yield Option("--quantization", RELEASE.online[plan.pool["weights"]], note)
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
