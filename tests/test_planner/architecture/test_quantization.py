"""Formats of quantised checkpoints, class by class."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from planner.architecture import DTYPES, dtype, from_config, model_sizes
from planner.architecture.quantization import Patterns
from planner.catalogue import models
from planner.text.errors import ModelError
from tests.loops import for_all

TINY: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 1000,
}

MXFP4 = {"dtype": "fp4", "group_size": 32, "qscheme": "per_group", "scale_format": "e8m0"}
FP8_BLOCK = {"dtype": "fp8_e4m3", "qscheme": "per_block", "block_size": [128, 128]}
SPARSE = {"format": "sparse-24-bitmask", "sparsity_structure": "2:4", "ignore": ["lm_head"]}
BLOCK, SCALE, NVFP4 = Fraction(4, 128 * 128), Fraction(2, 128), Fraction(9, 16)


def quantised(**values: Any) -> Any:
    """Sizes of a small model with this `quantization_config`."""
    return model_sizes(from_config({**TINY, "quantization_config": values}, "tiny"))


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
    found = model_sizes(models.load("deepseek-v3"))
    experts = 58 * 256 * 3 * 7168 * 2048
    assert found.weight_bytes["routed"] == experts * (1 + Fraction(4, 128 * 128))
    assert found.weight_dtype["attention"] == "fp8"
    assert [found.weight_dtype[key] for key in ("head", "router", "embedding")] == ["bf16"] * 3
    assert (found.activation_dtype, found.kv_dtype) == ("fp8", "bf16")


def test_mxfp4_experts_make_the_published_checkpoint() -> None:
    """gpt-oss: only the experts are MXFP4; 120b is published as 60.8 GiB, 20b as 12.8 GiB."""
    large, small = (model_sizes(models.load(f"gpt-oss-{size}")) for size in ("120b", "20b"))
    assert large.weight_mix["routed"].keys() == {"mxfp4", "bf16"}
    assert large.weight_dtype["attention"] == "bf16"
    assert large.total_weight_bytes / 2**30 == pytest.approx(60.8, abs=0.1)
    assert small.total_weight_bytes / 2**30 == pytest.approx(12.8, abs=0.1)


def test_single_matrices_are_kept_by_name() -> None:
    """NVIDIA's DeepSeek-V3.1: of attention only the output projection is NVFP4."""
    found = model_sizes(models.load("deepseek-v3.1-nvfp4"))
    assert found.weight_mix["attention"]["nvfp4"] == 61 * 128 * 128 * 7168
    assert found.weight_dtype["routed"] == "nvfp4"
    assert (found.activation_dtype, found.kv_dtype) == ("nvfp4", "fp8")


def test_expert_format_of_its_own() -> None:
    """DeepSeek-V4: experts in FP4, everything else quantised in FP8."""
    found = model_sizes(models.load("deepseek-v4-pro"))
    assert found.weight_dtype["routed"] == "mxfp4"
    assert found.weight_dtype["attention"] == found.weight_dtype["shared"] == "fp8"


def test_weight_only_keeps_activations() -> None:
    """Kimi-K3's MXFP4 experts multiply bf16 activations."""
    found = model_sizes(models.load("kimi-k3"))
    assert found.weight_dtype["routed"] == "mxfp4"
    assert found.activation_dtype == "bf16"


def test_override_converts_what_the_checkpoint_quantises() -> None:
    """`weights` on a quantised checkpoint changes its quantised matrices and no others."""
    found = model_sizes(models.load("gpt-oss-120b"), weights="bf16")
    assert found.total_weight_bytes == 2 * found.n_total
    assert (
        model_sizes(models.load("gpt-oss-120b"), weights="int8").weight_dtype["attention"] == "bf16"
    )


def test_override_leaves_embedding_and_head() -> None:
    """`weights` on a bf16 checkpoint converts attention and feed-forward matrices."""
    found = model_sizes(models.load("llama-3.1-70b"), weights="int8")
    assert found.weight_dtype["attention"] == found.weight_dtype["dense_ffn"] == "int8"
    assert found.weight_dtype["embedding"] == found.weight_dtype["head"] == "bf16"
    assert found.activation_dtype == "bf16"
    assert model_sizes(models.load("llama-3.1-70b"), weights="fp8").activation_dtype == "fp8"
    assert (
        model_sizes(
            models.load("llama-3.1-70b"), weights="int4", activations="int8"
        ).activation_dtype
        == "int8"
    )


