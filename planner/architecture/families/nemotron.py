"""Nemotron: H and 3 (each layer one block: Mamba-2, attention, MLP or experts), and NAS."""

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families import common
from planner.architecture.families.standard import shape
from planner.architecture.families.traits import Shape, Traits
from planner.architecture.feedforward import dense_mlp, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, matrix, vector
from planner.architecture.recurrent import mamba2

_ROUND = 256  # columns; FFN widths of a searched architecture are rounded up to a multiple
_LETTERS = {"M": "mamba", "E": "moe", "-": "mlp", "*": "attention"}
_WORDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
}


def nemotron_h(reader: Reader, name: str) -> Model:
    """The hybrid family; squared-ReLU blocks have no gate, experts may work at a latent width."""
    blocks = _blocks(reader, ("layers_block_type", "layer_types"), "hybrid_override_pattern")
    if blocks is None:
        raise reader.fail("layers_block_type", "is missing, and so is hybrid_override_pattern")
    count = reader.optional("num_hidden_layers", most=MAX_LAYERS)
    if count is not None and count != len(blocks):
        raise reader.fail("num_hidden_layers", f"is {count}, the pattern has {len(blocks)} layers")
    traits = Traits(width=128, kv_heads=8, head_dim=("head_dim", "attention_head_dim"))
    form = shape(reader, traits, len(blocks))
    ahead = _blocks(reader, ("mtp_layers_block_type",), "mtp_hybrid_override_pattern")
    depth = reader.whole(common.MTP, 0, least=0, most=MAX_LAYERS)
    if ahead is None:
        ahead = ["attention", "moe"]
    reader.ignore("sliding_window", "expand", "mamba_hidden_act", "time_step_rank")
    norms = (vector("norm", "other", form.hidden),)
    needed = set(blocks) | (set(ahead) if depth else set())
    kinds = {kind: Layer(*_block(reader, form, kind), norms) for kind in sorted(needed)}
    if "mlp" not in needed:
        reader.ignore("intermediate_size", "mlp_bias")
    if "moe" not in needed:
        reader.ignore(common.EXPERTS, common.PER_TOKEN, common.SHARED_KEYS)
        reader.ignore("moe_intermediate_size", "moe_shared_expert_intermediate_size")
        reader.ignore("moe_latent_size", "mlp_bias")
    if "mamba" not in needed:
        reader.ignore("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size")
        reader.ignore("conv_kernel", "use_bias", "use_conv_bias", "mamba_proj_bias")
    params = depth * sum(kinds[kind].parameters for kind in ahead if depth)
    prediction = common.predicting(depth, depth, params, form.hidden)
    layers = [kinds[kind] for kind in blocks]
    return common.assemble(name, "nemotron_h", form, layers, prediction=prediction)


def _blocks(reader: Reader, keys: tuple[str, ...], pattern: str) -> list[str] | None:
    listed, drawn = reader.value(keys), reader.text(pattern)
    if listed is not None:
        if not isinstance(listed, list) or not 0 < len(listed) <= MAX_LAYERS:
            raise reader.fail(keys[0], f"expected a list of 1 to {MAX_LAYERS} block names")
        for word in listed:
            if not isinstance(word, str) or word not in _WORDS:
                raise reader.fail(
                    keys[0], f"names {word!r:.40}, expected one of {', '.join(_WORDS)}"
                )
        return [_WORDS[word] for word in listed]
    letters = drawn.replace("|", "")
    if not letters:
        return None
    if len(letters) > MAX_LAYERS or set(letters) - set(_LETTERS):
        raise reader.fail(pattern, f"expected at most {MAX_LAYERS} of the letters M E - *")
    return [_LETTERS[letter] for letter in letters]


