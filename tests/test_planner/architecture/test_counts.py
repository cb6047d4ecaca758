"""Counts of parameters, caches and states, against published and independently built numbers."""

from __future__ import annotations

import csv
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from planner.architecture import DTYPES, Model, ModelSizes, dtype, model_sizes, summary
from planner.architecture.counts import SUMMARY, InnerWidth, abstract_sizes
from planner.architecture.layers import (
    Cache,
    Experts,
    FeedForward,
    Layer,
    Mixer,
    PredictionBlocks,
    State,
    Weight,
    matrix,
    vector,
)
from planner.architecture.quantization import Patterns, Quantization
from planner.catalogue import models
from planner.scenario.keys.model_keys import ModelDescription
from planner.text.errors import ModelError
from tests.cases.elements import kv_elements
from tests.loops import for_all
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


def elements(found: ModelSizes, cached: float) -> float:
    """Elements that so many bytes of cache hold."""
    return cached / float(dtype(found.kv_dtype).bytes)


def rows() -> list[dict[str, str]]:
    """The table of published shapes."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def name_of(row: dict[str, str]) -> str:
    """The catalogue name of a row."""
    return NAMES.get(row["model"], row["model"].lower())


def counted(row: dict[str, str], **overrides: str) -> ModelSizes:
    """Our sizes of the row's model."""
    return model_sizes(models.load(name_of(row)), **overrides)


def number(row: dict[str, str], key: str) -> float:
    """A cell as a number; an empty one is zero."""
    return float(row[key] or 0)


def test_table_is_covered() -> None:
    """Every row of the table has a catalogue entry."""
    assert {name_of(row) for row in rows()} <= set(models.model_names())


@for_all("row", rows(), ids=name_of)
def test_total_is_exact(row: dict[str, str]) -> None:
    """The total agrees to the last parameter."""
    assert counted(row).n_total == int(row["total_params"])


@for_all("row", rows(), ids=name_of)
def test_active_is_exact(row: dict[str, str]) -> None:
    """All three conventions of active parameters agree to the last parameter."""
    active = counted(row).n_active
    assert [active[key] for key in ("all", "no_input_embedding", "no_embedding_no_head")] == [
        int(row["active_params_all"]),
        int(row["active_params_no_input_embedding"]),
        int(row["active_params_no_embedding_no_head"]),
    ]


@for_all("row", rows(), ids=name_of)
def test_caches_are_exact(row: dict[str, str]) -> None:
    """Cached, indexed and windowed elements, and bytes of state, agree."""
    found = counted(row)
    assert kv_elements(found) == number(row, "kv_elements_per_token")
    assert elements(found, found.index_bytes_per_token) == number(row, "index_elements_per_token")
    assert elements(found, found.window_bytes_per_sequence) == number(
        row, "window_elements_per_sequence"
    )
    assert found.state_bytes_per_sequence == number(row, "state_bytes_per_sequence")


@for_all("row", rows(), ids=name_of)
def test_cache_bytes_follow_format(row: dict[str, str]) -> None:
    """Bytes per token, indexer included, in bf16 and in fp8."""
    assert counted(row, kv="bf16").kv_bytes_per_token == number(row, "kv_bytes_per_token_bf16")
    assert counted(row, kv="fp8").kv_bytes_per_token == number(row, "kv_bytes_per_token_fp8")


@for_all("row", rows(), ids=name_of)
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


@for_all(("name", "total"), REFERENCE.items())
def test_total_of_reference_build(name: str, total: int) -> None:
    """Totals equal those of the reference implementation's modules."""
    assert model_sizes(models.load(name)).n_total == total


@for_all("name", models.model_names())
def test_classes_add_up(name: str) -> None:
    """Parameters, active parameters and formats by class add up to the totals."""
    found = model_sizes(models.load(name))
    assert sum(found.params.values()) == found.n_total
    assert sum(found.active.values()) == found.n_active["no_input_embedding"]
    assert {group: sum(mix.values()) for group, mix in found.weight_mix.items()} == found.params
    assert sum(map(sum, (mix.values() for mix in found.weight_mix.values()))) == found.n_total


@for_all("name", models.model_names())
def test_active_never_exceeds_stored(name: str) -> None:
    """A token passes through no more parameters than are stored, class by class."""
    found = model_sizes(models.load(name))
    for group in ("attention", "dense_ffn", "shared", "routed", "router", "other"):
        assert 0 <= found.active[group] <= found.params[group]


