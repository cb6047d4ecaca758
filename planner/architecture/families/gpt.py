"""GPT-2 and GPT-3 (learned positions, biases everywhere), gpt-oss, and PaLM."""

from __future__ import annotations

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    PER_TOKEN,
    Shape,
    assemble,
    attention_kinds,
    check_experts,
    shape,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import Layer, Model, vector

__all__ = ["gpt2", "gpt_oss", "palm"]


def gpt2(reader: Reader, name: str) -> Model:
    """GPT-2's shape, which GPT-3 and MT-NLG share: layer norms with biases, learned positions."""
    hidden = reader.whole(("n_embd", "hidden_size"))
    heads = reader.whole(("n_head", "num_attention_heads"))
    if hidden % heads:
        raise reader.fail("n_head", f"is {heads}, does not divide n_embd {hidden}")
    positions = reader.whole(("n_positions", "max_position_embeddings"), 1024)
    form = Shape(
        hidden,
        reader.whole(("n_layer", "num_hidden_layers"), most=MAX_LAYERS),
        heads,
        heads,
        hidden // heads,
        reader.whole("vocab_size"),
        reader.flag("tie_word_embeddings", True),
        positions,
    )
    inner = reader.optional("n_inner") or 4 * hidden
    mixer = grouped_attention(
        hidden, heads, heads, form.width, bias=True, output_bias=True, path="attn"
    )
    part = dense(hidden, inner, gated=False, bias=True)
    layer = Layer(mixer, part, (vector("norms", "other", 4 * hidden),))
    learned = vector("wpe", "other", positions * hidden)
    return assemble(
        name, "gpt2", form, [layer] * form.layers, extra=(learned,), final_norm=2 * hidden
    )


def gpt_oss(reader: Reader, name: str) -> Model:
    """gpt-oss: windowed and full layers in turn, attention sinks, biased experts and router."""
    form = shape(reader, width=64, kv_heads=8)
    bias = reader.flag("attention_bias", True)
    window = reader.whole("sliding_window", 128)
    experts, active = reader.whole(EXPERTS, 128), reader.whole(PER_TOKEN, 4)
    check_experts(reader, experts, active)
    reader.ignore("swiglu_limit", "swiglu_alpha", "initial_context_length")
    part = mixture(
        form.hidden,
        reader.whole("intermediate_size"),
        experts,
        active,
        router_bias=True,
        expert_bias=True,
        router="router",
    )
    default = [index % 2 == 0 for index in range(form.layers)]
    layers = []
    for windowed in attention_kinds(reader, form.layers, default):
        mixer = grouped_attention(
            form.hidden,
            form.heads,
            form.kv_heads,
            form.width,
            bias=bias,
            output_bias=bias,
            sinks=True,
            window=window if windowed else None,
            kind="window" if windowed else "full",
        )
        layers.append(Layer(mixer, part, (vector("norms", "other", 2 * form.hidden),)))
    return assemble(name, "gpt_oss", form, layers)


def palm(reader: Reader, name: str) -> Model:
    """PaLM (arXiv 2204.02311): multi-query attention beside the feed-forward part, one norm."""
    form = shape(reader, kv_heads=1, width=256, tied=True)
    mixer = grouped_attention(form.hidden, form.heads, form.kv_heads, form.width)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layer = Layer(mixer, part, (vector("norms", "other", form.hidden),), parallel=True)
    return assemble(name, "palm", form, [layer] * form.layers)
