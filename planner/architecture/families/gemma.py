"""Gemma 2 and 3: windowed layers between full ones, four norms a layer, tied head.

Gemma 3n and 4: wider full layers, borrowed caches, an embedding for every layer, mixtures.
"""

from __future__ import annotations

from dataclasses import replace

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    PER_TOKEN,
    Shape,
    Windows,
    assemble,
    attention_kinds,
    check_experts,
    overrides,
    shape,
    windows,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import (
    Experts,
    FeedForward,
    Layer,
    Mixer,
    Model,
    Weight,
    matrix,
    vector,
)


def gemma2(reader: Reader, name: str) -> Model:
    """Gemma 2: windowed and full layers alternate, and no key says so."""
    form = shape(reader, width=256, kv_heads=4, vocab=256000, tied=True)
    reader.ignore("query_pre_attn_scalar", "use_bidirectional_attention")
    default = [index % 2 == 0 for index in range(form.layers)]
    return _model(reader, name, "gemma2", form, default, norm=0)


def gemma3(reader: Reader, name: str) -> Model:
    """Gemma 3 text tower: five windowed layers to one full, a norm per head."""
    form = shape(reader, width=256, heads=8, kv_heads=4, vocab=262208, tied=True)
    reader.ignore("query_pre_attn_scalar", "use_bidirectional_attention")
    every = reader.whole(("sliding_window_pattern", "_sliding_window_pattern"), 6, most=MAX_LAYERS)
    default = [(index + 1) % every != 0 for index in range(form.layers)]
    return _model(reader, name, "gemma3", form, default, norm=2 * form.width)


def _model(
    reader: Reader, name: str, family: str, form: Shape, default: list[bool], *, norm: int
) -> Model:
    window = reader.whole(("sliding_window", "sliding_window_size"), 4096)
    bias = reader.flag("attention_bias", False)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layers = []
    for windowed in attention_kinds(reader, form.layers, default):
        mixer = form.attention(
            bias=bias,
            output_bias=bias,
            norm=norm,
            window=window if windowed else None,
            kind="window" if windowed else "full",
        )
        layers.append(Layer(mixer, part, form.norms(4)))
    return assemble(name, family, form, layers)


_QUIET = ("use_bidirectional_attention", "activation_sparsity_pattern")


def gemma3n(reader: Reader, name: str) -> Model:
    """Gemma 3n text tower: four alternating residual streams, and low-rank parts beside each."""
    form = shape(reader, heads=8, width=256, kv_heads=2, vocab=262400, tied=True)
    streams, rank = reader.whole("altup_num_inputs", 4), reader.whole("laurel_rank", 64)
    reader.ignore("altup_active_idx", "altup_coef_clip", *_QUIET)
    scale = form.hidden if reader.flag("altup_correct_scale", True) else 0
    hidden, narrow = form.hidden, reader.whole("hidden_size_per_layer_input", 256, least=0)
    inner = reader.per_layer("intermediate_size", form.layers)
    mixers = _mixers(reader, form, every=5, forced=False, wide=None)
    parts = {each: dense(hidden, each) for each in set(inner)}
    outer = (
        matrix("laurel.linear_left", "other", hidden, rank),
        matrix("laurel.linear_right", "other", rank, hidden),
        matrix("altup.modality_router", "other", hidden, streams),
        vector("altup.coefs", "other", streams**3 + streams**2 + scale),
        vector("norms", "other", 7 * hidden),
        *_gates(hidden, narrow),
    )
    layers = [Layer(mixer, parts[each], outer) for mixer, each in zip(mixers, inner, strict=True)]
    projections = matrix("altup_projections", "other", hidden, 2 * (streams - 1) * hidden)
    extra = (projections, *_tables(reader, form, narrow, 262144))
    return assemble(name, "gemma3n", form, layers, extra=extra)


