"""DeepSeek-shaped families: latent attention, dense first layers, then mixtures of experts.

DeepSeek V2, V3 and R1, V3.2 (sparse attention), V4 (compressed attention), Kimi K2, GLM-5.
"""

from __future__ import annotations

from planner.architecture.attention import (
    Indexer,
    Latent,
    compressed_attention,
    latent_attention,
)
from planner.architecture.families.common import (
    EXPERTS,
    MTP,
    PER_TOKEN,
    SHARED,
    Shape,
    assemble,
    check_experts,
    expert_groups,
    predict,
    sparse_layers,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, vector
from planner.architecture.reading import MAX_LAYERS, Reader

__all__ = ["deepseek_v2", "deepseek_v3", "deepseek_v4", "deepseek_v32", "glm_moe_dsa"]

_RATIOS = {0: "window", 4: "compressed_sparse", 128: "compressed"}
_SPARSE_NAMES = ("indexed_attention", "deepseek_sparse_attention", "full_attention")
_NAMED_RATIOS = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}


def deepseek_v2(reader: Reader, name: str) -> Model:
    """DeepSeek V2 and V2-Lite: no selection bias on the router."""
    return _latent_model(reader, name, "deepseek_v2", router_bias=False, shared=2)


def deepseek_v3(reader: Reader, name: str) -> Model:
    """DeepSeek V3, V3.1 and R1; Kimi K2 has the same shape under its own name."""
    family = reader.text("model_type") or "deepseek_v3"
    return _latent_model(reader, name, family, router_bias=True)


def deepseek_v32(reader: Reader, name: str) -> Model:
    """DeepSeek V3.2: V3 with an indexer in every layer that picks the entries attended to."""
    return _latent_model(reader, name, "deepseek_v32", router_bias=True, indexed=True)


def glm_moe_dsa(reader: Reader, name: str) -> Model:
    """GLM-5: V3.2's shape; from 5.2 on most layers reuse the indexer of an earlier one."""
    return _latent_model(
        reader, name, "glm_moe_dsa", router_bias=True, indexed=True, query_rank=2048
    )


def _latent_model(
    reader: Reader,
    name: str,
    family: str,
    *,
    router_bias: bool,
    indexed: bool = False,
    shared: int = 1,
    query_rank: int = 1536,
) -> Model:
    # Published head_dim and num_key_value_heads do not describe what latent attention caches.
    reader.ignore("head_dim", "num_key_value_heads", "qk_head_dim")
    form = _shape(reader)
    if reader.flag("mlp_bias", False):
        raise reader.fail("mlp_bias", "is true; no published checkpoint of this family has it")
    # Null means full-rank queries (V2-Lite); absent means the family's rank.
    rank = reader.optional("q_lora_rank")
    latent = Latent(
        rank if reader.given("q_lora_rank") else query_rank,
        reader.whole("kv_lora_rank"),
        reader.whole("qk_nope_head_dim"),
        reader.whole("qk_rope_head_dim"),
        reader.whole("v_head_dim"),
    )
    bias = reader.flag("attention_bias", False)
    own = _own_indexers(reader, form.layers) if indexed else []
    mixers = {
        key: latent_attention(
            form.hidden,
            form.heads,
            latent,
            _indexer(reader, key) if indexed else None,
            bias=bias,
        )
        for key in {*own, True}
    }
    sparse = sparse_layers(reader, form.layers, 0 if family == "deepseek_v2" else 3)
    parts = _parts(reader, form, sparse, router_bias=router_bias, shared=shared)
    norms = (vector("norms", "other", 2 * form.hidden),)
    layers = [
        Layer(mixers[own[index] if indexed else True], parts[is_sparse], norms)
        for index, is_sparse in enumerate(sparse)
    ]
    block = Layer(mixers[True], parts[any(sparse)], norms)
    return assemble(name, family, form, layers, prediction=predict(reader, MTP, block, form.hidden))


def _shape(reader: Reader) -> Shape:
    hidden = reader.whole("hidden_size")
    return Shape(
        hidden,
        reader.whole("num_hidden_layers", most=MAX_LAYERS),
        reader.whole("num_attention_heads"),
        1,
        0,
        reader.whole("vocab_size"),
        reader.flag("tie_word_embeddings", False),
        reader.optional(("max_position_embeddings", "model_max_length")),
    )


def _parts(
    reader: Reader, form: Shape, sparse: list[bool], *, router_bias: bool, shared: int
) -> dict[bool, FeedForward]:
    parts = {}
    if False in sparse:
        parts[False] = dense(form.hidden, reader.whole("intermediate_size"))
    else:
        reader.ignore("intermediate_size")
    if True in sparse:
        experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
        check_experts(reader, experts, active)
        parts[True] = mixture(
            form.hidden,
            reader.whole("moe_intermediate_size"),
            experts,
            active,
            shared=reader.whole(SHARED, shared, least=0),
            router_bias=router_bias,
            groups=expert_groups(reader, experts, active),
        )
    else:
        reader.ignore(*EXPERTS, *PER_TOKEN, *SHARED, "moe_intermediate_size")
    return parts


