"""Kimi Linear and K3: three Kimi-delta layers to one latent-attention layer, latent experts."""

from __future__ import annotations

from planner.architecture.attention import Latent, latent_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    MTP,
    PER_TOKEN,
    SHARED,
    Shape,
    assemble,
    check_experts,
    expert_groups,
    predict,
    sparse_layers,
)
from planner.architecture.families.deepseek import latent_shape
from planner.architecture.families.traits import Moe, Traits, mixtures
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model
from planner.architecture.recurrent import kimi_delta


def kimi_linear(reader: Reader, name: str) -> Model:
    """Kimi Linear (arXiv 2510.26692) and K3; attention residuals' few vectors are not counted."""
    reader.ignore("head_dim", "qk_head_dim", "num_key_value_heads", "mla_use_nope")
    form = latent_shape(reader)
    latent = Latent(
        reader.optional("q_lora_rank"),
        reader.whole("kv_lora_rank", 512),
        reader.whole("qk_nope_head_dim", 128),
        reader.whole("qk_rope_head_dim", 64),
        reader.whole("v_head_dim", 128),
    )
    full = latent_attention(
        form.hidden,
        form.heads,
        latent,
        bias=reader.flag("attention_bias", False),
        gate=reader.flag("mla_use_output_gate", False),
    )
    linear, is_linear = _linear(reader, form)
    sparse = sparse_layers(reader, form.layers, 1)
    plain = dense(form.hidden, reader.whole("intermediate_size")) if False in sparse else None
    reader.ignore("intermediate_size")
    mixed = _mixture(reader, form)
    norms = form.norms()
    layers = []
    for delta, chosen in zip(is_linear, sparse, strict=True):
        part = mixed if chosen or plain is None else plain
        layers.append(Layer(linear if delta else full, part, norms))
    blocks = predict(reader, MTP, Layer(full, mixed, norms), form.hidden)
    return assemble(name, "kimi_linear", form, layers, prediction=blocks)


def bailing_hybrid(reader: Reader, name: str) -> Model:
    """Ling's hybrid: five Kimi-delta layers to one of latent attention, gates by head."""
    reader.ignore("head_dim", "qk_head_dim", "num_key_value_heads", "kda_safe_gate")
    reader.ignore("kda_lower_bound", "short_conv_kernel_size")
    form = latent_shape(reader)
    latent = Latent(
        reader.optional("q_lora_rank"),
        reader.whole("kv_lora_rank", 512),
        reader.whole("qk_nope_head_dim", 128),
        reader.whole("qk_rope_head_dim", 64),
        reader.whole("v_head_dim", 128),
    )
    bias = reader.flag("attention_bias", False)
    full = latent_attention(form.hidden, form.heads, latent, bias=bias, head_gate=True)
    heads = reader.whole("linear_num_heads", form.heads)
    width = reader.whole("linear_head_dim", 128)
    kernel = reader.whole("linear_conv_kernel_dim", 4)
    delta = kimi_delta(form.hidden, heads, width, kernel, True, full_decay=True)
    every = reader.whole("layer_group_size", 6, most=MAX_LAYERS)
    named = reader.words("layer_types", form.layers, ("full_attention", "linear_attention"))
    if named is None:
        is_linear = [(index + 1) % every != 0 for index in range(form.layers)]
    else:
        is_linear = [word == "linear_attention" for word in named]
    parts = mixtures(reader, form, Traits(), Moe(router_bias=True, first_dense=2, shared_count=1))
    norms = form.norms()
    layers = [
        Layer(delta if linear else full, part, norms)
        for linear, part in zip(is_linear, parts, strict=True)
    ]
    blocks = predict(reader, MTP, Layer(full, parts[-1], norms), form.hidden)
    return assemble(name, "bailing_hybrid", form, layers, prediction=blocks)


def _mixture(reader: Reader, form: Shape) -> FeedForward:
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    latent = reader.optional("routed_expert_hidden_size")
    return mixture(
        form.hidden,
        reader.whole("moe_intermediate_size"),
        experts,
        active,
        shared=reader.whole(SHARED, 1, least=0),
        latent=latent,
        latent_norm=reader.flag("latent_moe_use_norm", False) and latent is not None,
        router_bias=True,
        path="block_sparse_moe",
        groups=expert_groups(reader, experts, active),
    )


def _linear(reader: Reader, form: Shape) -> tuple[Mixer, list[bool]]:
    """The Kimi-delta mixer, and per layer whether it stands there.

    The section `linear_attn_config` wins over flat keys of the same things, which is how the
    reference implementation reads its own files.
    """
    flat = {
        "num_heads": reader.whole("linear_num_heads", 32),
        "head_dim": reader.whole("linear_head_dim", 128),
        "short_conv_kernel_size": reader.whole("linear_conv_kernel_dim", 4),
    }
    nested = reader.section("linear_attn_config")
    inner = Reader({}, reader.where) if nested is None else nested
    heads, width, kernel = (inner.whole(key, default) for key, default in flat.items())
    mixer = kimi_delta(form.hidden, heads, width, kernel, inner.flag("use_full_rank_gate", False))
    named = reader.words("layer_types", form.layers, ("full_attention", "linear_attention"))
    listed = inner.has("full_attn_layers")
    # Layers are counted from 1 in these two lists.
    full = set(inner.wholes("full_attn_layers", most=form.layers) or ())
    linear = set(inner.wholes("kda_layers", most=form.layers) or ())
    inner.ignore("gate_lower_bound")
    inner.finish()
    if listed and (full & linear or full | linear != set(range(1, form.layers + 1))):
        raise inner.fail(
            "full_attn_layers", f"and kda_layers do not name each of {form.layers} layers once"
        )
    if named is not None:
        return mixer, [word == "linear_attention" for word in named]
    if listed:
        return mixer, [index + 1 in linear for index in range(form.layers)]
    # The published default: every fourth layer from the fifth on is full.
    return mixer, [not (index and index % 4 == 0) for index in range(form.layers)]
