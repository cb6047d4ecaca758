"""Families of decoders, small and published, against counts made by others.

`transformers_counts.json` was written by `compare_transformers.py --write`: small made-up
configurations of each family, built without weights by transformers 5.23, with their parameters
(selection biases of routers included) and, where a forward pass ran and caches what is counted
(not what a latent expands to), the elements its caches hold.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture import from_config, model_sizes
from planner.architecture.families import FAMILIES, REFUSED_FAMILIES, WRAPPERS
from planner.text.errors import ModelError
from tests.cases.elements import kv_elements
from tests.loops import for_all
from tests.paths import DATA
from tests.sizes import examples

COUNTS: dict[str, list[dict[str, Any]]] = json.loads(
    (DATA / "transformers_counts.json").read_text(encoding="utf-8")
)
ROWS = [
    pytest.param(row, id=f"{name}-{index}")
    for name, rows in COUNTS.items()
    for index, row in enumerate(rows)
]

# fmt: off
# Totals printed on the checkpoints' pages (the sum of their tensors).
PUBLISHED: dict[str, tuple[int, dict[str, Any]]] = {
    "baichuan2-7b": (7_505_973_248, {
        "model_type": "baichuan", "hidden_size": 4096, "intermediate_size": 11008,
        "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 125696,
        "model_max_length": 4096, "z_loss_weight": 0, "tie_word_embeddings": False,
    }),
    "bloom-176b": (176_247_271_424, {
        "model_type": "bloom", "n_embed": 14336, "num_attention_heads": 112, "n_layer": 70,
        "vocab_size": 250880, "offset_alibi": 100, "seq_length": 2048,
    }),
    "dbrx-132b": (131_596_523_520, {
        "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40,
        "max_seq_len": 32768, "vocab_size": 100352, "tie_word_embeddings": False,
        "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
    }),
    "deepseek-moe-16b": (16_375_728_128, {
        "model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944,
        "moe_intermediate_size": 1408, "num_attention_heads": 16, "num_key_value_heads": 16,
        "num_hidden_layers": 28, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "vocab_size": 102400, "tie_word_embeddings": False,
    }),
    "exaone-3.5-7.8b": (7_818_448_896, {
        "model_type": "exaone", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_layers": 32,
        "vocab_size": 102400, "activation_function": "silu", "head_dim": 128,
    }),
    "glm-4-9b": (9_399_951_360, {
        "model_type": "chatglm", "num_layers": 40, "hidden_size": 4096, "kv_channels": 128,
        "ffn_hidden_size": 13696, "num_attention_heads": 32, "multi_query_attention": True,
        "multi_query_group_num": 2, "add_bias_linear": False, "add_qkv_bias": True,
        "padded_vocab_size": 151552, "seq_length": 131072, "tie_word_embeddings": False,
    }),
    "hunyuan-a13b": (80_393_183_232, {
        "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072,
        "moe_intermediate_size": [3072] * 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "attention_head_dim": 128, "num_hidden_layers": 32,
        "num_experts": 64, "moe_topk": [8] * 32, "num_shared_expert": [1] * 32,
        "vocab_size": 128167, "tie_word_embeddings": True, "use_qk_norm": True,
        "use_mixed_mlp_moe": True, "use_cla": False, "cla_share_factor": 2, "n_group": False,
    }),
    "internlm2-20b": (19_861_149_696, {
        "model_type": "internlm2", "hidden_size": 6144, "intermediate_size": 16384,
        "num_attention_heads": 48, "num_key_value_heads": 8, "num_hidden_layers": 48,
        "vocab_size": 92544, "bias": False, "tie_word_embeddings": False,
    }),
    "qwen-7b": (7_721_324_544, {
        "model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016,
        "kv_channels": 128, "num_attention_heads": 32, "num_hidden_layers": 32,
        "vocab_size": 151936, "no_bias": True, "tie_word_embeddings": False,
    }),
}
# fmt: on


def counted(config: dict[str, Any]) -> Any:
    """Our sizes of a configuration."""
    return model_sizes(from_config(config, "m"))


@for_all("row", ROWS)
def test_total_of_reference_build(row: dict[str, Any]) -> None:
    """Every parameter of the reference implementation's modules is counted, and no other."""
    found = counted(row["config"])
    assert (found.n_total, found.params["routed"]) == (row["total"], row["routed"])


