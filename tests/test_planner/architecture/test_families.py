"""Shapes that no catalogue entry has, against totals of the reference implementations.

The totals were built tensor by tensor with transformers 5.23 (no weights), and count its
selection-bias buffers as parameters.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import from_config, model_sizes
from planner.catalogue import models
from planner.text.errors import ModelError
from tests.loops import for_all

# fmt: off
SHAPES: dict[str, tuple[int, dict[str, Any]]] = {
    "kimi-linear-48b-a3b": (49_122_681_728, {
        "model_type": "kimi_linear", "vocab_size": 163840, "hidden_size": 2304,
        "intermediate_size": 9216, "moe_intermediate_size": 1024, "num_hidden_layers": 27,
        "num_attention_heads": 32, "num_key_value_heads": 32, "num_shared_experts": 1,
        "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "qk_nope_head_dim": 128, "num_experts": 256, "num_experts_per_token": 8,
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "head_dim": 72,
        "linear_attn_config": {
            "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
            "kda_layers": [at for at in range(1, 28) if at % 4 and at != 27],
            "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
        },
    }),
    "qwen1.5-moe-a2.7b": (14_315_784_192, {
        "model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
        "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
        "vocab_size": 151936, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4,
    }),
    "qwen2-moe-with-dense-layers": (30_733_323_264, {
        "model_type": "qwen2_moe", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 151936, "moe_intermediate_size": 2560,
        "shared_expert_intermediate_size": 20480, "num_experts": 64, "num_experts_per_tok": 8,
        "decoder_sparse_step": 2, "mlp_only_layers": [1],
    }),
    "qwen3-next-80b-a3b": (79_674_391_296, {
        "model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120,
        "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2,
        "vocab_size": 151936, "moe_intermediate_size": 512, "head_dim": 256,
        "shared_expert_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10,
        "linear_num_value_heads": 32,
    }),
    "deepseek-v2-lite": (15_706_484_224, {
        "model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
        "intermediate_size": 10944, "num_attention_heads": 16, "num_key_value_heads": 16,
        "vocab_size": 102400, "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64,
        "num_experts_per_tok": 6, "n_shared_experts": 2, "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1, "moe_layer_freq": 1,
    }),
    "gemma-3-4b": (3_880_263_168, {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
        "num_hidden_layers": 34, "sliding_window": 1024,
    }),
    "phi-3-mini": (3_821_079_552, {
        "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "vocab_size": 32064, "sliding_window": 2047, "max_position_embeddings": 4096,
    }),
    "gpt-2": (124_439_808, {
        "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "n_ctx": 1024, "vocab_size": 50257, "summary_type": "cls_index", "attn_pdrop": 0.1,
    }),
    "llama-with-biases": (1_100_442_624, {
        "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
        "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4,
        "vocab_size": 32000, "attention_bias": True, "mlp_bias": True,
    }),
    "mistral-nemo-12b": (12_247_782_400, {
        "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 14336,
        "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 131072, "sliding_window": None,
    }),
    "minimax-by-layer-types": (499_733_504, {
        "model_type": "minimax", "hidden_size": 1024, "intermediate_size": 2048,
        "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
        "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
        "layer_types": ["linear_attention", "full_attention"] * 4,
    }),
}
# fmt: on


def varied(name: str, **changes: Any) -> Any:
    """Sizes of a catalogue model with some keys changed; None takes a key out."""
    config = {**models.record(name).config, **changes}
    return model_sizes(
        from_config({key: config[key] for key in config if changes.get(key, 0) != ()}, "m")
    )


@for_all("name", SHAPES)
def test_total_of_reference_build(name: str) -> None:
    """Unseen shapes of known families count exactly."""
    total, config = SHAPES[name]
    assert model_sizes(from_config(config, name)).n_total == total


def test_missing_window_key_means_windowed() -> None:
    """Mistral without the key has a window of 4096; with null it has none."""
    assert varied("mistral-7b", sliding_window=()).caches[0].limit == 4096
    assert varied("mistral-7b", sliding_window=None).caches[0].limit is None


def test_window_can_be_switched_off() -> None:
    """Qwen: `use_sliding_window: false` overrides a window; true starts it at a layer."""
    off = varied("qwen2.5-7b", sliding_window=4096, use_sliding_window=False)
    on = varied("qwen2.5-7b", sliding_window=4096, use_sliding_window=True, max_window_layers=20)
    assert [cache.kind for cache in off.caches] == ["full"]
    assert {cache.kind: cache.layers for cache in on.caches} == {"full": 20, "window": 8}


def test_alternation_without_a_key() -> None:
    """Gemma 2 alternates although no key says so, windowed first."""
    assert {cache.kind: cache.layers for cache in varied("gemma-2-27b").caches} == {
        "window": 23,
        "full": 23,
    }


def test_frequency_may_be_a_list() -> None:
    """`moe_layer_freq` as a list names the sparse layers one by one."""
    found = varied("deepseek-v3", moe_layer_freq=[0] * 60 + [1])
    assert (found.n_moe_layers, found.n_dense_ffn_layers) == (1, 60)


def test_layers_from_the_pattern_alone() -> None:
    """Nemotron: without `num_hidden_layers` the pattern's length counts."""
    assert varied("nemotron-h-56b", num_hidden_layers=()).n_layers == 118


@for_all(
    ("name", "changes", "message"),
    [
        ("nemotron-h-56b", {"num_hidden_layers": 100}, "pattern has 118"),
        ("nemotron-h-56b", {"hybrid_override_pattern": "MX"}, "letters M E"),
        ("deepseek-v3", {"moe_layer_freq": [1, 0]}, "2 entries for 61"),
        ("deepseek-v4-pro", {"compress_ratios": [4]}, "1 entries for 61"),
        ("deepseek-v4-pro", {"compress_ratios": [5] * 61}, "expected 0, 4 or 128"),
        ("deepseek-v4-pro", {"o_groups": 7}, "does not divide"),
        ("gemma-3-27b", {"layer_types": ["full_attention"]}, "1 entries for 62"),
        ("gemma-3-27b", {"layer_types": ["odd"] * 62}, "expected one of"),
        ("minimax-m1", {"attn_type_list": [2] * 80}, "numbers up to 1"),
        ("minimax-m2", {"shared_intermediate_size": 64}, "not 0"),
        ("qwen3-30b-a3b", {"mlp_only_layers": [48]}, "numbers up to 47"),
        ("llama-2-7b", {"num_attention_heads": 33, "num_key_value_heads": 33}, "not divisible"),
        ("glm-5.2", {"indexer_types": ["half"] * 78}, "expected one of"),
        ("gpt-3-175b", {"n_head": 7}, "does not divide"),
    ],
)
def test_inconsistent_lists_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    """Lists that do not fit the layers, and widths that do not divide, are refused."""
    with pytest.raises(ModelError, match=message):
        varied(name, **changes)


def test_nested_precision_wins_over_the_outer_one() -> None:
    """A nested `dtype` is not contradicted by an outer `torch_dtype`."""
    config = {
        "model_type": "gemma3",
        "torch_dtype": "float32",
        "text_config": {**SHAPES["gemma-3-4b"][1], "dtype": "bfloat16"},
    }
    assert model_sizes(from_config(config, "m")).kv_dtype == "bf16"
