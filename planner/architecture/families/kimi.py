"""Kimi Linear and K3: three Kimi-delta layers to one latent-attention layer, latent experts."""

from __future__ import annotations

from planner.architecture.attention import Latent, latent_attention
from planner.architecture.families.common import (
    EXPERTS,
    MTP,
    PER_TOKEN,
    SHARED,
    Shape,
    assemble,
    check_experts,
    predict,
    sparse_layers,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, vector
from planner.architecture.reading import MAX_LAYERS, Reader
from planner.architecture.recurrent import kimi_delta

__all__ = ["kimi_linear"]


def kimi_linear(reader: Reader, name: str) -> Model:
    """Kimi Linear (arXiv 2510.26692) and K3; attention residuals' few vectors are not counted."""
    reader.ignore("head_dim", "num_key_value_heads", "mla_use_nope", "attn_res_block_size")
    form = Shape(
        reader.whole("hidden_size"),
        reader.whole("num_hidden_layers", most=MAX_LAYERS),
        reader.whole("num_attention_heads"),
        1,
        0,
        reader.whole("vocab_size"),
        reader.flag("tie_word_embeddings", False),
        reader.optional(("max_position_embeddings", "model_max_length")),
    )
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
    norms = (vector("norms", "other", 2 * form.hidden),)
    layers = []
    for delta, chosen in zip(is_linear, sparse, strict=True):
        part = mixed if chosen or plain is None else plain
        layers.append(Layer(linear if delta else full, part, norms))
    blocks = predict(reader, MTP, Layer(full, mixed, norms), form.hidden)
    return assemble(name, "kimi_linear", form, layers, prediction=blocks)


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
    )


def _linear(reader: Reader, form: Shape) -> tuple[Mixer, list[bool]]:
    """The Kimi-delta mixer, and per layer whether it stands there."""
    named = reader.words("layer_types", form.layers, ("full_attention", "linear_attention"))
    nested = reader.section("linear_attn_config")
    inner = reader if nested is None else nested
    mixer = kimi_delta(
        form.hidden,
        inner.whole(("num_heads", "linear_num_heads"), 32),
        inner.whole(("head_dim", "linear_head_dim"), 128)
        if nested is not None
        else inner.whole("linear_head_dim", 128),
        inner.whole(("short_conv_kernel_size", "linear_conv_kernel_dim"), 4),
        inner.flag("use_full_rank_gate", False),
    )
    listed = nested is not None and nested.has("full_attn_layers")
    full, linear = set[int](), set[int]()
    if nested is not None:
        # Layers are counted from 1 in these two lists.
        full = set(nested.wholes("full_attn_layers", most=form.layers) or ())
        linear = set(nested.wholes("kda_layers", most=form.layers) or ())
        nested.ignore("gate_lower_bound")
        nested.finish()
    if named is not None:
        return mixer, [word == "linear_attention" for word in named]
    if not listed:
        # The published default: every fourth layer from the fifth on is full.
        return mixer, [not (index and index % 4 == 0) for index in range(form.layers)]
    if full & linear or full | linear != set(range(1, form.layers + 1)):
        raise reader.fail(
            "linear_attn_config",
            f"full_attn_layers and kda_layers do not name each of {form.layers} layers once",
        )
    return mixer, [index + 1 in linear for index in range(form.layers)]
