"""Other recurrent decoders: LFM2, OLMo Hybrid, RecurrentGemma, RWKV-4, xLSTM."""

from __future__ import annotations

from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import INNER, LAYERS, Shape, assemble, context, shape
from planner.architecture.families.traits import Moe, Traits, mixtures
from planner.architecture.feedforward import dense
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, matrix, vector
from planner.architecture.recurrent import (
    gated_delta,
    mlstm,
    recurrent_unit,
    rwkv4,
    short_convolution,
)


def lfm2(reader: Reader, name: str) -> Model:
    """LFM2: gated short convolutions with attention between; the width inside is rounded."""
    form = shape(reader, kv_heads=8, tied=True)
    inner = reader.whole((*INNER, "block_ff_dim"))
    if reader.flag("block_auto_adjust_ff_dim", True):
        inner = int(2 * inner / 3)
        if reader.has("block_ffn_dim_multiplier"):
            inner = int(reader.number("block_ffn_dim_multiplier") * inner)
        multiple = reader.whole("block_multiple_of", 256)
        inner = -(-inner // multiple) * multiple
    reader.ignore("block_ffn_dim_multiplier", "block_multiple_of", "block_dim", "conv_dim")
    reader.ignore("conv_dim_out", "block_use_swiglu", "block_mlp_init_scale")
    reader.ignore("block_use_xavier_init", "conv_use_xavier_init")
    parts = [dense(form.hidden, inner, path="feed_forward")] * form.layers
    return _stack(name, "lfm2", form, _convolved(reader, form), parts, 2)


def lfm2_moe(reader: Reader, name: str) -> Model:
    """LFM2's mixtures: dense first layers, no shared expert."""
    form = shape(reader, kv_heads=8, tied=True)
    moe = Moe(router_bias=("use_expert_bias", True), first_dense=2, path="feed_forward")
    mixers = _convolved(reader, form)
    return _stack(name, "lfm2_moe", form, mixers, mixtures(reader, form, Traits(), moe), 2)


def lfm3(reader: Reader, name: str) -> Model:
    """LFM3: some attention layers windowed, a gate per head, norms after both parts."""
    form = shape(reader, kv_heads=4, tied=True)
    gate = reader.flag("use_attention_gate", True)
    mixers = _convolved(reader, form, head_gate=gate, bias=reader.flag("attention_bias", False))
    parts = [dense(form.hidden, reader.whole(INNER), path="feed_forward")] * form.layers
    norms = 4 if reader.flag("use_sandwich_norm", True) else 2
    return _stack(name, "lfm3", form, mixers, parts, norms)


def _convolved(
    reader: Reader, form: Shape, *, head_gate: bool = False, bias: bool = False
) -> list[Mixer]:
    """Convolution and attention layers, by `layer_types` or the list of attention layers."""
    convolution = short_convolution(
        form.hidden, reader.whole("conv_L_cache", 3), reader.flag("conv_bias", False)
    )
    words = ("conv", "full_attention", "sliding_attention")
    named = reader.words("layer_types", form.layers, words)
    listed = reader.wholes("full_attn_idxs", most=max(form.layers - 1, 0))
    window = reader.optional("sliding_window")
    if named is None:
        if listed is None:
            raise reader.fail("layer_types", "is missing, and so is full_attn_idxs")
        chosen = set(listed)
        named = [words[1] if index in chosen else words[0] for index in range(form.layers)]
    if words[2] in named and window is None:
        raise reader.fail("sliding_window", "is missing; layer_types names windowed layers")
    made = {words[0]: convolution}
    for word, limit in ((words[1], None), (words[2], window)):
        made[word] = form.attention(
            bias=bias,
            output_bias=bias,
            norm=2 * form.width,
            gate_width=form.heads if head_gate else 0,
            window=limit,
            kind="full" if limit is None else "window",
        )
    return [made[word] for word in named]


def olmo_hybrid(reader: Reader, name: str) -> Model:
    """OLMo Hybrid: three gated-delta layers to one of full attention."""
    form = shape(reader)
    bias = reader.flag("attention_bias", False)
    keys = reader.whole("linear_num_key_heads", form.heads)
    values = reader.whole("linear_num_value_heads", form.heads)
    linear = gated_delta(
        form.hidden,
        key_heads=keys,
        key_width=reader.whole("linear_key_head_dim", 96),
        value_heads=values,
        value_width=reader.whole("linear_value_head_dim", 192),
        kernel=reader.whole("linear_conv_kernel_dim", 4),
    )
    full = form.attention(
        bias=bias, output_bias=bias, norm=(form.heads + form.kv_heads) * form.width
    )
    reader.ignore("linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max")
    reader.ignore("linear_dt_init_floor", "linear_allow_neg_eigval")
    named = reader.words("layer_types", form.layers, ("full_attention", "linear_attention"))
    if named is None:
        attends = [(index + 1) % 4 == 0 for index in range(form.layers)]
    else:
        attends = [word == "full_attention" for word in named]
    mixers = [full if attend else linear for attend in attends]
    parts = [dense(form.hidden, reader.whole(INNER))] * form.layers
    return _stack(name, "olmo_hybrid", form, mixers, parts, 2)


def recurrent_gemma(reader: Reader, name: str) -> Model:
    """RecurrentGemma: two gated recurrent layers to one of windowed attention."""
    form = shape(reader, width=256, tied=True)
    blocks = reader.value("block_types")
    blocks = ["recurrent", "recurrent", "attention"] if blocks is None else blocks
    if not isinstance(blocks, list) or not blocks or len(blocks) > MAX_LAYERS:
        raise reader.fail("block_types", "expected a list of recurrent and attention")
    for word in blocks:
        if word not in ("recurrent", "attention"):
            raise reader.fail("block_types", f"names {word!r:.40}, expected recurrent or attention")
    width = reader.optional("lru_width") or form.hidden
    if width % form.heads:
        raise reader.fail("lru_width", f"is {width}, not divisible by {form.heads} heads")
    linear = recurrent_unit(form.hidden, width, form.heads, reader.whole("conv1d_width", 4))
    full = form.attention(
        bias=reader.flag("attention_bias", False),
        output_bias=True,
        window=reader.whole("attention_window_size", 2048),
        kind="window",
    )
    # The key counts gate and up together.
    part = dense(form.hidden, reader.whole(INNER, least=2) // 2, bias=True)
    reader.ignore("w_init_variance_scale", "final_w_init_variance_scale", "logits_soft_cap")
    mixers = [
        full if blocks[index % len(blocks)] == "attention" else linear
        for index in range(form.layers)
    ]
    return _stack(name, "recurrent_gemma", form, mixers, [part] * form.layers, 2)


def rwkv(reader: Reader, name: str) -> Model:
    """RWKV-4: time mixing and channel mixing, layer norms with biases."""
    hidden = reader.whole("hidden_size")
    width = reader.optional("attention_hidden_size") or hidden
    form = Shape(
        hidden,
        reader.whole(LAYERS, most=MAX_LAYERS),
        width,
        1,
        0,
        reader.whole("vocab_size"),
        reader.flag("tie_word_embeddings", False),
        reader.optional("context_length"),
    )
    reader.ignore("rescale_every")
    inner = reader.optional(INNER) or 4 * hidden
    part = FeedForward(
        "dense",
        (
            matrix("feed_forward.key", "dense_ffn", hidden, inner),
            matrix("feed_forward.receptance", "dense_ffn", hidden, hidden),
            matrix("feed_forward.value", "dense_ffn", inner, hidden),
            vector("feed_forward.time", "dense_ffn", 2 * hidden),
        ),
    )
    layer = Layer(rwkv4(hidden, width), part, (vector("norms", "other", 4 * hidden),))
    first = (vector("pre_ln", "other", 2 * hidden),)
    return assemble(name, "rwkv", form, [layer] * form.layers, extra=first, final_norm=2 * hidden)


def xlstm(reader: Reader, name: str) -> Model:
    """xLSTM: a matrix memory per head, and a gated feed-forward part of rounded width."""
    hidden = reader.whole(("hidden_size", "embedding_dim"))
    heads = reader.whole("num_heads", 8)
    form = Shape(
        hidden,
        reader.whole(("num_hidden_layers", "num_blocks"), most=MAX_LAYERS),
        heads,
        heads,
        0,
        reader.whole("vocab_size"),
        reader.flag("tie_word_embeddings", False),
        context(reader),
    )
    bias = reader.flag("use_bias", False)
    if not reader.flag("add_out_norm", True):
        raise reader.fail("add_out_norm", "is false; no published checkpoint lacks it")
    reader.ignore("chunk_size", "weight_mode", "mode", "max_inference_chunksize", "gate_soft_cap")
    reader.ignore("chunkwise_kernel", "sequence_kernel", "step_kernel", "return_last_states")
    keys = _rounded(reader, "qk_dim_factor", 0.5, 1, hidden)
    values = _rounded(reader, "v_dim_factor", 1.0, 1, hidden)
    if keys % heads or values % heads:
        raise reader.fail("num_heads", f"is {heads}, does not divide widths {keys} and {values}")
    multiple = reader.whole("ffn_round_up_to_multiple_of", 64)
    inner = _rounded(reader, "ffn_proj_factor", 2.667, multiple, hidden)
    part = dense(hidden, inner, bias=bias)
    norms = (vector("norms", "other", 2 * hidden),)
    layer = Layer(mlstm(hidden, heads, keys, values, bias), part, norms)
    return assemble(name, "xlstm", form, [layer] * form.layers)


def _rounded(reader: Reader, key: str, default: float, multiple: int, hidden: int) -> int:
    """`hidden` times a factor, up to the next multiple."""
    factor = reader.number(key) if reader.has(key) else default
    return -(-int(hidden * factor) // multiple) * multiple


def _stack(
    name: str, kind: str, form: Shape, mixers: list[Mixer], parts: list[FeedForward], norms: int
) -> Model:
    outer = (vector("norms", "other", norms * form.hidden),)
    layers = [Layer(mixer, part, outer) for mixer, part in zip(mixers, parts, strict=True)]
    return assemble(name, kind, form, layers)
