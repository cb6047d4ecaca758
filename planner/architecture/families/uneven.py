"""Decoders whose layers differ in heads or widths: MiMo V2, Step 3.5, Laguna, Nemotron NAS."""

from __future__ import annotations

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    MTP,
    Shape,
    Windows,
    assemble,
    overrides,
    predict,
    shape,
    windows,
)
from planner.architecture.families.traits import Moe, Traits, mixtures
from planner.architecture.feedforward import dense
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, matrix, vector

_ROUND = 256


def mimo_v2(reader: Reader, name: str) -> Model:
    """MiMo V2: windowed layers have sinks and twice the key-value heads; values are narrower."""
    form = shape(reader, kv_heads=4, width=192)
    value = reader.whole("v_head_dim", 128)
    bias = reader.flag("attention_bias", False)
    pattern = reader.wholes("hybrid_layer_pattern", most=1)
    habit = Windows(every=6, leading=False, size=128)
    if pattern is not None:
        if len(pattern) != form.layers:
            raise reader.fail(
                "hybrid_layer_pattern", f"has {len(pattern)} entries for {form.layers} layers"
            )
        habit = Windows(named=tuple(bool(item) for item in pattern), size=128)
    elif not reader.has("layer_types"):
        raise reader.fail("hybrid_layer_pattern", "is missing, and so is layer_types")
    sinks = {
        True: reader.flag("add_swa_attention_sink_bias", True),
        False: reader.flag("add_full_attention_sink_bias", False),
    }
    narrow = (
        reader.whole("swa_num_attention_heads", form.heads),
        reader.whole("swa_num_key_value_heads", 2 * form.kv_heads),
        reader.whole("swa_head_dim", form.width),
        reader.whole("swa_v_head_dim", value),
    )
    if narrow[0] % narrow[1]:
        raise reader.fail("swa_num_key_value_heads", f"does not divide {narrow[0]} heads")
    # Rotary positions and the chunk of an attention kernel change no tensor.
    reader.ignore("swa_rope_theta", "attention_chunk_size", "attention_value_scale")
    mixers = []
    for window in windows(reader, form.layers, habit):
        plain = (form.heads, form.kv_heads, form.width, value)
        heads, cached, width, wide = plain if window is None else narrow
        mixers.append(
            grouped_attention(
                form.hidden,
                heads,
                cached,
                width,
                value_width=wide,
                bias=bias,
                sinks=sinks[window is not None],
                window=window,
                kind="full" if window is None else "window",
            )
        )
    parts = mixtures(reader, form, Traits(), Moe(router_bias=True, first_dense=1))
    return _stack(reader, name, "mimo_v2_flash", form, mixers, parts)


def laguna(reader: Reader, name: str) -> Model:
    """Laguna: heads counted layer by layer, a gate per head, dense first layers."""
    form = shape(reader, kv_heads=8, width=128)
    heads = reader.per_layer("num_attention_heads_per_layer", form.layers, form.heads)
    # One logit per head unless something else is said, and then a gate of the heads' whole width.
    gate = reader.value("gating")
    per_head = gate in (None, True, "per-head")
    bias = reader.flag("attention_bias", False)
    mixers = []
    for window, count in zip(windows(reader, form.layers, Windows()), heads, strict=True):
        if count % form.kv_heads:
            raise reader.fail(
                "num_attention_heads_per_layer", f"names {count}, not whole groups of heads"
            )
        mixers.append(
            grouped_attention(
                form.hidden,
                count,
                form.kv_heads,
                form.width,
                bias=bias,
                output_bias=bias,
                norm=2 * form.width,
                gate_width=count * (1 if per_head else form.width),
                window=window,
                kind="full" if window is None else "window",
            )
        )
    moe = Moe(router_bias=True, shared="shared_expert_intermediate_size", first_dense=1)
    parts = mixtures(reader, form, Traits(), moe)
    return _stack(reader, name, "laguna", form, mixers, parts)


def step(reader: Reader, name: str) -> Model:
    """Step 3.5 and 3.7: norms on queries and keys; windowed layers may have other heads."""
    form = shape(reader)
    windowed = reader.section("attention_other_setting")
    heads = reader.whole("num_sliding_attention_heads", form.heads)
    cached, width = form.kv_heads, form.width
    if windowed is not None:
        kind = windowed.text("attention_type", "sliding_attention")
        if kind != "sliding_attention":
            raise windowed.fail("attention_type", f"is {kind!r:.40}, expected sliding_attention")
        heads = windowed.whole("num_attention_heads")
        cached = windowed.whole("num_attention_groups", cached)
        width = windowed.whole("head_dim", width)
        windowed.ignore("true_head_dim")
        windowed.finish()
    if heads % cached:
        raise reader.fail("attention_other_setting", f"{cached} groups do not divide {heads} heads")
    gate = reader.flag("use_head_wise_attn_gate", True)
    reader.ignore("query_pre_attn_scalar", "mtp_layer_types", "mtp_mlp_layer_types")
    reader.ignore("use_qk_norm", "use_rope_layers", "yarn_only_types", "zero_centered")
    reader.ignore("att_impl_type", "swiglu_limits", "swiglu_limits_shared")
    reader.ignore("attention_output_gate", "need_fp32_gate", "norm_expert_weight", "use_moe")
    mixers = []
    changed = overrides(reader, form.layers)
    for index, window in enumerate(windows(reader, form.layers, Windows(every=2))):
        plain = (form.heads, form.kv_heads, form.width)
        count, groups, head_width = plain if window is None else (heads, cached, width)
        count = changed[index].get("num_attention_heads", count)
        mixers.append(
            grouped_attention(
                form.hidden,
                count,
                groups,
                head_width,
                norm=2 * head_width,
                gate_width=count if gate else 0,
                window=window,
                kind="full" if window is None else "window",
            )
        )
    shared = ("share_expert_dim", "share_expert_dims")
    moe = Moe(router_bias=("use_moe_router_bias", True), shared=shared)
    listed = _enumerated(reader, form.layers)
    parts = mixtures(reader, form, Traits(), moe, listed)
    return _stack(reader, name, "step3p5", form, mixers, parts)


