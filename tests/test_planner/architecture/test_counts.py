"""Counts of parameters, caches and states, against published and independently built numbers."""

from __future__ import annotations

import csv

import pytest

from planner.architecture import Sizes, dtype, sizes
from planner.catalogue import models
from tests.cases.elements import kv_elements
from tests.paths import FACTS

TABLE = FACTS / "models.csv"

# Our name for each row of the table.
NAMES = {
    "Llama-4-Maverick": "llama-4-maverick",
    "Mistral-7B-v0.1": "mistral-7b",
    "DeepSeek-V3/R1": "deepseek-v3",
    "GLM-4.5/4.6/4.7": "glm-4.5",
    "MiniMax-M2/2.5": "minimax-m2.5",
}

# Totals built tensor by tensor on the reference implementations (transformers 5.23, without
# weights), plus the router's selection biases, which those hold as buffers.
REFERENCE = {
    "qwen3-0.6b": 596_049_920,
    "qwen3-8b": 8_190_735_360,
    "qwen3-coder-480b-a35b": 480_154_875_392,
    "qwen3.5-27b": 26_895_998_464,
    "qwen3.5-35b-a3b": 34_660_610_688,
    "qwen3.5-122b-a10b": 122_111_526_912,
    "llama-4-scout": 107_769_861_120,
    "mixtral-8x22b": 140_620_634_112,
    "gpt-oss-20b": 20_914_757_184,
    "kimi-k2.5": 1_026_408_209_408 + 60 * 384,
    "glm-5.2": 743_377_000_704 + 75 * 256,
    "nemotron-3-super-120b-a12b-fp8": 120_668_687_360 + 40 * 512,
    # The selection bias is counted in the three hash-routed layers too.
    "deepseek-v4-flash": 284_332_230_231 + 43 * 256,
}


def elements(found: Sizes, cached: float) -> float:
    """Elements that so many bytes of cache hold."""
    return cached / float(dtype(found.kv_dtype).bytes)


def rows() -> list[dict[str, str]]:
    """The table of published shapes."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def name_of(row: dict[str, str]) -> str:
    """The catalogue name of a row."""
    return NAMES.get(row["model"], row["model"].lower())


def counted(row: dict[str, str], **overrides: str) -> Sizes:
    """Our sizes of the row's model."""
    return sizes(models.load(name_of(row)), **overrides)


def number(row: dict[str, str], key: str) -> float:
    """A cell as a number; an empty one is zero."""
    return float(row[key] or 0)


def test_table_is_covered() -> None:
    """Every row of the table has a catalogue entry."""
    assert {name_of(row) for row in rows()} <= set(models.names())


@pytest.mark.parametrize("row", rows(), ids=name_of)
def test_total_is_exact(row: dict[str, str]) -> None:
    """The total agrees to the last parameter."""
    assert counted(row).n_total == int(row["total_params"])


@pytest.mark.parametrize("row", rows(), ids=name_of)
def test_active_is_exact(row: dict[str, str]) -> None:
    """All three conventions of active parameters agree to the last parameter."""
    active = counted(row).n_active
    assert [active[key] for key in ("all", "no_input_embedding", "no_embedding_no_head")] == [
        int(row["active_params_all"]),
        int(row["active_params_no_input_embedding"]),
        int(row["active_params_no_embedding_no_head"]),
    ]


@pytest.mark.parametrize("row", rows(), ids=name_of)
def test_caches_are_exact(row: dict[str, str]) -> None:
    """Cached, indexed and windowed elements, and bytes of state, agree."""
    found = counted(row)
    assert kv_elements(found) == number(row, "kv_elements_per_token")
    assert elements(found, found.index_bytes_per_token) == number(row, "index_elements_per_token")
    assert elements(found, found.window_bytes_per_sequence) == number(
        row, "window_elements_per_sequence"
    )
    assert found.state_bytes_per_sequence == number(row, "state_bytes_per_sequence")


@pytest.mark.parametrize("row", rows(), ids=name_of)
def test_cache_bytes_follow_format(row: dict[str, str]) -> None:
    """Bytes per token, indexer included, in bf16 and in fp8."""
    assert counted(row, kv="bf16").kv_bytes_per_token == number(row, "kv_bytes_per_token_bf16")
    assert counted(row, kv="fp8").kv_bytes_per_token == number(row, "kv_bytes_per_token_fp8")