@for_all(
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
        ({"quant_method": "quark", "global_quant_config": {"weight": MXFP4}}, Fraction(17, 32)),
        ({"quant_method": "quark", "global_quant_config": {"weight": FP8_BLOCK}}, 1 + BLOCK),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128}, Fraction(1, 2) + SCALE),
        ({"quant_method": "auto-round", "bits": 4, "data_type": "nv_fp", "group_size": 16}, NVFP4),
        ({"quant_method": "torchao", "quant_type": "int8_weight_only"}, Fraction(1)),
        (
            {
                "quant_method": "torchao",
                "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}},
            },
            Fraction(1, 2) + 2 * SCALE,
        ),
        (
            {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}},
            Fraction(1, 2) + Fraction(4, 64),
        ),
        ({"quant_method": "compressed-tensors", "sparsity_config": SPARSE}, 1 + Fraction(1, 8)),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "marlin-24",
                "config_groups": {"a": {"weights": {"num_bits": 4, "type": "int"}}},
            },
            Fraction(1, 4) + Fraction(1, 8),
        ),
    ],
)
def test_bytes_by_method(values: dict[str, Any], bytes_per_weight: Fraction) -> None:
    """Each method's bytes per weight of a feed-forward matrix."""
    assert quantised(**values).weight_bytes["dense_ffn"] == 3 * 3 * 256 * 512 * bytes_per_weight


@for_all(
    "values",
    [
        {"quant_method": "magic"},
        {"quant_method": ["fp8"]},
        {"quant_method": "fp8", "weight_block_size": [0, 128]},
        {"quant_method": "fp8", "weight_block_size": "128"},
        {"quant_method": "fp8", "modules_to_not_convert": "lm_head"},
        {"quant_method": "gptq", "bits": 3},
        {"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*down.*": {"bits": 8}}},
        {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp6_e2m3"}}},
        {"quant_method": "auto-round", "bits": 2},
        {"quant_method": "torchao", "quant_type": "int1_weight_only"},
        {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 3}}},
        {"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-bitmask"}},
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


@for_all(
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


@pytest.mark.parametrize(
    ("values", "class_of", "dtype_of"),
    [
        ({"layer_quant_config": {"*.mlp.*": {"weight": {"dtype": "int8"}}}}, "dense_ffn", "int8"),
        ({"layer_quant_config": {"*.mlp.*": {"weight": None}}}, "dense_ffn", "bf16"),
        ({"exclude": ["*self_attn*"]}, "attention", "bf16"),
        ({}, "head", "mxfp4"),
        ({"exclude": ["lm_head"]}, "head", "bf16"),
    ],
)
def test_quark_says_formats_by_module(values: Any, class_of: str, dtype_of: str) -> None:
    """AMD's checkpoints: modules by pattern, excluded ones, and the head unless it is named."""
    common = {"weight": MXFP4, "input_tensors": MXFP4}
    found = quantised(quant_method="quark", global_quant_config=common, **values)
    assert found.weight_dtype[class_of] == dtype_of
    assert found.activation_dtype == "mxfp4"


def test_modules_of_sixteen_bits_are_left_alone() -> None:
    """AutoRound names them one by one, or by an expression."""
    extra = {"model.layers.0.mlp.up_proj": {"bits": 16}, ".*self_attn.*": {"bits": 8}}
    found = quantised(quant_method="auto-round", bits=4, group_size=-1, extra_config=extra)
    assert found.weight_mix["dense_ffn"] == {"bf16": 256 * 512, "int4": 8 * 256 * 512}
    assert found.weight_mix["attention"].keys() == {"int8"}


def group(*targets: str, bits: int = 8) -> dict[str, Any]:
    """A group of compressed-tensors in so many bits."""
    return {"targets": [*targets], "weights": {"num_bits": bits, "type": "float"}}


def warned_of(groups: dict[str, Any], ignore: Any = ()) -> tuple[str, ...]:
    """What is said of a small model's patterns."""
    values = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": [*ignore]}
    return from_config({**TINY, "quantization_config": values}, "tiny").warnings


@pytest.mark.parametrize(
    ("target", "share"),
    [
        ("re:.*ffn.*w1$", 1 / 3),
        ("re:.*gate_up_proj$", 2 / 3),
        ("model.layers.1.feed_forward", 1 / 3),
        ("re:^model[.]language_model[.]layers[.]2[.]mlp", 1 / 3),
        ("re:.*(w3|up_proj)$", 1 / 3),
    ],
)
def test_modules_are_found_under_other_names(target: str, share: float) -> None:
    """By the names of inference code, of transformers and of engines' fused matrices."""
    found = quantised(quant_method="compressed-tensors", config_groups={"a": group(target)})
    assert found.weight_mix["dense_ffn"]["fp8"] == pytest.approx(share * 9 * 256 * 512)
    assert not warned_of({"a": group(target)})


def test_a_module_that_is_ignored_is_no_target() -> None:
    """compressed-tensors leaves alone what `ignore` names, whatever group targets it."""
    found = quantised(
        quant_method="compressed-tensors",
        config_groups={"a": group("re:.*mlp.*")},
        ignore=["re:.*up_proj$"],
    )
    assert found.weight_mix["dense_ffn"] == {"fp8": 6 * 256 * 512, "bf16": 3 * 256 * 512}


def test_patterns_that_match_nothing_are_named() -> None:
    """Targets that hit nothing leave a model in bf16: that is said; other towers are not missed."""
    groups = {"a": group("re:.*fc9$")}
    ignore = ["re:vision_tower.*", "model.layers.7.mlp", "re:.*gate$", "lm_head"]
    left, chosen = warned_of(groups, ignore)
    assert "left alone: 're:.*gate$' match no module" in left
    assert "chosen: 're:.*fc9$' match no module" in chosen
