"""Decoders before Llama became the common shape: GPT-J, NeoX, BLOOM, OPT, Falcon, MPT and others.

Layer norms with biases, feed-forward parts without a gate, parts side by side, learned positions.

GPT-2 and GPT-3 (learned positions, biases everywhere), gpt-oss, and PaLM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    HEADS,
    PER_TOKEN,
    Shape,
    Windows,
    assemble,
    attention_kinds,
    check_experts,
    shape,
)
from planner.architecture.families.traits import Traits, family, standard
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import Layer, Model, vector

_PLAIN: dict[str, Any] = {"norm_bias": True, "gated": False}
_ALL: dict[str, Any] = {"qkv_bias": True, "output_bias": True, "mlp_bias": True, **_PLAIN}
_GPTJ: dict[str, Any] = {
    "parallel": True,
    "mlp_bias": True,
    "head_bias": True,
    "inner_ratio": 4,
    "path": "attn",
    **_PLAIN,
}


def _learned(offset: int) -> Callable[[Reader, Shape], int]:
    """Learned positions, with the rows some families keep before the first."""

    def count(reader: Reader, form: Shape) -> int:
        return ((form.max_context or 0) + offset) * form.hidden

    return count


def _embedding_norm(reader: Reader, form: Shape) -> int:
    return 2 * form.hidden


def falcon(reader: Reader, name: str) -> Model:
    """Falcon 7B, 40B and 180B: one key-value head, or groups and two norms in the new layout."""
    new = reader.flag("new_decoder_architecture", False)
    single = reader.flag("multi_query", True)
    parallel = reader.flag("parallel_attn", True) or new
    heads = reader.whole(HEADS)
    groups = reader.whole(("num_kv_heads", "n_head_kv"), heads)
    two = reader.whole("num_ln_in_parallel_attn", 2 if new else 1, most=2) == 2
    reader.ignore("alibi", "apply_residual_connection_post_layernorm")
    if heads % groups:
        raise reader.fail("num_kv_heads", f"is {groups}, does not divide {heads} heads")
    bias = ("bias", False)
    traits = Traits(
        tied=True,
        norms=3 if new and two else 2,
        parallel=parallel,
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
        inner_ratio=4,
        path="self_attention",
        **_PLAIN,
    )
    plain = 1 if single else heads
    cached = groups if new else plain
    return standard(reader, name, "falcon", traits, kv_heads=cached)


def opt(reader: Reader, name: str) -> Model:
    """OPT: learned positions, a switch for every bias and norm."""
    hidden = reader.whole("hidden_size")
    if reader.whole("word_embed_proj_dim", hidden) != hidden:
        raise reader.fail(
            "word_embed_proj_dim", f"is not hidden_size {hidden}; projections are not counted"
        )
    affine = reader.flag("layer_norm_elementwise_affine", True)
    final = reader.flag("do_layer_norm_before", True)
    final = final and not reader.flag("_remove_final_layer_norm", False)
    bias = ("enable_bias", True)
    traits = Traits(
        tied=True,
        norms=2 if affine else 0,
        final_norm=final and affine,
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
        outside=_learned(2),
        **_PLAIN,
    )
    return standard(reader, name, "opt", traits)


def mpt(reader: Reader, name: str) -> Model:
    """MPT: no bias anywhere, ALiBi in place of positions."""
    inner = reader.section("attn_config")
    if inner is not None:
        kind = inner.text("attn_type", "multihead_attention")
        if kind != "multihead_attention" or inner.flag("qk_ln", False):
            raise inner.fail("attn_type", "only plain multihead_attention is counted")
    if not reader.flag("no_bias", True):
        raise reader.fail("no_bias", "is false; no published checkpoint has these biases")
    reader.ignore("learned_pos_emb", "embedding_fraction", "norm_type", "resid_pdrop")
    ratio = reader.whole("expansion_ratio", 4)
    traits = Traits(tied=True, gated=False, inner_ratio=ratio, path="attn")
    return standard(reader, name, "mpt", traits)


def gpt_bigcode(reader: Reader, name: str) -> Model:
    """GPT-BigCode (SantaCoder, StarCoder): GPT-2 with one key-value head."""
    single = reader.flag("multi_query", True)
    heads = reader.whole(HEADS)
    reader.ignore("num_key_value_heads", "scale_attn_weights", "inference_runner")
    reader.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")
    traits = Traits(tied=True, inner_ratio=4, outside=_learned(0), path="attn", **_ALL)
    default_kv_heads = 1 if single else heads
    return standard(reader, name, "gpt_bigcode", traits, kv_heads=default_kv_heads)


def gpt_neo(reader: Reader, name: str) -> Model:
    """GPT-Neo: global and local layers in turn; the output projection alone has a bias."""
    layers = reader.whole(("num_layers", "num_hidden_layers"))
    listed = reader.words("attention_layers", layers, ("global", "local"))
    kinds = reader.value("attention_types")
    if listed is None:
        listed = _repeated(reader, kinds, layers)
    window = reader.whole("window_size", 256)
    traits = Traits(
        tied=True,
        output_bias=True,
        mlp_bias=True,
        inner_ratio=4,
        outside=_learned(0),
        windows=Windows(named=tuple(word == "local" for word in listed), size=window),
        path="attn.attention",
        **_PLAIN,
    )
    return standard(reader, name, "gpt_neo", traits)


def _repeated(reader: Reader, kinds: object, layers: int) -> list[str]:
    """Layers as GPT-Neo writes them: [[["global", "local"], 12]]."""
    words: list[str] = []
    for entry in kinds if isinstance(kinds, list) else []:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], list):
            break
        if type(entry[1]) is not int or not 0 < entry[1] <= layers:
            break
        words += [str(word) for word in entry[0]] * entry[1]
    if len(words) != layers or set(words) - {"global", "local"}:
        raise reader.fail("attention_types", f"does not name {layers} global or local layers")
    return words


OLDER: dict[str, Callable[[Reader, str], Model]] = {
    "RefinedWeb": falcon,
    "RefinedWebModel": falcon,
    "biogpt": family("biogpt", tied=True, outside=_learned(2), **_ALL),
    "bloom": family(
        "bloom",
        tied=True,
        inner_ratio=4,
        outside=_embedding_norm,
        ignored=("apply_residual_connection_post_layernorm", "slow_but_exact", "offset_alibi"),
        path="self_attention",
        **_ALL,
    ),
    "codegen": family("codegen", **_GPTJ),
    "falcon": falcon,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    "gpt_neox": family(
        "gpt_neox",
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        mlp_bias=True,
        parallel=("use_parallel_residual", True),
        shared_norm=False,
        path="attention",
        **_PLAIN,
    ),
    "gptj": family("gptj", **_GPTJ),
    "mpt": mpt,
    "openai-gpt": family(
        "openai-gpt",
        tied=True,
        inner_ratio=4,
        final_norm=False,
        outside=_learned(0),
        ignored=("afn",),
        path="attn",
        **_ALL,
    ),
    "opt": opt,
    "persimmon": family(
        "persimmon", qk_norm="head", qk_norm_if=("qk_layernorm", True), qk_norm_bias=True, **_ALL
    ),
    "phi": family(
        "phi",
        parallel=True,
        head_bias=True,
        qk_norm="head",
        qk_norm_if=("qk_layernorm", False),
        qk_norm_bias=True,
        **_ALL,
    ),
    "xglm": family("xglm", tied=True, ignored=("scale_embedding", "layerdrop"), **_ALL),
}


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
        mixer = form.attention(
            bias=bias,
            output_bias=bias,
            sinks=True,
            window=window if windowed else None,
            kind="window" if windowed else "full",
        )
        layers.append(Layer(mixer, part, form.norms()))
    return assemble(name, "gpt_oss", form, layers)


def palm(reader: Reader, name: str) -> Model:
    """PaLM (arXiv 2204.02311): multi-query attention beside the feed-forward part, one norm."""
    form = shape(reader, kv_heads=1, width=256, tied=True)
    mixer = form.attention()
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layer = Layer(mixer, part, form.norms(1), parallel=True)
    return assemble(name, "palm", form, [layer] * form.layers)
