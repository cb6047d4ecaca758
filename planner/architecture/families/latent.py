"""Families of latent attention: DeepSeek V2 to V4, Kimi K2, Linear and K3, GLM-5, Ling, LongCat.

Dense first layers, then mixtures of experts; some pick entries by an indexer (V3.2), pool them
(V4), or have Kimi-delta layers between.
"""

from planner.architecture.attention import Indexer, Latent, compressed_attention, latent_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families import common
from planner.architecture.families.standard import shape
from planner.architecture.families.traits import LatentKeys, Shape, Traits, is_enabled
from planner.architecture.feedforward import dense_mlp, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, Weight, vector
from planner.architecture.recurrent import kimi_delta

_SPARSE_NAMES = ("indexed_attention", "deepseek_sparse_attention", "full_attention")
_RATIOS = {0: "window", 4: "compressed_sparse", 128: "compressed"}
_NAMED_RATIOS = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}


def latent_mixer(
    reader: Reader, form: Shape, traits: Traits, indexer: Indexer | None = None
) -> Mixer:
    """Latent attention of a family's widths, biases, gates and sinks."""
    # Published head_dim and num_key_value_heads do not describe what latent attention caches.
    reader.ignore("head_dim", "num_key_value_heads", "qk_head_dim")
    keys = traits.latent or LatentKeys()
    # Null means full-rank queries (V2-Lite); absent means the family's rank.
    rank = reader.optional("q_lora_rank")
    latent = Latent(
        rank if reader.is_set("q_lora_rank") else keys.query_rank or None,
        reader.whole("kv_lora_rank", keys.cache_rank),
        reader.whole("qk_nope_head_dim", keys.nope),
        reader.whole("qk_rope_head_dim", keys.rope),
        reader.whole("v_head_dim", keys.value),
    )
    gate = traits.gate if is_enabled(reader, traits.gate_if) else ""
    return latent_attention(
        form.hidden,
        form.heads,
        latent,
        indexer,
        bias=is_enabled(reader, traits.qkv_bias),
        gate=gate == "full",
        head_gate=gate == "head",
        sinks=traits.sinks,
    )


def latent_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Latent attention in every layer."""
    return [latent_mixer(reader, form, traits)] * form.layers


def indexed_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Latent attention to the indexer's picks; some layers reuse the nearest earlier choice."""
    count = form.layers
    scores = reader.words("indexer_types", count, {"full": True, "shared": False})
    pattern = reader.value("index_topk_pattern")
    every = reader.whole("index_topk_freq", 1, most=MAX_LAYERS)
    offset = reader.whole("index_skip_topk_offset", 2, least=0, most=MAX_LAYERS)
    reader.words("layer_types", count, dict.fromkeys(_SPARSE_NAMES))
    if scores is None and pattern is not None:
        if not isinstance(pattern, str) or set(pattern) - set("FS") or len(pattern) != count:
            raise reader.fail(
                "index_topk_pattern", f"expected {count} letters F (full) or S (shared)"
            )
        scores = [letter == "F" for letter in pattern]
    if scores is None:
        scores = [max(index - offset + 1, 0) % every == 0 for index in range(count)]
    mixers = {
        has_weights: latent_mixer(reader, form, traits, _indexer(reader, has_weights))
        for has_weights in (False, True)
    }
    return [mixers[each] for each in (*scores, True)]


def _indexer(reader: Reader, has_weights: bool) -> Indexer:
    return Indexer(
        reader.whole("index_n_heads"),
        reader.whole("index_head_dim"),
        reader.whole("index_topk"),
        has_weights,
    )


