"""Mixers of decoders with linear attention, convolutions or state spaces between attention."""

from collections.abc import Mapping

from planner.architecture import recurrent
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.common import FULL_OR_LINEAR, INNER, full_layers, scan
from planner.architecture.families.standard import attention, dense_part, mixtures
from planner.architecture.families.traits import Shape, Traits
from planner.architecture.layers import FeedForward, Mixer

# Keys that only implementations of the scan read; no tensor depends on them.
SCAN_KEYS = (
    *("chunk_size", "mamba_chunk_size", "residual_in_fp32", "use_mambapy", "mixer_rms_eps"),
    *("use_associative_scan", "rescale_prenorm_residual", "num_logits_to_keep"),
    "mamba_norm_before_gate",
)
_ATTENDS = {"mamba": False, "linear_attention": False, "attention": True, "full_attention": True}


def gated_delta_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Three gated-delta layers to one of full attention: Qwen 3-Next and 3.5, OLMo Hybrid."""
    defaults = traits.defaults
    keys = reader.whole("linear_num_key_heads", defaults.get("key_heads", form.heads))
    values = reader.whole("linear_num_value_heads", defaults.get("value_heads", form.heads))
    if values % keys:
        raise reader.fail("linear_num_value_heads", f"is {values}, not a multiple of {keys}")
    linear = recurrent.gated_delta(
        form.hidden,
        key_heads=keys,
        key_width=reader.whole("linear_key_head_dim", defaults["key_width"]),
        value_heads=values,
        value_width=reader.whole("linear_value_head_dim", defaults["value_width"]),
        kernel=reader.whole("linear_conv_kernel_dim", 4),
        precision=reader.precision("mamba_ssm_dtype", "float32"),
    )
    full = attention(reader, form, traits)
    every = reader.whole("full_attention_interval", 4, most=MAX_LAYERS)
    is_full = full_layers(reader, form.layers, every)
    return [full if each else linear for each in (*is_full, True)]


def lightning_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """MiniMax-01 and M1: lightning attention, full where `attn_type_list` says 1."""
    full = attention(reader, form, traits)
    linear = recurrent.lightning(form.hidden, form.heads, form.width)
    named = reader.words("layer_types", form.layers, FULL_OR_LINEAR)
    listed = reader.flags("attn_type_list", form.layers)
    if listed is not None and named not in (None, listed):
        raise reader.fail("attn_type_list", "and layer_types disagree")
    is_full = named if listed is None else listed
    if is_full is None:
        raise reader.fail("attn_type_list", "is missing; expected 0 (lightning) or 1 (full)")
    return [full if each else linear for each in is_full]


def convolution_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """LFM2 and 3: gated short convolutions, attention by `layer_types` or a list of its layers."""
    words = ("conv", "full_attention", "sliding_attention")
    named = reader.words("layer_types", form.layers, {word: word for word in words})
    listed = reader.wholes("full_attn_idxs", most=max(form.layers - 1, 0))
    window = reader.optional("sliding_window")
    if named is None:
        if listed is None:
            raise reader.fail("layer_types", "is missing, and so is full_attn_idxs")
        named = [words[index in set(listed)] for index in range(form.layers)]
    if words[2] in named and window is None:
        raise reader.fail("sliding_window", "is missing; layer_types names windowed layers")
    bias = reader.flag("conv_bias", False)
    mixers = {
        words[0]: recurrent.short_convolution(form.hidden, reader.whole("conv_L_cache", 3), bias),
        words[1]: attention(reader, form, traits),
        words[2]: attention(reader, form, traits, window),
    }
    return [mixers[word] for word in named]


def rounded_parts(reader: Reader, form: Shape, traits: Traits) -> list[FeedForward]:
    """LFM2's dense parts; their width is two thirds of the configured value, rounded up."""
    inner = reader.whole((*INNER, "block_ff_dim"))
    if reader.flag("block_auto_adjust_ff_dim", True):
        inner = int(2 * inner / 3)
        if reader.has("block_ffn_dim_multiplier"):
            inner = int(reader.number("block_ffn_dim_multiplier") * inner)
        multiple = reader.whole("block_multiple_of", 256)
        inner = -(-inner // multiple) * multiple
    return [dense_part(reader, form, traits, inner)] * form.layers


def griffin_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """RecurrentGemma: two gated recurrent layers to one of windowed attention."""
    blocks = reader.value("block_types")
    blocks = ["recurrent", "recurrent", "attention"] if blocks is None else blocks
    if not isinstance(blocks, list) or not blocks or len(blocks) > MAX_LAYERS:
        raise reader.fail("block_types", "expected a list of recurrent and attention")
    for word in blocks:
        if word not in ("recurrent", "attention"):
            raise reader.fail("block_types", f"names {word!r:.40}, expected recurrent or attention")
    width = reader.optional("lru_width") or form.hidden
    if width % form.heads:
        raise reader.fail("lru_width", f"is {width}, not divisible by {form.heads} heads")
    kernel = reader.whole("conv1d_width", 4)
    linear = recurrent.recurrent_unit(form.hidden, width, form.heads, kernel)
    full = attention(reader, form, traits, reader.whole("attention_window_size", 2048))
    kinds = (blocks[index % len(blocks)] for index in range(form.layers))
    return [full if kind == "attention" else linear for kind in kinds]


def jamba_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Jamba: one attention layer to seven of Mamba."""
    inner = reader.whole("mamba_expand", 2) * form.hidden
    rank = step_rank(reader, "mamba_dt_rank", form.hidden)
    linear = recurrent.mamba1(form.hidden, inner, rank, scan(reader, "jamba"), norms=True)
    full = attention(reader, form, traits)
    reader.ignore(SCAN_KEYS)
    attends = _periodic(reader, "attn_layer", form.layers, 8, 4)
    return [full if attend else linear for attend in attends]


def jamba_mixtures(reader: Reader, count: int) -> list[bool]:
    """Jamba's mixture layers: every second one, none with a single expert."""
    sparse = _periodic(reader, "expert_layer", count, 2, 1)
    return [False] * count if reader.whole("num_experts", 16) == 1 else sparse


def _periodic(reader: Reader, name: str, count: int, period: int, offset: int) -> list[bool]:
    every = reader.whole(f"{name}_period", period, most=MAX_LAYERS)
    start = reader.whole(f"{name}_offset", offset, least=0, most=MAX_LAYERS)
    if start >= every:
        raise reader.fail(f"{name}_offset", f"is {start}, not below the period {every}")
    return [index % every == start for index in range(count)]


def step_rank(reader: Reader, key: str, hidden: int) -> int:
    """The rank of the step's projection: a number, or `auto` for a sixteenth of the width."""
    if reader.value(key) in (None, "auto"):
        return -(-hidden // 16)
    return reader.whole(key)


def mamba2_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Bamba and Granite 4: Mamba-2, some layers attention."""
    listed = reader.wholes("attn_layer_indices", most=max(form.layers - 1, 0)) or []
    attends = _attending(reader, form.layers, _ATTENDS)
    if attends is None:
        attends = [index in set(listed) for index in range(form.layers)]
    full, linear = attention(reader, form, traits), _mamba2(reader, form)
    return [full if attend else linear for attend in attends]


def falcon_h1_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Falcon H1: attention and Mamba-2 side by side in every layer."""
    linear = _mamba2(
        reader,
        form,
        inner=reader.optional("mamba_d_ssm"),
        output_bias=reader.flag("projectors_bias", False),
        norm=reader.flag("mamba_rms_norm", False),
    )
    full = attention(reader, form, traits)
    attends = _attending(reader, form.layers, {"hybrid": True, **_ATTENDS})
    if attends is not None and not all(attends):
        raise reader.fail("layer_types", "expected hybrid layers alone")
    both = Mixer("hybrid", full.weights + linear.weights, full.caches, linear.state)
    return [both] * form.layers


def _attending(reader: Reader, count: int, words: Mapping[str, bool]) -> list[bool] | None:
    named = reader.words("layer_types", count, words)
    return reader.words("layers_block_type", count, words) if named is None else named


def _mamba2(
    reader: Reader,
    form: Shape,
    *,
    inner: int | None = None,
    output_bias: bool | None = None,
    norm: bool = True,
) -> Mixer:
    """Mamba-2 by the keys of hybrids; `mamba_d_head` may be `auto`."""
    reader.ignore("mamba_expand", SCAN_KEYS)
    heads = reader.whole("mamba_n_heads", 128)
    wide = inner if inner is not None else reader.whole("mamba_expand", 2) * form.hidden
    width = None if reader.value("mamba_d_head") == "auto" else reader.optional("mamba_d_head")
    if width is None:
        width = wide // heads
    if heads * width != wide:
        raise reader.fail("mamba_n_heads", f"is {heads}; heads of {width} do not make up {wide}")
    sizes = scan(reader, "bamba")
    return recurrent.mamba2(form.hidden, heads, width, sizes, output_bias=output_bias, norm=norm)


def granite_parts(reader: Reader, form: Shape, traits: Traits) -> list[FeedForward]:
    """Granite 4: experts with a shared part, or the shared part alone."""
    if traits.moe is not None and reader.whole("num_local_experts", 8, least=0):
        return mixtures(reader, form, traits, traits.moe)
    reader.ignore("num_experts_per_tok", "intermediate_size")
    width = reader.whole("shared_intermediate_size")
    return [dense_part(reader, form, traits, width)] * form.layers
