"""Mamba and Mamba-2 decoders, alone or between attention: Jamba, Bamba, Falcon H1, Granite 4."""

from __future__ import annotations

from dataclasses import replace

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    HIDDEN,
    INNER,
    LAYERS,
    Shape,
    assemble,
    context,
    shape,
)
from planner.architecture.families.traits import Moe, Traits, mixtures
from planner.architecture.feedforward import dense
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, vector
from planner.architecture.recurrent import mamba1, mamba2

# What implementations of the scan read, and no tensor depends on.
_QUIET = (
    "chunk_size",
    "mamba_chunk_size",
    "residual_in_fp32",
    "use_mambapy",
    "use_associative_scan",
    "rescale_prenorm_residual",
    "mixer_rms_eps",
    "num_logits_to_keep",
    "mamba_norm_before_gate",
)
_KINDS = {"mamba": False, "linear_attention": False, "attention": True, "full_attention": True}


def mamba(reader: Reader, name: str) -> Model:
    """Mamba and Falcon Mamba: one mixer and one norm a layer, no feed-forward part."""
    form = _alone(reader, tied=True)
    inner = reader.optional(("intermediate_size", "d_inner"))
    if inner is None:
        inner = reader.whole("expand", 2) * form.hidden
    reader.ignore("expand", *_QUIET)
    # Every channel has a state of its own, so that shards may cut anywhere.
    form = replace(form, heads=inner)
    mixer = mamba1(
        form.hidden,
        inner,
        state_size=reader.whole("state_size", 16),
        rank=_rank(reader, "time_step_rank", form.hidden),
        kernel=reader.whole("conv_kernel", 4),
        bias=reader.flag("use_bias", False),
        conv_bias=reader.flag("use_conv_bias", True),
    )
    layer = Layer(mixer, None, (vector("norm", "other", form.hidden),))
    return assemble(name, reader.text("model_type"), form, [layer] * form.layers)


def mamba_2(reader: Reader, name: str) -> Model:
    """Mamba-2 alone."""
    form = _alone(reader, tied=False)
    heads, width = reader.whole("num_heads"), reader.whole("head_dim")
    if heads * width != reader.whole("expand", 2) * form.hidden:
        raise reader.fail("num_heads", f"is {heads}; heads of {width} do not make up the width")
    reader.ignore("time_step_rank", *_QUIET)
    form = replace(form, heads=heads)
    mixer = mamba2(
        form.hidden,
        heads,
        width,
        groups=reader.whole("n_groups", 8),
        state_size=reader.whole("state_size", 128),
        kernel=reader.whole("conv_kernel", 4),
        bias=reader.flag("use_bias", False),
        conv_bias=reader.flag("use_conv_bias", True),
    )
    layer = Layer(mixer, None, (vector("norm", "other", form.hidden),))
    return assemble(name, "mamba2", form, [layer] * form.layers)


def jamba(reader: Reader, name: str) -> Model:
    """Jamba: one attention layer to seven of Mamba, every second layer a mixture."""
    form = shape(reader, kv_heads=8)
    hidden = form.hidden
    linear = mamba1(
        hidden,
        reader.whole("mamba_expand", 2) * hidden,
        state_size=reader.whole("mamba_d_state", 16),
        rank=_rank(reader, "mamba_dt_rank", hidden),
        kernel=reader.whole("mamba_d_conv", 4),
        bias=reader.flag("mamba_proj_bias", False),
        conv_bias=reader.flag("mamba_conv_bias", True),
        norms=True,
    )
    full = grouped_attention(hidden, form.heads, form.kv_heads, form.width)
    reader.ignore(*_QUIET)
    attends = _periodic(reader, "attn_layer", form.layers, 8, 4)
    sparse = _periodic(reader, "expert_layer", form.layers, 2, 1)
    if reader.whole("num_experts", 16) == 1:
        sparse = [False] * form.layers
    moe = Moe(inner="intermediate_size", dense_inner="intermediate_size", experts=16, active=2)
    parts = mixtures(reader, form, Traits(), moe, sparse)
    mixers = [full if attend else linear for attend in attends]
    return _stack(name, "jamba", form, mixers, parts)


def bamba(reader: Reader, name: str) -> Model:
    """Bamba: Mamba-2 with a feed-forward part in every layer, some layers attention."""
    form = shape(reader, kv_heads=8)
    listed = reader.wholes("attn_layer_indices", most=max(form.layers - 1, 0)) or []
    kinds = _kinds(reader, form.layers)
    attends = kinds if kinds is not None else [at in set(listed) for at in range(form.layers)]
    mixers = _mixed(reader, form, attends, groups=1)
    part = dense(form.hidden, reader.whole(INNER), bias=reader.flag("mlp_bias", False))
    return _stack(name, "bamba", form, mixers, [part] * form.layers)


