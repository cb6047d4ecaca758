"""Dense decoders shaped like Llama, one row of traits a family.

Shapes are those the reference implementations build (transformers 5.23, without weights);
Aquila, Baichuan, ChatGLM, EXAONE 3, InternLM, MiniCPM, Orion, Qwen 1, XVERSE and Yi, which it does
not hold, follow the configurations published with their checkpoints.

Families shaped like Llama: dense or Mixtral-like, with or without windows and biases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
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
from planner.architecture.layers import Layer, Model

_BIAS = ("attention_bias", False)
_ATTENTION: dict[str, Any] = {"qkv_bias": _BIAS, "output_bias": _BIAS}
# Llama's own switches: biases of attention's four matrices, and of the feed-forward part.
_LLAMA: dict[str, Any] = {**_ATTENTION, "mlp_bias": ("mlp_bias", False)}
_MUP = ("embedding_multiplier", "attention_multiplier", "layer_rope_theta")


def _every(key: str, default: bool = False) -> dict[str, Any]:
    """One key switches every bias."""
    return dict.fromkeys(("qkv_bias", "output_bias", "mlp_bias"), (key, default))


def _lambdas(form: Shape) -> int:
    return 4 * form.width


def _scalars(form: Shape, inner: int) -> int:
    return 2


def _inner_norm(form: Shape, inner: int) -> int:
    return inner


def _result_norm(form: Shape) -> int:
    return form.heads * form.width


def _mask(form: Shape) -> int:
    return form.kv_heads * form.kv_heads * form.width + form.kv_heads


def _biased_mask(form: Shape) -> int:
    return _mask(form) + form.kv_heads


def chatglm(reader: Reader, name: str) -> Model:
    """ChatGLM 2 and 3 and GLM-4-9B as first published, with names of keys of their own."""
    reader.ignore("original_rope", "post_layer_norm", "vocab_size", "bias_dropout_fusion")
    reader.ignore("apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm")
    reader.ignore("fp32_residual_connection")
    if reader.flag("add_bias_linear", False):
        raise reader.fail("add_bias_linear", "is true; no published checkpoint has these biases")
    heads = reader.whole("num_attention_heads")
    groups = reader.whole("multi_query_group_num", heads)
    if heads % groups:
        raise reader.fail("multi_query_group_num", f"is {groups}, does not divide {heads} heads")
    grouped = reader.flag("multi_query_attention", False)
    vocab = reader.whole("padded_vocab_size")
    traits = Traits(
        vocab=vocab, qkv_bias=("add_qkv_bias", False), head_dim=("kv_channels", "head_dim")
    )
    cached = groups if grouped else heads
    return standard(reader, name, "chatglm", traits, kv_heads=cached, vocab=vocab)


def doge(reader: Reader, name: str) -> Model:
    """Doge: a learned mask of each head's values, and scaled residuals."""
    if reader.flag("is_moe", False):
        raise reader.fail("is_moe", "is true; experts retrieved by product keys are not counted")
    reader.ignore("num_experts", "num_experts_per_tok", "keep_window_size")
    mask = _biased_mask if reader.flag("attention_bias", False) else _mask
    traits = Traits(
        norms=4, qk_norm="head", loose_attention=mask, windows=Windows(always=True), **_LLAMA
    )
    return standard(reader, name, "doge", traits)


def hyperclovax(reader: Reader, name: str) -> Model:
    """HyperCLOVA X: Llama, with norms after both parts where `use_post_norm`."""
    norms = 4 if reader.flag("use_post_norm", True) else 2
    reader.ignore(*_MUP)
    return standard(reader, name, "hyperclovax", Traits(norms=norms, **_LLAMA))


def qwen(reader: Reader, name: str) -> Model:
    """The first Qwen: its `intermediate_size` is that of gate and up together."""
    inner = reader.whole("intermediate_size")
    if inner % 2:
        raise reader.fail("intermediate_size", f"is {inner}, expected an even number")
    reader.ignore("no_bias", "kv_channels", "onnx_safe", "use_flash_attn", "use_dynamic_ntk")
    traits = Traits(qkv_bias=True, head_dim=("kv_channels", "head_dim"), inner_divisor=2)
    return standard(reader, name, "qwen", traits)