def gemma4(reader: Reader, name: str) -> Model:
    """Gemma 4 text tower: five windowed layers to one full, whose heads are wider and fewer."""
    kind = reader.text("model_type").removesuffix("_text")
    form = shape(reader, heads=8, width=256, kv_heads=4, vocab=262144, tied=True)
    reader.ignore(*_QUIET)
    hidden = form.hidden
    wide = (
        reader.whole("global_head_dim", 512),
        reader.whole("num_global_key_value_heads", form.kv_heads)
        if reader.flag("attention_k_eq_v", False)
        else form.kv_heads,
    )
    reader.ignore("num_global_key_value_heads")
    mixers = _mixers(reader, form, every=6, forced=True, wide=wide)
    borrowed = reader.whole("num_kv_shared_layers", 0, least=0)
    inner = reader.per_layer("intermediate_size", form.layers)
    if reader.flag("use_double_wide_mlp", False):
        inner = [
            each * (2 if index >= form.layers - borrowed else 1) for index, each in enumerate(inner)
        ]
    narrow = 0
    if kind != "gemma4_unified":
        narrow = reader.whole("hidden_size_per_layer_input", 256, least=0)
    mixed = reader.flag("enable_moe_block", False)
    parts = {
        each: _mixture(reader, form, each) if mixed else dense(hidden, each) for each in set(inner)
    }
    if not mixed:
        reader.ignore(*EXPERTS, *PER_TOKEN, "moe_intermediate_size", "expert_intermediate_size")
    norms = (4 + (3 if mixed else 0)) * hidden
    outer = (vector("norms", "other", norms + (hidden if narrow else 0)), *_gates(hidden, narrow))
    layers = [Layer(mixer, parts[each], outer) for mixer, each in zip(mixers, inner, strict=True)]
    extra = _tables(reader, form, narrow, 262144)
    return assemble(name, kind, form, layers, extra=extra)


def _mixers(
    reader: Reader, form: Shape, *, every: int, forced: bool, wide: tuple[int, int] | None
) -> list[Mixer]:
    """Attention by layer; the last `num_kv_shared_layers` read the cache of an earlier one."""
    bias = reader.flag("attention_bias", False)
    listed = reader.has("layer_types")
    bounds = windows(reader, form.layers, Windows(every=every, size=512))
    if forced and not listed:
        bounds[-1] = None
    unshared = form.layers - reader.whole("num_kv_shared_layers", 0, least=0, most=form.layers)
    equal = reader.flag("attention_k_eq_v", False)
    mixers = []
    for index, (window, changed) in enumerate(
        zip(bounds, overrides(reader, form.layers), strict=True)
    ):
        width, heads = wide if wide is not None and window is None else (form.width, form.kv_heads)
        width, heads = changed.get("head_dim", width), changed.get("num_key_value_heads", heads)
        keys = "as values" if equal and window is None else "own"
        mixers.append(
            grouped_attention(
                form.hidden,
                form.heads,
                heads,
                width,
                bias=bias,
                output_bias=bias,
                norm=width * (2 if index < unshared else 1),
                keys=keys if index < unshared else "borrowed",
                window=window,
                kind="full" if window is None else "window",
            )
        )
    return mixers


def _mixture(reader: Reader, form: Shape, inner: int) -> FeedForward:
    """Routed experts beside the dense part, which is a shared expert in all but name."""
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    part = mixture(
        form.hidden,
        reader.whole(("moe_intermediate_size", "expert_intermediate_size")),
        experts,
        active,
        router_bias=True,
        router="router.proj",
        path="moe",
    )
    scale = vector("moe.router.scale", "router", form.hidden)
    beside = (replace(one, group="shared") for one in dense(form.hidden, inner).weights)
    routing = Experts(experts, active, 1, form.hidden)
    return FeedForward(part.kind, (*part.weights, scale, *beside), routing)


def _gates(hidden: int, narrow: int) -> tuple[Weight, ...]:
    """What a layer does with its own embedding of the token: down to its width and up again."""
    if not narrow:
        return ()
    return (
        matrix("per_layer_input_gate", "other", hidden, narrow),
        matrix("per_layer_projection", "other", narrow, hidden),
    )


def _tables(reader: Reader, form: Shape, narrow: int, vocab: int) -> tuple[Weight, ...]:
    """The embedding of every token for every layer, looked up, and its projection."""
    rows = reader.whole("vocab_size_per_layer_input", vocab)
    if not narrow:
        return ()
    width = form.layers * narrow
    return (
        Weight("embed_tokens_per_layer", "embedding", rows * width, 0, True),
        matrix("per_layer_model_projection", "other", form.hidden, width),
        vector("per_layer_projection_norm", "other", narrow),
    )
