"""Formats of quantised checkpoints, class by class."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from planner.architecture import DTYPES, dtype, from_config, sizes
from planner.architecture.module_names import Patterns
from planner.catalogue import models
from planner.text.errors import ModelError

TINY: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 1000,
}


def quantised(**values: Any) -> Any:
    """Sizes of a small model with this `quantization_config`."""
    return sizes(from_config({**TINY, "quantization_config": values}, "tiny"))


def test_scale_bytes_are_counted() -> None:
    """NVFP4 has a byte per 16 weights, MXFP4 one per 32."""
    assert DTYPES["nvfp4"].bytes == Fraction(9, 16)
    assert DTYPES["mxfp4"].bytes == Fraction(17, 32)


def test_unknown_format_is_refused_by_name() -> None:
    """A format that does not exist is refused with the nearest one."""
    with pytest.raises(ModelError, match="'fp9'; did you mean 'fp"):
        dtype("fp9")


def test_blocked_fp8_keeps_head_router_and_embedding() -> None:
    """DeepSeek-V3: FP8 in blocks of 128 by 128, the rest in bf16."""
    found = sizes(models.load("deepseek-v3"))
    experts = 58 * 256 * 3 * 7168 * 2048
    assert found.weight_bytes["routed"] == experts * (1 + Fraction(4, 128 * 128))
    assert found.weight_dtype["attention"] == "fp8"
    assert [found.weight_dtype[key] for key in ("head", "router", "embedding")] == ["bf16"] * 3
    assert (found.activation_dtype, found.kv_dtype) == ("fp8", "bf16")


def test_mxfp4_experts_make_the_published_checkpoint() -> None:
    """gpt-oss: only the experts are MXFP4; 120b is published as 60.8 GiB, 20b as 12.8 GiB."""
    large, small = (sizes(models.load(f"gpt-oss-{size}")) for size in ("120b", "20b"))
    assert large.weight_mix["routed"].keys() == {"mxfp4", "bf16"}
    assert large.weight_dtype["attention"] == "bf16"
    assert large.total_weight_bytes / 2**30 == pytest.approx(60.8, abs=0.1)
    assert small.total_weight_bytes / 2**30 == pytest.approx(12.8, abs=0.1)


def test_single_matrices_are_kept_by_name() -> None:
    """NVIDIA's DeepSeek-V3.1: of attention only the output projection is NVFP4."""
    found = sizes(models.load("deepseek-v3.1-nvfp4"))
    assert found.weight_mix["attention"]["nvfp4"] == 61 * 128 * 128 * 7168
    assert found.weight_dtype["routed"] == "nvfp4"
    assert (found.activation_dtype, found.kv_dtype) == ("nvfp4", "fp8")


def test_expert_format_of_its_own() -> None:
    """DeepSeek-V4: experts in FP4, everything else quantised in FP8."""
    found = sizes(models.load("deepseek-v4-pro"))
    assert found.weight_dtype["routed"] == "mxfp4"
    assert found.weight_dtype["attention"] == found.weight_dtype["shared"] == "fp8"


def test_weight_only_keeps_activations() -> None:
    """Kimi-K3's MXFP4 experts multiply bf16 activations."""
    found = sizes(models.load("kimi-k3"))
    assert found.weight_dtype["routed"] == "mxfp4"
    assert found.activation_dtype == "bf16"


def test_override_converts_what_the_checkpoint_quantises() -> None:
    """`weights` on a quantised checkpoint changes its quantised matrices and no others."""
    found = sizes(models.load("gpt-oss-120b"), weights="bf16")
    assert found.total_weight_bytes == 2 * found.n_total
    assert sizes(models.load("gpt-oss-120b"), weights="int8").weight_dtype["attention"] == "bf16"


def test_override_leaves_embedding_and_head() -> None:
    """`weights` on a bf16 checkpoint converts attention and feed-forward matrices."""
    found = sizes(models.load("llama-3.1-70b"), weights="int8")
    assert found.weight_dtype["attention"] == found.weight_dtype["dense_ffn"] == "int8"
    assert found.weight_dtype["embedding"] == found.weight_dtype["head"] == "bf16"
    assert found.activation_dtype == "bf16"
    assert sizes(models.load("llama-3.1-70b"), weights="fp8").activation_dtype == "fp8"
    assert (
        sizes(models.load("llama-3.1-70b"), weights="int4", activations="int8").activation_dtype
        == "int8"
    )


@pytest.mark.parametrize(
    ("values", "bytes_per_weight"),
    [
        ({"quant_method": "fp8"}, Fraction(1)),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, 1 + Fraction(4, 4096)),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, Fraction(1, 2) + Fraction(5, 256)),
        ({"quant_method": "awq", "bits": 4, "group_size": -1}, Fraction(1, 2)),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, Fraction(1)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, Fraction(1, 2) + Fraction(4, 64)),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_use_double_quant": True,
            },
            Fraction(1, 2) + (1 + Fraction(4, 256)) / 64,
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, Fraction(9, 16)),
        ({"quant_algo": "FP8", "exclude_modules": ["lm_head"]}, Fraction(1)),
    ],
)
def test_bytes_by_method(values: dict[str, Any], bytes_per_weight: Fraction) -> None:
    """Each method's bytes per weight of a feed-forward matrix."""
    assert quantised(**values).weight_bytes["dense_ffn"] == 3 * 3 * 256 * 512 * bytes_per_weight


@pytest.mark.parametrize(
    "values",
    [
        {"quant_method": "magic"},
        {"quant_method": ["fp8"]},
        {"quant_method": "fp8", "weight_block_size": [0, 128]},
        {"quant_method": "fp8", "weight_block_size": "128"},
        {"quant_method": "fp8", "modules_to_not_convert": "lm_head"},
        {"quant_method": "gptq", "bits": 3},
        {"quant_method": "bitsandbytes"},
        {"quant_method": "modelopt", "quant_algo": "FP3"},
        {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": "FP2"},
        {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {}}}},
        {"quant_method": "compressed-tensors", "config_groups": {}, "ignore": ["re:("]},
        {"quant_method": "compressed-tensors", "config_groups": {}, "ignore": ["re:(a+)+$"]},
    ],
)
def test_unknown_quantisation_is_refused(values: dict[str, Any]) -> None:
    """A method, width, algorithm or expression that is not understood is refused."""
    with pytest.raises(ModelError, match="tiny  quantization_config"):
        quantised(**values)


@pytest.mark.parametrize(
    ("name", "path", "matches"),
    [
        ("lm_head", "lm_head", True),
        ("gate", "layers.3.mlp.gate", True),
        ("gate", "layers.3.mlp.gate_proj", False),
        ("model.layers.1.mlp", "layers.1.mlp.up_proj", True),
        ("model.layers.1.mlp", "layers.11.mlp.up_proj", False),
        ("model.layers.*.self_attn", "layers.7.self_attn.q_proj", True),
        ("language_model.model.layers.0*", "layers.0.mlp.up_proj", True),
        ("*.mlp.shared_expert.*", "layers.0.mlp.shared_expert.up_proj", True),
        ("re:.*self_attn.*", "layers.7.self_attn.q_proj", True),
        ("re:.*mlp\\.(gate|up)_proj.*", "layers.7.mlp.gate", False),
    ],
)
def test_module_names_match_whole_components(name: str, path: str, matches: bool) -> None:
    """A name matches modules and what lies below them, never part of a component."""
    assert Patterns((name,)).match(path) is matches
