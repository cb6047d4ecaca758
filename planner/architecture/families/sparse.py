"""Standard decoders with mixtures of experts, one row of traits a family.

Shapes are those the reference implementations build (transformers 5.23, without weights);
Bailing (Ling), DeepSeek's first mixture and Step 3.5, which it does not hold, follow the
configurations published with their checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.architecture.config_reader import Reader
from planner.architecture.families.traits import Moe, Traits, family, standard
from planner.architecture.families.windows import Windows
from planner.architecture.layers import Model

__all__ = ["SPARSE"]

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
    own = "moe_intermediate_size" if reader.has("moe_intermediate_size") else "intermediate_size"
    reader.ignore("intermediate_size")
    moe = Moe(inner=own, shared_count=1 if mixed else 0, experts=1, active=1)
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
    each = reader.optional(shared)
    moe = Moe(router_bias=("moe_router_enable_expert_bias", False))
    if each is not None and each != reader.whole("moe_intermediate_size"):
        raise reader.fail(shared, f"is {each}, not the width of the routed experts")
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
