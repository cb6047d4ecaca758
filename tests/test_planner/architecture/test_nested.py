"""Language models inside larger configurations, and decoders whose layers differ."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import ModelSizes, dtype, from_config, model_sizes
from planner.catalogue import models
from planner.text.errors import ModelError
from tests.cases.elements import kv_elements
from tests.loops import for_all

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
}
# Built by transformers 5.23 without weights, from the published configurations; selection biases
# of routers, which it holds as buffers, are added. LongCat's experts without weights are left out.
REFERENCE = {
    "gemma-4-26b-a4b": 25_233_141_760,
    "gemma-4-31b": 30_697_345_280,
    "mimo-v2-flash": 308_778_768_832 + 47 * 256,
    "minimax-m3": 426_174_565_632 + 57 * 128,
}


def elements(found: ModelSizes, cached: float) -> float:
    """Elements that so many bytes of cache hold."""
    return cached / float(dtype(found.kv_dtype).bytes)


def counted(config: dict[str, Any]) -> Any:
    """Our sizes of a configuration."""
    return model_sizes(from_config(config, "m", where="a/config.json"))


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_language_model_is_found_where_it_nests(key: str) -> None:
    """A wrapper of any name is read by the family of the part it nests; its towers are named."""
    config = {
        "model_type": "some_vision_chat",
        key: LLAMA,
        "vision_config": {"hidden_size": 8},
        "downsample_ratio": 0.5,
        "select_layer": -1,
    }
    found = counted(config)
    assert found.n_total == counted(LLAMA).n_total
    beside = "projector or tower (downsample_ratio, select_layer)"
    assert found.excluded == ("vision tower (vision_config)", beside)


def test_nesting_may_be_two_deep() -> None:
    """A part that thinks holds the part that reads text."""
    config = {
        "model_type": "some_omni",
        "thinker_config": {
            "model_type": "some_thinker",
            "text_config": LLAMA,
            "audio_config": {"d_model": 8},
        },
    }
    found = counted(config)
    assert found.n_total == counted(LLAMA).n_total
    assert found.excluded == ("audio tower (audio_config)",)


def test_language_model_may_lie_flat_beside_its_towers() -> None:
    """Qwen 2.5-VL was first published with the language model's keys outside."""
    config = {**LLAMA, "model_type": "qwen2_5_vl", "vision_config": {"depth": 32}}
    assert counted(config).n_total == counted({**LLAMA, "model_type": "qwen2"}).n_total


def test_decisive_key_beside_a_nested_model_is_refused() -> None:
    """Experts beside the nested language model would be lost."""
    config = {"model_type": "some_chat", "text_config": LLAMA, "num_experts_per_tok": 2}
    with pytest.raises(ModelError, match=r"a/config\.json  .*num_experts_per_tok"):
        counted(config)


def test_nested_type_is_refused_by_its_name() -> None:
    """The refusal names the nested type and where it stands."""
    config = {"model_type": "llava", "text_config": {**LLAMA, "model_type": "lama"}}
    with pytest.raises(ModelError, match=r"text_config  model_type: 'lama'.*did you mean 'llama'"):
        counted(config)


@pytest.mark.parametrize(("name", "total"), REFERENCE.items())
def test_total_of_reference_build(name: str, total: int) -> None:
    """Catalogue models of uneven families count like the reference implementation's modules."""
    assert model_sizes(models.load(name)).n_total == total


def test_full_layers_have_wider_and_fewer_heads() -> None:
    """Gemma 4: 50 windowed layers of 16 heads of 256 cached, 10 full ones of 4 of 512."""
    found = model_sizes(models.load("gemma-4-31b"))
    assert kv_elements(found) == 10 * 2 * 4 * 512
    assert elements(found, found.window_bytes_per_sequence) == 50 * 2 * 16 * 256 * 1024


def test_values_may_be_narrower_than_keys() -> None:
    """MiMo V2: 9 full layers of 4 heads, 39 windowed of 8; keys of 192 and values of 128."""
    found = model_sizes(models.load("mimo-v2-flash"))
    assert kv_elements(found) == 9 * 4 * (192 + 128)
    assert elements(found, found.window_bytes_per_sequence) == 39 * 8 * (192 + 128) * 128
    assert found.attention_flop_per_cached_token == 9 * 2 * 64 * (192 + 128)


def test_blocks_are_picked_and_all_are_kept() -> None:
    """MiniMax M3: 57 of 60 layers read 16 blocks of 128 and scan one index key per token."""
    found = model_sizes(models.load("minimax-m3"))
    caches = {cache.kind: cache for cache in found.caches}
    assert kv_elements(found) == 60 * 2 * 4 * 128
    assert caches["block_sparse"].limit == 16 * 128
    assert caches["block_sparse"].layers == caches["index"].layers == 57
    assert elements(found, found.index_bytes_per_token) == 57 * 128


def test_layers_without_attention_cache_nothing() -> None:
    """Nemotron Super 49B: a search left 49 of 80 layers their attention, with 8 groups each."""
    found = model_sizes(models.load("llama-3.3-nemotron-super-49b"))
    assert (found.n_layers, found.n_attention_layers) == (80, 49)
    assert kv_elements(found) == 49 * 2 * 8 * 128


def test_borrowed_caches_are_stored_once() -> None:
    """Gemma 3n: the last layers read the cache of an earlier one and keep none of their own."""
    config = {
        "model_type": "gemma3n_text",
        "hidden_size": 64,
        "intermediate_size": [96] * 10,
        "num_hidden_layers": 10,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "vocab_size": 100,
        "vocab_size_per_layer_input": 90,
        "hidden_size_per_layer_input": 8,
        "laurel_rank": 4,
        "sliding_window": 32,
        "num_kv_shared_layers": 5,
    }
    found = counted(config)
    assert kv_elements(found) == 1 * 2 * 16
    assert elements(found, found.window_bytes_per_sequence) == 4 * 2 * 16 * 32
    assert found.attention_flop_per_cached_token == 2 * 4 * 4 * 16