DENSE: dict[str, Callable[[Reader, str], Model]] = {
    "Yi": family("llama", **_LLAMA),
    "apertus": family(
        "apertus", gated=False, qk_norm="head", loose_feed_forward=_scalars, **_ATTENTION
    ),
    "aquila": family("aquila", **_LLAMA),
    "arcee": family("arcee", gated=False, **_LLAMA),
    "baichuan": family("baichuan", ignored=("z_loss_weight",)),
    "bitnet": family(
        "bitnet", loose_attention=_result_norm, loose_feed_forward=_inner_norm, **_ATTENTION
    ),
    "chatglm": chatglm,
    "cohere": family(
        "cohere",
        tied=True,
        parallel=True,
        qk_norm="all",
        qk_norm_if=("use_qk_norm", False),
        **_ATTENTION,
    ),
    "cohere2": family(
        "cohere2",
        tied=True,
        parallel=True,
        windows=Windows(every=4, size=4096),
        ignored=("order_of_interleaved_layers", "use_gated_activation", "use_parallel_block"),
        **_ATTENTION,
    ),
    "cwm": family(
        "cwm", mlp_bias=("mlp_bias", False), windows=Windows(every=4, leading=True, size=8192)
    ),
    "diffllama": family("diffllama", loose_attention=_lambdas, **_ATTENTION),
    "doge": doge,
    "ernie4_5": family("ernie4_5", tied=True, width=128, **_every("use_bias")),
    "exaone": family("exaone"),
    "exaone4": family("exaone4", qk_norm="head", windows=Windows(every=4, size=4096)),
    "gemma": family("gemma", tied=True, width=256, **_ATTENTION),
    "glm": family("glm", qkv_bias=("attention_bias", True), width=128, kv_heads=2),
    "glm4": family("glm4", norms=4, qkv_bias=("attention_bias", True), width=128, kv_heads=2),
    "granite": family("granite", ignored=_MUP, **_LLAMA),
    "granite_swa": family(
        "granite_swa",
        tied=True,
        sinks=True,
        windows=Windows(every=4, leading=True, size=128),
        ignored=_MUP,
        **_LLAMA,
    ),
    "helium": family("helium", qkv_bias=_BIAS, mlp_bias=("mlp_bias", False)),
    "hunyuan_v1_dense": family(
        "hunyuan_v1_dense",
        qk_norm="head",
        qk_norm_if=("use_qk_norm", True),
        head_dim=("head_dim", "attention_head_dim"),
        ignored=(
            "use_cla",
            "cla_share_factor",
            "use_mixed_mlp_moe",
            "moe_drop_tokens",
            "org_vocab_size",
        ),
        **_LLAMA,
    ),
    "hyperclovax": hyperclovax,
    "internlm": family("internlm", qkv_bias=("bias", True), output_bias=("bias", True)),
    "internlm2": family("internlm2", qkv_bias=("bias", False), output_bias=("bias", False)),
    "internlm3": family(
        "internlm3",
        qkv_bias=(("qkv_bias", "attention_bias"), False),
        output_bias=(("bias", "attention_bias"), False),
        mlp_bias=(("bias", "mlp_bias"), False),
    ),
    "iquestcoder": family("iquestcoder", **_LLAMA),
    "jais2": family(
        "jais2",
        norm_bias=True,
        gated=False,
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        mlp_bias=("mlp_bias", True),
    ),
    "mimo": family(
        "mimo",
        qkv_bias=("attention_bias", True),
        windows=Windows(always=True, used_if=("use_sliding_window", False)),
        ignored=("max_window_layers",),
    ),
    "minicpm": family(
        "minicpm", tied=True, ignored=("scale_emb", "scale_depth", "dim_model_base"), **_ATTENTION
    ),
    "ministral": family("ministral", kv_heads=8, windows=Windows(always=True, size=4096)),
    "ministral3": family("ministral3", kv_heads=8, width=128, windows=Windows(always=True)),
    "muse_glimmer_text": family(
        "muse_glimmer",
        norms=4,
        gate="full",
        windows=Windows(every=4, size=2048),
        ignored=("qk_scale_factor", "layer_rope_theta"),
        **_ATTENTION,
    ),
    "nanochat": family(
        "nanochat", norms=0, final_norm=False, gated=False, qkv_bias=_BIAS, output_bias=_BIAS
    ),
    "nemotron": family("nemotron", norm_bias=True, gated=False, **_LLAMA),
    "olmo": family("olmo", norms=0, final_norm=False, **_ATTENTION),
    "olmo2": family("olmo2", qk_norm="all", **_ATTENTION),
    "olmo3": family("olmo3", qk_norm="all", windows=Windows(every=4, size=4096), **_ATTENTION),
    "orion": family("orion", norm_bias=True),
    "qwen": qwen,
    "seed_oss": family(
        "seed_oss",
        width=128,
        qkv_bias=("attention_bias", True),
        output_bias=("attention_out_bias", False),
        mlp_bias=("mlp_bias", False),
    ),
    "smollm3": family(
        "smollm3",
        tied=True,
        kv_heads=4,
        windows=Windows(used_if=("use_sliding_window", False)),
        ignored=("no_rope_layers", "no_rope_layer_interval", "max_window_layers"),
        **_LLAMA,
    ),
    "stablelm": family(
        "stablelm",
        norm_bias=True,
        qkv_bias=("use_qkv_bias", False),
        qk_norm="all",
        qk_norm_if=("qk_layernorm", False),
        parallel=("use_parallel_residual", False),
    ),
    "starcoder2": family(
        "starcoder2",
        tied=True,
        kv_heads=2,
        norm_bias=True,
        gated=False,
        windows=Windows(always=True),
        **_every("use_bias", True),
    ),
    "vaultgemma": family(
        "vaultgemma",
        tied=True,
        width=256,
        kv_heads=4,
        windows=Windows(every=2, size=4096),
        ignored=("query_pre_attn_scalar",),
        **_ATTENTION,
    ),
    "xverse": family("xverse"),
}


