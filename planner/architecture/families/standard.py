"""The model of a standard decoder: what its traits and the keys of its configuration say."""

from planner.architecture.attention import grouped_attention
from planner.architecture.config_reader import MAX_LAYERS, Keys, Reader
from planner.architecture.families import common
from planner.architecture.families.traits import Moe, Shape, Traits, is_enabled
from planner.architecture.feedforward import dense_mlp, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, vector


def standard(reader: Reader, name: str, kind: str, traits: Traits) -> Model:
    """The model of a standard decoder."""
    reader.ignore(*traits.ignored)
    for key, usual, problem in traits.expected:
        if isinstance(usual, bool):
            usual_is_said = reader.flag(key, usual) == usual
        else:
            usual_is_said = reader.whole(key, usual, least=0) == usual
        if not usual_is_said:
            raise reader.fail(key, problem)
    form = shape(reader, traits)
    parallel = is_enabled(reader, traits.parallel)
    norm = form.hidden * (2 if traits.norm_bias else 1)
    count = traits.norms - (1 if parallel and traits.shared_norm else 0)
    count += 2 if is_enabled(reader, traits.post_norms) else 0
    around = traits.around(reader, form) if traits.around else ()
    # A mixer beyond the number of layers belongs to the multi-token prediction blocks.
    mixers = (traits.mixers or gqa_layers)(reader, form, traits)
    parts = (traits.parts or feed_forward)(reader, form, traits)

    def layer(mixer: Mixer, part: FeedForward) -> Layer:
        norms = count + (traits.sparse_norms if part.experts is not None else 0)
        outer = (vector("norms", "other", norms * norm),) if norms else ()
        return Layer(mixer, part, (*outer, *around), parallel)

    layers = [layer(*each) for each in zip(mixers[: form.layers], parts, strict=True)]
    mixture_or_last = next((part for part in reversed(parts) if part.experts), parts[-1])
    block = layer(mixers[-1], mixture_or_last)
    extra = traits.outside(reader, form) if traits.outside else ()
    if traits.positions is not None:
        rows = (form.max_context or 0) + traits.positions
        extra += (vector("positions", "other", rows * form.hidden),)
    if is_enabled(reader, traits.head_bias):
        extra += (vector("lm_head.bias", "head", form.vocab),)
    return common.assemble(
        name,
        kind,
        form,
        layers,
        extra=extra,
        prediction=(traits.prediction or common.predict)(reader, block, form.hidden),
        final_norm=norm if traits.final_norm else 0,
    )


def shape(reader: Reader, traits: Traits, layers: int | None = None) -> Shape:
    """Read the outer shape.

    The head width is that of the key where given, else the family's, else hidden / heads, which
    must divide. Absent `num_key_value_heads` means multi-head attention unless the family says
    otherwise. Latent attention caches one vector for all heads, and has widths of its own.
    """
    hidden = reader.whole(common.HIDDEN)
    heads = reader.whole(common.HEADS, traits.heads)
    cached, width = 1, 0
    if traits.latent is None:
        cached = _cached_heads(reader, traits, heads)
        width = _head_width(reader, traits, hidden, heads)
    count = reader.whole(common.LAYERS, most=MAX_LAYERS) if layers is None else layers
    vocab = reader.whole(traits.vocab_key, traits.vocab)
    tied = reader.flag("tie_word_embeddings", traits.tied)
    longest = common.context(reader) or traits.context
    return Shape(hidden, count, heads, cached, width, vocab, tied, longest)


def _cached_heads(reader: Reader, traits: Traits, heads: int) -> int:
    if traits.own_kv_heads is not None:
        reader.ignore(common.KV_HEADS)
        return traits.own_kv_heads(reader, heads)
    cached = reader.optional(common.KV_HEADS)
    if cached is None:
        has_kv_heads = any(reader.is_set(key) for key in common.KV_HEADS)
        cached = heads if has_kv_heads or traits.kv_heads is None else traits.kv_heads
    if heads % cached:
        raise reader.fail(
            "num_attention_heads", f"is {heads}, not a multiple of {cached} key-value heads"
        )
    return cached


def _head_width(reader: Reader, traits: Traits, hidden: int, heads: int) -> int:
    width = reader.optional(traits.head_dim) or traits.width
    if width is None:
        if hidden % heads:
            raise reader.fail("head_dim", f"is missing, and {hidden} is not divisible by {heads}")
        width = hidden // heads
    return width


def attention(
    reader: Reader,
    form: Shape,
    traits: Traits,
    window: int | None = None,
    *,
    kind: str = "window",
    sinks: bool | None = None,
    value_width: int | None = None,
    keys: str = "own",
) -> Mixer:
    """Grouped-query attention with the biases, norms and gates of a family, in one layer.

    `sinks`, `value_width` and `keys` are those of `grouped_attention`, where layers differ in them.
    """
    norm = gate = 0
    if traits.qk_norm and is_enabled(reader, traits.qk_norm_if):
        wide = 1 if keys == "borrowed" else 2
        wide = wide if traits.qk_norm == "head" else form.heads + form.kv_heads
        norm = wide * form.width * (2 if traits.qk_norm_bias else 1)
    gates = bool(traits.gate) and is_enabled(reader, traits.gate_if)
    if gates and traits.gate != "query":
        gate = form.heads * (form.width if traits.gate == "full" else 1)
    return grouped_attention(
        form.hidden,
        form.heads,
        form.kv_heads,
        form.width,
        bias=is_enabled(reader, traits.qkv_bias),
        output_bias=is_enabled(reader, traits.output_bias),
        norm=norm,
        gate=gates and traits.gate == "query",
        gate_width=gate,
        sinks=traits.sinks if sinks is None else sinks,
        loose=traits.loose_attention(reader, form) if traits.loose_attention else 0,
        value_width=value_width,
        keys=keys,
        window=window,
        kind="full" if window is None else kind,
        path=traits.path,
    )


