"""Mixers and parts of families whose layers differ in heads, widths or attended tokens."""

from dataclasses import replace

from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import overrides, windows
from planner.architecture.families.standard import attention, full_attention, mixtures
from planner.architecture.families.traits import Moe, Shape, Traits
from planner.architecture.layers import Cache, FeedForward, Mixer, matrix, vector


def mimo_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """MiMo V2: windowed layers have sinks and twice the key-value heads; values are narrower."""
    value = reader.whole("v_head_dim", 128)
    pattern = reader.flags("hybrid_layer_pattern", form.layers)
    if pattern is None and not reader.has("layer_types"):
        raise reader.fail("hybrid_layer_pattern", "is missing, and so is layer_types")
    narrow = replace(
        form,
        heads=reader.whole("swa_num_attention_heads", form.heads),
        kv_heads=reader.whole("swa_num_key_value_heads", 2 * form.kv_heads),
        width=reader.whole("swa_head_dim", form.width),
    )
    if narrow.heads % narrow.kv_heads:
        raise reader.fail("swa_num_key_value_heads", f"does not divide {narrow.heads} heads")
    narrow_value = reader.whole("swa_v_head_dim", value)
    bounded_sinks = reader.flag("add_swa_attention_sink_bias", True)
    full_sinks = reader.flag("add_full_attention_sink_bias", False)
    sizes = windows(reader, form.layers, replace(traits.windows, always=pattern is not None))
    if pattern is not None:
        sizes = [size if bounded else None for size, bounded in zip(sizes, pattern, strict=True)]
    full = attention(reader, form, traits, sinks=full_sinks, value_width=value)
    return [
        full
        if size is None
        else attention(reader, narrow, traits, size, sinks=bounded_sinks, value_width=narrow_value)
        for size in sizes
    ]


_GATES = dict.fromkeys(("per_head", "per-head"), "head")
_GATES |= dict.fromkeys(("per_element", "per-element"), "full")


def laguna_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Laguna: heads counted layer by layer, each with a gate."""
    heads = reader.per_layer("num_attention_heads_per_layer", form.layers, form.heads)
    # Default gate: one logit per head; any other `gating` means a gate of the heads' full width.
    usual = reader.value("gating") in (None, True, "per-head", "per_head")
    gates = reader.words("gating_types", form.layers, _GATES) or []
    gates = gates or ["head" if usual else "full"] * form.layers
    bounds = windows(reader, form.layers, traits.windows)
    mixers = []
    for window, count, gate in zip(bounds, heads, gates, strict=True):
        traits = replace(traits, gate=gate)
        if count % form.kv_heads:
            problem = f"names {count}, not whole groups of heads"
            raise reader.fail("num_attention_heads_per_layer", problem)
        mixers.append(attention(reader, replace(form, heads=count), traits, window))
    return mixers


def step_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Step 3.5 and 3.7: norms on queries and keys; windowed layers may have other heads."""
    windowed = reader.section("attention_other_setting")
    heads = reader.whole("num_sliding_attention_heads", form.heads)
    cached, width = form.kv_heads, form.width
    if windowed is not None:
        kind = windowed.text("attention_type", "sliding_attention")
        if kind != "sliding_attention":
            raise windowed.fail("attention_type", f"is {kind!r:.40}, expected sliding_attention")
        heads = windowed.whole("num_attention_heads")
        cached = windowed.whole("num_attention_groups", cached)
        width = windowed.whole("head_dim", width)
        windowed.ignore("true_head_dim")
        windowed.finish()
    if heads % cached:
        raise reader.fail("attention_other_setting", f"{cached} groups do not divide {heads} heads")
    bounded = replace(form, heads=heads, kv_heads=cached, width=width)
    mixers = []
    for window, changed in zip(
        windows(reader, form.layers, traits.windows), overrides(reader, form.layers), strict=True
    ):
        measures = form if window is None else bounded
        count = changed.get("num_attention_heads", measures.heads)
        mixers.append(attention(reader, replace(measures, heads=count), traits, window))
    return mixers


def step_mixtures(reader: Reader, count: int) -> list[bool] | None:
    """Mixture layers as Step lists them: "3,4,5"; all but the first where no key says."""
    text = reader.text("moe_layers_enum")
    if not text:
        if reader.has("first_k_dense_replace") or reader.has("mlp_layer_types"):
            return None
        return [index > 0 for index in range(count)]
    items = [item.strip() for item in text.split(",")]
    if not all(item.isdecimal() and len(item) < 5 and int(item) < count for item in items):
        raise reader.fail("moe_layers_enum", f"does not name layers below {count}")
    return [index in set(map(int, items)) for index in range(count)]