def llama(reader: Reader, name: str) -> Model:
    """Llama 1 to 3: full grouped-query attention and a gated feed-forward part."""
    form = shape(reader)
    bias = reader.flag("attention_bias", False)
    mixer = form.attention(bias=bias, output_bias=bias)
    part = dense(
        form.hidden, reader.whole("intermediate_size"), bias=reader.flag("mlp_bias", False)
    )
    layer = Layer(mixer, part, form.norms())
    return assemble(name, "llama", form, [layer] * form.layers)


def mistral(reader: Reader, name: str) -> Model:
    """Mistral: Llama with every layer windowed unless `sliding_window` is null."""
    form = shape(reader, kv_heads=8)
    window = reader.optional("sliding_window")
    if window is None and not reader.is_set("sliding_window"):
        window = 4096
    windowed = attention_kinds(reader, form.layers, [window is not None] * form.layers)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layers = []
    for bounded in windowed:
        if bounded and window is None:
            raise reader.fail("sliding_window", "is missing; layer_types names windowed layers")
        mixer = form.attention(
            window=window if bounded else None, kind="window" if bounded else "full"
        )
        layers.append(Layer(mixer, part, form.norms()))
    return assemble(name, "mistral", form, layers)


def phi3(reader: Reader, name: str) -> Model:
    """Phi-3 and Phi-4: Llama's counts with fused projections, windowed where a window is given."""
    form = shape(reader)
    reader.ignore("original_max_position_embeddings")
    window = reader.optional("sliding_window")
    if window is not None and form.max_context is not None and window >= form.max_context:
        window = None
    mixer = form.attention(window=window, kind="full" if window is None else "window")
    part = dense(form.hidden, reader.whole("intermediate_size"))
    layer = Layer(mixer, part, form.norms())
    return assemble(name, "phi3", form, [layer] * form.layers)


def mixtral(reader: Reader, name: str) -> Model:
    """Mixtral: every feed-forward part a mixture of `num_local_experts`."""
    form = shape(reader, kv_heads=8)
    window = reader.optional("sliding_window")
    experts, active = reader.whole(EXPERTS, 8), reader.whole(PER_TOKEN, 2)
    check_experts(reader, experts, active)
    mixer = form.attention(window=window, kind="full" if window is None else "window")
    part = mixture(
        form.hidden, reader.whole("intermediate_size"), experts, active, path="block_sparse_moe"
    )
    layer = Layer(mixer, part, form.norms())
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
        mixer = form.attention(
            bias=bias, output_bias=bias, window=chunk, kind="chunked" if chunked else "full"
        )
        part = mixed if index in sparse else plain
        layers.append(Layer(mixer, part, form.norms()))
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