@for_all("row", [row for row in ROWS if "per_token" in row.values[0]])
def test_caches_of_reference_run(row: dict[str, Any]) -> None:
    """What a forward pass leaves in the caches is what is counted, full and windowed layers."""
    found = counted(row["config"])
    windowed = sum(cache.elements_per_token for cache in found.caches if not cache.grows)
    assert (kv_elements(found), windowed) == (row["per_token"], row["window"])


@for_all("row", [row for row in ROWS if "recurrent" in row.values[0]])
def test_states_of_reference_run(row: dict[str, Any]) -> None:
    """Convolution tails and recurrent states are as large as a forward pass leaves them."""
    layers = from_config(row["config"], "m").layers
    states = [layer.mixer.state for layer in layers if layer.mixer and layer.mixer.state]
    assert sum(state.tail for state in states) == row["tail"]
    assert sum(state.recurrent for state in states) == row["recurrent"]


@for_all("row", ROWS)
def test_active_is_within_total(row: dict[str, Any]) -> None:
    """A token passes through all that is stored but the experts it is not sent to."""
    found = counted(row["config"])
    active = row["total"]
    if found.n_experts:
        active -= row["routed"] * (found.n_experts - found.n_experts_active) // found.n_experts
    assert found.n_active["all"] == active


@for_all(("total", "config"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_total_is_met(total: int, config: dict[str, Any]) -> None:
    """Families that transformers does not hold count as published, to the last parameter."""
    assert counted(config).n_total == total


def test_tables_do_not_overlap() -> None:
    """A type is read, wraps another that is read, or is refused: one of the three."""
    assert not set(FAMILIES) & set(WRAPPERS)
    assert not set(REFUSED_FAMILIES) & (set(FAMILIES) | set(WRAPPERS))
    assert set(WRAPPERS.values()) <= set(FAMILIES)


@for_all("kind", REFUSED_FAMILIES)
def test_refused_family_says_what_is_missing(kind: str) -> None:
    """A family that cannot be said in layers is refused with its name and the reason."""
    with pytest.raises(ModelError, match=REFUSED_FAMILIES[kind]) as caught:
        from_config({"model_type": kind, "hidden_size": 64}, "m", where="a/config.json")
    assert str(caught.value).startswith(f"a/config.json  model_type: '{kind}'")


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 200),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.one_of(st.none(), st.integers(0, 9), st.text(max_size=3)), max_size=6),
    st.dictionaries(st.sampled_from(["0", "hidden_size", "a"]), st.integers(), max_size=2),
)


@pytest.mark.slow
@examples(60, 300)
@given(data=st.data(), name=st.sampled_from(sorted(COUNTS)), wrapped=st.booleans())
def test_altered_configuration_is_counted_or_refused(
    data: st.DataObject, name: str, wrapped: bool
) -> None:
    """Deleting or altering keys gives a model or one sentence with the file, never a trace."""
    config = dict(data.draw(st.sampled_from(COUNTS[name]))["config"])
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(sorted(config) or ["model_type"]))
        if data.draw(st.booleans()):
            config[key] = data.draw(JUNK)
        else:
            config.pop(key, None)
    if wrapped:
        config = {"model_type": "some_chat", "llm_config": config}
    told = outcome(config)
    assert told.isdecimal() or (told.startswith("a/config.json  ") and "\n" not in told)


def outcome(config: dict[str, Any]) -> str:
    """The total of a configuration, or the refusal; any other exception escapes."""
    try:
        return str(model_sizes(from_config(config, "m", where="a/config.json")).n_total)
    except ModelError as error:
        return str(error)