def test_tied_head_is_stored_once_and_read_once() -> None:
    """A tied model stores no head, multiplies with it, and reads it in every step."""
    found = model_sizes(models.load("qwen3-0.6b"))
    assert found.params["head"] == 0
    assert found.active["head"] == found.params["embedding"] == 151936 * 1024
    assert found.streamed_bytes["head"] == found.weight_bytes["embedding"]
    assert found.streamed_bytes["embedding"] == 0


def test_expert_width_is_the_latent_one() -> None:
    """What travels to the experts has the latent width where there is one."""
    assert model_sizes(models.load("nemotron-3-ultra-550b-a55b")).expert_width == 2048
    assert model_sizes(models.load("deepseek-v3")).expert_width == 7168


def test_prediction_block_is_separate() -> None:
    """DeepSeek-V3's checkpoint of about 685B is the model, its block, and two copied matrices."""
    found = model_sizes(models.load("deepseek-v3"))
    assert found.mtp_params is not None
    copies = found.params["embedding"] + found.params["head"]
    assert found.n_total + found.mtp_params + copies == pytest.approx(684.5e9, rel=1e-3)
    assert found.excluded == ("multi-token prediction (1 blocks)",)


def test_latent_attention_flop() -> None:
    """DeepSeek-V3 scores 128 heads against the latent in decode, 61 layers."""
    found = model_sizes(models.load("deepseek-v3"))
    assert found.attention_flop_per_cached_token == 61 * 2 * 128 * (2 * 512 + 64)
    assert found.caches[0].flop_per_pair_prefill == 61 * 2 * 128 * (128 + 64 + 128)
    assert found.n_kv_heads == 1


def test_grouped_attention_flop() -> None:
    """Llama 3.1 70B: 4·H·d for each of 80 layers."""
    found = model_sizes(models.load("llama-3.1-70b"))
    assert found.attention_flop_per_cached_token == 80 * 4 * 64 * 128
    assert found.n_kv_heads == 8


def test_state_flop_is_small_beside_the_weights() -> None:
    """Updating the recurrent states costs less than a tenth of the matrix products."""
    found = model_sizes(models.load("nemotron-h-56b"))
    assert 0 < found.state_flop_per_token < 0.1 * 2 * found.n_active["no_input_embedding"]


# A model of five layers made by hand, 8 wide with 10 words: each kind of part once.
#   0: full attention beside a dense part that reads the same vector
#   1: a window, and routed experts with a shared one   2: as 0 with an index of keys, no part
#   3: a recurrent state                                4: a dense part alone, wider
# Routed: 4 experts of 3 by 6 inside, up and down, of which a token passes 2.
ROUTED = Weight("mlp.experts.0.up_proj", "routed", 4 * 6 * 3, 2 * 6 * 3, True)
HAND_LAYERS = (
    Layer(
        Mixer("full", (matrix("attn.qkv", "attention", 8, 12),), (Cache("full", 8, 2, 32, 40),)),
        FeedForward("dense", (matrix("mlp.up_proj", "dense_ffn", 5, 8),
                              matrix("mlp.down_proj", "dense_ffn", 8, 5))),
        (vector("norm", "other", 8),),
        parallel=True,
    ),
    Layer(
        Mixer("window", (matrix("attn.qkv", "attention", 8, 12),),
              (Cache("window", 8, 4, 32, 40, limit=16, stored=False),), window=16),
        FeedForward("moe", (
            vector("mlp.gate", "router", 4 * 8),
            ROUTED,
            replace(ROUTED, module="mlp.experts.0.down_proj"),
            matrix("mlp.shared.down_proj", "shared", 8, 2),
        ), Experts(4, 2, 1, 6, 4, 2)),
    ),
    Layer(
        Mixer("sparse", (matrix("attn.qkv", "attention", 8, 12),),
              (Cache("latent", 6, 1, 24, 20, limit=64), Cache("index", 2, 8, 4, 4, ratio=4))),
        None,
    ),
    Layer(Mixer("state", (matrix("ssm.in", "attention", 8, 4),), state=State(5, 3, 50)), None),
    Layer(None, FeedForward("dense", (matrix("mlp.down_proj", "dense_ffn", 8, 7),))),
)  # fmt: skip
EMBEDDING = Weight("embed", "embedding", 80, 0, False)
BY_HAND = Model(
    name="hand", family="by hand", hidden=8, vocab=10, q_heads=4, layers=HAND_LAYERS,
    weights=(EMBEDDING, matrix("lm_head", "head", 10, 8)), tied=False, max_context=128,
)  # fmt: skip
PARAMS = {
    "attention": 3 * 96 + 32, "dense_ffn": 2 * 40 + 56, "shared": 16, "routed": 2 * 72,
    "embedding": 80, "head": 80, "router": 32, "other": 8,
}  # fmt: skip
# Scales of two bytes for each three weights: 1 + 2/3 byte.
BLOCKED = DTYPES["fp8"].with_scales(3, Fraction(2))


