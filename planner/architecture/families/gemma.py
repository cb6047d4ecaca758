"""Gemma 3n and 4: wider full layers, borrowed caches, an embedding for every layer, mixtures."""

from dataclasses import replace

from planner.architecture.config_reader import Reader
from planner.architecture.families.common import EXPERTS, PER_TOKEN, overrides, windows
from planner.architecture.families.standard import attention, dense_part, mixture_part
from planner.architecture.families.traits import Shape, Traits
from planner.architecture.layers import Experts, FeedForward, Mixer, Weight, matrix, vector


def shared_cache_layers(reader: Reader, form: Shape, traits: Traits) -> list[Mixer]:
    """Gemma 3n and 4: windowed layers; the last layers read the KV cache of an earlier layer.

    Full layers of Gemma 4 have wider and fewer heads, and the last is one where no list says.
    """
    wide, forced = form, "full_width" in traits.defaults
    equal = reader.flag("attention_k_eq_v", False)
    if forced:
        wide = replace(form, width=reader.whole("global_head_dim", traits.defaults["full_width"]))
        if equal:
            cached = reader.whole("num_global_key_value_heads", form.kv_heads)
            wide = replace(wide, kv_heads=cached)
    sizes = windows(reader, form.layers, traits.windows)
    if forced and not reader.has("layer_types"):
        sizes[-1] = None
    unshared = form.layers - reader.whole("num_kv_shared_layers", 0, least=0, most=form.layers)
    mixers = []
    for index, (size, changed) in enumerate(
        zip(sizes, overrides(reader, form.layers), strict=True)
    ):
        measures = wide if size is None else form
        measures = replace(
            measures,
            width=changed.get("head_dim", measures.width),
            kv_heads=changed.get("num_key_value_heads", measures.kv_heads),
        )
        keys = "as values" if equal and size is None else "own"
        keys = keys if index < unshared else "borrowed"
        mixers.append(attention(reader, measures, traits, size, keys=keys))
    return mixers


def gemma4_parts(reader: Reader, form: Shape, traits: Traits) -> list[FeedForward]:
    """Gemma 4: dense parts, twice as wide where caches are borrowed, or these plus experts."""
    borrowed = reader.whole("num_kv_shared_layers", 0, least=0)
    wide = reader.flag("use_double_wide_mlp", False)
    widths = [
        each * (2 if wide and index >= form.layers - borrowed else 1)
        for index, each in enumerate(reader.per_layer("intermediate_size", form.layers))
    ]
    parts = {each: dense_part(reader, form, traits, each) for each in set(widths)}
    if reader.flag("enable_moe_block", False) and traits.moe is not None:
        mixed = mixture_part(reader, form, traits.moe)
        scale = vector("moe.router.scale", "router", form.hidden)
        routing = replace(mixed.experts or Experts(0, 0, 0, form.hidden), shared=1)
        for width, part in parts.items():
            # The dense part is a shared expert in all but name.
            beside = (replace(one, group="shared") for one in part.weights)
            parts[width] = FeedForward(mixed.kind, (*mixed.weights, scale, *beside), routing)
    else:
        reader.ignore(EXPERTS, PER_TOKEN, "moe_intermediate_size", "expert_intermediate_size")
    return [parts[each] for each in widths]


def layer_embeddings(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """Weights of per-layer input embeddings: down to their width and up again; empty if 0 wide."""
    narrow = reader.whole("hidden_size_per_layer_input", 256, least=0)
    if not narrow:
        return ()
    return (
        matrix("per_layer_input_gate", "other", form.hidden, narrow),
        matrix("per_layer_projection", "other", narrow, form.hidden),
        vector("post_per_layer_input_norm", "other", form.hidden),
    )


def layer_embedding_tables(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """The embedding of every token for every layer, looked up, and its projection."""
    narrow = reader.whole("hidden_size_per_layer_input", 256, least=0)
    rows = reader.whole("vocab_size_per_layer_input", 262144)
    if not narrow:
        return ()
    width = form.layers * narrow
    return (
        Weight("embed_tokens_per_layer", "embedding", rows * width, 0, True),
        matrix("per_layer_model_projection", "other", form.hidden, width),
        vector("per_layer_projection_norm", "other", narrow),
    )


def gemma3n_residual_streams(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """Gemma 3n: weights of alternating residual streams and of a low-rank part in each layer."""
    streams, rank = reader.whole("altup_num_inputs", 4), reader.whole("laurel_rank", 64)
    scale = form.hidden if reader.flag("altup_correct_scale", True) else 0
    gates = layer_embeddings(reader, form)[:2]
    return (
        matrix("laurel.linear_left", "other", form.hidden, rank),
        matrix("laurel.linear_right", "other", rank, form.hidden),
        matrix("altup.modality_router", "other", form.hidden, streams),
        vector("altup.coefs", "other", streams**3 + streams**2 + scale),
        *gates,
    )


def gemma3n_model_weights(reader: Reader, form: Shape) -> tuple[Weight, ...]:
    """Projections into Gemma 3n's residual streams, and the layers' embeddings."""
    width = 2 * (reader.whole("altup_num_inputs", 4) - 1) * form.hidden
    projections = matrix("altup_projections", "other", form.hidden, width)
    return (projections, *layer_embedding_tables(reader, form))