def chunked_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Llama 4: attention within chunks, every fourth layer full."""
    words = {"full_attention": False, "chunked_attention": True}
    chunked = reader.words("layer_types", form.layers, words)
    every = reader.whole("no_rope_layer_interval", 4, most=MAX_LAYERS)
    # The key lists which layers *have* rotary positions, whatever its name says.
    rotary = reader.wholes("no_rope_layers", most=1)
    if chunked is None and rotary:
        chunked = reader.flags("no_rope_layers", form.layers)
    if chunked is None:
        chunked = [(index + 1) % every != 0 for index in range(form.layers)]
    size = reader.whole("attention_chunk_size", 8192)
    full = attention(reader, form, traits)
    bounded = attention(reader, form, traits, size, kind="chunked")
    return [bounded if each else full for each in chunked]


def llama4_mixtures(reader: Reader, count: int) -> list[bool]:
    """Llama 4's mixture layers: those listed, else every `interleave_moe_layer_step`-th."""
    step = reader.whole("interleave_moe_layer_step", 1, most=MAX_LAYERS)
    named = reader.wholes("moe_layers", most=count - 1)
    if named is not None:
        return [index in set(named) for index in range(count)]
    return [(index + 1) % step == 0 for index in range(count)]


def gpt_neo_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """GPT-Neo: global and local layers, also written [[["global", "local"], 12]]."""
    words = reader.words("attention_layers", form.layers, {"global": "global", "local": "local"})
    kinds = reader.value("attention_types")
    if words is None:
        words = []
        for entry in kinds if isinstance(kinds, list) else []:
            if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], list):
                break
            if type(entry[1]) is not int or not 0 < entry[1] <= form.layers:
                break
            words += [str(word) for word in entry[0]] * entry[1]
        if len(words) != form.layers or set(words) - {"global", "local"}:
            problem = f"does not name {form.layers} global or local layers"
            raise reader.fail("attention_types", problem)
    local = attention(reader, form, traits, reader.whole("window_size", 256))
    full = attention(reader, form, traits)
    return [local if word == "local" else full for word in words]


def block_sparse_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """MiniMax-M3: full first layers, then an indexer that picks whole blocks to attend to."""
    if reader.text("qk_norm_type", "per_head") != "per_head":
        traits = replace(traits, qk_norm="all")
    full = attention(reader, form, traits)
    words = {"full_attention": False, "minimax_m3_sparse": True}
    picks = reader.words("layer_types", form.layers, words)
    section = reader.section("sparse_attention_config")
    if picks is None and section is not None and section.flag("use_sparse_attention", True):
        listed = section.wholes("sparse_attention_freq", most=1)
        if listed is None or len(listed) != form.layers:
            problem = f"expected {form.layers} entries of 0 or 1"
            raise section.fail("sparse_attention_freq", problem)
        picks = list(map(bool, listed))
    reader.ignore("index_n_heads", "index_head_dim", "index_block_size", "index_topk_blocks")
    if picks is None or not any(picks):
        return [full] * form.layers
    # Attention to the blocks with the best index keys; everything stays in memory.
    inner = reader if section is None else section
    heads = inner.whole(("sparse_num_index_heads", "index_n_heads"))
    width = inner.whole(("sparse_index_dim", "index_head_dim"))
    block = inner.whole(("sparse_block_size", "index_block_size"))
    blocks = inner.whole(("sparse_topk_blocks", "index_topk_blocks"))
    weights = (
        matrix("self_attn.index_q_proj", "attention", form.hidden, heads * width),
        matrix("self_attn.index_k_proj", "attention", form.hidden, width),
        vector("self_attn.index_norms", "attention", 2 * width),
    )
    attended = replace(full.caches[0], kind="block_sparse", limit=block * blocks, stored=True)
    scored = Cache("index", width, 1, 2 * heads * width, 2 * heads * width)
    sparse = Mixer("block_sparse", full.weights + weights, (attended, scored))
    return [sparse if each else full for each in picks]


def minimax_m2_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """MiniMax-M2: full attention, which its list of layers must say too."""
    windowed = reader.wholes("attn_type_list", most=1)
    if windowed is not None and (len(windowed) != form.layers or 0 in windowed):
        raise reader.fail("attn_type_list", f"expected 1 (full) for each of {form.layers} layers")
    return full_attention(reader, form, traits)


def hunyuan_parts(reader: Reader, form: Shape, traits: Traits) -> list[FeedForward]:
    """Hunyuan mixtures: every layer has routed experts and one shared of the same width."""
    widths = ("moe_intermediate_size", "intermediate_size")
    reader.ignore(*widths)
    moe = replace(
        traits.moe or Moe(),
        inner=widths[0] if reader.has(widths[0]) else widths[1],
        shared_count=1 if reader.flag("use_mixed_mlp_moe", True) else 0,
    )
    return mixtures(reader, form, traits, moe)


def bailing_parts(reader: Reader, form: Shape, traits: Traits) -> list[FeedForward]:
    """Ling 1 and 2 (Bailing): shared experts of the width of the routed ones."""
    shared = "moe_shared_expert_intermediate_size"
    width = reader.optional(shared)
    if width is not None and width != reader.whole("moe_intermediate_size"):
        raise reader.fail(shared, f"is {width}, not the width of the routed experts")
    return mixtures(reader, form, traits, traits.moe or Moe())