def quantised(**changes: Any) -> Model:
    """The model made by hand, its linear layers stored with scales."""
    return replace(BY_HAND, quantization=Quantization(default=BLOCKED, **changes))


def test_a_model_made_by_hand_is_counted() -> None:
    """Parameters and bytes of bf16 by class, and what a token passes: half of the experts."""
    found = model_sizes(BY_HAND)
    assert found.params == PARAMS
    assert found.n_total == 80 + 80 + 320 + 136 + 16 + 144 + 32 + 8
    assert found.active == {**PARAMS, "routed": 72, "embedding": 0}
    assert found.n_active == {
        "all": 816 - 72, "no_input_embedding": 816 - 72 - 80,
        "no_embedding_no_head": 816 - 72 - 80 - 80,
    }  # fmt: skip
    assert found.weight_bytes == {group: 2.0 * count for group, count in PARAMS.items()}
    assert found.total_weight_bytes == 2 * 816
    assert found.streamed_bytes == {**found.weight_bytes, "embedding": 0.0}
    assert found.weight_mix == {group: {"bf16": count} for group, count in PARAMS.items()}
    assert found.weight_dtype == dict.fromkeys(PARAMS, "bf16")
    assert (found.stored, found.stored_kv, found.activation_dtype) == ("bf16", "bf16", "bf16")
    layers = found.n_layers, found.n_dense_ffn_layers, found.n_moe_layers
    assert (*layers, found.n_attention_layers, found.n_parallel_layers) == (5, 2, 1, 3, 1)
    assert (found.n_experts, found.n_experts_active, found.n_shared_experts) == (4, 2, 1)
    assert (found.expert_width, found.expert_groups, found.expert_groups_active) == (6, 4, 2)
    assert (found.mtp_blocks, found.mtp_params) == (0, None)


def test_caches_and_states_of_a_model_made_by_hand() -> None:
    """At 100 tokens: what grows, what stops at a window of 16 or 64, and the state."""
    found = model_sizes(BY_HAND, kv="fp8")
    latent, index = 6, 2 / 4
    state = 5 * 4 + 3 * 2  # recurrent in fp32, the tail in bf16
    assert found.kv_dtype == "fp8"
    assert found.stored_kv == "bf16"
    assert found.kv_bytes_per_token == 8 + latent + index
    assert found.index_bytes_per_token == index
    assert found.window_bytes_per_sequence == 16 * 8
    assert found.state_bytes_per_sequence == state
    assert found.state_flop_per_token == 50
    assert found.stored_bytes(100) == 100 * (8 + latent + index) + 16 * 8 + state
    assert found.read_bytes(100) == 100 * (8 + index) + 64 * latent + 16 * 8 + state
    assert found.attention_flop_per_cached_token == 32 + 4 / 4
    assert found.n_kv_heads == 1
    assert found.latent
    assert model_sizes(replace(BY_HAND, layers=HAND_LAYERS[3:])).n_kv_heads == 1
    assert not model_sizes(replace(BY_HAND, layers=HAND_LAYERS[:2])).latent
    assert model_sizes(replace(BY_HAND, layers=HAND_LAYERS[:2])).n_kv_heads == 2


def test_a_model_without_experts_has_none_and_its_own_width() -> None:
    """What would travel to experts is as wide as the model; groups are one and all."""
    found = model_sizes(replace(BY_HAND, layers=HAND_LAYERS[:1]))
    assert (found.n_experts, found.n_experts_active, found.n_shared_experts) == (0, 0, 0)
    assert (found.expert_width, found.expert_groups, found.expert_groups_active) == (8, 1, 1)
    assert (found.n_moe_layers, found.n_dense_ffn_layers) == (0, 1)


def test_a_tied_head_is_a_look_up_that_is_counted_once() -> None:
    """The embedding of words is the head: read, multiplied with, and stored once, in fp32.

    Its bias is stored beside it, and embeddings of 2 positions are looked up alone.
    """
    weights = (
        EMBEDDING,
        Weight("positions", "embedding", 2 * 8, 0, False),
        Weight("lm_head", "head", 0, 80, True),
        vector("lm_head.bias", "head", 10),
    )
    found = model_sizes(replace(BY_HAND, tied=True, weights=weights, precision=DTYPES["fp32"]))
    others = 320 + 136 + 16 + 144 + 32 + 8
    assert found.n_total == others + 80 + 16 + 10
    assert found.n_active == {
        "all": others - 72 + 80 + 10 + 16, "no_input_embedding": others - 72 + 80 + 10,
        "no_embedding_no_head": others - 72,
    }  # fmt: skip
    assert (found.streamed_bytes["head"], found.streamed_bytes["embedding"]) == (4 * 90, 0)


