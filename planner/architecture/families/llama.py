"""Families shaped like Llama: dense or Mixtral-like, with or without windows and biases."""

from __future__ import annotations

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    PER_TOKEN,
    assemble,
    attention_kinds,
    check_experts,
    shape,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import Layer, Model, vector

__all__ = ["llama", "llama4", "mistral", "mixtral", "phi3"]


def llama(reader: Reader, name: str) -> Model:
    """Llama 1 to 3: full grouped-query attention and a gated feed-forward part."""
    form = shape(reader)
    bias = reader.flag("attention_bias", False)
    mixer = grouped_attention(
        form.hidden, form.heads, form.kv_heads, form.width, bias=bias, output_bias=bias
    )
    part = dense(
        form.hidden, reader.whole("intermediate_size"), bias=reader.flag("mlp_bias", False)
    )
    layer = Layer(mixer, part, (vector("norms", "other", 2 * form.hidden),))
    return assemble(name, "llama", form, [layer] * form.layers)


def mistral(reader: Reader, name: str) -> Model:
    """Mistral: Llama with every layer windowed unless `sliding_window` is null."""
    form = shape(reader, kv_heads=8)
    window = reader.optional("sliding_window")
    if window is None and not reader.given("sliding_window"):
        window = 4096
    windowed = attention_kinds(reader, form.layers, [window is not None] * form.layers)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layers = []
    for bounded in windowed:
        if bounded and window is None:
            raise reader.fail("sliding_window", "is missing; layer_types names windowed layers")
        mixer = grouped_attention(
            form.hidden,
            form.heads,
            form.kv_heads,
            form.width,
            window=window if bounded else None,
            kind="window" if bounded else "full",
        )
        layers.append(Layer(mixer, part, (vector("norms", "other", 2 * form.hidden),)))
    return assemble(name, "mistral", form, layers)


def phi3(reader: Reader, name: str) -> Model:
    """Phi-3 and Phi-4: Llama's counts with fused projections, windowed where a window is given."""
    form = shape(reader)
    reader.ignore("original_max_position_embeddings")
    window = reader.optional("sliding_window")
    if window is not None and form.max_context is not None and window >= form.max_context:
        window = None
    mixer = grouped_attention(
        form.hidden,
        form.heads,
        form.kv_heads,
        form.width,
        window=window,
        kind="full" if window is None else "window",
    )
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layer = Layer(mixer, part, (vector("norms", "other", 2 * form.hidden),))
    return assemble(name, "phi3", form, [layer] * form.layers)


def mixtral(reader: Reader, name: str) -> Model:
    """Mixtral: every feed-forward part a mixture of `num_local_experts`."""
    form = shape(reader, kv_heads=8)
    window = reader.optional("sliding_window")
    experts, active = reader.whole(EXPERTS, 8), reader.whole(PER_TOKEN, 2)
    check_experts(reader, experts, active)
    mixer = grouped_attention(
        form.hidden,
        form.heads,
        form.kv_heads,
        form.width,
        window=window,
        kind="full" if window is None else "window",
    )
    part = mixture(
        form.hidden,
        reader.whole("intermediate_size"),
        experts,
        active,
        path="block_sparse_moe",
    )
    layer = Layer(mixer, part, (vector("norms", "other", 2 * form.hidden),))
    return assemble(name, "mixtral", form, [layer] * form.layers)


def llama4(reader: Reader, name: str) -> Model:
    """Llama 4 text tower: chunked attention with every fourth layer full; an undeclared shared
    expert of `intermediate_size` beside the routed ones; dense layers of `intermediate_size_mlp`.
    """
    form = shape(reader, kv_heads=8, width=128)
    reader.ignore("use_qk_norm", "for_llm_compressor")
    bias = reader.flag("attention_bias", False)
    experts, active = reader.whole(EXPERTS, 16), reader.whole(PER_TOKEN, 1)
    check_experts(reader, experts, active)
    inner = reader.whole("intermediate_size")
    sparse = _sparse(reader, form.layers)
    plain = dense(form.hidden, reader.whole("intermediate_size_mlp", 16384), path="feed_forward")
    mixed = mixture(
        form.hidden,
        inner,
        experts,
        active,
        shared=1,
        path="feed_forward",
        router="router",
        shared_path="shared_expert",
    )
    layers = []
    for index, chunked in enumerate(_chunked(reader, form.layers)):
        chunk = reader.whole("attention_chunk_size", 8192) if chunked else None
        mixer = grouped_attention(
            form.hidden,
            form.heads,
            form.kv_heads,
            form.width,
            bias=bias,
            output_bias=bias,
            window=chunk,
            kind="chunked" if chunked else "full",
        )
        part = mixed if index in sparse else plain
        layers.append(Layer(mixer, part, (vector("norms", "other", 2 * form.hidden),)))
    reader.ignore("attention_chunk_size")
    return assemble(name, "llama4", form, layers)


def _sparse(reader: Reader, count: int) -> set[int]:
    step = reader.whole("interleave_moe_layer_step", 1, most=MAX_LAYERS)
    named = reader.wholes("moe_layers", most=count - 1)
    return set(range(step - 1, count, step)) if named is None else set(named)


def _chunked(reader: Reader, count: int) -> list[bool]:
    named = reader.words("layer_types", count, ("full_attention", "chunked_attention"))
    every = reader.whole("no_rope_layer_interval", 4, most=MAX_LAYERS)
    # The key lists which layers *have* rotary positions, whatever its name says.
    rotary = reader.wholes("no_rope_layers", most=1)
    if named is not None:
        return [word == "chunked_attention" for word in named]
    if rotary:
        if len(rotary) != count:
            raise reader.fail("no_rope_layers", f"has {len(rotary)} entries for {count} layers")
        return [bool(item) for item in rotary]
    return [(index + 1) % every != 0 for index in range(count)]