def full_attention(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Full attention in every layer; a key that says otherwise is not read, and so refused."""
    return [attention(reader, form, traits)] * form.layers


def gqa_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Grouped-query attention in every layer, full or windowed."""
    sizes = common.windows(reader, form.layers, traits.windows)
    if form.max_context is not None:
        # A window of at least the maximum context limits no layer; some families write it that way.
        sizes = [None if size is None or size >= form.max_context else size for size in sizes]
    mixers = {size: attention(reader, form, traits, size) for size in dict.fromkeys(sizes)}
    return [mixers[size] for size in sizes]


def feed_forward(reader: Reader, form: Shape, traits: Traits) -> list[FeedForward]:
    """The feed-forward part of each layer, dense or a mixture."""
    if traits.moe is not None:
        return mixtures(reader, form, traits, traits.moe)
    default = None if traits.inner_ratio is None else traits.inner_ratio * form.hidden
    widths = reader.per_layer(common.INNER, form.layers, default)
    parts = {}
    for inner in dict.fromkeys(widths):
        if inner % traits.inner_divisor:
            raise reader.fail(common.INNER[0], f"is {inner}, expected an even number")
        parts[inner] = dense_part(reader, form, traits, inner // traits.inner_divisor)
    return [parts[inner] for inner in widths]


def dense_part(reader: Reader, form: Shape, traits: Traits, inner: int) -> FeedForward:
    """A dense part of width `inner` with the biases and vectors of a family."""
    loose = traits.activation_scalars + (inner if traits.inner_norm else 0)
    bias = is_enabled(reader, traits.mlp_bias)
    return dense_mlp(
        form.hidden, inner, gated=traits.gated, bias=bias, loose=loose, path=traits.mlp_path
    )


def mixtures(reader: Reader, form: Shape, traits: Traits, moe: Moe) -> list[FeedForward]:
    """The feed-forward part of each layer, dense or a mixture."""
    sparse = moe.layers(reader, form.layers) if moe.layers is not None else None
    if moe.everywhere is not None:
        sparse = [moe.everywhere] * form.layers
    if sparse is None:
        sparse = common.sparse_layers(reader, form.layers, moe.first_dense)
    only = set(reader.wholes("mlp_only_layers", most=max(form.layers - 1, 0)) or ())
    step = reader.whole("decoder_sparse_step", 1, most=MAX_LAYERS)
    sparse = [
        chosen and index not in only and (index + 1) % step == 0
        for index, chosen in enumerate(sparse)
    ]
    mixed = mixture_part(reader, form, moe) if any(sparse) else None
    if mixed is None:
        reader.ignore(common.EXPERTS, common.PER_TOKEN, common.SHARED_KEYS, moe.inner, moe.shared)
    dense_inner = moe.dense_inner or common.INNER
    if all(sparse):
        reader.ignore(dense_inner)
        return [mixed] * form.layers if mixed is not None else []
    width = reader.whole(dense_inner, moe.dense_width)
    plain = dense_part(reader, form, traits, width)
    return [mixed if chosen and mixed is not None else plain for chosen in sparse]


def mixture_part(reader: Reader, form: Shape, moe: Moe) -> FeedForward:
    """The mixture that every sparse layer of a family has."""
    experts = _uniform(reader, common.EXPERTS, form.layers, moe.experts)
    active = _uniform(reader, common.PER_TOKEN, form.layers, moe.active)
    common.check_experts(reader, experts, active)
    inner = _uniform(reader, moe.inner, form.layers, None)
    shared, wide = 0, None
    if moe.shared:
        wide = reader.whole(moe.shared, moe.shared_width, least=0)
        reader.ignore(common.SHARED_KEYS)
        shared = 1 if wide else 0
    else:
        shared = _uniform(reader, common.SHARED_KEYS, form.layers, moe.shared_count, least=0)
    latent = reader.optional(moe.latent) if moe.latent else None
    return mixture(
        form.hidden,
        inner,
        experts,
        active,
        shared=shared,
        shared_inner=wide,
        shared_gate=moe.shared_gate,
        shared_path=moe.shared_path,
        latent=latent,
        latent_norm=is_enabled(reader, moe.latent_norm) and latent is not None,
        router=moe.router,
        router_bias=is_enabled(reader, moe.router_bias),
        shared_bias=is_enabled(reader, moe.shared_bias),
        expert_bias=moe.expert_bias,
        path=moe.path,
        idle=common.idle_experts(reader),
        groups=common.expert_groups(reader, experts, active),
    )


def _uniform(reader: Reader, keys: Keys, count: int, default: int | None, *, least: int = 1) -> int:
    listed = reader.per_layer(keys, count, default, least=least)
    if len(set(listed)) > 1:
        first = keys if isinstance(keys, str) else next(key for key in keys if reader.has(key))
        raise reader.fail(first, "differs from layer to layer, expected one number for all")
    return listed[0]
