"""SGLang: a plan as `python3 -m sglang.launch_server`, options as of the release named here.

Its tensor parallel size is all chips of a stage; attention is copied inside it (`--attn-dp-size`)
and experts are cut into `--ep-size` groups inside it, so every layout of the planner has a
spelling. Batch and chunk are given for all copies together and divided inside.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.engines.deployment import Deployment
from planner.engines.engine_limits import cache_dtype, general, uneven
from planner.engines.launch import (
    LEADER,
    MODEL,
    RANK,
    Launch,
    Option,
    Reason,
    drafted,
    lengths,
    notes,
    parallel,
    release,
)

PORT = 30000
RENDEZVOUS = 5000
RELEASE = release("sglang")


def reasons(plan: Deployment) -> Iterator[Reason]:
    """Why SGLang cannot run the plan; nothing if it can."""
    yield from general(plan, RELEASE)
    layout = plan.layout
    yield from uneven(plan)
    if plan.drafts and layout["pp"] > 1 and plan.role != "prefill":
        yield Reason(
            f"pp {layout['pp']} with speculation: what decodes drafts without a pipeline only",
            "choose.pp=1",
        )


def launch(plan: Deployment) -> Launch:
    """`sglang.launch_server` for one replica; the plan must have passed `reasons`."""
    return Launch(
        release=RELEASE,
        program=("python3", "-m", "sglang.launch_server"),
        options=tuple(_options(plan)),
        port=PORT,
        nodes=plan.nodes,
        local=plan.local,
        notes=tuple(_notes(plan)),
        role=plan.role,
    )


def _options(plan: Deployment) -> Iterator[Option]:
    layout, copies = plan.layout, plan.layout["dp_attention"]
    yield Option("--model-path", MODEL, "the checkpoint")
    yield Option("--host", "0.0.0.0", "every interface; keep it behind a gateway")
    yield Option("--port", PORT, "where it answers")
    dp = ("--attn-dp-size", copies)
    yield from parallel(plan, tp=("--tp-size", plan.stage), pp="--pp-size", dp=dp)
    if layout["ep"] > 1:
        note = f"ep {layout['ep']}"
        if layout["tp_expert"] > 1:
            note += f"; what is left of tp-size cuts each expert: expert tp {layout['tp_expert']}"
        yield Option("--ep-size", layout["ep"], note)
    running = plan.sequences * copies
    note = f"{plan.pool['batch_per_replica']} sequences per replica"
    yield Option("--max-running-requests", running, f"{note}, a whole number per copy")
    if plan.role != "decode":
        yield _chunk(plan)
    yield Option("--context-length", plan.longest, lengths(plan))
    note = "weights and caches: all but the plan's reserve and activations"
    yield Option("--mem-fraction-static", plan.share["pool"], note)
    yield Option(
        "--kv-cache-dtype",
        cache_dtype(plan, RELEASE.caches),
        f"KV cache {plan.pool['kv']} in the plan",
    )
    if plan.converted:
        note = f"{plan.checkpoint.weights} weights made {plan.pool['weights']} while loading"
        yield Option("--quantization", RELEASE.online[plan.pool["weights"]], note)
    if plan.drafts:
        note = f"{drafted(plan)} per step, by the checkpoint's own prediction blocks"
        yield Option("--speculative-algorithm", "EAGLE", note)
        yield Option("--speculative-num-steps", plan.drafts, "one draft a step of the drafter")
        yield Option("--speculative-eagle-topk", 1, "a chain, no tree")
        note = "positions checked per step: the drafts and one"
        yield Option("--speculative-num-draft-tokens", plan.drafts + 1, note)
    if plan.role:
        yield Option("--disaggregation-mode", plan.role, f"the pool that {plan.role}s")
    if plan.nodes > 1:
        yield Option("--nnodes", plan.nodes, f"{plan.local} chips of a replica on each node")
        yield Option("--node-rank", RANK, "which node this is")
        yield Option("--dist-init-addr", f"{LEADER}:{RENDEZVOUS}", "the first node")


def _chunk(plan: Deployment) -> Option:
    copies = plan.layout["dp_attention"]
    note = f"chunk {plan.chunk}" + (f" per copy of attention, {copies} copies" * (copies > 1))
    return Option("--chunked-prefill-size", plan.chunk * copies, note)


def _notes(plan: Deployment) -> Iterator[str]:
    yield from notes(plan)
    if plan.role:
        yield (
            "requests come through a router that pairs the pools, such as sglang_router with "
            "--pd-disaggregation; caches travel by mooncake unless "
            "--disaggregation-transfer-backend names another"
        )
    elif not plan.drafts:
        yield (
            "chunks of prompts run in steps of their own unless --enable-mixed-chunk is added; the "
            "plan counts them beside decoding"
        )
    if plan.layout["ep"] > 1:
        yield (
            "experts exchange tokens by all-reduce unless --moe-a2a-backend names kernels that are "
            "installed (they need ep-size = tp-size); the plan counts an all-to-all"
        )
    if plan.cached_input:
        yield f"the radix cache, on by default, is to serve {plan.cached_input:.0%} of the input"
    elif plan.role != "decode":
        yield "the radix cache is on by default; the plan counts on nothing from it"