def falcon_h1(reader: Reader, name: str) -> Model:
    """Falcon H1: attention and Mamba-2 side by side in every layer."""
    form = shape(reader, kv_heads=8)
    inner = reader.optional("mamba_d_ssm")
    projected = reader.flag("projectors_bias", False)
    linear = _mamba2(
        reader,
        form,
        groups=1,
        inner=inner,
        output_bias=projected,
        norm=reader.flag("mamba_rms_norm", False),
    )
    full = _attention(reader, form)
    reader.ignore(*_QUIET, "mlp_multipliers", "ssm_multipliers", "key_multiplier")
    reader.ignore("attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier")
    reader.ignore("ssm_in_multiplier", "ssm_out_multiplier", "attn_layer_indices", "mamba_use_mlp")
    kinds = _kinds(reader, form.layers, ("hybrid", *_KINDS))
    if kinds is not None and not all(kinds):
        raise reader.fail("layer_types", "expected hybrid layers alone")
    mixer = Mixer("hybrid", full.weights + linear.weights, full.caches, linear.state)
    part = dense(form.hidden, reader.whole(INNER), bias=reader.flag("mlp_bias", False))
    return _stack(name, "falcon_h1", form, [mixer] * form.layers, [part] * form.layers)


def granite_hybrid(reader: Reader, name: str) -> Model:
    """Granite 4: Mamba-2 and attention layers, each with experts, a shared part, or that alone."""
    form = shape(reader)
    reader.ignore("embedding_multiplier", "attention_multiplier", "position_embedding_type")
    kinds = _kinds(reader, form.layers)
    attends = [False] * form.layers if kinds is None else kinds
    mixers = _mixed(reader, form, attends, groups=1)
    if reader.whole("num_local_experts", 8, least=0):
        moe = Moe(
            inner="intermediate_size",
            shared="shared_intermediate_size",
            experts=8,
            active=2,
            path="block_sparse_moe",
        )
        parts = mixtures(reader, form, Traits(), moe)
    else:
        reader.ignore("num_experts_per_tok", "intermediate_size")
        parts = [dense(form.hidden, reader.whole("shared_intermediate_size"))] * form.layers
    return _stack(name, "granitemoehybrid", form, mixers, parts)


def _alone(reader: Reader, *, tied: bool) -> Shape:
    """The outer shape of a decoder without attention."""
    return Shape(
        reader.whole((*HIDDEN, "d_model")),
        reader.whole(LAYERS, most=MAX_LAYERS),
        1,
        1,
        0,
        reader.whole("vocab_size"),
        reader.flag("tie_word_embeddings", tied),
        context(reader),
    )


def _rank(reader: Reader, key: str, hidden: int) -> int:
    """The rank of the step's projection: a number, or `auto` for a sixteenth of the width."""
    if reader.value(key) in (None, "auto"):
        return -(-hidden // 16)
    return reader.whole(key)


def _periodic(reader: Reader, name: str, count: int, period: int, offset: int) -> list[bool]:
    every = reader.whole(f"{name}_period", period, most=MAX_LAYERS)
    start = reader.whole(f"{name}_offset", offset, least=0, most=MAX_LAYERS)
    if start >= every:
        raise reader.fail(f"{name}_offset", f"is {start}, not below the period {every}")
    return [index % every == start for index in range(count)]


def _kinds(
    reader: Reader, count: int, allowed: tuple[str, ...] = tuple(_KINDS)
) -> list[bool] | None:
    """Per layer whether it attends, None where no list says so."""
    for key in ("layer_types", "layers_block_type"):
        named = reader.words(key, count, allowed)
        if named is not None:
            return [_KINDS.get(word, True) for word in named]
    return None


def _attention(reader: Reader, form: Shape) -> Mixer:
    bias = reader.flag("attention_bias", False)
    return form.attention(bias=bias, output_bias=bias)


def _mixed(reader: Reader, form: Shape, attends: list[bool], *, groups: int) -> list[Mixer]:
    full, linear = _attention(reader, form), _mamba2(reader, form, groups=groups)
    reader.ignore(*_QUIET)
    return [full if attend else linear for attend in attends]


def _mamba2(
    reader: Reader,
    form: Shape,
    *,
    groups: int,
    inner: int | None = None,
    output_bias: bool | None = None,
    norm: bool = True,
) -> Mixer:
    """Mamba-2 by the keys of hybrids; `mamba_d_head` may be `auto`."""
    heads = reader.whole("mamba_n_heads", 128)
    wide = inner if inner is not None else reader.whole("mamba_expand", 2) * form.hidden
    width = None if reader.value("mamba_d_head") == "auto" else reader.optional("mamba_d_head")
    reader.ignore("mamba_expand")
    if width is None:
        width = wide // heads
    if heads * width != wide:
        raise reader.fail("mamba_n_heads", f"is {heads}; heads of {width} do not make up {wide}")
    return mamba2(
        form.hidden,
        heads,
        width,
        groups=reader.whole("mamba_n_groups", groups),
        state_size=reader.whole("mamba_d_state", 256),
        kernel=reader.whole("mamba_d_conv", 4),
        bias=reader.flag("mamba_proj_bias", False),
        output_bias=output_bias,
        conv_bias=reader.flag("mamba_conv_bias", True),
        norm=norm,
    )


def _stack(
    name: str, kind: str, form: Shape, mixers: list[Mixer], parts: list[FeedForward]
) -> Model:
    norms = form.norms()
    layers = [Layer(mixer, part, norms) for mixer, part in zip(mixers, parts, strict=True)]
    return assemble(name, kind, form, layers)