def _indexer(reader: Reader, own: bool) -> Indexer:
    return Indexer(
        reader.whole("index_n_heads"),
        reader.whole("index_head_dim"),
        reader.whole("index_topk"),
        own,
    )


def _own_indexers(reader: Reader, count: int) -> list[bool]:
    """Per layer whether it scores entries itself; the others reuse the nearest earlier choice."""
    named = reader.words("indexer_types", count, ("full", "shared"))
    pattern = reader.value("index_topk_pattern")
    every = reader.whole("index_topk_freq", 1, most=MAX_LAYERS)
    offset = reader.whole("index_skip_topk_offset", 2, least=0, most=MAX_LAYERS)
    reader.words("layer_types", count, _SPARSE_NAMES)
    if named is None and pattern is not None:
        if not isinstance(pattern, str) or set(pattern) - set("FS") or len(pattern) != count:
            raise reader.fail(
                "index_topk_pattern", f"expected {count} letters F (full) or S (shared)"
            )
        named = ["full" if letter == "F" else "shared" for letter in pattern]
    if named is not None:
        return [word == "full" for word in named]
    return [max(index - offset + 1, 0) % every == 0 for index in range(count)]


def deepseek_v4(reader: Reader, name: str) -> Model:
    """DeepSeek V4: compressed attention, hyper-connections, every layer a mixture."""
    reader.ignore("num_key_value_heads", "num_hash_layers", "mlp_layer_types", "intermediate_size")
    form = _shape(reader)
    hidden, streams = form.hidden, reader.whole("hc_mult", 4)
    experts, active = reader.whole(EXPERTS), reader.whole(PER_TOKEN)
    check_experts(reader, experts, active)
    part = mixture(
        hidden,
        reader.whole("moe_intermediate_size"),
        experts,
        active,
        shared=reader.whole(SHARED, 1, least=0),
        router_bias=True,
        path="ffn",
    )
    mixing = (2 + streams) * streams
    outer = (
        vector("norms", "other", 2 * hidden),
        vector("hyper_connections", "other", 2 * (mixing * streams * hidden + mixing + 3)),
    )
    ratios = _ratios(reader, form.layers)
    mixers = {ratio: _compressed(reader, form, ratio) for ratio in set(ratios) | {0}}
    layers = [Layer(mixers[ratio], part, outer) for ratio in ratios]
    head = vector("hyper_head", "other", streams * streams * hidden + streams + 1)
    block = Layer(mixers[0], part, outer)
    blocks = predict(reader, MTP, block, hidden)
    return assemble(name, "deepseek_v4", form, layers, extra=(head,), prediction=blocks)


def _compressed(reader: Reader, form: Shape, ratio: int) -> Mixer:
    width, groups = reader.whole("head_dim"), reader.whole("o_groups")
    reader.ignore("qk_rope_head_dim", "index_n_heads", "index_head_dim", "index_topk")
    if (form.heads * width) % groups:
        raise reader.fail("o_groups", f"is {groups}, does not divide {form.heads} heads of {width}")
    return compressed_attention(
        form.hidden,
        form.heads,
        width,
        query_rank=reader.whole("q_lora_rank"),
        groups=groups,
        output_rank=reader.whole("o_lora_rank"),
        window=reader.whole("sliding_window"),
        ratio=ratio,
        indexer=_indexer(reader, True) if _RATIOS.get(ratio) == "compressed_sparse" else None,
    )


def _ratios(reader: Reader, count: int) -> list[int]:
    """Tokens per entry, by layer; the published list also has entries for prediction blocks."""
    named = reader.words("layer_types", count, tuple(_NAMED_RATIOS))
    rates = reader.section("compress_rates")
    for word, ratio in _NAMED_RATIOS.items():
        if rates is not None and rates.optional(word) not in (None, ratio):
            raise rates.fail(word, f"expected {ratio}")
    listed = reader.wholes("compress_ratios", most=128)
    if named is not None:
        return [_NAMED_RATIOS[word] for word in named]
    if listed is None:
        raise reader.fail("compress_ratios", "is missing; expected 0, 4 or 128 for each layer")
    if len(listed) < count:
        raise reader.fail("compress_ratios", f"has {len(listed)} entries for {count} layers")
    unknown = set(listed) - set(_RATIOS)
    if unknown:
        raise reader.fail("compress_ratios", f"names {min(unknown)}, expected 0, 4 or 128")
    return listed[:count]
