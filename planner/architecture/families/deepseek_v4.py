"""DeepSeek V4: compressed attention, hyper-connections, every layer a mixture."""

from __future__ import annotations

from planner.architecture.attention import compressed_attention
from planner.architecture.config_reader import Reader
from planner.architecture.families.common import (
    EXPERTS,
    MTP,
    PER_TOKEN,
    SHARED,
    Shape,
    assemble,
    check_experts,
    predict,
)
from planner.architecture.families.deepseek import indexer, latent_shape
from planner.architecture.feedforward import mixture
from planner.architecture.layers import Layer, Mixer, Model, vector

__all__ = ["deepseek_v4"]

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
