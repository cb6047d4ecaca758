"""Reading configurations: every published one, and refusing every one that is not understood."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.architecture import from_config, model_sizes, read_config
from planner.architecture.families import FAMILIES
from planner.catalogue import models
from planner.text.errors import ModelError
from tests.loops import for_all
from tests.paths import SHARED
from tests.sizes import examples

FOLDER = SHARED / "hf_configs"
FILES = sorted(FOLDER.glob("*_config.json")) if FOLDER.is_dir() else []
CONFIGS = [path for path in FILES if "hf_quant" not in path.name]

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}
# Ordinary keys of published checkpoints that change no layer.
HARMLESS: dict[str, Any] = {
    "_name_or_path": "somewhere",
    "architectures": ["LlamaForCausalLM"],
    "attention_dropout": 0.1,
    "attn_implementation": "sdpa",
    "auto_map": {"AutoConfig": "a.B"},
    "bos_token_id": 1,
    "eos_token_id": [1, 2],
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-5,
    "output_router_logits": True,
    "pad_token_id": 3,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_theta": 1e6, "factor": 8},
    "rope_scaling": {"factor": 8.0},
    "rope_theta": 500000.0,
    "torch_dtype": "bfloat16",
    "transformers_version": "5.0.0",
    "use_cache": True,
    "unsloth_fixed": True,
    "num_labels": 2,
    "chunk_size_feed_forward": 1,
}
SHAPES = [models.record(name).config for name in models.model_names()]


def without_prefix(path: Path) -> str:
    """The short name of a configuration file."""
    return path.name.removesuffix("_config.json")


@for_all("path", CONFIGS, ids=without_prefix)
def test_published_configurations_are_read(path: Path) -> None:
    """Every configuration of the collection gives a model with its file as source."""
    found = model_sizes(read_config(path))
    assert found.n_total > 0
    assert found.source == str(path)


@for_all("path", CONFIGS, ids=without_prefix)
def test_catalogue_equals_its_origin(path: Path) -> None:
    """A trimmed catalogue entry counts like the full configuration it comes from."""
    origin = without_prefix(path).replace("--", "/")
    entry = next(
        name
        for name in models.model_names()
        if f" {origin}, config.json" in models.record(name).source
    )
    ours, theirs = model_sizes(models.load(entry)), model_sizes(read_config(path))
    assert ours.weight_mix == theirs.weight_mix
    assert ours.caches == theirs.caches
    assert ours.n_active == theirs.n_active


def test_harmless_keys_change_nothing() -> None:
    """Keys that describe no layer are neither refused nor counted."""
    plain, full = from_config(LLAMA, "m"), from_config({**HARMLESS, **LLAMA}, "m")
    assert full.warnings == (
        "nobody reads 'unsloth_fixed' of the configuration: taken to change no weight or cache",
    )
    assert model_sizes(plain) == model_sizes(replace(full, warnings=()))
    assert model_sizes(plain).n_total == 1_235_814_400


@for_all(
    "key",
    [
        "num_experts",
        "n_shared_experts",
        "moe_layer_freq",
        "kv_lora_rank",
        "sliding_window_pattern",
        "ssm_state_size",
        "compress_ratios",
        "linear_num_heads",
        "cross_layer_hidden_size",
        "mamba_d_state",
        "qk_rope_head_dim",
        "experts_per_token",
    ],
)
def test_unread_structure_is_refused_by_name(key: str) -> None:
    """A structural key that the family does not read is named, not ignored."""
    with pytest.raises(ModelError, match=key):
        from_config({**LLAMA, key: 4}, "m")


@pytest.mark.parametrize("value", [None, 0, False, [], {}])
def test_structure_that_says_nothing_is_accepted(value: object) -> None:
    """A structural key that is null, zero, false or empty changes nothing."""
    assert from_config({**LLAMA, "num_experts": value}, "m").hidden == 2048


@for_all(
    ("key", "value", "message"),
    [
        ("hidden_size", "2048", "expected a whole number"),
        ("hidden_size", -1, "expected 1 to"),
        ("hidden_size", 0, "expected 1 to"),
        ("hidden_size", float("nan"), "expected a whole number"),
        ("hidden_size", True, "expected a whole number"),
        ("hidden_size", None, "is missing"),
        ("num_hidden_layers", 10**9, "expected 1 to"),
        ("vocab_size", 10**400, "expected 1 to"),
        ("num_key_value_heads", 7, "not a multiple"),
        ("tie_word_embeddings", "yes", "expected true or false"),
        ("torch_dtype", "int3", "expected a format"),
        ("model_type", "lama", "did you mean 'llama'"),
        ("model_type", 7, "expected text"),
        ("is_encoder_decoder", True, "decoder-only"),
        ("text_config", [1], "expected a mapping"),
    ],
)
def test_bad_values_are_refused(key: str, value: object, message: str) -> None:
    """The refusal names the file, the key and what was expected."""
    with pytest.raises(ModelError, match=message) as caught:
        from_config({**LLAMA, key: value}, "m", where="some/config.json")
    assert str(caught.value).startswith("some/config.json  ")


def test_missing_key_names_its_misspelling() -> None:
    """A required key that is missing is looked for under a near name."""
    config = {**LLAMA, "hiden_size": 2048}
    del config["hidden_size"]
    with pytest.raises(ModelError, match=r"hidden_size: is missing.*did you mean 'hiden_size'"):
        from_config(config, "m")


def test_more_active_than_routed_experts() -> None:
    """A token cannot visit more experts than there are."""
    config = {**models.record("qwen3-30b-a3b").config, "num_experts_per_tok": 129}
    with pytest.raises(ModelError, match="more than the 128"):
        from_config(config, "m")


def test_aliases_must_agree() -> None:
    """Two names of the same thing with different values are refused."""
    config = {**models.record("gpt-oss-120b").config, "experts_per_token": 8}
    with pytest.raises(ModelError, match="experts_per_token"):
        from_config(config, "m")


@for_all(
    "text",
    [
        b"",
        b"hello",
        b"\xff\xfe\x00\x01",
        b"[1, 2]",
        b"3",
        b'{"model_type": "llama"',
        b'{"model_type": "llama", "model_type": "llama"}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"hidden_size": ' + b"9" * 10_000 + b"}",
    ],
    ids=["empty", "words", "binary", "list", "number", "cut", "twice", "deep", "deeper", "digits"],
)
def test_bad_files_are_refused(tmp_path: Path, text: bytes) -> None:
    """What is not a JSON mapping is refused with the file's name."""
    file = tmp_path / "config.json"
    file.write_bytes(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(file)


def test_missing_file_and_directory_are_refused(tmp_path: Path) -> None:
    """A path that is no file is refused."""
    with pytest.raises(ModelError, match="directory"):
        read_config(tmp_path)
    with pytest.raises(ModelError, match="cannot be read"):
        read_config(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("file", "beside"),
    [
        ("config.json", "hf_quant_config.json"),
        ("any.json", "hf_quant_config.json"),
        ("X_config.json", "X_hf_quant_config.json"),
        ("X_config.json", "hf_quant_config.json"),
    ],
)
def test_quantisation_file_beside(tmp_path: Path, file: str, beside: str) -> None:
    """The quantisation file is found beside the configuration."""
    (tmp_path / file).write_text(json.dumps(LLAMA))
    (tmp_path / beside).write_text(
        json.dumps({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})
    )
    found = model_sizes(read_config(tmp_path / file))
    assert (found.weight_dtype["attention"], found.kv_dtype) == ("fp8", "fp8")


def test_towers_are_named_as_excluded() -> None:
    """A vision tower is left out and said so."""
    config = {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 3840,
            "intermediate_size": 15360,
            "num_attention_heads": 16,
            "num_hidden_layers": 48,
            "num_key_value_heads": 8,
            "sliding_window": 1024,
        },
        "vision_config": {"hidden_size": 1152},
    }
    found = model_sizes(from_config(config, "m"))
    assert found.excluded == ("vision tower (vision_config)",)
    assert found.n_total == 11_766_034_176


