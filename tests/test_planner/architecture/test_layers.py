"""What is stored and read as the context grows, kind by kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture import model_sizes
from planner.architecture.layers import CacheKind
from planner.catalogue import models
from planner.catalogue.chips import chip
from planner.catalogue.coefficient_spread import RunContext
from tests.loops import for_all

CONTEXT = st.integers(0, 10**7)
KINDS = [
    (name, cache)
    for name in models.model_names()
    for cache in model_sizes(models.load(name)).caches
]


def kind_of(name: str, kind: str) -> CacheKind:
    """The cache of this kind of the model called `name`."""
    return next(cache for cache in model_sizes(models.load(name)).caches if cache.kind == kind)


@given(context=CONTEXT, index=st.integers(0, len(KINDS) - 1))
def test_reads_never_exceed_what_is_stored(context: int, index: int) -> None:
    """A step reads at most what is stored, and what is stored never shrinks."""
    cache = KINDS[index][1]
    assert 0 <= cache.read_bytes(context) <= cache.stored_bytes(context)
    assert cache.stored_bytes(context) <= cache.stored_bytes(context + 1)


@given(tokens=st.integers(0, 3000), limit=st.one_of(st.none(), st.integers(1, 4000)))
def test_pairs_are_the_sum_over_queries(tokens: int, limit: int | None) -> None:
    """Pairs of a prompt equal the sum of what each of its tokens attends to."""
    cache = CacheKind("window", 1, 1, 1, limit, limit is None, 1, 1, 1)
    each = range(1, tokens + 1)
    assert cache.pairs(tokens) == sum(at if limit is None else min(at, limit) for at in each)


def test_window_stops_growing() -> None:
    """gpt-oss: half the layers keep 128 tokens, the other half all of them."""
    window, full = kind_of("gpt-oss-120b", "window"), kind_of("gpt-oss-120b", "full")
    assert window.stored_bytes(128) == window.stored_bytes(100_000) == 128 * 18 * 2 * 8 * 64 * 2
    assert full.stored_bytes(100_000) == 100_000 * 18 * 2 * 8 * 64 * 2


def test_sparse_attention_stores_all_and_reads_the_top() -> None:
    """DeepSeek-V3.2 keeps every latent, reads 2048 of them, and scans every index key."""
    sparse, index = kind_of("deepseek-v3.2", "sparse"), kind_of("deepseek-v3.2", "index")
    assert sparse.stored_bytes(100_000) == 100_000 * 61 * 576 * 2
    assert sparse.read_bytes(100_000) == 2048 * 61 * 576 * 2
    assert index.read_bytes(100_000) == 100_000 * 61 * 128 * 2


def test_shared_indexers_have_no_cache_of_their_own() -> None:
    """GLM-5.2 keeps index keys only in the layers that score for themselves."""
    assert kind_of("glm-5", "index").layers == 78
    assert kind_of("glm-5.2", "index").layers < 78
    assert kind_of("glm-5.2", "sparse").layers == 78


def test_compressed_caches_divide_by_their_ratio() -> None:
    """DeepSeek-V4-Pro: 31 layers pool 128 tokens, 30 pool 4 and read at most 1024 entries."""
    pooled = kind_of("deepseek-v4-pro", "compressed")
    sparse = kind_of("deepseek-v4-pro", "compressed_sparse")
    window = kind_of("deepseek-v4-pro", "window")
    assert pooled.stored_bytes(128_000) == 31 * 512 * 1000 * 2
    assert sparse.stored_bytes(400_000) == 30 * 512 * 100_000 * 2
    assert sparse.read_bytes(400_000) == 30 * 512 * 1024 * 2
    assert window.stored_bytes(10**6) == 61 * 512 * 128 * 2


@for_all("name", models.model_names())
def test_sequence_bytes_are_the_sum_of_the_parts(name: str) -> None:
    """At long context a sequence takes its growing caches, its windows and its state."""
    found = model_sizes(models.load(name))
    context = 10**8
    assert found.stored_bytes(context) == pytest.approx(
        context * found.kv_bytes_per_token
        + found.window_bytes_per_sequence
        + found.state_bytes_per_sequence
    )


def test_what_all_heads_share_is_latent_however_it_is_picked() -> None:
    """Multi-head latent attention is a class, keys by head another, any with an indexer a third."""
    latent = {cache.kind for _, cache in KINDS if cache.latent}
    assert latent == {"latent", "sparse", "compressed", "compressed_sparse"}
    classes = {
        "latent": ("deepseek-v3", "kimi-k2"),
        "indexed": ("deepseek-v3.2", "deepseek-v4-pro", "glm-5", "minimax-m3"),
        "grouped": ("qwen3-32b", "gpt-oss-120b"),
    }
    for attention, names in classes.items():
        for name in names:
            assert (
                RunContext.of(model_sizes(models.load(name)), chip("h200")).attention == attention
            )