def test_tables_of_every_layer_are_looked_up() -> None:
    """An embedding per layer is stored and never multiplied with; the tied head is read once."""
    config = {
        **LLAMA,
        "model_type": "gemma4_text",
        "head_dim": 16,
        "num_key_value_heads": 2,
        "vocab_size_per_layer_input": 90,
        "hidden_size_per_layer_input": 8,
    }
    found = counted(config)
    assert found.params["embedding"] == 100 * 64 + 90 * 4 * 8
    assert found.active["embedding"] == 0
    assert found.n_active["all"] == found.n_total
    assert found.streamed_bytes["head"] == 100 * 64 * 2


def test_experts_without_weights_are_scored_alone() -> None:
    """LongCat Flash: 512 experts of 768 scored have weights, two attentions a layer; 560B."""
    config = {
        "model_type": "longcat_flash",
        "hidden_size": 6144,
        "num_layers": 28,
        "num_attention_heads": 64,
        "ffn_hidden_size": 12288,
        "expert_ffn_hidden_size": 2048,
        "n_routed_experts": 512,
        "zero_expert_num": 256,
        "moe_topk": 12,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 131072,
    }
    found = counted(config)
    assert found.n_total == 741_053_585_408 + 28 * 768 - 28 * 256 * 2 * 2048 * 6144
    assert found.params["router"] == 28 * 768 * (6144 + 1)
    assert kv_elements(found) == 2 * 28 * (512 + 64)
    # Published: 18.6B to 31.3B, about 27B (LongCat-Flash technical report, arXiv 2509.01322).
    assert found.n_experts_active == 8
    assert found.n_active["no_input_embedding"] == pytest.approx(27e9, rel=0.01)
    assert found.n_active_range == pytest.approx((18.6e9, 31.3e9), rel=0.01)


def test_experts_of_any_family_may_be_idle() -> None:
    """Experts without weights take their share of a token's choices; the rest are as before."""
    config = {**models.record("qwen3-30b-a3b").config, "num_null_experts": 128}
    plain, idle = model_sizes(models.load("qwen3-30b-a3b")), counted(config)
    assert idle.active["routed"] * 2 == plain.active["routed"]
    assert idle.n_active_range[1] - idle.n_active_range[0] == plain.active["routed"]
    assert plain.n_active_range == (plain.n_active["no_input_embedding"],) * 2


@pytest.mark.parametrize(("pattern", "windowed"), [("LLLG", 6), (4, 6), ("LG", 4), (8, 7)])
def test_pattern_of_windows(pattern: object, windowed: int) -> None:
    """Windows may be drawn with letters, or by how often a layer is full."""
    config = {
        **LLAMA,
        "model_type": "exaone4",
        "num_hidden_layers": 8,
        "sliding_window": 16,
        "sliding_window_pattern": pattern,
    }
    kinds = {cache.kind: cache.layers for cache in counted(config).caches}
    assert kinds == {"window": windowed, "full": 8 - windowed}


def test_window_as_long_as_the_context_is_none() -> None:
    """Phi 3.5 MoE writes its longest context as a window: every layer is full."""
    config = {
        **LLAMA,
        "model_type": "phimoe",
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": 4096,
        "max_position_embeddings": 4096,
    }
    assert [cache.kind for cache in counted(config).caches] == ["full"]
    assert [cache.kind for cache in counted({**config, "sliding_window": 2048}).caches] == [
        "window"
    ]


@for_all(
    ("changes", "message"),
    [
        ({"model_type": "exaone4", "sliding_window": 8, "sliding_window_pattern": "LX"}, "letters"),
        ({"model_type": "olmo3", "sliding_window": None, "layer_types": ["sliding_attention"] * 4},
         "sliding_window: is missing"),
        ({"model_type": "mimo_v2_flash"}, "hybrid_layer_pattern: is missing"),
        ({"model_type": "nemotron-nas", "block_configs": [{}] * 4}, "attention: is missing"),
        ({"model_type": "step3p5", "moe_layers_enum": "1,9"}, "moe_layers_enum"),
        ({"model_type": "falcon", "num_kv_heads": 3}, "does not divide"),
        ({"model_type": "chatglm", "multi_query_group_num": 3}, "does not divide"),
        ({"model_type": "gemma3n_text", "intermediate_size": [96]}, "1 entries for 4"),
        ({"model_type": "gemma4_text", "per_layer_config": {"9": {}}}, "names '9' of 4"),
        ({"model_type": "mamba2", "num_heads": 3, "head_dim": 16}, "do not make up"),
        ({"model_type": "jamba", "attn_layer_offset": 8}, "not below the period"),
        ({"model_type": "bamba", "layer_types": ["conv"] * 4}, "expected one of"),
        ({"model_type": "dbrx"}, "attn_config: is missing"),
        ({"model_type": "lfm2"}, "layer_types: is missing"),
        ({"model_type": "opt", "word_embed_proj_dim": 32}, "not hidden_size 64"),
        ({"model_type": "doge", "is_moe": True}, "is_moe: is true"),
        ({"model_type": "hunyuan_v1_moe", "moe_topk": [1, 1, 2, 1], "num_experts": 4},
         "differs from layer to layer"),
        ({"model_type": "recurrent_gemma", "block_types": ["odd"]}, "expected recurrent"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    """The refusal is one sentence with the file and the key."""
    with pytest.raises(ModelError, match=message) as caught:
        counted({**LLAMA, **changes})
    assert str(caught.value).startswith("a/config.json  ")
    assert "\n" not in str(caught.value)