@pytest.mark.parametrize("row", rows(), ids=name_of)
def test_outer_shape(row: dict[str, str]) -> None:
    """Layers, width, vocabulary, heads and experts agree."""
    found = counted(row)
    assert (found.n_layers, found.hidden, found.vocab) == tuple(
        int(row[key]) for key in ("layers", "hidden", "vocab")
    )
    assert found.n_q_heads == int(row["q_heads"])
    assert found.n_experts == number(row, "experts_routed")
    assert found.n_experts_active == number(row, "experts_per_token")
    assert found.n_moe_layers == number(row, "moe_layers")


@pytest.mark.parametrize(("name", "total"), REFERENCE.items())
def test_total_of_reference_build(name: str, total: int) -> None:
    """Totals equal those of the reference implementation's modules."""
    assert sizes(models.load(name)).n_total == total


@pytest.mark.parametrize("name", models.names())
def test_classes_add_up(name: str) -> None:
    """Parameters, active parameters and formats by class add up to the totals."""
    found = sizes(models.load(name))
    assert sum(found.params.values()) == found.n_total
    assert sum(found.active.values()) == found.n_active["no_input_embedding"]
    assert {group: sum(mix.values()) for group, mix in found.weight_mix.items()} == found.params
    assert sum(map(sum, (mix.values() for mix in found.weight_mix.values()))) == found.n_total


@pytest.mark.parametrize("name", models.names())
def test_active_never_exceeds_stored(name: str) -> None:
    """A token passes through no more parameters than are stored, class by class."""
    found = sizes(models.load(name))
    for group in ("attention", "dense_ffn", "shared", "routed", "router", "other"):
        assert 0 <= found.active[group] <= found.params[group]


def test_tied_head_is_stored_once_and_read_once() -> None:
    """A tied model stores no head, multiplies with it, and reads it in every step."""
    found = sizes(models.load("qwen3-0.6b"))
    assert found.params["head"] == 0
    assert found.active["head"] == found.params["embedding"] == 151936 * 1024
    assert found.streamed_bytes["head"] == found.weight_bytes["embedding"]
    assert found.streamed_bytes["embedding"] == 0


def test_expert_width_is_the_latent_one() -> None:
    """What travels to the experts has the latent width where there is one."""
    assert sizes(models.load("nemotron-3-ultra-550b-a55b")).expert_width == 2048
    assert sizes(models.load("deepseek-v3")).expert_width == 7168


def test_prediction_block_is_separate() -> None:
    """DeepSeek-V3's checkpoint of about 685B is the model, its block, and two copied matrices."""
    found = sizes(models.load("deepseek-v3"))
    assert found.mtp_params is not None
    copies = found.params["embedding"] + found.params["head"]
    assert found.n_total + found.mtp_params + copies == pytest.approx(684.5e9, rel=1e-3)
    assert found.excluded == ("multi-token prediction (1 blocks)",)


def test_latent_attention_flop() -> None:
    """DeepSeek-V3 scores 128 heads against the latent in decode, 61 layers."""
    found = sizes(models.load("deepseek-v3"))
    assert found.attention_flop_per_cached_token == 61 * 2 * 128 * (2 * 512 + 64)
    assert found.caches[0].flop_per_pair_prefill == 61 * 2 * 128 * (128 + 64 + 128)
    assert found.n_kv_heads == 1


def test_grouped_attention_flop() -> None:
    """Llama 3.1 70B: 4·H·d for each of 80 layers."""
    found = sizes(models.load("llama-3.1-70b"))
    assert found.attention_flop_per_cached_token == 80 * 4 * 64 * 128
    assert found.n_kv_heads == 8


def test_state_flop_is_small_beside_the_weights() -> None:
    """Updating the recurrent states costs less than a tenth of the matrix products."""
    found = sizes(models.load("nemotron-h-56b"))
    assert 0 < found.state_flop_per_token < 0.1 * 2 * found.n_active["no_input_embedding"]