@for_all("name", models.model_names())
def test_key_order_does_not_matter(name: str) -> None:
    """Counting depends on the keys, not on their order."""
    config = models.record(name).config
    shuffled = dict(sorted(config.items(), reverse=True))
    assert model_sizes(from_config(shuffled, name)) == model_sizes(from_config(config, name))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.one_of(st.integers(0, 130), st.text(max_size=3)), max_size=5),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def outcome(config: dict[str, Any]) -> str:
    """The total of a configuration, or the refusal; any other exception escapes."""
    try:
        return str(model_sizes(from_config(config, "altered")).n_total)
    except ModelError as error:
        return str(error)


@examples(100, 300)
@given(data=st.data(), shape=st.sampled_from(SHAPES))
def test_altered_configurations_give_a_model_or_a_refusal(data: st.DataObject, shape: Any) -> None:
    """Deleting or altering keys never raises anything but ModelError."""
    config = json.loads(json.dumps(shape))
    if data.draw(st.booleans()):
        config = {"model_type": "gemma3", "text_config": config}
    for _ in range(data.draw(st.integers(1, 3))):
        part = config.get("text_config")
        part = part if isinstance(part, dict) else config
        key = data.draw(st.sampled_from(sorted(part) or ["model_type"]))
        if data.draw(st.booleans()):
            part[key] = data.draw(JUNK)
        else:
            part.pop(key, None)
    assert outcome(config) != ""


