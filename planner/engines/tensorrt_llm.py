"""TensorRT-LLM: a plan as `trtllm-serve` and its YAML file of options, release as named here.

Attention is either cut over all chips of a stage or copied on every one of them, nothing between;
experts take any split of the same chips. Batch and token budget are per copy of attention. A
replica of several nodes is started by an MPI launcher on all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.engines.deployment import Deployment
from planner.engines.engine_limits import cache_dtype, general, uneven
from planner.engines.launch import (
    MODEL,
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
FILE = "extra-llm-api.yaml"
RELEASE = release("trtllm")


def reasons(plan: Deployment) -> Iterator[Reason]:
    """Why TensorRT-LLM cannot run the plan; nothing if it can."""
    yield from general(plan, RELEASE)
    layout = plan.layout
    if layout["tp"] > 1 and layout["dp_attention"] > 1:
        yield Reason(
            f"tp {layout['tp']} with dp attention {layout['dp_attention']}: it cuts attention over "
            f"all {plan.stage} chips of a stage or copies it on every one",
            f"choose.tp=1, or choose.dp_attention=1 with choose.tp={plan.stage}",
        )
    yield from uneven(plan)
    if plan.checkpoint.weights == "fp8" and not plan.chip.computes("fp8"):
        yield Reason(f"{plan.chip.title} has no fp8 arithmetic", "a bf16 or int4 checkpoint")
    checkpoint_kv = plan.checkpoint.sizes.kv_dtype
    if plan.pool["kv"] == "bf16" and checkpoint_kv != "bf16":
        yield Reason(
            f"the checkpoint asks for a {checkpoint_kv} KV cache, which dtype auto follows",
            f"choose.kv={checkpoint_kv}",
        )


def launch(plan: Deployment) -> Launch:
    """`trtllm-serve` for one replica; the plan must have passed `reasons`."""
    several = plan.nodes > 1
    tasks = plan.nodes * plan.local
    mpi = (
        "srun",
        f"--nodes={plan.nodes}",
        f"--ntasks={tasks}",
        f"--ntasks-per-node={plan.local}",
        "--mpi=pmix",
        "trtllm-llmapi-launch",
    )
    return Launch(
        release=RELEASE,
        program=("trtllm-serve", MODEL),
        prefix=mpi if several else (),
        options=tuple(_options(plan)),
        config=tuple(_settings(plan)),
        config_file=_file(plan),
        port=PORT,
        nodes=plan.nodes,
        local=plan.local,
        notes=tuple(_notes(plan)),
        role=plan.role,
    )


def _file(plan: Deployment) -> str:
    return f"{plan.role}-{FILE}" if plan.role else FILE


def _options(plan: Deployment) -> Iterator[Option]:
    layout = plan.layout
    yield Option("--host", "0.0.0.0", "every interface; keep it behind a gateway")
    yield Option("--port", PORT, "where it answers")
    yield from parallel(plan, tp=("--tp_size", plan.stage), pp="--pp_size")
    if layout["ep"] > 1:
        note = f"ep {layout['ep']}"
        if layout["tp_expert"] > 1:
            note += f"; what is left of tp_size cuts each expert: expert tp {layout['tp_expert']}"
        yield Option("--ep_size", layout["ep"], note)
    if plan.nodes > 1:
        yield Option("--gpus_per_node", plan.local, "chips of a replica on each node")
    yield Option("--max_batch_size", plan.sequences, shared(plan))
    yield Option("--max_num_tokens", plan.step_tokens, budget(plan))
    yield Option("--max_seq_len", plan.longest, lengths(plan))
    yield Option("--extra_llm_api_options", _file(plan), "the file of further options")


def _settings(plan: Deployment) -> Iterator[Option]:
    copies = plan.layout["dp_attention"]
    if copies > 1:
        yield Option("enable_attention_dp", True, f"dp attention {copies}: a copy on every chip")
    if plan.role == "prefill":
        note = "a server that prefills for another has no overlapped scheduler"
        yield Option("disable_overlap_scheduler", True, note)
    yield Option("enable_chunked_prefill", True, "long prompts in chunks")
    note = f"KV cache {plan.pool['kv']} in the plan"
    yield Option("kv_cache_config.dtype", cache_dtype(plan, RELEASE.caches), note)
    note = "of what is left beside the weights: all but the plan's reserve"
    yield Option("kv_cache_config.free_gpu_memory_fraction", plan.share["free"], note)
    if plan.cached_input:
        note = f"the plan has {plan.cached_input:.0%} of the input cached"
        yield Option("kv_cache_config.enable_block_reuse", True, note)
    if plan.role:
        yield Option("cache_transceiver_config.backend", "UCX", "caches travel between the pools")
        note = "a whole prompt at once"
        yield Option("cache_transceiver_config.max_tokens_in_buffer", plan.longest, note)
    if plan.drafts:
        note = "the checkpoint's own prediction blocks"
        yield Option("speculative_config.decoding_type", "MTP", note)
        note = f"{drafted(plan)} per step"
        yield Option("speculative_config.num_nextn_predict_layers", plan.drafts, note)


def _notes(plan: Deployment) -> Iterator[str]:
    yield from notes(plan, "--trust_remote_code")
    if plan.role:
        yield (
            "requests come through trtllm-serve disaggregated -c FILE, which names these servers "
            "under context_servers (prefill) and generation_servers (decode)"
        )
    if not plan.cached_input and plan.role != "decode":
        yield "block reuse is on by default; the plan counts on nothing from it"
    if plan.pool["weights"] == "mxfp4" and not plan.chip.computes("mxfp4"):
        yield (
            "without FP4 arithmetic MXFP4 experts run on Triton kernels, for which the guides of "
            "the 1.2 series named Blackwell only: try it before you count on it"
        )
    if plan.nodes > 1:
        yield "srun stands for the MPI launcher of your cluster: one process per chip, all nodes"