def _block(reader: Reader, form: Shape, kind: str) -> tuple[Mixer | None, FeedForward | None]:
    if kind == "mamba":
        reader.ignore("mamba_proj_bias")
        heads, width = reader.whole("mamba_num_heads", 128), reader.whole("mamba_head_dim", 64)
        precision = reader.precision("mamba_ssm_cache_dtype", "float32")
        scan = common.scan(reader, "nemotron_h")
        return mamba2(form.hidden, heads, width, scan, precision=precision), None
    if kind == "attention":
        bias = reader.flag("attention_bias", False)
        widths = (form.hidden, form.heads, form.kv_heads, form.width)
        return grouped_attention(*widths, bias=bias, output_bias=bias, path="mixer"), None
    bias = reader.flag("mlp_bias", False)
    if kind == "mlp":
        inner = reader.whole("intermediate_size")
        return None, dense_mlp(form.hidden, inner, gated=False, bias=bias, path="mixer")
    if bias:
        raise reader.fail("mlp_bias", "is true; no published mixture of this family has it")
    experts, active = reader.whole(common.EXPERTS), reader.whole(common.PER_TOKEN)
    common.check_experts(reader, experts, active)
    part = mixture(
        form.hidden,
        reader.whole("moe_intermediate_size"),
        experts,
        active,
        shared=reader.whole(common.SHARED_KEYS, 1, least=0),
        shared_inner=reader.whole("moe_shared_expert_intermediate_size"),
        gated=False,
        latent=reader.optional("moe_latent_size"),
        router_bias=True,
        path="mixer",
        groups=common.expert_groups(reader, experts, active),
    )
    return None, part


def nemotron_nas(reader: Reader, name: str) -> Model:
    """Llama-Nemotron (DeciLM): each block's attention and feed-forward part chosen by search."""
    blocks = reader.value("block_configs")
    if not isinstance(blocks, list) or not 0 < len(blocks) <= MAX_LAYERS:
        raise reader.fail("block_configs", "expected a list of blocks")
    form = shape(reader, Traits(kv_heads=1), len(blocks))
    reader.ignore("num_key_value_heads_per_layer", "intermediate_size", "first_k_dense_replace")
    stated = reader.optional("num_hidden_layers", most=MAX_LAYERS)
    if stated is not None and stated != len(blocks):
        raise reader.fail("block_configs", f"has {len(blocks)} entries for {stated} layers")
    bias, inside = reader.flag("attention_bias", False), reader.flag("mlp_bias", False)
    layers = []
    for index, block in enumerate(blocks):
        entry = Reader(block if isinstance(block, dict) else {}, f"{reader.where}  block {index}")
        mixer, norms = _chosen_mixer(entry, form, bias)
        part, more = _chosen_part(entry, form, inside)
        outer = (vector("norms", "other", (norms + more) * form.hidden),) if norms + more else ()
        layers.append(Layer(mixer, part, outer))
    return common.assemble(name, "nemotron_nas", form, layers)


def _chosen(entry: Reader, key: str) -> tuple[Reader, str]:
    section = entry.section(key)
    if section is None:
        raise entry.fail(key, "is missing in this entry of block_configs")
    if section.flag("no_op", False):
        return section, "none"
    return section, "linear" if section.flag("replace_with_linear", False) else "full"


def _chosen_mixer(entry: Reader, form: Shape, bias: bool) -> tuple[Mixer | None, int]:
    section, kind = _chosen(entry, "attention")
    if kind == "none":
        return None, 0
    for key in ("sparsify", "num_sink_tokens", "unshifted_sink"):
        if section.value(key):
            raise section.fail(key, "is given; attention of this kind is not counted")
    if kind == "linear":
        linear = matrix("self_attn.linear", "attention", form.hidden, form.hidden)
        return Mixer("linear", (linear,)), 1
    group = section.whole("n_heads_in_group")
    if form.heads % group:
        raise section.fail("n_heads_in_group", f"is {group}, does not divide {form.heads} heads")
    window = section.optional("window_length")
    widths = (form.hidden, form.heads, form.heads // group, form.width)
    kind = "full" if window is None else "window"
    return grouped_attention(*widths, bias=bias, output_bias=bias, window=window, kind=kind), 1


def _chosen_part(entry: Reader, form: Shape, bias: bool) -> tuple[FeedForward | None, int]:
    section, kind = _chosen(entry, "ffn")
    if kind == "none":
        return None, 0
    if section.value("sparsify"):
        raise section.fail("sparsify", "is given; sparse matrices are not counted")
    if kind == "linear":
        linear = matrix("mlp.linear", "dense_ffn", form.hidden, form.hidden)
        return FeedForward("dense", (linear,)), 1
    inner = section.optional("intermediate_size")
    if inner is None:
        times = section.number("ffn_mult")
        # Gated MLP: three matrices replace two, so 2/3 of the multiple, in whole blocks of 256.
        inner = -(-int(2 * times * form.hidden / 3) // _ROUND) * _ROUND
    return dense_mlp(form.hidden, inner, bias=bias), 1
