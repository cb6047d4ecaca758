"""DeepSeek-shaped families: latent attention, dense first layers, then mixtures of experts.

DeepSeek V2, V3 and R1, V3.2 (sparse attention), Kimi K2, GLM-4.7-Flash, GLM-5, A.X K1,
Mistral 4, Hunyuan 4, and the dense ones, MiniCPM 3 and Youtu.

DeepSeek V4: compressed attention, hyper-connections, every layer a mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.architecture.attention import Indexer, Latent, compressed_attention, latent_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import (
    EXPERTS,
    LAYERS,
    MTP,
    PER_TOKEN,
    SHARED,
    Shape,
    assemble,
    check_experts,
    context,
    expert_groups,
    predict,
    sparse_layers,
)
from planner.architecture.feedforward import dense, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, Weight, vector

_SPARSE_NAMES = ("indexed_attention", "deepseek_sparse_attention", "full_attention")


@dataclass(frozen=True, slots=True)
class _DeepSeekShape:
    """A family of this shape: its name and what it has where keys are absent.

    `first_dense` layers are dense (`None`: all of them), `shared` experts stand beside the routed
    ones, `query_rank` is that of queries where the key is absent; `sparse_norms` are further norms
    of a mixture layer; `mlp_bias` says that the key of that name means something. `gated` ones
    have an output gate, a sink per head, and residual streams mixed around each part.
    """

    kind: str
    router_bias: bool = True
    indexed: bool = False
    shared: int = 1
    query_rank: int = 1536
    first_dense: int | None = 3
    sparse_norms: int = 0
    mlp_bias: bool = False
    gated: bool = False
    tied: bool = False

    def __call__(self, reader: Reader, name: str) -> Model:
        return _model(reader, name, self)


def _model(reader: Reader, name: str, family: _DeepSeekShape) -> Model:
    # Published head_dim and num_key_value_heads do not describe what latent attention caches.
    reader.ignore("head_dim", "num_key_value_heads", "qk_head_dim")
    reader.ignore("scale_emb", "scale_depth", "dim_model_base")
    form = latent_shape(reader, family.tied)
    # Null means full-rank queries (V2-Lite); absent means the family's rank.
    rank = reader.optional("q_lora_rank")
    latent = Latent(
        rank if reader.is_set("q_lora_rank") else family.query_rank,
        reader.whole("kv_lora_rank"),
        reader.whole("qk_nope_head_dim"),
        reader.whole("qk_rope_head_dim"),
        reader.whole("v_head_dim"),
    )
    bias = reader.flag("attention_bias", False)
    indexed = _own_indexers(reader, form.layers) if family.indexed else []
    mixers = {
        key: latent_attention(
            form.hidden,
            form.heads,
            latent,
            indexer(reader, key) if family.indexed else None,
            bias=bias,
            gate=family.gated,
            sinks=family.gated,
        )
        for key in {*indexed, True}
    }
    if family.first_dense is None:
        sparse = [False] * form.layers
    else:
        sparse = sparse_layers(reader, form.layers, family.first_dense)
    parts = _parts(reader, form, sparse, family)
    streams = _streams(reader, form, 2) if family.gated else ()
    norms = {
        chosen: (
            vector("norms", "other", (2 + family.sparse_norms * chosen) * form.hidden),
            *streams,
        )
        for chosen in (False, True)
    }
    layers = [
        Layer(mixers[indexed[index] if family.indexed else True], parts[chosen], norms[chosen])
        for index, chosen in enumerate(sparse)
    ]
    last = any(sparse)
    block = Layer(mixers[True], parts[last], norms[last])
    blocks = predict(reader, MTP, block, form.hidden)
    kind = reader.text("model_type") if family.kind == "deepseek_v3" else family.kind
    extra = _streams(reader, form, 0) if family.gated else ()
    return assemble(name, kind or family.kind, form, layers, extra=extra, prediction=blocks)


def _streams(reader: Reader, form: Shape, parts: int) -> tuple[Weight, ...]:
    """What mixes the residual streams around the `parts` of a layer, or (0) before the head."""
    reader.ignore("hc_magnitude", "learnable_sink_init")
    streams = reader.whole("hc_mult", 4)
    if not parts:
        return (vector("hyper_head", "other", streams * streams * form.hidden + streams + 1),)
    mixing = 2 * streams
    params = mixing * streams * form.hidden + mixing + 2
    return (vector("hyper_connections", "other", parts * params),)


def latent_shape(reader: Reader, tied: bool = False) -> Shape:
    """The outer shape where attention is latent: one shared head is cached."""
    hidden = reader.whole("hidden_size")
    return Shape(
        hidden,
        reader.whole(LAYERS, most=MAX_LAYERS),
        reader.whole("num_attention_heads"),
        1,
        0,
        reader.whole("vocab_size"),
        reader.flag("tie_word_embeddings", tied),
        context(reader),
    )


def _parts(
    reader: Reader, form: Shape, sparse: list[bool], family: _DeepSeekShape
) -> dict[bool, FeedForward]:
    parts = {}
    bias = reader.flag("mlp_bias", False)
    if bias and not family.mlp_bias:
        raise reader.fail("mlp_bias", "is true; no published checkpoint of this family has it")
    if False in sparse:
        parts[False] = dense(form.hidden, reader.whole("intermediate_size"), bias=bias)
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
            shared=reader.whole(SHARED, family.shared, least=0),
            shared_bias=bias,
            router_bias=family.router_bias,
            groups=expert_groups(reader, experts, active),
        )
    else:
        reader.ignore(*EXPERTS, *PER_TOKEN, *SHARED, "moe_intermediate_size")
    return parts


def indexer(reader: Reader, has_weights: bool) -> Indexer:
    """The scorer of sparse attention, in a layer that has its `own` or borrows a choice."""
    return Indexer(
        reader.whole("index_n_heads"),
        reader.whole("index_head_dim"),
        reader.whole("index_topk"),
        has_weights,
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


LATENT: dict[str, Callable[[Reader, str], Model]] = {
    family.kind: family
    for family in (
        _DeepSeekShape("axk1", first_dense=1, sparse_norms=1),
        _DeepSeekShape("deepseek_v2", router_bias=False, shared=2, first_dense=0, mlp_bias=True),
        _DeepSeekShape("deepseek_v3"),
        _DeepSeekShape("deepseek_v32", indexed=True),
        _DeepSeekShape("glm4_moe_lite", first_dense=1, query_rank=768),
        _DeepSeekShape("glm_moe_dsa", indexed=True, query_rank=2048),
        _DeepSeekShape("hy_v4", indexed=True, first_dense=1, gated=True),
        _DeepSeekShape("minicpm3", first_dense=None, query_rank=768, tied=True, mlp_bias=True),
        _DeepSeekShape("mistral4", router_bias=False, first_dense=0, query_rank=1024),
        _DeepSeekShape("youtu", first_dense=None, tied=True),
    )
}


_RATIOS = {0: "window", 4: "compressed_sparse", 128: "compressed"}
_NAMED_RATIOS = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}


def deepseek_v4(reader: Reader, name: str) -> Model:
    """DeepSeek V4: compressed attention, hyper-connections, every layer a mixture."""
    reader.ignore("num_key_value_heads", "num_hash_layers", "mlp_layer_types", "intermediate_size")
    form = latent_shape(reader)
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
        indexer=indexer(reader, True) if _RATIOS.get(ratio) == "compressed_sparse" else None,
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