def _enumerated(reader: Reader, count: int) -> list[bool] | None:
    """Mixture layers as Step lists them: "3,4,5"; all but the first where no key says."""
    text = reader.text("moe_layers_enum")
    if not text:
        if reader.has("first_k_dense_replace") or reader.has("mlp_layer_types"):
            return None
        return [index > 0 for index in range(count)]
    items = [item.strip() for item in text.split(",")]
    if not all(item.isdecimal() and len(item) < 5 and int(item) < count for item in items):
        raise reader.fail("moe_layers_enum", f"does not name layers below {count}")
    chosen = {int(item) for item in items}
    return [index in chosen for index in range(count)]


def nemotron_nas(reader: Reader, name: str) -> Model:
    """Llama-Nemotron (DeciLM): each block's attention and feed-forward part chosen by search."""
    blocks = reader.value("block_configs")
    if not isinstance(blocks, list) or not 0 < len(blocks) <= MAX_LAYERS:
        raise reader.fail("block_configs", "expected a list of blocks")
    form = shape(reader, layers=len(blocks), kv_heads=1)
    reader.ignore("num_key_value_heads_per_layer", "intermediate_size", "first_k_dense_replace")
    stated = reader.optional("num_hidden_layers", most=MAX_LAYERS)
    if stated is not None and stated != len(blocks):
        raise reader.fail("block_configs", f"has {len(blocks)} entries for {stated} layers")
    bias, inside = reader.flag("attention_bias", False), reader.flag("mlp_bias", False)
    layers = []
    for index, block in enumerate(blocks):
        entry = Reader(block if isinstance(block, dict) else {}, f"{reader.where}  block {index}")
        mixer, norms = _chosen_mixer(entry, form, bias)
        part, more = _chosen_part(entry, form, inside)
        outer = (vector("norms", "other", (norms + more) * form.hidden),) if norms + more else ()
        layers.append(Layer(mixer, part, outer))
    return assemble(name, "nemotron_nas", form, layers)


def _chosen_mixer(entry: Reader, form: Shape, bias: bool) -> tuple[Mixer | None, int]:
    section = entry.section("attention")
    if section is None:
        raise entry.fail("attention", "is missing in this entry of block_configs")
    if section.flag("no_op", False):
        return None, 0
    for key in ("sparsify", "num_sink_tokens", "unshifted_sink"):
        if section.value(key):
            raise section.fail(key, "is given; attention of this kind is not counted")
    if section.flag("replace_with_linear", False):
        linear = matrix("self_attn.linear", "attention", form.hidden, form.hidden)
        return Mixer("linear", (linear,)), 1
    group = section.whole("n_heads_in_group")
    if form.heads % group:
        raise section.fail("n_heads_in_group", f"is {group}, does not divide {form.heads} heads")
    window = section.optional("window_length")
    mixer = grouped_attention(
        form.hidden,
        form.heads,
        form.heads // group,
        form.width,
        bias=bias,
        output_bias=bias,
        window=window,
        kind="full" if window is None else "window",
    )
    return mixer, 1


def _chosen_part(entry: Reader, form: Shape, bias: bool) -> tuple[FeedForward | None, int]:
    section = entry.section("ffn")
    if section is None:
        raise entry.fail("ffn", "is missing in this entry of block_configs")
    if section.flag("no_op", False):
        return None, 0
    if section.value("sparsify"):
        raise section.fail("sparsify", "is given; sparse matrices are not counted")
    if section.flag("replace_with_linear", False):
        linear = matrix("mlp.linear", "dense_ffn", form.hidden, form.hidden)
        return FeedForward("dense", (linear,)), 1
    inner = section.optional("intermediate_size")
    if inner is None:
        times = section.number("ffn_mult")
        # Two thirds of the multiple, as three matrices stand in for two, in whole blocks of 256.
        inner = -(-int(2 * times * form.hidden / 3) // _ROUND) * _ROUND
    return dense(form.hidden, inner, bias=bias), 1


def _stack(
    reader: Reader, name: str, kind: str, form: Shape, mixers: list[Mixer], parts: list[FeedForward]
) -> Model:
    norms = form.norms()
    layers = [Layer(mixer, part, norms) for mixer, part in zip(mixers, parts, strict=True)]
    blocks = predict(reader, MTP, layers[-1], form.hidden)
    return assemble(name, kind, form, layers, prediction=blocks)