def test_prediction_blocks_are_beside_the_counts() -> None:
    """Two of them, with as many parameters as published, in no total."""
    found = model_sizes(replace(BY_HAND, prediction=PredictionBlocks(2, 99)))
    assert (found.mtp_blocks, found.mtp_params, found.n_total) == (2, 99, 816)


@pytest.mark.parametrize("weights", [None, "fp8", "fp4"])
def test_inner_widths_are_what_a_part_multiplies_down_from(weights: str | None) -> None:
    """Whole numbers of blocks, which only the checkpoint's own format has."""
    block = {None: 3, "fp8": 3, "fp4": 1}[weights]
    expected = [("dense_ffn", 5), ("routed", 3), ("shared", 2), ("dense_ffn", 7)]
    found = model_sizes(quantised(), weights=weights).inner
    assert found == tuple(InnerWidth(group, width, block) for group, width in expected)
    assert {type(one.width) for one in found} == {int}
    assert {one.block for one in model_sizes(BY_HAND, weights=weights).inner} == {1}
    left = quantised(unquantized=Patterns(("layers.4.mlp.down_proj",)))
    assert model_sizes(left).inner[-1] == InnerWidth("dense_ffn", 7, 1)


def test_formats_of_a_quantised_model_made_by_hand() -> None:
    """Matrices have scales, vectors and the embedding do not; an answer may ask for other bytes."""
    left = Patterns(("attn.qkv",))
    model = quantised(unquantized=left, cache=DTYPES["fp8"], activation=DTYPES["fp8"])
    found = model_sizes(model)
    assert found.weight_mix["attention"] == {"bf16": 288, "fp8": 32}
    assert found.weight_bytes["attention"] == pytest.approx(288 * 2 + 32 * 5 / 3)
    assert found.weight_bytes["routed"] == pytest.approx(144 * 5 / 3)
    assert found.weight_dtype["attention"] == "bf16"
    assert (found.weight_bytes["head"], found.weight_bytes["router"]) == (160, 64)
    assert (found.stored, found.stored_kv, found.kv_dtype) == ("fp8", "fp8", "fp8")
    assert found.activation_dtype == "fp8"
    # The matrices that were left alone stay so in another format.
    other = model_sizes(model, weights="int4", kv="bf16")
    assert other.weight_mix["attention"] == {"bf16": 288, "int4": 32}
    assert other.weight_bytes["shared"] == 16 * 0.5
    assert (other.stored, other.stored_kv, other.kv_dtype) == ("fp8", "fp8", "bf16")
    assert other.activation_dtype == "bf16"


def test_formats_of_a_model_that_nobody_quantised() -> None:
    """Linear layers of the four classes are converted, what else there is stays in bf16."""
    found = model_sizes(BY_HAND, weights="fp8")
    converted = {"attention", "dense_ffn", "shared", "routed"}
    assert {group for group, name in found.weight_dtype.items() if name == "fp8"} == converted
    assert found.total_weight_bytes == 2 * 816 - (320 + 136 + 16 + 144)
    assert found.activation_dtype == "fp8"
    assert model_sizes(BY_HAND, weights="INT8").activation_dtype == "bf16"
    assert model_sizes(BY_HAND, weights="int8", activations="fp8").activation_dtype == "fp8"
    # A class without weights has the model's own format.
    dense = model_sizes(replace(BY_HAND, layers=HAND_LAYERS[:1], precision=DTYPES["fp16"]))
    assert (dense.weight_dtype["routed"], dense.stored) == ("fp16", "fp16")


def test_what_is_stored_is_that_of_most_weights() -> None:
    """Of routed experts where there are some, else of dense parts."""
    wide = Patterns(("layers.4.mlp.down_proj",))
    model = replace(quantised(unquantized=wide, experts=DTYPES["fp4"]), layers=HAND_LAYERS)
    assert model_sizes(model).stored == "fp4"
    assert model_sizes(model).weight_dtype["dense_ffn"] == "fp8"  # 80 of 136
    assert model_sizes(replace(model, layers=HAND_LAYERS[::4])).stored == "fp8"


