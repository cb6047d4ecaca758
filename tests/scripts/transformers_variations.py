"""Small configurations of families of transformers, drawn key by key; used by a script."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["START", "varied"]

# What a family's class needs to be told before it can be built.
START: dict[str, dict[str, Any]] = {
    "dots1": {
        **{"first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 2},
        **{"n_shared_experts": 1, "n_group": 1, "topk_group": 1},
    },
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
}
SWITCHES = (
    *("attention_bias", "mlp_bias", "use_bias", "use_qkv_bias", "qk_layernorm", "use_qk_norm"),
    *("use_parallel_residual", "parallel_attn", "multi_query", "new_decoder_architecture", "bias"),
    *("tie_word_embeddings", "lm_head_bias", "attention_out_bias", "use_post_norm", "conv_bias"),
    *("mamba_proj_bias", "mamba_conv_bias", "use_conv_bias", "mamba_rms_norm", "projectors_bias"),
    *("enable_bias", "use_double_wide_mlp", "attention_k_eq_v", "use_attention_gate", "gating"),
    *("use_sandwich_norm", "do_layer_norm_before", "layer_norm_elementwise_affine"),
)
WHOLE = {
    ("vocab_size", "vocab_size_per_layer_input"): (96, 160),
    ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "dense_intermediate_size"): (
        32,
        64,
        96,
    ),
    ("moe_intermediate_size", "expert_ffn_hidden_size"): (16, 24, 40),
    ("shared_expert_intermediate_size", "shared_intermediate_size"): (8, 16, 48),
    ("moe_shared_expert_intermediate_size", "prefix_dense_intermediate_size"): (24, 32),
    ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"): (4, 8),
    ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_k"): (1, 2),
    ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"): (1, 2),
    ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"): (0, 1, 2),
    ("kv_lora_rank", "q_lora_rank", "laurel_rank", "qk_nope_head_dim", "v_head_dim"): (16, 32),
    ("qk_rope_head_dim",): (8, 16),
    ("index_head_dim",): (32,),
    ("index_n_heads", "zero_expert_num", "num_global_key_value_heads"): (2, 4),
    ("linear_key_head_dim", "linear_value_head_dim", "linear_head_dim"): (16, 32),
    ("linear_num_key_heads",): (2,),
    ("linear_num_value_heads",): (2, 4),
    ("linear_num_heads",): (2, 4),
    ("mamba_d_state", "state_size", "ssm_state_size"): (8, 16),
    ("hidden_size_per_layer_input",): (0, 16),
    ("swa_num_key_value_heads", "num_hash_layers"): (2,),
    ("n_group", "topk_group", "num_expert_group", "num_mtp_layers", "num_nextn_predict_layers"): (
        1,
    ),
    ("sliding_window", "attention_window_size", "window_size", "attention_chunk_size"): (8, 12),
    ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"): (64,),
    ("decoder_sparse_step",): (1, 2),
    ("num_kv_shared_layers",): (0, 1),
    ("global_head_dim",): (32,),
    ("moe_layer_interval", "interleave_moe_layer_step"): (1, 2),
}
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
CACHED = ("num_key_value_heads", "num_kv_heads")
HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def varied(config: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Small values for the keys a family has: head groups divide, lists fit the layers."""
    layers = next((config[key] for key in LAYERS if isinstance(config.get(key), int)), 0)
    depth = draw.choice((3, 4, 6))
    heads = draw.choice((4, 8))
    changes: dict[str, Any] = {key: depth for key in LAYERS if key in config}
    changes |= {key: heads for key in HEADS if key in config}
    changes |= {key: draw.choice((1, 2, heads)) for key in CACHED if key in config}
    changes |= {key: heads * 16 for key in HIDDEN if key in config}
    changes |= dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 1)
    if isinstance(config.get("head_dim"), int):
        changes["head_dim"] = draw.choice((16, 32))
    for keys, values in WHOLE.items():
        changes |= {
            key: draw.choice(values)
            for key in keys
            if key in config and key not in changes and isinstance(config[key], int | None)
        }
    if config.get("model_type") in ("nemotron_h", "deepseek_v32", "glm_moe_dsa"):
        # A key these have and no module of a published checkpoint follows.
        changes["mlp_bias"] = False
    for key in SWITCHES:
        if key in changes:
            continue
        if isinstance(config.get(key), bool):
            changes[key] = draw.random() < 0.5
    for key, value in config.items():
        if isinstance(value, list) and layers and len(value) == layers and key not in changes:
            words = sorted(set(value)) if all(isinstance(item, str) for item in value) else None
            if key == "layer_types" and set(words or ()) <= {"full_attention"}:
                changes[key] = ["full_attention"] * depth
            elif words:
                changes[key] = [draw.choice(words) for _ in range(depth)]
            else:
                changes[key] = value[:depth]
    return changes
