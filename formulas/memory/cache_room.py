"""What an engine leaves for the cache of one chip, and how many blocks of it that gives.

vLLM profiles a step at its own limits (`max_num_seqs`, `max_num_batched_tokens`), not at a plan's
batch, and takes the peak out of its share; SGLang's pool leaves activations and graphs outside;
TensorRT-LLM shares what the peak leaves free. The largest term is the sampler's: every rank gathers
the whole vocabulary.
"""

from formulas.algebra.notation import *

PROFILE = "the engine profiles a step at its limits before it sets the cache up"
IN_VLLM = vllm_memory.at("determine_available_memory")

sampler_peak = Equation.of(
    M_smp,
    k_smp * b_logit * n_seats * vocab * one_token / one_seq + b_val * n_budget * h_hid,
    PROFILE,
    "every rank gathers the whole vocabulary",
    source=vllm_memory.at("_dummy_sampler_run"),
)

forward_peak = Equation.of(
    M_fwd,
    b_val * n_budget * (k_resid * h_hid + k_ffn * h_ffn / tp),
    PROFILE,
    source=vllm_memory.at("profile_run"),
)

expert_workspace = Equation.of(
    M_moe,
    k_moe * b_val * n_budget * n_pick * (maximum(2 * h_one, h_hid) + h_one),
    PROFILE,
    "gate and up are computed together; the workspace stays",
    source=vllm_memory.at("fused_moe: workspaces"),
)

graph_memory = Equation.of(
    M_graph, k_graph * n_deep * n_graph, "graphs share one pool", source=vllm_memory.at("cudagraph")
)

profiled_room = Equation(
    "memory left for the cache by a profiled step",
    M_room,
    x_mem * M_vis
    - f_format * M_weights
    - maximum(M_smp, M_fwd)
    - M_moe
    - M_else
    - M_more
    - M_graph,
    assumes=("the share is of what the runtime sees; context and first buffers lie outside it",),
    source=IN_VLLM,
)

pool_room = Equation(
    "memory left for the cache by a share of the whole",
    M_room,
    x_mem * (M_vis - M_ctx) - f_format * M_weights - M_more,
    assumes=("activations and graphs live in what the share leaves",),
    source=sglang_memory.at("profile_max_num_token"),
)

room_of_the_free = Equation(
    "memory left for the cache by a share of the free",
    M_room,
    x_mem
    * (M_vis - M_ctx - f_format * M_weights - maximum(M_smp, M_fwd) - M_moe - M_else - M_more),
    assumes=("the share is of what the peak of a step leaves free",),
    source=trtllm_memory.at("configure_kv_cache_capacity"),
)

kept_out_of_the_pool = Equation.of(
    M_static,
    M_base_gr + b_chunk * n_budget + b_run * n_seats + M_rank * tp * pp,
    "activations and graphs are kept outside the pool",
    source=sglang_memory.at("_handle_gpu_memory_settings"),
)

default_share = Equation.of(
    x_default,
    1 - M_static / M_cap,
    "no share is given",
    source=sglang_memory.at("_handle_gpu_memory_settings"),
)

largest_share = Equation.of(
    x_start,
    1 - M_ctx / M_vis,
    "as much as the share must be free when the engine starts",
    source=vllm_memory.at("init_device"),
)

cache_blocks = Equation.of(
    n_block,
    floor(M_room / M_group),
    "groups of layers are equally long, and one block of any takes as much",
    source=vllm_memory.at("get_num_blocks"),
)

PROFILE_TERMS = (sampler_peak, forward_peak, expert_workspace, graph_memory)

# Equations evaluated together: one room per meaning of the engine's share, and further terms.
TABLES = {
    "profiled": (profiled_room, *PROFILE_TERMS, largest_share),
    "pool": (pool_room, *PROFILE_TERMS, largest_share),
    "free": (room_of_the_free, *PROFILE_TERMS),
    "blocks": (cache_blocks,),
    "kept": (kept_out_of_the_pool,),
    "share": (default_share,),
}