def hunyuan_residual_streams(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """Weights that mix Hunyuan 4's residual streams around the two parts of a layer."""
    reader.ignore("hc_magnitude", "learnable_sink_init")
    streams = reader.whole("hc_mult", 4)
    mixing = 2 * streams
    return (_streams(2 * (mixing * streams * form.hidden + mixing + 2)),)


def hyper_connections(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """Weights that mix DeepSeek V4's residual streams around the two parts of a layer."""
    streams = reader.whole("hc_mult", 4)
    mixing = (2 + streams) * streams
    return (_streams(2 * (mixing * streams * form.hidden + mixing + 3)),)


def streams_head(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """Weights that join the residual streams before the head."""
    streams = reader.whole("hc_mult", 4)
    return (_streams(streams * streams * form.hidden + streams + 1),)


def _streams(count: int) -> Weight:
    return vector("hyper_connections", "other", count)


def compressed_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """DeepSeek V4's layers: a window alone, or with entries that pool 4 or 128 tokens."""
    reader.ignore("num_key_value_heads", "num_hash_layers")
    reader.ignore("qk_rope_head_dim", "index_n_heads", "index_head_dim", "index_topk")
    width, groups = reader.whole("head_dim"), reader.whole("o_groups")
    if (form.heads * width) % groups:
        raise reader.fail("o_groups", f"is {groups}, does not divide {form.heads} heads of {width}")
    ratios = [*_ratios(reader, form.layers), 0]
    mixers = {
        ratio: compressed_attention(
            form.hidden,
            form.heads,
            width,
            query_rank=reader.whole("q_lora_rank"),
            groups=groups,
            output_rank=reader.whole("o_lora_rank"),
            window=reader.whole("sliding_window"),
            ratio=ratio,
            indexer=_indexer(reader, True) if _RATIOS[ratio] == "compressed_sparse" else None,
        )
        for ratio in dict.fromkeys(ratios)
    }
    return [mixers[ratio] for ratio in ratios]


def _ratios(reader: Reader, count: int) -> list[int]:
    """Tokens per entry, by layer; the published list also has entries for prediction blocks."""
    named = reader.words("layer_types", count, _NAMED_RATIOS)
    rates = reader.section("compress_rates")
    for word, ratio in _NAMED_RATIOS.items():
        if rates is not None and rates.optional(word) not in (None, ratio):
            raise rates.fail(word, f"expected {ratio}")
    listed = reader.wholes("compress_ratios", most=128)
    if named is not None:
        return named
    if listed is None:
        raise reader.fail("compress_ratios", "is missing; expected 0, 4 or 128 for each layer")
    if len(listed) < count:
        raise reader.fail("compress_ratios", f"has {len(listed)} entries for {count} layers")
    unknown = set(listed) - set(_RATIOS)
    if unknown:
        raise reader.fail("compress_ratios", f"names {min(unknown)}, expected 0, 4 or 128")
    return listed[:count]


def kimi_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Kimi Linear (arXiv 2510.26692): Kimi-delta layers, latent attention between.

    The section `linear_attn_config` wins over flat keys of the same things, which is how the
    reference implementation reads its own files. Attention residuals' few vectors are not counted.
    """
    full = latent_mixer(reader, form, traits)
    flat = {
        "num_heads": reader.whole("linear_num_heads", 32),
        "head_dim": reader.whole("linear_head_dim", 128),
        "short_conv_kernel_size": reader.whole("linear_conv_kernel_dim", 4),
    }
    inner = reader.section("linear_attn_config") or Reader({}, reader.where)
    heads, width, kernel = (inner.whole(key, default) for key, default in flat.items())
    delta = kimi_delta(form.hidden, heads, width, kernel, inner.flag("use_full_rank_gate", False))
    named = reader.words("layer_types", form.layers, common.FULL_OR_LINEAR)
    listed = inner.has("full_attn_layers")
    # Layers are counted from 1 in these two lists.
    whole = set(inner.wholes("full_attn_layers", most=form.layers) or ())
    linear = set(inner.wholes("kda_layers", most=form.layers) or ())
    inner.ignore("gate_lower_bound")
    inner.finish()
    if listed and (whole & linear or whole | linear != set(range(1, form.layers + 1))):
        raise inner.fail(
            "full_attn_layers", f"and kda_layers do not name each of {form.layers} layers once"
        )
    # The published default: every fourth layer from the fifth on is full.
    is_full = named or [index > 0 and index % 4 == 0 for index in range(form.layers)]
    if named is None and listed:
        is_full = [index + 1 in whole for index in range(form.layers)]
    return [full if each else delta for each in (*is_full, True)]


def ling_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Ling's hybrid: five Kimi-delta layers to one of latent attention."""
    full = latent_mixer(reader, form, traits)
    heads = reader.whole("linear_num_heads", form.heads)
    width = reader.whole("linear_head_dim", 128)
    kernel = reader.whole("linear_conv_kernel_dim", 4)
    delta = kimi_delta(form.hidden, heads, width, kernel, True, full_decay=True)
    every = reader.whole("layer_group_size", 6, most=MAX_LAYERS)
    is_full = common.full_layers(reader, form.layers, every)
    return [full if each else delta for each in (*is_full, True)]


def longcat(reader: Reader, name: str) -> Model:
    """LongCat Flash: each published layer is two here; the first also has experts.

    Experts without weights are chosen among the others: active parameters are means over tokens.
    """
    reader.ignore("mla_scale_q_lora", "mla_scale_kv_lora", "attention_method")
    traits = Traits(qkv_bias=("attention_bias", False), latent=LatentKeys(query_rank=0))
    form = shape(reader, traits)
    hidden = form.hidden
    if reader.flag("router_bias", False):
        raise reader.fail("router_bias", "is true; no published checkpoint has it")
    mixer = latent_mixer(reader, form, traits)
    experts, active = reader.whole(common.EXPERTS), reader.whole(common.PER_TOKEN)
    common.check_experts(reader, experts, active)
    plain = dense_mlp(hidden, reader.whole(("ffn_hidden_size", "intermediate_size")))
    mixed = mixture(
        hidden,
        reader.whole(("expert_ffn_hidden_size", "moe_intermediate_size")),
        experts,
        active,
        router_bias=True,
        idle=common.idle_experts(reader),
    )
    both = FeedForward(mixed.kind, (*mixed.weights, *plain.weights), mixed.experts)
    pair = [Layer(mixer, both, form.norms()), Layer(mixer, plain, form.norms())]
    blocks = common.predict(reader, pair[1], hidden)
    return common.assemble(name, "longcat_flash", form, pair * form.layers, prediction=blocks)