@settings(max_examples=100, deadline=None)
@given(
    values=st.dictionaries(
        st.sampled_from(sorted({key for shape in SHAPES for key in shape})), JUNK
    ),
    kind=st.sampled_from(sorted(FAMILIES)),
)
def test_random_configurations_give_a_model_or_a_refusal(values: dict[str, Any], kind: str) -> None:
    """Any mapping at all is a model or a ModelError."""
    assert outcome({**values, "model_type": kind}) != ""


def test_keys_that_repeat_others_are_checked() -> None:
    """What can be reckoned from other keys is accepted where it agrees, and refused where not."""
    said = {"qk_head_dim": 64, "num_key_value_groups": 4, "d_ff": 8192, "decoder_layers": 16}
    assert from_config({**LLAMA, **said}, "m") == from_config(LLAMA, "m")
    with pytest.raises(ModelError, match="num_key_value_groups: is 5, but heads / kv_heads is 4"):
        from_config({**LLAMA, "num_key_value_groups": 5}, "m")


def test_keys_of_what_is_off_are_accepted() -> None:
    """A window that is not used, experts that are not there, layers that are as always."""
    off = {"use_sliding_window": False, "sliding_window": 4096, "num_experts": 0}
    off |= {"moe_intermediate_size": 768, "layer_types": ["full_attention"] * 16}
    assert model_sizes(from_config({**LLAMA, **off}, "m")) == model_sizes(from_config(LLAMA, "m"))


def test_gates_may_be_said_by_layer() -> None:
    """Laguna: a gate of one logit a head, or of the heads' whole width, layer by layer."""
    config = {
        **LLAMA, "model_type": "laguna", "num_experts": 4, "num_experts_per_tok": 1,
        "moe_intermediate_size": 64, "mlp_layer_types": ["sparse"] * 16, "head_dim": 64,
    }  # fmt: skip
    plain = model_sizes(from_config(config, "m")).n_total
    gates = {"gating_types": ["per_head"] * 15 + ["per_element"]}
    assert model_sizes(from_config({**config, **gates}, "m")).n_total == plain + 2048 * 32 * 63