def test_a_summary_says_what_was_counted() -> None:
    """Layers by kind in order, experts and blocks; of other counts where these are given."""
    found = summary(replace(BY_HAND, layers=HAND_LAYERS + HAND_LAYERS[:1], excluded=("vision",)))
    assert list(found) == list(SUMMARY)
    kinds = [("full", None, "dense", 2), ("window", 16, "moe", 1), ("sparse", None, None, 1),
             ("state", None, None, 1), (None, None, "dense", 1)]  # fmt: skip
    assert found["layers"] == [
        dict(zip(("mixer", "window", "ffn", "count"), kind, strict=True)) for kind in kinds
    ]
    assert found["experts"] == {"routed": 4, "active": 2, "shared": 1}
    assert (found["mtp"], found["excluded"]) == ({"blocks": 0, "params": None}, ["vision"])
    assert found["params"] == {**PARAMS, "attention": 416, "dense_ffn": 216, "other": 16}
    narrow = summary(BY_HAND, model_sizes(BY_HAND, weights="fp8"))
    assert narrow["weight_bytes"] == model_sizes(BY_HAND, weights="fp8").weight_bytes


FEW_NUMBERS = ModelDescription(
    total_params=1000.0, active_params=300.0, weights="fp8", kv="fp16", kv_bytes_per_token=40.0,
    attention_flops_per_cached_token=12.0, state_bytes_per_sequence="7 B", layers=6, hidden=32,
)  # fmt: skip


def counted_of(model: ModelDescription, **formats: str) -> ModelSizes:
    """Sizes of a described model, whose record says all that is read of it, only frozen."""
    return abstract_sizes(model, **formats)  # type: ignore[arg-type]


def test_a_described_model_has_the_numbers_that_it_is_described_by() -> None:
    """All weights are dense and of one byte; a cache without an end serves all six layers."""
    found = counted_of(FEW_NUMBERS)
    nothing = dict.fromkeys(PARAMS, 0)
    assert (found.n_total, set(found.n_active.values())) == (1000, {300})
    assert found.params == {**nothing, "dense_ffn": 1000}
    assert found.active == {**nothing, "dense_ffn": 300}
    assert found.weight_bytes == found.streamed_bytes == {**nothing, "dense_ffn": 1000.0}
    assert set(found.weight_dtype.values()) == {"fp8"}
    assert found.weight_mix == {"dense_ffn": {"fp8": 1000}}
    assert (found.activation_dtype, found.kv_dtype) == ("fp8", "fp16")
    assert (found.n_layers, found.n_dense_ffn_layers, found.n_attention_layers) == (6, 6, 6)
    assert (found.hidden, found.expert_width, found.n_experts) == (32, 32, 0)
    assert found.kv_bytes_per_token == 40
    assert found.stored_bytes(100) == found.read_bytes(100) == 4000 + 7
    assert found.attention_flop_per_cached_token == 12
    (cache,) = found.caches
    assert (cache.flop_per_pair_prefill, cache.asked_elements) == (12, 6)
    # Its heads, of which nothing is said, divide over every number of chips of up to ten.
    assert [found.n_q_heads % chips for chips in range(1, 11)] == [0] * 10
    assert found.n_kv_heads == found.n_q_heads


def test_a_described_model_of_which_little_is_said() -> None:
    """A bf16 model of one layer without caches or states that a token passes in full."""
    found = counted_of(ModelDescription(total_params=10.0))
    assert (found.n_active["all"], found.weight_bytes["dense_ffn"]) == (10, 20)
    assert (found.n_layers, found.hidden, found.expert_width) == (1, 0, 0)
    assert (found.stored_bytes(100), found.attention_flop_per_cached_token) == (0, 0)
    assert (found.kv_dtype, found.activation_dtype) == ("bf16", "bf16")
    assert counted_of(ModelDescription()).n_total == 0


def test_a_described_model_in_formats_that_are_chosen() -> None:
    """Weights of another dtype have other bytes; activations are bf16 where nothing multiplies."""
    described = ModelDescription(total_params=10.0, bytes_per_weight=0.75, weights=None)
    assert counted_of(described).weight_bytes["dense_ffn"] == 7.5
    assert counted_of(described, weights="fp8").weight_bytes["dense_ffn"] == 10
    for name, multiplied in {"int8": "bf16", "int4": "bf16", "fp32": "bf16", "fp4": "fp4"}.items():
        assert counted_of(FEW_NUMBERS, weights=name).activation_dtype == multiplied
    assert counted_of(FEW_NUMBERS, activations="bf16").activation_dtype == "bf16"
    given = ModelDescription(total_params=10.0, activations="fp16")
    assert counted_of(given).activation_dtype == "fp16"
    assert counted_of(FEW_NUMBERS, kv="fp16").kv_dtype == "fp16"
    with pytest.raises(ModelError, match=r"choose\.kv: the model is described by kv_bytes_per_tok"):
        counted_of(FEW_NUMBERS, kv="fp8")
