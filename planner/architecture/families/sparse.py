"""Standard decoders with mixtures of experts, one row of traits a family.

Shapes are those the reference implementations build (transformers 5.23, without weights);
Bailing (Ling), DeepSeek's first mixture and Step 3.5, which it does not hold, follow the
configurations published with their checkpoints.

GLM-4.5 to 4.7: grouped-query attention, dense first layers, then mixtures.

Qwen families: 2, 2-MoE, 3, 3-MoE, and the linear-attention hybrids 3-Next and 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    MTP,
    PER_TOKEN,
    SHARED,
    Shape,
    Windows,
    assemble,
    attention_kinds,
    check_experts,
    expert_groups,
    predict,
    shape,
    sparse_layers,
)
from planner.architecture.families.traits import Moe, Traits, family, standard
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, PredictionBlocks
from planner.architecture.recurrent import gated_delta

_BIAS = ("attention_bias", False)
_ATTENTION: dict[str, Any] = {"qkv_bias": _BIAS, "output_bias": _BIAS}
_MUP = ("embedding_multiplier", "attention_multiplier", "layer_rope_theta")


def hunyuan(reader: Reader, name: str) -> Model:
    """Hunyuan mixtures: every layer has routed experts and one shared of the same width."""
    if reader.flag("use_cla", False):
        raise reader.fail("use_cla", "is true; caches shared between layers are not counted")
    mixed = reader.flag("use_mixed_mlp_moe", True)
    reader.ignore("cla_share_factor", "moe_drop_tokens", "moe_random_routing_dropped_token")
    reader.ignore("org_vocab_size", "group_limited_greedy", "norm_type", "pool_type", "dense_list")
    reader.ignore("num_media_embeds", "vit_type", "class_num", "capacity_factor")
    if reader.flag("use_mla", False):
        raise reader.fail("use_mla", "is true; latent attention of this family is not counted")
    if reader.whole("moe_layer_num_skipped", 0, least=0):
        raise reader.fail("moe_layer_num_skipped", "is not 0; dense first layers are not counted")
    width_key = (
        "moe_intermediate_size" if reader.has("moe_intermediate_size") else "intermediate_size"
    )
    reader.ignore("intermediate_size")
    moe = Moe(inner=width_key, shared_count=1 if mixed else 0, experts=1, active=1)
    traits = Traits(
        qk_norm="head",
        qk_norm_if=("use_qk_norm", True),
        head_dim=("head_dim", "attention_head_dim"),
        moe=moe,
        mlp_bias=("mlp_bias", False),
        **_ATTENTION,
    )
    return standard(reader, name, "hunyuan_v1_moe", traits)


def bailing(reader: Reader, name: str) -> Model:
    """Ling 1 and 2 (Bailing): shared experts, norms of queries and keys from version 2 on."""
    reader.ignore("norm_head", "norm_softmax", "multi_gate", "router_dtype", "score_function")
    shared = "moe_shared_expert_intermediate_size"
    shared_width = reader.optional(shared)
    moe = Moe(router_bias=("moe_router_enable_expert_bias", False))
    if shared_width is not None and shared_width != reader.whole("moe_intermediate_size"):
        raise reader.fail(shared, f"is {shared_width}, not the width of the routed experts")
    traits = Traits(
        qkv_bias=("use_qkv_bias", False),
        output_bias=("use_bias", False),
        qk_norm="head",
        qk_norm_if=("use_qk_norm", False),
        moe=moe,
    )
    return standard(reader, name, "bailing_moe", traits)


def granite(reader: Reader, name: str) -> Model:
    """Granite mixtures: experts of `intermediate_size`, a shared part from some sizes on."""
    kind = reader.text("model_type")
    windowed = kind == "granitemoe_swa"
    traits = Traits(
        sinks=windowed,
        windows=Windows(every=4, leading=True, size=128) if windowed else Windows(),
        moe=Moe(
            inner="intermediate_size",
            shared="shared_intermediate_size",
            experts=8,
            active=2,
            path="block_sparse_moe",
        ),
        ignored=_MUP,
        **_ATTENTION,
    )
    return standard(reader, name, kind, traits)


SPARSE: dict[str, Callable[[Reader, str], Model]] = {
    "afmoe": family(
        "afmoe",
        norms=4,
        qk_norm="head",
        gate="full",
        windows=Windows(every=4, size=1024),
        moe=Moe(router_bias=True, first_dense=1),
        ignored=("mup_enabled",),
        **_ATTENTION,
    ),
    "aria_text": family(
        "aria_text",
        moe=Moe(
            inner="intermediate_size",
            experts=8,
            active=2,
            shared_count=2,
            shared_bias=("mlp_bias", False),
        ),
        **_ATTENTION,
    ),
    "bailing_moe": bailing,
    "bailing_moe_v2": bailing,
    "cohere2_moe": family(
        "cohere2_moe",
        tied=True,
        parallel=True,
        windows=Windows(every=4, size=4096),
        moe=Moe(
            inner="intermediate_size",
            dense_inner="prefix_dense_intermediate_size",
            experts=8,
            active=2,
        ),
        ignored=(
            "prefix_dense_sliding_window_pattern",
            "shared_expert_combination_strategy",
            "expert_selection_fn",
        ),
        **_ATTENTION,
    ),
    "deepseek": family("deepseek", moe=Moe(), **_ATTENTION),
    "dots1": family(
        "dots1",
        qk_norm="head",
        windows=Windows(used_if=("use_sliding_window", True)),
        moe=Moe(router_bias=True),
        ignored=("max_window_layers",),
        **_ATTENTION,
    ),
    "ernie4_5_moe": family(
        "ernie4_5_moe",
        tied=True,
        qkv_bias=("use_bias", False),
        output_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
        head_bias=("use_bias", False),
        moe=Moe(router_bias=True, first_dense=1, shared_count=2, shared_bias=("use_bias", False)),
        ignored=("moe_capacity", "moe_gate", "moe_use_aux_free", "moe_norm_min"),
    ),
    "exaone_moe": family(
        "exaone_moe",
        qk_norm="head",
        windows=Windows(every=4, size=4096),
        moe=Moe(router_bias=True, first_dense=1),
        **_ATTENTION,
    ),
    "flex_olmo": family(
        "flex_olmo", qk_norm="all", moe=Moe(inner="intermediate_size"), **_ATTENTION
    ),
    "granitemoe": granite,
    "granitemoe_swa": granite,
    "granitemoeshared": granite,
    "hunyuan_v1_moe": hunyuan,
    "hy_v3": family(
        "hy_v3",
        width=128,
        kv_heads=8,
        qk_norm="head",
        moe=Moe(router_bias=True, first_dense=1, shared_count=1, shared_bias=("mlp_bias", False)),
        mlp_bias=("mlp_bias", False),
        ignored=("enable_moe_fp32_combine",),
        **_ATTENTION,
    ),
    "kolibri1": family(
        "kolibri1",
        norms=4,
        qk_norm="head",
        windows=Windows(every=5, size=513),
        moe=Moe(router_bias=True, shared="shared_expert_intermediate_size"),
    ),
    "mellum": family(
        "mellum",
        qk_norm="head",
        width=128,
        kv_heads=4,
        moe=Moe(),
        ignored=("mtp_layer_types", "mtp_mlp_layer_types"),
        **_ATTENTION,
    ),
    "olmoe": family("olmoe", qk_norm="all", moe=Moe(inner="intermediate_size"), **_ATTENTION),
    "phimoe": family(
        "phimoe",
        norm_bias=True,
        kv_heads=8,
        head_bias=("lm_head_bias", False),
        windows=Windows(always=True),
        moe=Moe(inner="intermediate_size", experts=16, active=2, path="block_sparse_moe"),
        ignored=("input_jitter_noise", "original_max_position_embeddings"),
        **_ATTENTION,
    ),
    "solar_open": family(
        "solar_open",
        width=128,
        kv_heads=8,
        qk_norm="head",
        qk_norm_if=("use_qk_norm", False),
        moe=Moe(router_bias=True, shared_count=1),
        qkv_bias=("attention_bias", False),
    ),
}


def glm4_moe(reader: Reader, name: str) -> Model:
    """GLM-4.5, 4.6, 4.7 and 4.5-Air; biases on query, key and value, none on the output."""
    form = shape(reader, kv_heads=8)
    mixer = form.attention(
        bias=reader.flag("attention_bias", False),
        norm=2 * form.width if reader.flag("use_qk_norm", False) else 0,
    )
    sparse = sparse_layers(reader, form.layers, 1)
    experts, active = reader.whole(EXPERTS, 128), reader.whole(PER_TOKEN, 8)
    check_experts(reader, experts, active)
    mixed = mixture(
        form.hidden,
        reader.whole("moe_intermediate_size"),
        experts,
        active,
        shared=reader.whole(SHARED, 1, least=0),
        router_bias=True,
        groups=expert_groups(reader, experts, active),
    )
    plain = dense(form.hidden, reader.whole("intermediate_size"))
    norms = form.norms()
    layers = [Layer(mixer, mixed if chosen else plain, norms) for chosen in sparse]
    blocks = predict(reader, MTP, Layer(mixer, mixed, norms), form.hidden)
    return assemble(name, "glm4_moe", form, layers, prediction=blocks)


def qwen2(reader: Reader, name: str) -> Model:
    """Qwen 1.5 to 2.5: Llama with biases on query, key and value."""
    form = shape(reader)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    mixers = _mixers(reader, form, bias=True, output_bias=False, norm=0)
    return _stack(name, "qwen2", form, mixers, [part] * form.layers)


def qwen3(reader: Reader, name: str) -> Model:
    """Qwen 3 dense: a norm per head on queries and keys, head width 128 unless given."""
    form = shape(reader, width=128, kv_heads=32)
    bias = reader.flag("attention_bias", False)
    part = dense(form.hidden, reader.whole("intermediate_size"))
    mixers = _mixers(reader, form, bias=bias, output_bias=bias, norm=2 * form.width)
    return _stack(name, "qwen3", form, mixers, [part] * form.layers)


def qwen2_moe(reader: Reader, name: str) -> Model:
    """Qwen 1.5/2 mixtures: one gated shared expert beside the routed ones."""
    form = shape(reader, kv_heads=16)
    bias = reader.flag("qkv_bias", True)
    mixers = _mixers(reader, form, bias=bias, output_bias=False, norm=0, alternate=True)
    parts = _parts(reader, form, shared=True)
    return _stack(name, "qwen2_moe", form, mixers, parts)


def qwen3_moe(reader: Reader, name: str) -> Model:
    """Qwen 3 mixtures: Qwen 3 attention, routed experts without a shared one."""
    form = shape(reader, width=None, kv_heads=4)
    bias = reader.flag("attention_bias", False)
    mixers = _mixers(reader, form, bias=bias, output_bias=bias, norm=2 * form.width, every=True)
    return _stack(name, "qwen3_moe", form, mixers, _parts(reader, form, shared=False))


def qwen3_hybrid(reader: Reader, name: str) -> Model:
    """Qwen 3-Next and 3.5: three gated-delta layers to one full, output-gated one."""
    family = reader.text("model_type").removesuffix("_text")
    form = shape(reader, width=256, kv_heads=4 if family == "qwen3_5" else 2)
    bias = reader.flag("attention_bias", False)
    full = form.attention(
        bias=bias, output_bias=bias, norm=2 * form.width, gate=reader.flag("attn_output_gate", True)
    )
    linear = _linear(reader, form)
    mixers = [linear if is_linear else full for is_linear in _linear_layers(reader, form.layers)]
    if family == "qwen3_5":
        parts = [dense(form.hidden, reader.whole("intermediate_size"))] * form.layers
    else:
        parts = _parts(reader, form, shared=True, always=family == "qwen3_5_moe")
    blocks = reader.whole("mtp_num_hidden_layers", 0, least=0, most=MAX_LAYERS)
    model = _stack(name, family, form, mixers, parts)
    if not blocks:
        return model
    layer = Layer(full, parts[-1], model.layers[0].weights)
    params = sum(weight.count for weight in layer.all_weights())
    parameters = blocks * params + 2 * form.hidden * form.hidden + 3 * form.hidden
    return assemble(
        name, family, form, model.layers, prediction=PredictionBlocks(blocks, parameters)
    )


def _mixers(
    reader: Reader,
    form: Shape,
    *,
    bias: bool,
    output_bias: bool,
    norm: int,
    alternate: bool = False,
    every: bool = False,
) -> list[Mixer]:
    """Attention per layer; `use_sliding_window: false` overrides a window that is given."""
    enabled = reader.flag("use_sliding_window", False)
    window = reader.optional("sliding_window", least=0)
    start = reader.whole("max_window_layers", 28, least=0, most=MAX_LAYERS)
    if enabled and window is None and not reader.is_set("sliding_window"):
        window = 4096
    bounded = bool(window) and enabled
    default = [bounded and (every or index >= start) for index in range(form.layers)]
    if alternate:
        default = [bounded and index % 2 == 0 and index < start for index in range(form.layers)]
    mixers = []
    for windowed in attention_kinds(reader, form.layers, default):
        if windowed and not window:
            raise reader.fail("sliding_window", "is missing; layer_types names windowed layers")
        mixers.append(
            form.attention(
                bias=bias,
                output_bias=output_bias,
                norm=norm,
                window=window if windowed else None,
                kind="window" if windowed else "full",
            )
        )
    return mixers


def _parts(reader: Reader, form: Shape, *, shared: bool, always: bool = False) -> list[FeedForward]:
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    inner = reader.whole("moe_intermediate_size")
    mixed = mixture(
        form.hidden,
        inner,
        experts,
        active,
        shared=1 if shared else 0,
        shared_inner=reader.whole("shared_expert_intermediate_size") if shared else None,
        shared_gate=shared,
        shared_path="shared_expert",
    )
    step = reader.whole("decoder_sparse_step", 1, most=MAX_LAYERS)
    only = set(reader.wholes("mlp_only_layers", most=form.layers - 1) or ())
    sparse = [
        always or (index not in only and (index + 1) % step == 0) for index in range(form.layers)
    ]
    if all(sparse):
        reader.ignore("intermediate_size")
        return [mixed] * form.layers
    plain = dense(form.hidden, reader.whole("intermediate_size"))
    return [mixed if is_sparse else plain for is_sparse in sparse]


def _linear(reader: Reader, form: Shape) -> Mixer:
    keys = reader.whole("linear_num_key_heads", 16)
    values = reader.whole("linear_num_value_heads", 32)
    if values % keys:
        raise reader.fail("linear_num_value_heads", f"is {values}, not a multiple of {keys}")
    return gated_delta(
        form.hidden,
        key_heads=keys,
        key_width=reader.whole("linear_key_head_dim", 128),
        value_heads=values,
        value_width=reader.whole("linear_value_head_dim", 128),
        kernel=reader.whole("linear_conv_kernel_dim", 4),
        precision=reader.precision("mamba_ssm_dtype", "float32"),
    )


def _linear_layers(reader: Reader, count: int) -> list[bool]:
    named = reader.words("layer_types", count, ("full_attention", "linear_attention"))
    every = reader.whole("full_attention_interval", 4, most=MAX_LAYERS)
    if named is not None:
        return [word == "linear_attention" for word in named]
    return [(index + 1) % every != 0 for index in range(count)]


def _stack(
    name: str, family: str, form: Shape, mixers: list[Mixer], parts: list[FeedForward]
) -> Model:
    norms = form.norms()
    layers = [Layer(mixer, part, norms) for mixer, part in zip(mixers, parts, strict=True)]
    return assemble(name, family, form, layers)
