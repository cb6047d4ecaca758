"""MiniMax families: 01 and M1 (lightning attention), M2 (all full), M3 (blocks chosen)."""

from __future__ import annotations

from dataclasses import replace

from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    MTP,
    PER_TOKEN,
    Shape,
    assemble,
    check_experts,
    predict,
    shape,
)
from planner.architecture.families.traits import Moe, Traits, mixtures
from planner.architecture.feedforward import mixture
from planner.architecture.layers import (
    Cache,
    FeedForward,
    Layer,
    Mixer,
    Model,
    PredictionBlocks,
    matrix,
    vector,
)
from planner.architecture.recurrent import lightning


def minimax_m1(reader: Reader, name: str) -> Model:
    """MiniMax-01 and M1: lightning attention with a full layer where `attn_type_list` says 1."""
    form = shape(reader, kv_heads=8)
    full = form.attention()
    linear = lightning(form.hidden, form.heads, form.width)
    part = _mixture(reader, form, router_bias=False)
    norms = form.norms()
    layers = [
        Layer(full if is_full else linear, part, norms) for is_full in _full(reader, form.layers)
    ]
    return assemble(name, "minimax_m1", form, layers)


def minimax_m2(reader: Reader, name: str) -> Model:
    """MiniMax-M2, M2.5 and M2.7: full attention with norms over all heads, biased router."""
    form = shape(reader, width=128, kv_heads=8)
    norm = (form.heads + form.kv_heads) * form.width if reader.flag("use_qk_norm", True) else 0
    windowed = reader.wholes("attn_type_list", most=1)
    if windowed is not None and (len(windowed) != form.layers or 0 in windowed):
        raise reader.fail("attn_type_list", f"expected 1 (full) for each of {form.layers} layers")
    mixer = form.attention(norm=norm)
    part = _mixture(reader, form, router_bias=reader.flag("use_routing_bias", True))
    layer = Layer(mixer, part, form.norms())
    return assemble(name, "minimax_m2", form, [layer] * form.layers, prediction=_prediction(reader))


def minimax_m3(reader: Reader, name: str) -> Model:
    """MiniMax-M3: full first layers, then an indexer that picks whole blocks to attend to."""
    form = shape(reader, width=128, kv_heads=4)
    if reader.flag("attention_output_gate", False):
        raise reader.fail("attention_output_gate", "is true; no published checkpoint has it")
    per_head = reader.text("qk_norm_type", "per_head") == "per_head"
    norm = 2 * form.width if per_head else (form.heads + form.kv_heads) * form.width
    full = form.attention(norm=norm if reader.flag("use_qk_norm", True) else 0)
    chosen = _chosen(reader, form.layers)
    sparse = _indexed(reader, form, full) if any(chosen) else full
    reader.ignore("swiglu_limit", "swiglu_alpha", "use_gemma_norm", "num_mtp_modules")
    router_bias = reader.flag("use_routing_bias", True)
    moe = Moe(
        inner=("moe_intermediate_size", "intermediate_size"),
        dense_inner="dense_intermediate_size",
        shared="shared_intermediate_size",
        router_bias=router_bias,
        path="block_sparse_moe",
    )
    parts = mixtures(reader, form, Traits(), moe)
    norms = form.norms()
    layers = [
        Layer(sparse if picks else full, part, norms)
        for picks, part in zip(chosen, parts, strict=True)
    ]
    blocks = predict(reader, MTP, layers[-1], form.hidden)
    return assemble(name, "minimax_m3", form, layers, prediction=blocks)


def _chosen(reader: Reader, count: int) -> list[bool]:
    """Per layer whether blocks are picked, by either way of writing it."""
    named = reader.words("layer_types", count, ("full_attention", "minimax_m3_sparse"))
    section = reader.section("sparse_attention_config")
    reader.ignore("index_n_heads", "index_head_dim", "index_block_size", "index_topk_blocks")
    reader.ignore("index_local_blocks")
    if named is not None:
        return [word == "minimax_m3_sparse" for word in named]
    if section is None or not section.flag("use_sparse_attention", True):
        return [False] * count
    listed = section.wholes("sparse_attention_freq", most=1)
    if listed is None or len(listed) != count:
        raise section.fail("sparse_attention_freq", f"expected {count} entries of 0 or 1")
    return [bool(item) for item in listed]


def _indexed(reader: Reader, form: Shape, full: Mixer) -> Mixer:
    """Attention to the blocks with the best index keys; everything is kept."""
    section = reader.section("sparse_attention_config")
    inner = reader if section is None else section
    heads = inner.whole(("sparse_num_index_heads", "index_n_heads"))
    width = inner.whole(("sparse_index_dim", "index_head_dim"))
    block = inner.whole(("sparse_block_size", "index_block_size"))
    blocks = inner.whole(("sparse_topk_blocks", "index_topk_blocks"))
    path = "self_attn"
    weights = (
        matrix(f"{path}.index_q_proj", "attention", form.hidden, heads * width),
        matrix(f"{path}.index_k_proj", "attention", form.hidden, width),
        vector(f"{path}.index_norms", "attention", 2 * width),
    )
    attended = replace(full.caches[0], kind="block_sparse", limit=block * blocks, stored=True)
    scored = Cache("index", width, 1, 2 * heads * width, 2 * heads * width)
    return Mixer("block_sparse", full.weights + weights, (attended, scored))


def _prediction(reader: Reader) -> PredictionBlocks | None:
    modules = reader.whole("num_mtp_modules", 0, least=0, most=MAX_LAYERS)
    depth = reader.whole("mtp_transformer_layers", 1, least=0, most=MAX_LAYERS)
    if not reader.flag("use_mtp", True) or not modules * depth:
        return None
    return PredictionBlocks(modules * depth, None)


def _mixture(reader: Reader, form: Shape, *, router_bias: bool) -> FeedForward:
    if reader.whole("shared_intermediate_size", 0, least=0):
        raise reader.fail(
            "shared_intermediate_size", "is not 0; no published checkpoint has a shared expert"
        )
    # Published beside the keys that are used; neither changes a layer without shared experts.
    reader.ignore("shared_moe_mode", "mlp_intermediate_size", "block_size")
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    return mixture(
        form.hidden,
        reader.whole("intermediate_size"),
        experts,
        active,
        router_bias=router_bias,
        path="block_sparse_moe",
    )


def _full(reader: Reader, count: int) -> list[bool]:
    named = reader.words("layer_types", count, ("full_attention", "linear_attention"))
    listed = reader.wholes("attn_type_list", most=1)
    if listed is not None:
        if len(listed) != count:
            raise reader.fail("attn_type_list", f"has {len(listed)} entries for {count} layers")
        full = [bool(item) for item in listed]
        if named is not None and full != [word == "full_attention" for word in named]:
            raise reader.fail("attn_type_list", "and layer_types disagree")
        return full
    if named is None:
        raise reader.fail("attn_type_list", "is missing; expected 0 (lightning) or 1 (full)")
    return [word == "full_attention" for word in named]
